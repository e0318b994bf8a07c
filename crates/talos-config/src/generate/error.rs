//! Why something cannot be generated.

use std::sync::Arc;

/// Something that cannot be generated from what was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The version is none that Talos has.
    #[error("{text:?} is not a Talos version such as 1.13, v1.13.9 or v1.13.0-rc.1")]
    Version {
        /// The text as given.
        text: String,
    },
    /// The cluster endpoint is not one.
    #[error("the cluster endpoint {text:?} {reason}")]
    Endpoint {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
        /// What was probably meant.
        suggestion: Option<String>,
    },
    /// Some parameters cannot be used.
    #[error("the parameters cannot be used")]
    Params {
        /// What is wrong with them.
        problems: Vec<Problem>,
    },
    /// A text is not YAML.
    #[error("the text cannot be read")]
    Syntax {
        /// What is wrong with it.
        source: crate::Error,
    },
    /// Secrets are missing or damaged.
    #[error("{what} has not all the secrets of a cluster")]
    Secrets {
        /// What was read.
        what: &'static str,
        /// What is missing or damaged.
        problems: Vec<Problem>,
    },
    /// The configuration is not one of a control plane, which alone holds all secrets.
    #[error("the machine configuration is not one of a control plane")]
    NotControlPlane,
    /// The bootstrap token has another form than Kubernetes wants.
    #[error("the bootstrap token must have the form abcdef.0123456789abcdef")]
    Token,
    /// The release has no field for a secret.
    #[error("Talos {release} has no field for {secret}")]
    NoPlace {
        /// The release.
        release: String,
        /// The field of the secrets bundle.
        secret: &'static str,
    },
    /// A key or certificate cannot be made.
    #[error("{what} cannot be made")]
    Make {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: talos_pki::Error,
    },
}

/// One thing that is missing or wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The field, file or parameter.
    pub field: String,
    /// The line it stands on, from 1.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub reason: String,
    /// What a key or certificate was refused for.
    pub source: Option<Arc<talos_pki::Error>>,
}

impl Problem {
    pub(super) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            line: None,
            reason: reason.into(),
            source: None,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{} (line {line}) {}", self.field, self.reason),
            None => write!(f, "{} {}", self.field, self.reason),
        }
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl Error {
    /// Returns what is missing or wrong, where there may be several things.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Params { problems } | Self::Secrets { problems, .. } => problems,
            _ => &[],
        }
    }
}
