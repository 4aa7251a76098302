//! The table of commands. A command is one row of it, in `main.rs`: clap's subcommand, its
//! dispatch, its man page and its completions follow from there.

/// Makes `Command` of rows `Name(Flags) => function`: clap's subcommands and what each one runs.
macro_rules! table {
    ($($name:ident($flags:ty) => $run:path,)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($name(Box<$flags>),)*
        }

        impl Command {
            /// As it is written on the command line.
            fn name(&self) -> String {
                match self {
                    $(Self::$name(_) => stringify!($name).to_lowercase(),)*
                }
            }

            fn execute(&self) -> Result<std::process::ExitCode, console::Failure> {
                match self {
                    $(Self::$name(flags) => $run(flags),)*
                }
            }
        }
    };
}

pub(crate) use table;
