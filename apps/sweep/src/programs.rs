//! Checks that the programs of an experiment are on this machine.

use std::path::Path;

use super::file::Sweep;

/// The first program that is missing, as its key in the experiment and its name; `None` if all
/// exist.
pub(crate) fn missing(sweep: &Sweep) -> Option<(&'static str, &str)> {
    let workload = &sweep.workload;
    let load = workload.load.as_ref().and_then(|words| words.first());
    let programs =
        [("workload.command", workload.command.first()), ("workload.load", load)].into_iter();
    let mut named = programs.filter_map(|(key, name)| Some((key, name?.as_str())));
    named.find(|(_, name)| !is_there(name))
}

// Whether a program exists. True for `afar`, which is this program, and for names with
// placeholders, which are only known in a run.
fn is_there(name: &str) -> bool {
    if name == "afar" || name.contains('{') {
        return true;
    }
    if name.contains('/') {
        return Path::new(name).exists();
    }
    let Some(directories) = std::env::var_os("PATH") else { return true };
    std::env::split_paths(&directories).any(|directory| directory.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing_of(workload: &str) -> Option<(&'static str, String)> {
        let sweep = Sweep::own(&format!("[workload]\n{workload}"));
        missing(&sweep).map(|(key, name)| (key, name.to_owned()))
    }

    #[test]
    fn programs_are_looked_for_as_a_shell_does() {
        for there in ["true", "afar", "{afar}", "{dir}/x", "/bin/sh", "./src"] {
            assert_eq!(missing_of(&format!("command = ['{there}']")), None, "{there}");
        }
        for gone in ["no-such-program", "/no/such/program"] {
            let wanted = Some(("workload.command", gone.to_owned()));
            assert_eq!(missing_of(&format!("command = ['{gone}']")), wanted);
        }
        let load = "command = ['true']\nload = ['no-such-load']\nready_text = 'x'";
        assert_eq!(missing_of(load), Some(("workload.load", "no-such-load".to_owned())));
    }
}
