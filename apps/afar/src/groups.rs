//! Tests that commands with many flags show them in groups.

use clap::{Command, CommandFactory as _};

use crate::Cli;

/// Most flags without groups.
const GLANCE: usize = 6;

#[test]
fn a_command_of_many_flags_has_them_in_groups() {
    let mut seen = 0;
    visit(&Cli::command(), "afar", &mut seen);
    assert!(seen > 15, "{seen}");
}

// Checks a command and its subcommands. One flag may be in no group, such as one that names a file
// in place of all others.
fn visit(command: &Command, name: &str, seen: &mut usize) {
    let is_shown = |flag: &&clap::Arg| !flag.is_hide_set() && !flag.is_positional();
    let flags: Vec<_> = command.get_arguments().filter(is_shown).collect();
    let alone: Vec<_> = flags.iter().filter(|flag| flag.get_help_heading().is_none()).collect();
    if flags.len() > GLANCE {
        *seen += 1;
        assert!(alone.len() <= 1, "{name} has flags in no group: {alone:?}");
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        visit(inner, &format!("{name} {}", inner.get_name()), seen);
    }
}
