//! Resources: get, list, watch, definitions.

mod definitions;
mod watches;

use serde_json::json;
use talos_client::{MachineConfig, Metadata};
use talos_sim::{Options, TalosVersion};

use crate::client::{client, cluster, node, start};

const NODENAMES: &str = "Nodenames.kubernetes.talos.dev";

#[tokio::test]
async fn a_resource_comes_with_its_metadata_and_both_contents() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let resource = node(&client, &cluster, 0)
        .get("k8s", NODENAMES, "nodename")
        .await
        .unwrap();
    let expected = Metadata {
        namespace: "k8s".to_string(),
        resource_type: NODENAMES.to_string(),
        id: "nodename".to_string(),
        version: "1".to_string(),
        owner: "k8s.NodenameController".to_string(),
        phase: "running".to_string(),
        created: resource.metadata.created,
        updated: resource.metadata.updated,
        ..Metadata::default()
    };
    assert_eq!(resource.metadata, expected);
    assert!(resource.metadata.created.is_some() && resource.metadata.updated.is_some());
    let name = cluster.nodes()[0].name();
    let spec = json!({"nodename": name, "hostnameVersion": "1", "skipNodeRegistration": false});
    assert_eq!(resource.spec().unwrap(), spec);
    // Field 1 is the name, field 2 the version.
    let proto = [&[10, name.len() as u8], name.as_bytes(), &[18, 1, b'1']].concat();
    assert_eq!(resource.proto_spec, proto);
}

#[tokio::test]
async fn a_list_is_sorted_and_an_empty_one_is_no_error() {
    let cluster = cluster(1, 1).await;
    let client = client(&cluster);
    let control_plane = node(&client, &cluster, 0);
    let list = control_plane
        .list("runtime", "Services.v1alpha1.talos.dev")
        .await
        .unwrap();
    assert!(list.len() > 3 && list.is_sorted_by_key(|resource| resource.metadata.id.clone()));
    let worker = node(&client, &cluster, 1);
    let none = worker
        .list("controlplane", "APIServerConfigs.kubernetes.talos.dev")
        .await
        .unwrap();
    assert_eq!(none, []);
}

#[tokio::test]
async fn the_machine_configuration_is_the_exact_text_on_every_version() {
    for talos_version in TalosVersion::ALL {
        let cluster = start(Options {
            talos_version,
            workers: 0,
            ..Options::default()
        })
        .await;
        let client = client(&cluster);
        let node = node(&client, &cluster, 0);
        let text = cluster.nodes()[0].machine_config().unwrap();
        let active = node.machine_config().await.unwrap();
        assert_eq!(
            (active.id.as_str(), active.text.as_str()),
            (MachineConfig::ACTIVE, text.as_str())
        );
        let all = node.machine_configs().await.unwrap();
        let ids: Vec<&str> = all.iter().map(|config| config.id.as_str()).collect();
        assert!(
            ids.contains(&MachineConfig::ACTIVE) && ids.contains(&MachineConfig::PERSISTENT),
            "{ids:?}"
        );
        assert!(all.iter().all(|config| config.text == text));
        let resource = node
            .get(
                "config",
                talos_client::MACHINE_CONFIG_TYPE,
                MachineConfig::ACTIVE,
            )
            .await
            .unwrap();
        assert_eq!(resource.spec().unwrap(), json!(text), "{talos_version:?}");
        let encoded_as_text = !resource.metadata.annotations.is_empty();
        assert_eq!(encoded_as_text, talos_version != TalosVersion::V1_11_5);
        // Without the exact bytes, the YAML says the same.
        let yaml_only = talos_client::Resource {
            proto_spec: Vec::new(),
            ..resource
        };
        assert_eq!(
            yaml_only.machine_config_text().as_deref(),
            Some(text.as_str())
        );
    }
}
