//! The file that says how to reach Talos clusters: contexts with endpoints, nodes and credentials.
//!
//! [`TalosConfig`] takes text and gives text back; finding and writing the file is the caller's. Edits touch only what
//! they change: comments, order, and keys that are unknown here stay as they are.

mod credentials;
mod edit;
mod merge;
mod read;

use std::collections::BTreeMap;
use std::fmt;

pub use credentials::{Credentials, Identity};
pub use merge::Renamed;
pub(crate) use merge::free_name;

/// A talosconfig: its text and what the text says.
#[derive(Clone, Debug)]
pub struct TalosConfig {
    file: String,
    text: Hidden,
    current: Option<String>,
    contexts: BTreeMap<String, Context>,
}

/// One context: where a cluster's endpoints are, and with which credentials to call them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Endpoints to dial; an obsolete `target` is the last of them.
    pub endpoints: Vec<String>,
    /// Nodes that commands without `--nodes` read from, as the endpoints see them.
    pub nodes: Vec<String>,
    /// Authorities that sign the servers' certificates: base64 of PEM, or nothing for the system's roots.
    pub ca: Option<String>,
    /// The client's certificate: base64 of PEM.
    pub crt: Option<String>,
    /// The client's private key: base64 of PEM.
    pub key: Option<Hidden>,
    /// How requests prove who sends them, beside the client certificate.
    pub auth: Auth,
    /// What calls send as `context` metadata, for proxies in front of many clusters.
    pub cluster: Option<String>,
    /// The proxy to dial through (`direct`, or a URL), in place of the environment's; since Talos 1.14.
    pub proxy_url: Option<String>,
}

/// How requests of a context prove who sends them, beside the client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// By the client certificate alone.
    #[default]
    None,
    /// By a user name and password with each call.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Hidden,
    },
    /// By signing each request with a key of this identity, as Omni wants.
    SideroV1 {
        /// Whose key signs.
        identity: String,
    },
}

/// Text that `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

impl TalosConfig {
    /// What a talosconfig without any context looks like.
    pub const EMPTY: &str = "context: \"\"\ncontexts: {}\n";

    /// Reads a talosconfig; `file` is what errors call it.
    ///
    /// Certificates and keys are not looked at: a damaged one matters only where its context is used.
    ///
    /// # Errors
    /// The text is empty, not YAML, or a field has the wrong shape.
    pub fn parse(file: impl Into<String>, text: &str) -> Result<Self, Error> {
        read::parse(file.into(), text)
    }

    /// Returns the text, with all edits so far.
    pub fn text(&self) -> &str {
        self.text.reveal()
    }

    /// Returns what errors call this file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the name of the current context, which need not exist.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Returns all contexts, sorted by name.
    pub fn contexts(&self) -> &BTreeMap<String, Context> {
        &self.contexts
    }

    /// Returns the named context, or else the current one, with its name.
    ///
    /// # Errors
    /// There is no such context, or none is named and none is current.
    pub fn select(&self, name: Option<&str>) -> Result<(&str, &Context), Error> {
        let name = name
            .or(self.current())
            .ok_or_else(|| Error::NoCurrentContext {
                file: self.file.clone(),
                known: self.names(),
            })?;
        let (name, context) =
            self.contexts
                .get_key_value(name)
                .ok_or_else(|| Error::NoSuchContext {
                    file: self.file.clone(),
                    context: name.to_string(),
                    known: self.names(),
                })?;
        Ok((name, context))
    }

    /// Decodes the certificates and the key of a context.
    ///
    /// # Errors
    /// The context does not exist, a field is not base64 of PEM, a certificate or key is damaged, one of certificate
    /// and key is missing, or they do not belong together.
    pub fn credentials(&self, name: &str) -> Result<Credentials, Error> {
        let (name, context) = self.select(Some(name))?;
        credentials::decode(&self.file, name, context)
    }

    fn names(&self) -> Vec<String> {
        self.contexts.keys().cloned().collect()
    }
}

/// Tells what is wrong with a talosconfig, or with an edit of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file holds nothing.
    #[error("{file} is empty")]
    Empty {
        /// The file as the caller named it.
        file: String,
    },
    /// The file is not YAML.
    #[error("{file} is not YAML{}", At(*line, *column))]
    Syntax {
        /// The file as the caller named it.
        file: String,
        /// Line of the problem, from 1; 0 when unknown.
        line: u64,
        /// Column of the problem, from 1.
        column: u64,
    },
    /// A field holds something else than it should.
    #[error("{file}: {field} must be {expected}")]
    Shape {
        /// The file as the caller named it.
        file: String,
        /// Path of the field, such as `contexts.lab.endpoints`.
        field: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// No context is current, and none was asked for.
    #[error("{file} has no current context{}", Known(known))]
    NoCurrentContext {
        /// The file as the caller named it.
        file: String,
        /// Names of the contexts there are.
        known: Vec<String>,
    },
    /// The context does not exist.
    #[error("{file} has no context {context:?}{}", Known(known))]
    NoSuchContext {
        /// The file as the caller named it.
        file: String,
        /// The context that was asked for.
        context: String,
        /// Names of the contexts there are.
        known: Vec<String>,
    },
    /// A certificate or key field is not base64.
    #[error("{file}: context {context:?}: {field} is not base64")]
    Base64 {
        /// The file as the caller named it.
        file: String,
        /// Name of the context.
        context: String,
        /// `ca`, `crt` or `key`.
        field: &'static str,
    },
    /// A certificate or key field cannot be read.
    #[error("{file}: context {context:?}: {field} cannot be read")]
    Credential {
        /// The file as the caller named it.
        file: String,
        /// Name of the context.
        context: String,
        /// `ca`, `crt` or `key`.
        field: &'static str,
        /// What is wrong with it.
        source: talos_pki::Error,
    },
    /// Of certificate and key one is missing.
    #[error("{file}: context {context:?} has a {present} but no {missing}")]
    HalfIdentity {
        /// The file as the caller named it.
        file: String,
        /// Name of the context.
        context: String,
        /// The field that is there.
        present: &'static str,
        /// The field that is missing.
        missing: &'static str,
    },
    /// The key belongs to another certificate.
    #[error("{file}: context {context:?}: key does not belong to crt")]
    KeyMismatch {
        /// The file as the caller named it.
        file: String,
        /// Name of the context.
        context: String,
    },
    /// The edit would take away the current context.
    #[error("{file}: context {context:?} is the current one and stays")]
    RemoveCurrent {
        /// The file as the caller named it.
        file: String,
        /// Name of the context.
        context: String,
    },
    /// The text could not be edited.
    #[error("{file} cannot be edited")]
    Edit {
        /// The file as the caller named it.
        file: String,
        /// Why not.
        source: Box<crate::Error>,
    },
}

struct At(u64, u64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(f, " (line {line}, column {})", self.1),
        }
    }
}

struct Known<'a>(&'a [String]);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; it has none");
        }
        write!(f, "; it has {}", self.0.join(", "))
    }
}

#[cfg(test)]
mod tests;
