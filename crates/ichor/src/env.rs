//! The environment as a value: variables, and where a talosconfig is looked for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The talosconfig that Talos mounts into pods which may use its API; never written.
pub(crate) const IN_CLUSTER_TALOSCONFIG: &str = "/var/run/secrets/talos.dev/config";

/// The environment variables of a run.
#[derive(Clone, Debug, Default)]
pub struct Env {
    variables: BTreeMap<OsString, OsString>,
}

impl Env {
    /// Copies the variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    /// Returns a variable's value if it is set, not empty and valid UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).and_then(OsStr::to_str)
    }

    /// Returns a variable's value as a path if it is set and not empty.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from)
    }

    /// Returns the first set variable of two spellings, such as `HTTPS_PROXY` and `https_proxy`.
    #[must_use]
    pub fn either(&self, name: &str, other: &str) -> Option<&str> {
        self.get(name).or_else(|| self.get(other))
    }

    /// Returns the user's home folder.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").or_else(|| self.path("USERPROFILE"))
    }

    /// Returns the variables whose names begin with `prefix`.
    pub fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a OsStr)> {
        self.variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value.as_os_str())))
            .filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty())
    }

    /// Lists where a talosconfig is looked for, best first, in the order talosctl documents: `explicit`, `TALOSCONFIG`,
    /// `TALOS_HOME/config` (absolute ones only) or `~/.talos/config`, and the in-cluster file.
    #[must_use]
    pub fn talosconfig_candidates(&self, explicit: Option<&Path>) -> Vec<TalosconfigPlace> {
        let mut places = Vec::new();
        if let Some(path) = explicit {
            places.push(TalosconfigPlace::new("--talosconfig", path.to_owned()));
            return places;
        }
        if let Some(path) = self.path("TALOSCONFIG") {
            places.push(TalosconfigPlace::new("TALOSCONFIG", path));
        }
        match self.path("TALOS_HOME").filter(|home| home.is_absolute()) {
            Some(home) => places.push(TalosconfigPlace::new("TALOS_HOME", home.join("config"))),
            None => {
                if let Some(home) = self.home() {
                    places.push(TalosconfigPlace::new(
                        "home folder",
                        home.join(".talos/config"),
                    ));
                }
            }
        }
        places.push(TalosconfigPlace {
            source: "in-cluster",
            path: PathBuf::from(IN_CLUSTER_TALOSCONFIG),
            writable: false,
        });
        places
    }

    fn raw(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }
}

impl FromIterator<(OsString, OsString)> for Env {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self {
            variables: variables.into_iter().collect(),
        }
    }
}

/// One place where a talosconfig may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TalosconfigPlace {
    /// What named the place, for messages.
    pub source: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Whether the program may create or change the file.
    pub writable: bool,
}

impl TalosconfigPlace {
    fn new(source: &'static str, path: PathBuf) -> Self {
        let writable = path != Path::new(IN_CLUSTER_TALOSCONFIG);
        Self {
            source,
            path,
            writable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(variables: &[(&str, &str)]) -> Env {
        variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect()
    }

    fn check(variables: &[(&str, &str)], explicit: Option<&str>, expected: &[&str]) {
        let places = env(variables).talosconfig_candidates(explicit.map(Path::new));
        let paths: Vec<_> = places
            .iter()
            .map(|place| place.path.to_str().unwrap())
            .collect();
        assert_eq!(paths, expected, "{variables:?} {explicit:?}");
    }

    #[test]
    fn talosconfig_is_looked_for_in_the_documented_order() {
        let cluster = IN_CLUSTER_TALOSCONFIG;
        check(&[("HOME", "/h")], None, &["/h/.talos/config", cluster]);
        check(
            &[("HOME", "/h"), ("TALOSCONFIG", "t")],
            None,
            &["t", "/h/.talos/config", cluster],
        );
        check(
            &[("HOME", "/h"), ("TALOS_HOME", "/th")],
            None,
            &["/th/config", cluster],
        );
        check(
            &[("HOME", "/h"), ("TALOS_HOME", "relative")],
            None,
            &["/h/.talos/config", cluster],
        );
        check(&[("HOME", "/h"), ("TALOSCONFIG", "t")], Some("x"), &["x"]);
        check(&[("HOME", ""), ("TALOSCONFIG", "")], None, &[cluster]);
    }

    #[test]
    fn the_in_cluster_file_is_read_only() {
        let places = env(&[("TALOSCONFIG", IN_CLUSTER_TALOSCONFIG)]).talosconfig_candidates(None);
        assert!(places.iter().all(|place| !place.writable));
    }
}
