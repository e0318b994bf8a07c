//! The file that says how to reach Kubernetes clusters.
//!
//! [`Kubeconfig`] takes text and gives text back; finding and writing the file, and reading files that it names, is the
//! caller's. Merging touches only what it changes: comments, order, and keys that are unknown here stay as they are.

mod merge;
mod read;

use std::fmt;

use crate::talosconfig::{Hidden, Renamed};

pub use merge::{Conflict, Merged, Resolution};

/// A kubeconfig: its text and what the text says.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    file: String,
    text: Hidden,
    current: Option<String>,
    clusters: Vec<Named<Cluster>>,
    users: Vec<Named<User>>,
    contexts: Vec<Named<Context>>,
}

/// An entry of one of the three lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T> {
    /// Name of the entry.
    pub name: String,
    /// What the entry says.
    pub value: T,
}

/// Which of the three lists an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An API server and whom to trust.
    Cluster,
    /// How to prove who calls.
    User,
    /// A cluster together with a user.
    Context,
}

/// An API server and whom to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// URL of the API server.
    pub server: String,
    /// The name to verify in place of the URL's host.
    pub tls_server_name: Option<String>,
    /// Authorities that sign the server's certificate.
    pub authority: Option<Material>,
    /// Whether the server's certificate is not to be verified.
    pub insecure: bool,
    /// The proxy to dial through.
    pub proxy_url: Option<String>,
}

/// How to prove who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The client's certificate.
    pub certificate: Option<Material>,
    /// The client's private key.
    pub key: Option<Material>,
    /// A bearer token.
    pub token: Option<Hidden>,
}

/// A cluster together with a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Name of the cluster's entry.
    pub cluster: String,
    /// Name of the user's entry.
    pub user: String,
    /// The namespace of requests that name none.
    pub namespace: Option<String>,
}

/// Where certificate material is.
#[derive(Clone, PartialEq, Eq)]
pub enum Material {
    /// In the kubeconfig: the decoded PEM.
    Inline(Vec<u8>),
    /// In a file of this path, relative to the kubeconfig.
    File(String),
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(_) => f.write_str("Inline(<hidden>)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// What one context says, with its cluster and user looked up.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Name of the context.
    pub context: &'a str,
    /// Name of the cluster.
    pub cluster_name: &'a str,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Name of the user.
    pub user_name: &'a str,
    /// The user.
    pub user: &'a User,
}

impl Kubeconfig {
    /// Reads a kubeconfig; `file` is what errors call it.
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

    /// Returns the name of the current context, which need not exist.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Returns the clusters, in the order of the file.
    pub fn clusters(&self) -> &[Named<Cluster>] {
        &self.clusters
    }

    /// Returns the users, in the order of the file.
    pub fn users(&self) -> &[Named<User>] {
        &self.users
    }

    /// Returns the contexts, in the order of the file.
    pub fn contexts(&self) -> &[Named<Context>] {
        &self.contexts
    }

    /// Returns what the named context says, or else the current one.
    ///
    /// # Errors
    /// There is no such context, or its cluster or user is missing.
    pub fn access(&self, context: Option<&str>) -> Result<Access<'_>, Error> {
        let name = context
            .or(self.current())
            .ok_or_else(|| Error::NoCurrentContext {
                file: self.file.clone(),
            })?;
        let context = self.find(Kind::Context, &self.contexts, name)?;
        let cluster = self.find(Kind::Cluster, &self.clusters, &context.value.cluster)?;
        let user = self.find(Kind::User, &self.users, &context.value.user)?;
        Ok(Access {
            context: &context.name,
            cluster_name: &cluster.name,
            cluster: &cluster.value,
            user_name: &user.name,
            user: &user.value,
        })
    }

    fn find<'a, T>(
        &self,
        kind: Kind,
        entries: &'a [Named<T>],
        name: &str,
    ) -> Result<&'a Named<T>, Error> {
        entries
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| Error::NoSuchEntry {
                file: self.file.clone(),
                kind,
                name: name.to_string(),
            })
    }
}

impl Kind {
    /// The word for one entry of this list.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::User => "user",
            Self::Context => "context",
        }
    }

    /// The key of the list, which is also its word for several entries.
    pub fn list(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::User => "users",
            Self::Context => "contexts",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Tells what is wrong with a kubeconfig, or with an edit of one.
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
    #[error("{file} is not YAML (line {line}, column {column})")]
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
        /// Path of the field, such as `clusters[0].name`.
        field: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// No context is current, and none was asked for.
    #[error("{file} has no current context")]
    NoCurrentContext {
        /// The file as the caller named it.
        file: String,
    },
    /// An entry that is asked for, or that a context names, does not exist.
    #[error("{file} has no {kind} {name:?}")]
    NoSuchEntry {
        /// The file as the caller named it.
        file: String,
        /// The list it should be in.
        kind: Kind,
        /// Its name.
        name: String,
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

#[cfg(test)]
mod tests;
