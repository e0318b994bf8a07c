//! Image references: where an image comes from and which version it is.

use std::fmt;

use semver::Version;

use crate::Error;

/// Suffixes of kubelet images that name a flavor, not a version.
const FLAVORS: [&str; 2] = ["-fat", "-slim"];

/// An image reference, taken apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image {
    /// Registry and path, without tag and digest.
    pub repository: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest, with its algorithm.
    pub digest: Option<String>,
}

impl Image {
    /// Takes a reference apart; registries with ports, digests and missing tags are fine.
    ///
    /// # Errors
    /// [`Error::Image`] when there is no repository, or a character that no reference has.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |problem| Error::Image {
            text: text.to_owned(),
            problem,
        };
        let (named, digest) = match text.split_once('@') {
            Some((_, "")) => return Err(refuse("the digest is empty")),
            Some((named, digest)) => (named, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let last = named.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match named[last..].find(':') {
            Some(colon) => (&named[..last + colon], Some(&named[last + colon + 1..])),
            None => (named, None),
        };
        if tag == Some("") {
            return Err(refuse("the tag is empty"));
        }
        if repository.is_empty() || repository.ends_with('/') {
            return Err(refuse("the repository is empty"));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+".contains(&byte);
        if !text.bytes().all(allowed) {
            return Err(refuse("it has characters that no image reference has"));
        }
        Ok(Self {
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// Reads a repository, as the image flags take it.
    ///
    /// # Errors
    /// [`Error::Image`] also when there is a tag or digest, which the upgrade sets itself.
    pub fn parse_repository(text: &str) -> Result<String, Error> {
        let image = Self::parse(text)?;
        if image.tag.is_some() || image.digest.is_some() {
            return Err(Error::Image {
                text: text.to_owned(),
                problem: "a repository without tag and digest is wanted",
            });
        }
        Ok(image.repository)
    }

    /// The version its tag names, or `None` when there is no tag or it is no version.
    pub fn version(&self) -> Option<Version> {
        let tag = self.tag.as_deref()?;
        let plain = tag.strip_suffix(self.flavor()).unwrap_or(tag);
        Version::parse(plain.trim_start_matches('v')).ok()
    }

    /// The flavor at the end of its tag: `-fat`, `-slim` or nothing.
    pub fn flavor(&self) -> &'static str {
        let tag = self.tag.as_deref().unwrap_or_default();
        let found = FLAVORS.into_iter().find(|flavor| tag.ends_with(flavor));
        found.unwrap_or_default()
    }

    /// The same image at another version: repository and flavor stay, a digest goes.
    pub fn at(&self, version: &Version) -> Self {
        Self {
            repository: self.repository.clone(),
            tag: Some(format!("v{version}{}", self.flavor())),
            digest: None,
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.repository)?;
        if let Some(tag) = &self.tag {
            write!(out, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(out, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, repository: &str, version: Option<&str>, next: &str) {
        let image = Image::parse(text).unwrap();
        assert_eq!(image.repository, repository, "{text}");
        assert_eq!(
            image
                .version()
                .map(|version| version.to_string())
                .as_deref(),
            version,
            "{text}"
        );
        assert_eq!(
            image.at(&Version::new(1, 34, 0)).to_string(),
            next,
            "{text}"
        );
        assert_eq!(image.to_string(), text);
    }

    #[test]
    fn versions_are_read_past_ports_digests_and_flavors() {
        check(
            "r:5000/kube-apiserver:v1.34.0",
            "r:5000/kube-apiserver",
            Some("1.34.0"),
            "r:5000/kube-apiserver:v1.34.0",
        );
        check(
            "r/k:v1.35.2@sha256:abc",
            "r/k",
            Some("1.35.2"),
            "r/k:v1.34.0",
        );
        check(
            "kubelet:v1.31.2-fat",
            "kubelet",
            Some("1.31.2"),
            "kubelet:v1.34.0-fat",
        );
        check(
            "kubelet:v1.31.2-slim",
            "kubelet",
            Some("1.31.2"),
            "kubelet:v1.34.0-slim",
        );
        check(
            "kubelet:1.27.4",
            "kubelet",
            Some("1.27.4"),
            "kubelet:v1.34.0",
        );
        check(
            "k:v1.36.0-rc.1-fat",
            "k",
            Some("1.36.0-rc.1"),
            "k:v1.34.0-fat",
        );
    }

    #[test]
    fn a_tag_that_is_no_version_is_no_guess() {
        check("r:5000/k", "r:5000/k", None, "r:5000/k:v1.34.0");
        check("k:latest", "k", None, "k:v1.34.0");
        check("k@sha256:abc", "k", None, "k:v1.34.0");
    }

    #[test]
    fn wrong_references_are_named() {
        for (text, problem) in [
            ("", "the repository is empty"),
            ("k:", "the tag is empty"),
            ("k@", "the digest is empty"),
            ("r/", "the repository is empty"),
            ("k:v1 x", "it has characters that no image reference has"),
        ] {
            let error = Image::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("invalid image {text:?}: {problem}"));
        }
        let error = Image::parse_repository("r/k:v1").unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid image \"r/k:v1\": a repository without tag and digest is wanted"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_written_back_as_it_was(text in "[a-z0-9.:/@_ -]{0,40}") {
            if let Ok(image) = Image::parse(&text) {
                prop_assert_eq!(image.to_string(), text);
            }
        }
    }
}
