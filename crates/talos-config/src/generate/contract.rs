//! What each release of Talos reads and writes.

use std::fmt;

use super::Error;
use super::version::Version;

/// A minor release of Talos, which decides how a configuration says things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contract {
    major: u64,
    minor: u64,
}

/// A release of Talos: the minor one, and the tag that images carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    contract: Contract,
    tag: String,
}

/// What is known of a minor release of Talos 1.
struct Known {
    minor: u64,
    /// The tag that stands for it.
    tag: &'static str,
    /// The Kubernetes that this tag runs if nobody chooses another.
    kubernetes: &'static str,
    /// The minor versions of Kubernetes 1 that it runs.
    runs: (u64, u64),
}

/// The minor releases that are known, oldest first.
///
/// Tag and Kubernetes of 1.11 to 1.14 are what the official library of the tag says. Those of 1.8, 1.9 and 1.10, whose
/// libraries could not be had, are what each tag brings by the table that upgrades of Kubernetes are planned from; where
/// both sources know a tag, they agree. That table also tells the versions of Kubernetes that a release runs.
const KNOWN: &[Known] = &[
    known(8, "v1.8.4", "1.31.4", (26, 31)),
    known(9, "v1.9.6", "1.32.4", (27, 32)),
    known(10, "v1.10.9", "1.33.6", (28, 33)),
    known(11, "v1.11.5", "1.34.1", (29, 34)),
    known(12, "v1.12.6", "1.35.2", (30, 35)),
    known(13, "v1.13.9", "1.36.3", (31, 36)),
    known(14, "v1.14.1", "1.37.0", (32, 37)),
];

const fn known(minor: u64, tag: &'static str, kubernetes: &'static str, runs: (u64, u64)) -> Known {
    Known {
        minor,
        tag,
        kubernetes,
        runs,
    }
}

/// The oldest release that is known.
const OLDEST: Contract = Contract::of(8);
/// The newest release that is known.
const NEWEST: Contract = Contract::of(14);
/// The image that installs Talos up to 1.13.
const INSTALLER: &str = "ghcr.io/siderolabs/installer";
/// The image that installs Talos since 1.14: the image factory's, without any extension.
const FACTORY: &str = "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba";

impl Contract {
    pub(super) const fn of(minor: u64) -> Self {
        Self { major: 1, minor }
    }

    fn since(self, minor: u64) -> bool {
        self >= Self::of(minor)
    }

    /// Tells whether clusters that start with this release encrypt secrets with secretbox instead of AES-CBC.
    pub fn has_secretbox(self) -> bool {
        self.since(3)
    }

    /// Tells whether clusters that start with this release sign service account tokens with RSA instead of ECDSA.
    pub fn has_rsa_service_account(self) -> bool {
        self.since(7)
    }

    pub(super) fn has_pod_security(self) -> bool {
        self.since(1)
    }

    /// Default seccomp profile, stable host names, another default registry, and no discovery through Kubernetes.
    pub(super) fn has_seccomp_default(self) -> bool {
        self.since(2)
    }

    /// The one release that sent pulls from the old registry of Kubernetes to the new one.
    pub(super) fn mirrors_old_registry(self) -> bool {
        self == Self::of(2)
    }

    pub(super) fn has_audit_policy(self) -> bool {
        self.since(3)
    }

    pub(super) fn has_disk_quota(self) -> bool {
        self.since(5)
    }

    pub(super) fn has_kube_prism(self) -> bool {
        self.since(6)
    }

    pub(super) fn has_host_dns(self) -> bool {
        self.since(7)
    }

    /// Workers know the cluster's name, host DNS serves pods, and load balancers leave control planes out.
    pub(super) fn has_forwarded_dns(self) -> bool {
        self.since(8)
    }

    /// Host names and registries have documents, and old switches are gone.
    pub(super) fn has_network_documents(self) -> bool {
        self.since(12)
    }

    pub(super) fn has_kube_span_document(self) -> bool {
        self.since(13)
    }

    /// Nearly everything has a document.
    pub(super) fn has_kubernetes_documents(self) -> bool {
        self.since(14)
    }

    /// Returns what is known of the release; nothing of those before and after the ones that are known.
    fn known(self) -> Option<&'static Known> {
        KNOWN.iter().find(|known| Self::of(known.minor) == self)
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

impl Release {
    /// Returns the newest release that is known.
    pub fn newest() -> Self {
        Self::of(NEWEST)
    }

    /// Reads `v1.13`, `1.13`, `v1.13.9` or `v1.13.0-rc.1`; without the third number it means the newest tag that is known.
    ///
    /// # Errors
    ///
    /// [`Error::Version`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        let version = Version::parse(plain).ok_or_else(|| Error::Version {
            text: text.to_owned(),
        })?;
        let contract = Contract {
            major: version.major,
            minor: version.minor,
        };
        Ok(match version.patch {
            Some(patch) => Self {
                contract,
                tag: format!("{contract}.{patch}{}", version.suffix),
            },
            None => Self::of(contract),
        })
    }

    /// Says what is uncertain about a release that is not known.
    pub fn warning(&self) -> Option<String> {
        let contract = self.contract;
        if contract > NEWEST {
            return Some(format!(
                "Talos {contract} is newer than {NEWEST}, the newest that is known: what is generated is for {NEWEST}"
            ));
        }
        (contract < OLDEST).then(|| {
            format!(
                "Talos {contract} is older than {OLDEST}, the oldest that is known: it may refuse what is generated"
            )
        })
    }

    /// Says why a version of Kubernetes does not suit the release; an unfinished version counts as its release.
    pub(super) fn unsuitable(&self, kubernetes: &str) -> Option<String> {
        let (first, last) = self.contract.known()?.runs;
        let version = Version::parse(kubernetes)?;
        let suits = version.major == 1 && (first..=last).contains(&version.minor);
        (!suits).then(|| {
            format!(
                "Talos {} runs Kubernetes 1.{first} to 1.{last}, not {kubernetes}",
                self.contract
            )
        })
    }

    /// Returns the minor release.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// Returns the tag of the release's images, such as `v1.13.9`.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Returns the image that installs a release, with a tag of its own.
    pub fn installer(&self, tag: &str) -> String {
        match self.contract.has_kubernetes_documents() {
            true => format!("{FACTORY}:{tag}"),
            false => format!("{INSTALLER}:{tag}"),
        }
    }

    /// Returns the version of Kubernetes that the release runs if nobody chooses another, without a leading `v`.
    ///
    /// That of the nearest release for one that is not known.
    pub fn kubernetes(&self) -> &'static str {
        let nearest = self.contract.clamp(OLDEST, NEWEST);
        nearest.known().map_or("", |known| known.kubernetes)
    }

    fn of(contract: Contract) -> Self {
        let tag = match contract.known() {
            Some(known) => known.tag.to_owned(),
            None => format!("{contract}.0"),
        };
        Self { contract, tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_all_their_spellings() {
        let check = |text: &str, tag: &str, kubernetes: &str| {
            let release = Release::parse(text).unwrap();
            assert_eq!(
                (release.tag(), release.kubernetes()),
                (tag, kubernetes),
                "{text}"
            );
        };
        check("v1.11", "v1.11.5", "1.34.1");
        check("1.11", "v1.11.5", "1.34.1");
        check("v1.11.2", "v1.11.2", "1.34.1");
        check("v1.14.0-rc.1", "v1.14.0-rc.1", "1.37.0");
        check("1.15", "v1.15.0", "1.37.0");
        check("2.0.1", "v2.0.1", "1.37.0");
        check("1.5", "v1.5.0", "1.31.4");
        check("1.8", "v1.8.4", "1.31.4");
        check("v1.9", "v1.9.6", "1.32.4");
        check("v1.10", "v1.10.9", "1.33.6");
        check(
            "v1.14.0-alpha.2-12-g0a1b2c3",
            "v1.14.0-alpha.2-12-g0a1b2c3",
            "1.37.0",
        );
    }

    #[test]
    fn other_texts_are_refused_by_name() {
        for text in [
            "",
            "v",
            "1",
            "v1",
            "1.x",
            "1.13.",
            "1.13.9.1",
            "vv1.13",
            "1.13-",
            "1.13-rc",
            "1..3",
            "latest",
            "-1.2",
            "1.13.9-",
            "1.13.9-a b",
            "1.13.banana",
            "1.13.9+abc",
            "v1.13.0-rc..1",
            "V1.13",
            " 1.13",
            "1.013",
            "1.+3",
            "1.99999999999",
            "1.13.9@sha256:00",
            "99999999999999999999.1",
        ] {
            let error = Release::parse(text).unwrap_err();
            let expected =
                format!("{text:?} is not a Talos version such as 1.13, v1.13.9 or v1.13.0-rc.1");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn releases_that_are_not_known_are_warned_of() {
        let check = |text: &str, expected: Option<&str>| {
            let warning = Release::parse(text).unwrap().warning();
            assert_eq!(warning.as_deref(), expected, "{text}");
        };
        for text in ["1.8", "v1.8.0", "1.11", "1.14", "v1.14.9"] {
            check(text, None);
        }
        check(
            "v1.15.2",
            Some(
                "Talos v1.15 is newer than v1.14, the newest that is known: what is generated is for v1.14",
            ),
        );
        for text in ["1.7", "v1.2.0", "0.14"] {
            let warning = Release::parse(text).unwrap().warning().unwrap();
            assert!(warning.contains("older than v1.8, the oldest that is known"));
        }
        assert!(Release::parse("2.0").unwrap().warning().is_some());
    }

    #[test]
    fn kubernetes_has_to_suit_the_release() {
        let check = |text: &str, kubernetes: &str, expected: Option<&str>| {
            let found = Release::parse(text).unwrap().unsuitable(kubernetes);
            assert_eq!(found.as_deref(), expected, "{text} {kubernetes}");
        };
        for kubernetes in ["1.31.0", "1.36.9", "1.36.0-rc.1"] {
            check("v1.13.2", kubernetes, None);
        }
        for kubernetes in ["1.30.9", "1.37.0-alpha.1", "2.33.0", "0.33.0"] {
            let expected = format!("Talos v1.13 runs Kubernetes 1.31 to 1.36, not {kubernetes}");
            check("v1.13.2", kubernetes, Some(&expected));
        }
        // Nothing is said of what is not known.
        check("v1.15", "1.99.0", None);
        for known in KNOWN {
            let release = Release::of(Contract::of(known.minor));
            assert_eq!(release.unsuitable(release.kubernetes()), None);
        }
    }

    #[test]
    fn the_installer_is_the_release_s_own() {
        let check = |text: &str, image: &str| {
            let release = Release::parse(text).unwrap();
            assert_eq!(release.installer(release.tag()), image);
        };
        check("1.13", "ghcr.io/siderolabs/installer:v1.13.9");
        check(
            "1.14",
            "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.14.1",
        );
    }
}
