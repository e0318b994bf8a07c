//! Machine configurations as resources, in the encodings of old and new Talos.

use prost::Message as _;
use serde_json::Value;
use talos_api::resource::config::MachineConfigSpec;

use super::yaml;
use crate::options::TalosVersion;
use crate::store::{Draft, Spec};

/// The type of machine configurations.
pub(crate) const MACHINE_CONFIGS: &str = "MachineConfigs.config.talos.dev";

/// Makes the resource of a configuration: `id` is `v1alpha1` for the active one and `persistent` for
/// the stored one. Store it with `put_forced`: applying raises the version of equal content too.
///
/// Up to Talos 1.11 `yaml_spec` is the configuration itself; since 1.12 it is a YAML string that
/// holds it, told by an annotation. `proto_spec` always holds the exact bytes.
pub(crate) fn machine_config(id: &str, text: &str, version: TalosVersion) -> Draft {
    let content = Value::String(text.to_owned());
    let bytes = MachineConfigSpec {
        yaml_marshalled: text.as_bytes().to_vec(),
    };
    let quoted = version > TalosVersion::V1_11_5;
    let shown = match quoted {
        true => yaml::render(&content),
        false => text.to_owned(),
    };
    let mut draft = Draft::new("config", MACHINE_CONFIGS, id, "", Value::Null);
    draft.spec = Spec::from_parts(content, shown, bytes.encode_to_vec());
    if quoted {
        let marker = ("talos.dev/yaml-spec".to_owned(), "1".to_owned());
        draft.annotations.extend([marker]);
    }
    draft
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use serde_json::Value;
    use talos_api::resource::config::MachineConfigSpec;

    use super::machine_config;
    use crate::options::TalosVersion;

    const CONFIG: &str = "# mine\nversion: v1alpha1\nmachine:\n  type: worker \n---\nkind: X\n";

    #[test]
    fn both_encodings_hold_the_exact_text() {
        for version in TalosVersion::ALL {
            let draft = machine_config("v1alpha1", CONFIG, version);
            let spec = draft.spec;
            let bytes = MachineConfigSpec::decode(spec.proto(super::MACHINE_CONFIGS)).unwrap();
            assert_eq!(bytes.yaml_marshalled, CONFIG.as_bytes());
            if version == TalosVersion::V1_11_5 {
                assert!(draft.annotations.is_empty());
                assert_eq!(spec.yaml(), CONFIG);
            } else {
                assert_eq!(draft.annotations["talos.dev/yaml-spec"], "1");
                let shown: Value = serde_saphyr::from_str(spec.yaml()).unwrap();
                assert_eq!(shown, Value::from(CONFIG));
            }
        }
    }
}
