//! The Talos version a configuration is for.

use super::at::Document;
use super::{Mode, Options};
use crate::schema::Schema;

/// What rules need to know beside the place they look at.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// Where Talos is to run.
    pub(super) mode: Mode,
    /// The fields of the target version, or of the one nearest to it.
    pub(super) schema: Schema,
    /// All documents.
    pub(super) documents: &'a [Document<'a>],
    version: String,
}

impl<'a> Context<'a> {
    /// Finds the target version: the one asked for, else the one that is installed, else the newest.
    pub(super) fn new(options: &Options, documents: &'a [Document<'a>]) -> Self {
        let version = options.talos_version.clone().or_else(|| {
            let roots = documents.iter().map(|document| document.node);
            Schema::installed(roots).map(str::to_owned)
        });
        let schema = version
            .as_deref()
            .map_or_else(Schema::newest, Schema::for_talos);
        Self {
            mode: options.mode,
            schema,
            documents,
            version: version.unwrap_or_else(|| schema.table_version().to_owned()),
        }
    }

    /// Returns the target version without a `v`.
    pub(super) fn version(&self) -> &str {
        self.version.trim().trim_start_matches('v')
    }

    /// Returns whether the rules of a Talos version from this minor one on are used.
    pub(super) fn at_least(&self, minor: u64) -> bool {
        minor_of(self.schema.table_version()).is_some_and(|of| of >= minor)
    }

    /// Returns the main document, if there is one.
    pub(super) fn main(&self) -> Option<&Document<'a>> {
        self.documents.iter().find(|document| document.is_main())
    }
}

/// Returns the minor version of a version of Talos 1.
fn minor_of(version: &str) -> Option<u64> {
    let mut parts = version.trim_start_matches('v').split('.');
    match parts.next()? {
        "1" => parts.next()?.parse().ok(),
        _ => None,
    }
}
