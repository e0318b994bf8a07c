//! What a node runs.

use crate::error::from_metadata;
use crate::nodes::only;
use crate::{Node, Result};

/// What a node runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeVersion {
    /// The version of Talos, such as `v1.13.9`.
    pub tag: String,
    /// The commit it was built from.
    pub sha: String,
    /// When it was built, as text; often empty.
    pub built: String,
    /// The version of Go it was built with.
    pub go_version: String,
    /// The operating system it was built for.
    pub os: String,
    /// The processor architecture.
    pub arch: String,
    /// Where it runs.
    pub platform: Option<Platform>,
    /// Whether roles limit what callers may do; unknown in maintenance mode.
    pub rbac: Option<bool>,
}

/// Where a node runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// Name of the platform, such as `metal` or `aws`.
    pub name: String,
    /// What kind of platform: `metal`, `cloud`, `container` or `metal-agent`.
    pub mode: String,
}

impl NodeVersion {
    /// Returns the version as numbers, if the tag is one.
    pub fn semver(&self) -> Option<semver::Version> {
        semver::Version::parse(self.tag.trim_start_matches('v')).ok()
    }
}

impl Node {
    /// Asks what the node runs.
    ///
    /// # Errors
    /// The call gave no answer.
    pub async fn version(&self) -> Result<NodeVersion> {
        let (answer, context) = self
            .unary(None, async |wire| super::machine(wire).version(()).await)
            .await?;
        let message = only(answer.messages, &context)?;
        if let Some(error) = from_metadata(message.metadata.as_ref(), &context) {
            return Err(error);
        }
        let version = message
            .version
            .ok_or_else(|| context.answer("holds no version"))?;
        Ok(NodeVersion {
            tag: version.tag,
            sha: version.sha,
            built: version.built,
            go_version: version.go_version,
            os: version.os,
            arch: version.arch,
            platform: message.platform.map(|platform| Platform {
                name: platform.name,
                mode: platform.mode,
            }),
            rbac: message.features.map(|features| features.rbac),
        })
    }
}
