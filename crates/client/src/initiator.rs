//! Makes an iSCSI initiator's configuration of flags and the environment, and recognizes a target's
//! answer that it serves no such disk.

use std::path::{Path, PathBuf};

use host::HostError;
use host::initiator::{InitiatorConfig, IscsiUri, IscsiUriError};
use nvme::{Nqn, Status};
use scsi::iscsi::{Algorithm, Digests, NAME_BYTES_MAX, Secret};

use crate::{AlgorithmFlag, InitiatorFlags};

/// Why flags, files and the environment make no initiator.
#[derive(Debug, thiserror::Error)]
pub enum InitiatorError {
    /// The URI is no valid iSCSI URI.
    #[error(transparent)]
    Uri(#[from] IscsiUriError),
    /// The initiator's name is not valid (RFC 7143 4.2.7).
    #[error("--initiator {0}: a name begins with iqn., eui. or naa. and has 223 bytes at most")]
    Name(String),
    /// The file of a secret cannot be read.
    #[error("--{flag} {}: {source}; check the path and its permissions", path.display())]
    Unread {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The first line of the file of a secret is empty.
    #[error("--{flag} {}: there is no secret in it; write it into the first line", path.display())]
    Empty {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A flag of iSCSI was given without an iSCSI URI.
    #[error("--{flag} is for disks of iscsi://, and {uri} is none; leave it out")]
    NotIscsi {
        /// The flag.
        flag: &'static str,
        /// The disk.
        uri: String,
    },
    /// A secret was given, but no URI names its user.
    #[error("--{flag}: {uri} names no such user; write {wanted}")]
    Nobody {
        /// The flag that gives the secret.
        flag: &'static str,
        /// The disk.
        uri: String,
        /// The form of a URI that names a user.
        wanted: &'static str,
    },
    /// The URI names a user whose secret is not given.
    #[error("{uri}: no secret of {user} is given; use --{flag} FILE or {variable}")]
    Missing {
        /// The URI that names the user.
        uri: String,
        /// The user.
        user: String,
        /// The flag that gives a secret.
        flag: &'static str,
        /// The variable of the environment that gives it.
        variable: &'static str,
    },
}

/// The host's name is no NQN (NVMe Base 4.7).
#[derive(Debug, thiserror::Error)]
#[error(
    "--host {0}: an NQN begins with nqn. and has 223 bytes at most; write one such as \
     nqn.2026-11.org.example:me"
)]
pub struct HostNameError(String);

/// Parses `text` as the NQN of the host.
///
/// # Errors
/// When `text` is no NQN.
pub fn host_name(text: &str) -> Result<Nqn, HostNameError> {
    let name = Nqn::new(text).filter(|name| name.as_str().starts_with("nqn."));
    name.ok_or_else(|| HostNameError(text.to_owned()))
}

/// A disk that the target at its address does not serve.
#[derive(Debug, thiserror::Error)]
pub enum Unserved {
    /// The target has no such NVMe subsystem.
    #[error("{uri}: there is no such subsystem; afar discover {address} lists those there are")]
    Subsystem {
        /// What was looked for.
        uri: String,
        /// Where.
        address: String,
    },
    /// The portal has no such iSCSI target.
    #[error(
        "{uri}: there is no such target; afar discover iscsi://{address} lists those there are"
    )]
    Target {
        /// What was looked for.
        uri: String,
        /// Where.
        address: String,
    },
}

impl Unserved {
    /// The error that `answer` stands for if it says that `address` does not serve `uri`, or
    /// `None`.
    #[must_use]
    pub fn of(answer: &HostError, uri: &str, address: &str) -> Option<Self> {
        let (uri, address) = (uri.to_owned(), address.to_owned());
        match answer {
            HostError::Refused { status, .. } if status.is(Status::CONNECT_INVALID_PARAMETERS) => {
                Some(Self::Subsystem { uri, address })
            }
            HostError::Login { status: NO_TARGET } => Some(Self::Target { uri, address }),
            _ => None,
        }
    }
}

/// The scheme of iSCSI URIs.
pub const SCHEME: &str = "iscsi:";

/// The login status "target not found" (RFC 7143 11.13.5).
const NO_TARGET: u16 = 0x0203;

// The flag and the variable of the initiator's secret.
const OWN: [&str; 2] = ["chap-secret", "LIBISCSI_CHAP_PASSWORD"];
// The flag and the variable of the target's secret.
const TARGETS: [&str; 2] = ["chap-target-secret", "LIBISCSI_CHAP_TARGET_PASSWORD"];

impl InitiatorFlags {
    /// Checks that each secret given by a flag has a user in one of `uris`.
    ///
    /// # Errors
    /// When a flag would have no effect.
    pub fn fit(&self, uris: &[&str]) -> Result<(), InitiatorError> {
        let given = [
            (OWN[0], &self.chap_secret, "iscsi://USER@HOST/IQN/LUN"),
            (TARGETS[0], &self.chap_target_secret, "iscsi://USER@HOST/IQN/LUN?target_user=NAME"),
        ];
        for (flag, _, wanted) in given.into_iter().filter(|(_, file, _)| file.is_some()) {
            let Some(first) = uris.first() else { continue };
            let uri = (*first).to_owned();
            if !uris.iter().any(|uri| uri.starts_with(SCHEME)) {
                return Err(InitiatorError::NotIscsi { flag, uri });
            }
            let mark = if flag == OWN[0] { "@" } else { "target_user=" };
            if !uris.iter().any(|uri| uri.starts_with(SCHEME) && uri.contains(mark)) {
                return Err(InitiatorError::Nobody { flag, uri, wanted });
            }
        }
        Ok(())
    }
}

/// The configuration of an initiator that logs in to `uri`, with `digests`.
///
/// # Errors
/// When the name is invalid or a secret of a user in `uri` is missing.
pub fn initiator(
    flags: &InitiatorFlags,
    uri: &IscsiUri,
    digests: Digests,
) -> Result<InitiatorConfig, InitiatorError> {
    let name = &flags.initiator;
    let is_name = ["iqn.", "eui.", "naa."].iter().any(|of| name.starts_with(of))
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_name {
        return Err(InitiatorError::Name(name.clone()));
    }
    let own = secret(OWN, flags.chap_secret.as_deref(), uri.user.as_ref(), uri)?;
    let targets = flags.chap_target_secret.as_deref();
    let target_secret = secret(TARGETS, targets, uri.target_user.as_ref(), uri)?;
    let algorithms = flags.chap_algs.iter().map(|one| match one {
        AlgorithmFlag::Sha3_256 => Algorithm::Sha3_256,
        AlgorithmFlag::Sha256 => Algorithm::Sha256,
        AlgorithmFlag::Sha1 => Algorithm::Sha1,
        AlgorithmFlag::Md5 => Algorithm::Md5,
    });
    Ok(InitiatorConfig {
        secret: own,
        target_secret,
        algorithms: algorithms.collect(),
        digests,
        ..InitiatorConfig::named(name)
    })
}

// The secret of `user` from `file`, or else from the environment; `None` without a user.
fn secret(
    [flag, variable]: [&'static str; 2],
    file: Option<&Path>,
    user: Option<&String>,
    uri: &IscsiUri,
) -> Result<Option<Secret>, InitiatorError> {
    let Some(user) = user else { return Ok(None) };
    let bytes = match file {
        Some(path) => {
            let path = path.to_owned();
            let read = std::fs::read(&path);
            let bytes =
                read.map_err(|source| InitiatorError::Unread { flag, path: path.clone(), source })?;
            let line = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).next();
            let line = line.filter(|line| !line.is_empty());
            line.ok_or(InitiatorError::Empty { flag, path })?.to_vec()
        }
        None => {
            let held = std::env::var(variable).ok().filter(|held| !held.is_empty());
            let (uri, user) = (uri.to_string(), user.clone());
            let missing = InitiatorError::Missing { uri, user, flag, variable };
            held.ok_or(missing)?.into_bytes()
        }
    };
    Ok(Some(Secret::new(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(chap_secret: Option<&str>) -> InitiatorFlags {
        InitiatorFlags {
            initiator: "iqn.2026-11.example:host".to_owned(),
            chap_secret: chap_secret.map(PathBuf::from),
            chap_target_secret: None,
            chap_algs: vec![AlgorithmFlag::Md5],
        }
    }

    #[test]
    fn flags_without_an_effect_are_refused() {
        let given = flags(Some("/nowhere"));
        let told = |uris: &[&str]| given.fit(uris).err().map(|error| error.to_string());
        let local = told(&["file:/x"]).expect("it has no users");
        assert!(local.starts_with("--chap-secret is for disks of iscsi://"), "{local}");
        let nobody = told(&["iscsi://a/iqn.b/0"]).expect("it names nobody");
        assert!(nobody.ends_with("write iscsi://USER@HOST/IQN/LUN"), "{nobody}");
        assert_eq!(told(&["nvme+tcp://a/nqn.b", "iscsi://me@a/iqn.b/0"]), None);
        assert!(flags(None).fit(&["file:/x"]).is_ok());
        assert!(host_name("nqn.2026-11.x:y").is_ok() && host_name("foo").is_err());
    }

    #[test]
    fn only_users_have_secrets() {
        let digests = Digests::default();
        let nobody: IscsiUri = "iscsi://a/iqn.b/0".parse().expect("it is one");
        let config = initiator(&flags(Some("/nowhere")), &nobody, digests).expect("it is one");
        assert_eq!((config.secret, config.target_secret), (None, None));
        let user: IscsiUri = "iscsi://me@a/iqn.b/0".parse().expect("it is one");
        let error = initiator(&flags(Some("/nowhere")), &user, digests).expect_err("no file");
        assert!(error.to_string().starts_with("--chap-secret /nowhere: No such file"), "{error}");
        let error = initiator(&flags(Some("/dev/null")), &user, digests).expect_err("empty");
        assert!(error.to_string().contains("there is no secret in it"), "{error}");
        let named = InitiatorFlags { initiator: "me".to_owned(), ..flags(None) };
        let error = initiator(&named, &nobody, digests).expect_err("no name");
        assert!(error.to_string().starts_with("--initiator me: a name begins"), "{error}");
    }
}
