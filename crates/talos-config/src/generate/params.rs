//! What the owner of a cluster chooses.

use talos_pki::Name;

use super::address::{Address, without_user};
use super::version::Version;
use super::{Endpoint, Error, Problem, Release};

/// What the owner of a cluster chooses; `Debug` does not show the URLs of mirrors, which may hold passwords.
#[derive(Clone)]
pub struct Params {
    /// Name of the cluster and of the talosconfig's context.
    pub cluster_name: String,
    /// The URL of the Kubernetes API.
    pub endpoint: Endpoint,
    /// The release of Talos that the configurations are for.
    pub release: Release,
    /// The version of Kubernetes without a leading `v`; empty names no images, so that Talos chooses them.
    pub kubernetes_version: String,
    /// The disk to install to.
    pub install_disk: String,
    /// The image to install from.
    pub install_image: String,
    /// Names and addresses for the certificates of the Talos and Kubernetes APIs.
    pub additional_sans: Vec<String>,
    /// The domain of services and pods.
    pub dns_domain: String,
    /// URLs to pull images of a registry from, by the registry's host.
    pub registry_mirrors: std::collections::BTreeMap<String, Vec<String>>,
    /// Whether nodes form an encrypted mesh.
    pub kube_span: bool,
    /// Whether nodes find each other through the discovery service.
    pub discovery: bool,
    /// Which comments to write.
    pub comments: Comments,
}

/// Which comments to write into a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// A line above each field that says what it does.
    pub docs: bool,
    /// Commented-out settings that many want.
    pub examples: bool,
}

impl Params {
    /// Makes the parameters of a cluster of a release; everything but name and endpoint has its default.
    pub fn new(cluster_name: impl Into<String>, endpoint: Endpoint, release: Release) -> Self {
        Self {
            cluster_name: cluster_name.into(),
            endpoint,
            kubernetes_version: release.kubernetes().to_owned(),
            install_disk: "/dev/sda".to_owned(),
            install_image: release.installer(release.tag()),
            release,
            additional_sans: Vec::new(),
            dns_domain: "cluster.local".to_owned(),
            registry_mirrors: std::collections::BTreeMap::new(),
            kube_span: false,
            discovery: true,
            comments: Comments::default(),
        }
    }

    /// Adds a mirror given as `host=URL`.
    ///
    /// # Errors
    ///
    /// [`Error::Params`] for a text that is no such pair.
    pub fn add_registry_mirror(&mut self, text: &str) -> Result<(), Error> {
        let (host, url) = text
            .split_once('=')
            .filter(|(host, url)| !host.is_empty() && !url.is_empty())
            .ok_or_else(|| Error::Params {
                problems: vec![Problem::new(
                    format!("the registry mirror {:?}", without_user(text)),
                    "must have the form host=URL",
                )],
            })?;
        let urls = self.registry_mirrors.entry(host.to_owned()).or_default();
        urls.push(url.to_owned());
        Ok(())
    }

    /// Returns an image with the tag of the Kubernetes version, unless Talos is to choose.
    pub(super) fn kubernetes_image(&self, repository: &str) -> Option<String> {
        let version = &self.kubernetes_version;
        (!version.is_empty()).then(|| format!("{repository}:v{version}"))
    }

    /// Says what is uncertain or odd about the choices: each of them can be meant so.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.release.warning().into_iter().collect();
        warnings.extend(self.release.unsuitable(&self.kubernetes_version));
        warnings
    }

    /// Finds everything that no configuration can say.
    ///
    /// # Errors
    ///
    /// [`Error::Params`] with all of it.
    pub fn check(&self) -> Result<(), Error> {
        let mut problems = Vec::new();
        let mut say = |field: String, reason: &str| problems.push(Problem::new(field, reason));
        if self.cluster_name.trim().is_empty() {
            say("the cluster name".to_owned(), "is empty");
        } else if self.cluster_name.chars().any(char::is_control) {
            say(
                format!("the cluster name {:?}", self.cluster_name),
                "has a control character in it",
            );
        }
        if !is_domain(&self.dns_domain) {
            say(
                format!("the DNS domain {:?}", self.dns_domain),
                "is not a domain name",
            );
        }
        for name in &self.additional_sans {
            // The text is written as it is, and a certificate takes international names in their ASCII form only.
            if !name.is_ascii() || Name::parse(name).is_err() {
                say(
                    format!("the additional name {name:?}"),
                    "is neither a DNS name nor an IP address",
                );
            }
        }
        let version = Version::parse(&self.kubernetes_version);
        let is_version = version.is_some_and(|version| version.patch.is_some());
        if !self.kubernetes_version.is_empty() && !is_version {
            say(
                format!("the Kubernetes version {:?}", self.kubernetes_version),
                "is not a version such as 1.36.3",
            );
        }
        for (host, urls) in &self.registry_mirrors {
            for url in urls {
                let rest = ["http://", "https://"].map(|scheme| url.strip_prefix(scheme));
                let wrong = match rest.into_iter().flatten().next() {
                    Some(rest) => Address::parse(rest).err(),
                    None => Some("is not a URL that begins with http:// or https://"),
                };
                if let Some(reason) = wrong {
                    let shown = without_user(url);
                    say(
                        format!("the mirror {shown:?} of the registry {host}"),
                        reason,
                    );
                }
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::Params { problems }),
        }
    }
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mirrors: Vec<&String> = self.registry_mirrors.keys().collect();
        f.debug_struct("Params")
            .field("cluster_name", &self.cluster_name)
            .field("endpoint", &self.endpoint)
            .field("release", &self.release)
            .field("kubernetes_version", &self.kubernetes_version)
            .field("registry_mirrors", &mirrors)
            .finish_non_exhaustive()
    }
}

fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
