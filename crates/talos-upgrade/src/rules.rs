//! Which versions may follow which, on which Talos, and what a step takes away.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use semver::Version;
use serde::Deserialize;
use talos_kube::Component;

use crate::Error;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // The file is part of this crate and read in its tests; an empty table refuses everything.
    serde_json::from_str(include_str!("../data/upgrade-k8s.json")).unwrap_or_default()
});

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    supported_paths: Vec<String>,
    talos: BTreeMap<String, Range>,
    removed: BTreeMap<String, Removed>,
    images: BTreeMap<Component, String>,
    default_kubernetes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Range {
    min: Version,
    below: Version,
}

/// What a minor step of Kubernetes takes away.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Command line flags by component, without dashes.
    pub flags: BTreeMap<Component, Vec<String>>,
    /// Feature gates of the API server, the controller manager and the scheduler.
    pub feature_gates: Vec<String>,
    /// Admission plugins of the API server.
    pub admission_plugins: Vec<String>,
    /// API resources that are no longer served.
    pub resources: Vec<RemovedResource>,
}

/// An API resource that is no longer served.
#[derive(Clone, Debug, Deserialize)]
pub struct RemovedResource {
    /// Its plural name.
    pub resource: String,
    /// Its version.
    pub version: String,
    /// Its group.
    pub group: String,
}

impl fmt::Display for RemovedResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.resource, self.version, self.group)
    }
}

/// Reads a Kubernetes version; a leading `v` is dropped, three numbers are wanted.
///
/// # Errors
/// [`Error::Version`] names the text.
pub fn parse_version(text: &str) -> Result<Version, Error> {
    let plain = text.trim().trim_start_matches('v');
    Version::parse(plain).map_err(|source| Error::Version {
        text: text.to_owned(),
        source,
    })
}

/// The form `1.33->1.34` in which steps are listed.
pub fn path(from: &Version, to: &Version) -> String {
    format!("{}.{}->{}.{}", from.major, from.minor, to.major, to.minor)
}

/// Tells whether Kubernetes may go from one version to the other in one upgrade.
///
/// Only major and minor count: one step up, or any change within a minor.
pub fn is_supported(from: &Version, to: &Version) -> bool {
    TABLE.supported_paths.contains(&path(from, to))
}

/// The newest Kubernetes that is known here, as major and minor.
pub fn newest() -> (u64, u64) {
    let targets = TABLE.supported_paths.iter().filter_map(|path| {
        let (major, minor) = path.rsplit("->").next()?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    targets.max().unwrap_or_default()
}

/// How a Kubernetes version suits a Talos version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// It does.
    Suits,
    /// It is older than the oldest that works.
    TooOld {
        /// The oldest that works.
        oldest: String,
    },
    /// It is newer than the newest that works.
    TooNew {
        /// The newest minor that works, as `1.34`.
        newest: String,
    },
    /// This Talos version is not known here.
    Unknown,
}

/// Judges a Kubernetes version against the Talos version of a node; pre-releases count as their release.
pub fn compatibility(talos: &Version, kubernetes: &Version) -> Compatibility {
    let key = format!("{}.{}", talos.major, talos.minor);
    let Some(range) = TABLE.talos.get(&key) else {
        return Compatibility::Unknown;
    };
    let plain = Version::new(kubernetes.major, kubernetes.minor, kubernetes.patch);
    if plain < range.min {
        Compatibility::TooOld {
            oldest: range.min.to_string(),
        }
    } else if plain >= range.below {
        Compatibility::TooNew {
            newest: format!("{}.{}", range.below.major, range.below.minor),
        }
    } else {
        Compatibility::Suits
    }
}

/// What the step between two versions takes away; nothing within a minor.
pub fn removed(from: &Version, to: &Version) -> Option<&'static Removed> {
    TABLE.removed.get(&path(from, to))
}

/// The repository an image of a component comes from unless somebody said otherwise.
pub fn default_repository(component: Component) -> &'static str {
    TABLE.images.get(&component).map_or("", String::as_str)
}

/// The Kubernetes version a Talos release brings, or that of the newest known patch of the same minor.
pub fn default_kubernetes(talos: &Version) -> Option<Version> {
    let known = TABLE
        .default_kubernetes
        .iter()
        .filter_map(|(talos, kubernetes)| {
            Some((
                Version::parse(talos).ok()?,
                Version::parse(kubernetes).ok()?,
            ))
        });
    let same_minor =
        known.filter(|(known, _)| (known.major, known.minor) == (talos.major, talos.minor));
    let mut same_minor: Vec<_> = same_minor.collect();
    same_minor.sort();
    let exact = same_minor.iter().find(|(known, _)| known == talos);
    exact
        .or(same_minor.last())
        .map(|(_, kubernetes)| kubernetes.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        parse_version(text).unwrap()
    }

    #[test]
    fn one_minor_up_and_any_patch_are_supported() {
        for (from, to, expected) in [
            ("1.33.4", "1.34.0", true),
            ("1.36.3", "1.36.0", true),
            ("1.36.0", "1.36.0-rc.1", true),
            ("1.32.12", "1.34.0", false),
            ("1.34.0", "1.33.4", false),
            ("1.18.0", "1.19.0", false),
            ("1.36.0", "1.37.0", true),
            ("1.37.0", "1.38.0", false),
        ] {
            assert_eq!(
                is_supported(&version(from), &version(to)),
                expected,
                "{from} {to}"
            );
        }
        assert_eq!(newest(), (1, 37));
    }

    #[test]
    fn each_talos_runs_a_range_of_kubernetes() {
        let check = |talos: &str, kubernetes: &str, expected| {
            let found = compatibility(&version(talos), &version(kubernetes));
            assert_eq!(found, expected, "{talos} {kubernetes}");
        };
        check("v1.11.5", "1.34.0", Compatibility::Suits);
        check("v1.11.5", "1.29.0-rc.1", Compatibility::Suits);
        let newest = |minor: &str| Compatibility::TooNew {
            newest: minor.to_owned(),
        };
        check("v1.11.5", "1.35.0", newest("1.34"));
        check("v1.13.9", "1.37.0", newest("1.36"));
        let oldest = "1.31.0".to_owned();
        check("v1.13.9", "1.30.9", Compatibility::TooOld { oldest });
        check("v1.14.0-rc.1", "1.37.0", Compatibility::Suits);
        check("v1.15.0", "1.37.0", Compatibility::Unknown);
    }

    #[test]
    fn a_minor_step_has_its_list_of_removed_items() {
        let list = removed(&version("1.33.4"), &version("1.34.0")).unwrap();
        assert_eq!(list.flags[&Component::Kubelet], ["cloud-config"]);
        assert_eq!(list.feature_gates.len(), 3);
        assert!(removed(&version("1.34.0"), &version("1.34.2")).is_none());
        let list = removed(&version("1.31.0"), &version("1.32.0")).unwrap();
        assert_eq!(
            list.resources[0].to_string(),
            "podschedulingcontexts.v1alpha3.resource.k8s.io"
        );
    }

    #[test]
    fn the_default_version_is_that_of_the_talos_release() {
        let check =
            |talos: &str| default_kubernetes(&version(talos)).map(|found| found.to_string());
        assert_eq!(check("v1.13.9").as_deref(), Some("1.36.3"));
        assert_eq!(check("v1.11.5").as_deref(), Some("1.34.1"));
        assert_eq!(check("v1.13.42").as_deref(), Some("1.36.3"));
        assert_eq!(check("v1.99.0"), None);
        assert_eq!(
            default_repository(Component::Kubelet),
            "ghcr.io/siderolabs/kubelet"
        );
    }

    #[test]
    fn a_version_needs_three_numbers() {
        let error = parse_version("1.36").unwrap_err();
        assert_eq!(error.to_string(), "invalid version \"1.36\"");
    }
}
