//! The machine configuration as a resource, in each of its encodings.

use prost::Message as _;
use talos_api::resource::config::MachineConfigSpec;

use super::Resource;
use crate::{Call, Error, Node, NodeMessage, Result};

/// The resource type of machine configurations.
pub const TYPE: &str = "MachineConfigs.config.talos.dev";

/// The namespace they are in.
const NAMESPACE: &str = "config";

/// A machine configuration of a node.
#[derive(Clone, PartialEq, Eq)]
pub struct MachineConfig {
    /// Which one: `v1alpha1` is the active one, `persistent` the one that the next boot takes.
    pub id: String,
    /// Its version; it grows with each change.
    pub version: String,
    /// The text exactly as it was applied.
    pub text: String,
}

impl MachineConfig {
    /// The id of the configuration that is active.
    pub const ACTIVE: &str = "v1alpha1";
    /// The id of the configuration that the next boot takes; it may be absent.
    pub const PERSISTENT: &str = "persistent";
}

impl std::fmt::Debug for MachineConfig {
    /// Leaves the text out: it holds keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineConfig")
            .field("id", &self.id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Resource {
    /// Returns the configuration that a resource of type [`TYPE`] holds.
    ///
    /// The protobuf content has the exact bytes. In YAML it is one text since Talos 1.12, which an annotation tells, and
    /// before that the documents themselves.
    pub fn machine_config_text(&self) -> Option<String> {
        let exact = MachineConfigSpec::decode(self.proto_spec.as_slice())
            .ok()
            .and_then(|spec| String::from_utf8(spec.yaml_marshalled).ok())
            .filter(|text| !text.is_empty());
        if exact.is_some() {
            return exact;
        }
        if self.yaml_spec.is_empty() {
            return None;
        }
        if self.metadata.annotations.is_empty() {
            return Some(self.yaml_spec.clone());
        }
        let value = talos_config::yaml::read(&self.yaml_spec).ok()?;
        value.as_str().map(str::to_string)
    }
}

impl Node {
    /// Reads the configuration that is active; it takes `os:admin`.
    ///
    /// # Errors
    /// The node has none yet, or the call gave no answer.
    pub async fn machine_config(&self) -> Result<MachineConfig> {
        let resource = self.get(NAMESPACE, TYPE, MachineConfig::ACTIVE).await?;
        self.read_config(resource)
    }

    /// Reads all configurations: the active one, and the persistent one where there is one.
    ///
    /// # Errors
    /// The call gave no answer.
    pub async fn machine_configs(&self) -> Result<Vec<MachineConfig>> {
        let list = self.list(NAMESPACE, TYPE).await?;
        list.into_iter()
            .map(|resource| self.read_config(resource))
            .collect()
    }

    fn read_config(&self, resource: Resource) -> Result<MachineConfig> {
        let Some(text) = resource.machine_config_text() else {
            return Err(Error::NotFound {
                call: Box::new(Call {
                    node: self.name().map(str::to_string),
                    endpoint: String::new(),
                    method: "cosi.resource.State/Get".to_string(),
                }),
                source: NodeMessage("the configuration is empty".to_string()),
            });
        };
        Ok(MachineConfig {
            id: resource.metadata.id,
            version: resource.metadata.version,
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Metadata;

    fn check(annotated: bool, yaml: &str, proto: &[u8], expected: Option<&str>) {
        let mut metadata = Metadata {
            resource_type: TYPE.to_string(),
            ..Metadata::default()
        };
        if annotated {
            metadata
                .annotations
                .insert("talos.dev/yaml-spec".to_string(), "1".to_string());
        }
        let resource = Resource {
            metadata,
            yaml_spec: yaml.to_string(),
            proto_spec: proto.to_vec(),
        };
        assert_eq!(resource.machine_config_text().as_deref(), expected);
    }

    #[test]
    fn each_encoding_gives_the_text() {
        let text = "# note\nmachine: {}\n---\nkind: HostnameConfig\n";
        let proto = MachineConfigSpec {
            yaml_marshalled: text.as_bytes().to_vec(),
        }
        .encode_to_vec();
        let scalar = "|\n    # note\n    machine: {}\n    ---\n    kind: HostnameConfig\n";
        check(true, scalar, &proto, Some(text));
        check(true, scalar, &[], Some(text));
        check(false, text, &[], Some(text));
        check(false, "", &[], None);
    }
}
