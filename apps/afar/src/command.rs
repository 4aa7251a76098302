//! The table of commands. A command is one row of the table, in `main.rs`: its clap subcommand,
//! dispatch, man page and completions are made from the row.

/// Makes `Command` of rows `Name(Flags) => function`: clap's subcommands and what each one runs.
macro_rules! table {
    ($($name:ident($flags:ty) => $run:path,)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($name(Box<$flags>),)*
        }

        impl Command {
            /// The command's name on the command line.
            fn name(&self) -> String {
                match self {
                    $(Self::$name(_) => stringify!($name).to_lowercase(),)*
                }
            }

            /// Runs the command.
            fn execute(&self) -> Result<std::process::ExitCode, console::Failure> {
                match self {
                    $(Self::$name(flags) => $run(flags),)*
                }
            }
        }
    };
}

pub(crate) use table;
