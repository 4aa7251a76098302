//! Changing this process to another user, for good.

use nix::unistd::{self, Gid, Group, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use crate::error::{During, Error, Result};

/// A user without root's rights, for this process to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    user: Uid,
    group: Gid,
    /// All groups of the user.
    groups: Vec<Gid>,
}

/// Why a text is no such user.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The system has no such user.
    #[error("there is no user {0:?}; getent passwd lists those there are")]
    Unknown(String),
    /// The system has no such group.
    #[error("there is no group {0:?}; getent group lists those there are")]
    UnknownGroup(String),
    /// A number without a name, so that its group is not known.
    #[error("user {0} has no name and so no group; write USER:GROUP")]
    NoGroup(u32),
    /// Root would give nothing up.
    #[error("{0:?} is root, who may do everything; name another user")]
    Root(String),
    /// The system refused to answer.
    #[error(transparent)]
    System(#[from] Error),
}

impl User {
    /// Looks up `NAME[:GROUP]`; both may be numbers.
    ///
    /// # Errors
    /// If there is no such user or group, or the user is root.
    pub fn find(text: &str) -> std::result::Result<Self, UserError> {
        let (name, group) = text.split_once(':').map_or((text, None), |(n, g)| (n, Some(g)));
        let known = unistd::User::from_name(name).during("look for a user")?;
        let number = name.parse::<u32>().ok().map(Uid::from_raw);
        let known = match (known, number) {
            (None, Some(number)) => unistd::User::from_uid(number).during("look for a user")?,
            (known, _) => known,
        };
        let user = known.as_ref().map(|known| known.uid).or(number);
        let user = user.ok_or_else(|| UserError::Unknown(name.to_owned()))?;
        if user.is_root() {
            return Err(UserError::Root(name.to_owned()));
        }
        let group = match (group, &known) {
            (Some(group), _) => group_of(group)?,
            (None, Some(known)) => known.gid,
            (None, None) => return Err(UserError::NoGroup(user.as_raw())),
        };
        let name = known.map_or_else(|| name.to_owned(), |known| known.name);
        let groups = match std::ffi::CString::new(name.as_str()) {
            Ok(name) => unistd::getgrouplist(&name, group).during("look for a user's groups")?,
            Err(_) => vec![group],
        };
        Ok(Self { name, user, group, groups })
    }

    /// The name of the user.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes this process the user's, without any capability, and without a way to gain rights by
    /// executing a program.
    ///
    /// Capabilities belong to threads: so this must be done while there is one thread, whose rights
    /// those to come inherit.
    ///
    /// # Errors
    /// If there are more threads, or this process may not change users.
    pub fn assume(&self) -> Result<()> {
        let threads = std::fs::read_dir("/proc/self/task").during("count threads")?.count();
        if threads != 1 {
            let reason = format!("there are {threads} threads, and each has rights of its own");
            return Err(Error::new("change the user", std::io::Error::other(reason)));
        }
        let own = capabilities(None).during("look at capabilities")?;
        if !self.is_own() || !own.permitted.is_empty() {
            give_up_bounding()?;
            unistd::setgroups(&self.groups).during("change the groups")?;
            let (user, group) = (self.user, self.group);
            unistd::setresgid(group, group, group).during("change the group")?;
            unistd::setresuid(user, user, user).during("change the user")?;
        }
        clear_ambient_capability_set().during("give up capabilities")?;
        let none = CapabilitySet::empty();
        let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, none).during("give up capabilities")?;
        set_no_new_privs(true).during("give up new privileges")
    }

    /// Whether this process is the user's already.
    fn is_own(&self) -> bool {
        let own = [unistd::getuid(), unistd::geteuid()];
        own == [self.user; 2] && unistd::getegid() == self.group
    }
}

// Drops all capabilities from the bounding set, so that executing a file cannot grant them.
fn give_up_bounding() -> Result<()> {
    let all = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    // The kernel refuses the first number beyond its last capability.
    for one in all {
        match capability_is_in_bounding_set(one) {
            Ok(true) => remove_capability_from_bounding_set(one).during("give up capabilities")?,
            Ok(false) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

/// The group of a name or a number.
fn group_of(text: &str) -> std::result::Result<Gid, UserError> {
    let known = Group::from_name(text).during("look for a group")?;
    let number = || text.parse::<u32>().ok().map(Gid::from_raw);
    known
        .map(|known| known.gid)
        .or_else(number)
        .ok_or_else(|| UserError::UnknownGroup(text.to_owned()))
}

/// Whether the process's user may create files in a directory.
#[must_use]
pub fn may_write_in(directory: &std::path::Path) -> bool {
    use rustix::fs::Access;
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether the process's user may read a file.
#[must_use]
pub fn may_read(file: &std::path::Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::READ_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_names_and_numbers() {
        let nobody = User::find("nobody").expect("every system has it");
        assert_eq!(nobody.name(), "nobody");
        assert_eq!(User::find(&nobody.user.to_string()).expect("it has a number"), nobody);
        let other = User::find("nobody:0").expect("a group by its number");
        assert_eq!(other.group, Gid::from_raw(0));
        assert!(other.groups.contains(&other.group), "{other:?}");
        assert!(User::find("4242424:4242").is_ok(), "nothing has to have a name");
        for (text, reason) in [
            ("root", "is root"),
            ("0", "is root"),
            ("no such user", "there is no user"),
            ("nobody:no such group", "there is no group"),
            ("4242424", "write USER:GROUP"),
        ] {
            let error = User::find(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn rights_are_given_up_by_one_thread_for_all() {
        let nobody = User::find("nobody").expect("every system has it");
        // The test itself has one beside that of its runner.
        let error = nobody.assume().expect_err("there are several").to_string();
        assert!(error.contains("threads"), "{error}");
    }
}
