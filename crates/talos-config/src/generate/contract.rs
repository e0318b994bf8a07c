//! What each release of Talos reads and writes.

use std::fmt;

use super::Error;

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

/// What is known of a minor release: its newest tag, and the Kubernetes that it runs if nobody chooses another.
///
/// The rows of 1.11 to 1.14 are what the official library of each tag says. Those of 1.8, 1.9 and 1.10 are not
/// verified: their libraries could not be had.
const KNOWN: &[(u64, &str, &str)] = &[
    (8, "v1.8.4", "1.31.1"),
    (9, "v1.9.6", "1.32.0"),
    (10, "v1.10.9", "1.33.0"),
    (11, "v1.11.5", "1.34.1"),
    (12, "v1.12.6", "1.35.2"),
    (13, "v1.13.9", "1.36.3"),
    (14, "v1.14.1", "1.37.0"),
];

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

    fn known(self) -> Option<(&'static str, &'static str)> {
        let found = |contract: Self| {
            KNOWN
                .iter()
                .find(|(minor, ..)| Self::of(*minor) == contract)
        };
        // What is newer than all we know is like the newest.
        found(self.min(NEWEST)).map(|(_, tag, kubernetes)| (*tag, *kubernetes))
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

    /// Reads `v1.13`, `1.13` or `v1.13.9`; a version without its last part means the newest one that is known.
    ///
    /// # Errors
    ///
    /// [`Error::Version`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = || Error::Version {
            text: text.to_owned(),
        };
        let plain = text.strip_prefix('v').unwrap_or(text);
        let (numbers, suffix) = match plain.find(['-', '+']) {
            Some(at) => plain.split_at(at),
            None => (plain, ""),
        };
        let numbers = numbers
            .split('.')
            .map(
                |number| match number.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => number.parse::<u64>().map_err(|_| refuse()),
                    false => Err(refuse()),
                },
            )
            .collect::<Result<Vec<u64>, Error>>()?;
        let is_suffix = suffix.len() != 1
            && suffix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte));
        match numbers[..] {
            [major, minor] if suffix.is_empty() => Ok(Self::of(Contract { major, minor })),
            [major, minor, patch] if is_suffix => Ok(Self {
                contract: Contract { major, minor },
                tag: format!("v{major}.{minor}.{patch}{suffix}"),
            }),
            _ => Err(refuse()),
        }
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

    /// Returns the newest Kubernetes version that is known to run on the release, without a leading `v`.
    pub fn kubernetes(&self) -> &'static str {
        let oldest = KNOWN.first().map_or("", |(_, _, kubernetes)| kubernetes);
        self.contract
            .known()
            .map_or(oldest, |(_, kubernetes)| kubernetes)
    }

    fn of(contract: Contract) -> Self {
        let tag = match contract.known() {
            Some((tag, _)) if contract <= NEWEST => tag.to_owned(),
            _ => format!("{contract}.0"),
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
        check("1.5", "v1.5.0", "1.31.1");
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
            "99999999999999999999.1",
        ] {
            let error = Release::parse(text).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("{text:?} is not a Talos version"))
            );
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
