//! Where points run.

use std::fmt;
use std::str::FromStr;

/// Where the points of a sweep run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// In this process.
    #[default]
    Local,
    /// On workers of the Dask scheduler with this address or scheduler file; `None` starts workers.
    Dask(Option<String>),
    /// As Slurm jobs, in this partition if there is one.
    Slurm(Option<String>),
    /// On the Ray cluster with this address; `None` starts one.
    Ray(Option<String>),
}

/// The text names no place.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no engine \"{0}\"; give local, dask, dask:ADDRESS, dask:SCHEDULER-FILE, slurm, \
     slurm:PARTITION, ray or ray:ADDRESS"
)]
pub struct PlaceError(String);

impl Place {
    /// The engine's name and its address or partition; `None` for this process.
    #[must_use]
    pub fn engine(&self) -> Option<(&'static str, Option<&str>)> {
        match self {
            Self::Local => None,
            Self::Dask(at) => Some(("dask", at.as_deref())),
            Self::Slurm(at) => Some(("slurm", at.as_deref())),
            Self::Ray(at) => Some(("ray", at.as_deref())),
        }
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let wrong = || PlaceError(text.to_owned());
        let (name, at) = match text.split_once(':') {
            Some((_, "")) => return Err(wrong()),
            Some((name, at)) => (name, Some(at.to_owned())),
            None => (text, None),
        };
        match (name, at) {
            ("local", None) => Ok(Self::Local),
            ("dask", at) => Ok(Self::Dask(at)),
            ("slurm", at) => Ok(Self::Slurm(at)),
            ("ray", at) => Ok(Self::Ray(at)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.engine() {
            None => f.write_str("local"),
            Some((name, None)) => f.write_str(name),
            Some((name, Some(at))) => write!(f, "{name}:{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["local", "dask", "dask:tcp://10.0.0.1:8786", "slurm:short", "ray:auto"] {
            assert_eq!(
                text.parse::<Place>().map(|place| place.to_string()).ok().as_deref(),
                Some(text)
            );
        }
        let at = Place::Dask(Some("tcp://10.0.0.1:8786".to_owned()));
        assert_eq!("dask:tcp://10.0.0.1:8786".parse::<Place>().ok(), Some(at));
        for text in ["", "local:x", "dask:", "k8s", "Dask"] {
            let said = text.parse::<Place>().expect_err("it is none").to_string();
            assert!(said.contains("give local, dask"), "{said}");
        }
    }
}
