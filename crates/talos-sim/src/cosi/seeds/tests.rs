//! What a fresh node holds.

use expect_test::expect;
use jiff::Timestamp;
use serde_json::json;

use super::{Machine, Seeds, Site};
use crate::node::MachineType;
use crate::options::{Platform, TalosVersion};
use crate::store::Store;

/// The seeds of a cluster of two control planes and a worker.
pub(in crate::cosi) fn seeds() -> Seeds {
    Seeds::new(site(TalosVersion::V1_13_9), Timestamp::UNIX_EPOCH)
}

/// The first machine of that cluster.
pub(in crate::cosi) fn controlplane() -> Machine {
    site(TalosVersion::V1_13_9).machines.remove(0)
}

/// The store of one of its machines.
pub(in crate::cosi) fn installed(index: usize) -> Store {
    filled(TalosVersion::V1_13_9, index, &[])
}

fn site(talos_version: TalosVersion) -> Site {
    let machine = |name: &str, last: u8, kind| Machine {
        name: name.to_owned(),
        address: [127, 0, 9, last].into(),
        kind,
    };
    Site {
        cluster_name: "north".to_owned(),
        cluster_id: "c2Vjb25k".to_owned(),
        endpoint: "https://north.example.org:6443".to_owned(),
        talos_version,
        kubernetes_version: "1.33.4".to_owned(),
        platform: Platform::Metal,
        machines: vec![
            machine("north-cp-1", 1, MachineType::ControlPlane),
            machine("north-cp-2", 2, MachineType::ControlPlane),
            machine("north-w-1", 3, MachineType::Worker),
        ],
    }
}

fn filled(version: TalosVersion, index: usize, without: &[&str]) -> Store {
    let site = site(version);
    let machine = site.machines[index].clone();
    let store = Store::new();
    Seeds::new(site, Timestamp::UNIX_EPOCH).install(&store, &machine, without);
    store
}

fn yaml(store: &Store, namespace: &str, kind: &str, id: &str) -> String {
    store
        .get(namespace, kind, id)
        .expect(id)
        .spec
        .yaml()
        .to_owned()
}

#[test]
fn versions_have_their_types() {
    for (version, types) in [
        (TalosVersion::V1_11_5, 156),
        (TalosVersion::V1_13_9, 167),
        (TalosVersion::V1_14, 167),
    ] {
        let store = filled(version, 0, &[]);
        assert_eq!(store.list("meta", super::DEFINITIONS).len(), types);
        assert_eq!(store.list("meta", super::NAMESPACES).len(), 17);
    }
}

#[test]
fn definitions_describe_types() {
    let store = filled(TalosVersion::V1_13_9, 0, &[]);
    let id = "certsans.secrets.talos.dev";
    expect![[r#"
        type: CertSANs.secrets.talos.dev
        displayType: CertSAN
        defaultNamespace: secrets
        aliases:
            - certsan
            - csan
            - csans
        allAliases:
            - certsans
            - certsans.secrets
            - certsans.secrets.talos
            - certsan
            - csan
            - csans
        printColumns: []
        sensitivity: sensitive
    "#]]
    .assert_eq(&yaml(&store, "meta", super::DEFINITIONS, id));
}

#[test]
fn instances_name_the_machine_and_its_cluster() {
    let store = filled(TalosVersion::V1_13_9, 1, &[]);
    let get = |namespace, kind: &str, id| yaml(&store, namespace, &format!("{kind}.talos.dev"), id);
    let hostname = get("network", "HostnameStatuses.net", "hostname");
    assert_eq!(hostname, "hostname: north-cp-2\ndomainname: \"\"\n");
    let version = get("runtime", "Versions.runtime", "version");
    assert_eq!(version, "name: Talos\nversion: v1.13.9\n");
    expect![[r#"
        host: 127.0.0.1
        port: 7445
        endpoints:
            - host: north.example.org
              port: 6443
            - host: localhost
              port: 6443
            - host: 127.0.9.1
              port: 6443
            - host: 127.0.9.2
              port: 6443
    "#]]
    .assert_eq(&get(
        "k8s",
        "KubePrismConfigs.kubernetes",
        "k8s-loadbalancer-config",
    ));
    expect![[r#"
        nodeId: sCtNkMD4rwB5SAYNEOuzV0MVXpND4qiSqEeaZIjJrnl
        addresses:
            - 127.0.9.3
        hostname: north-w-1
        machineType: worker
        operatingSystem: Talos (v1.13.9)
    "#]]
    .assert_eq(&get("cluster", "Members.cluster", "north-w-1"));
    expect![[r#"
        clusterId: c2Vjb25k
        clusterName: north
    "#]]
    .assert_eq(&get("cluster", "Infos.cluster", "current"));
    assert_eq!(
        get("config", "MachineTypes.config", "machine-type"),
        "controlplane\n"
    );
    assert_eq!(store.list("cluster", "Members.cluster.talos.dev").len(), 3);
    let own = store.get(
        "network",
        "AddressStatuses.net.talos.dev",
        "eth0/127.0.9.2/24",
    );
    assert!(own.is_some());
}

#[test]
fn nodes_share_what_does_not_name_them() {
    let site = site(TalosVersion::V1_13_9);
    let seeds = Seeds::new(site.clone(), Timestamp::UNIX_EPOCH);
    let stores = [0, 1].map(|index: usize| {
        let store = Store::new();
        seeds.install(&store, &site.machines[index], &[]);
        store
    });
    let get = |index: usize, namespace, kind, id| stores[index].get(namespace, kind, id).expect(id);
    for (namespace, kind, id, shared) in [
        (
            "meta",
            super::DEFINITIONS,
            "members.cluster.talos.dev",
            true,
        ),
        (
            "k8s",
            "KubePrismStatuses.kubernetes.talos.dev",
            "k8s-loadbalancer",
            true,
        ),
        ("k8s", "Nodenames.kubernetes.talos.dev", "nodename", false),
    ] {
        let [a, b] = [0, 1].map(|index| get(index, namespace, kind, id));
        assert_eq!(std::sync::Arc::ptr_eq(&a, &b), shared, "{kind}");
    }
}

#[test]
fn a_machine_without_configuration_holds_little() {
    let mut site = site(TalosVersion::V1_13_9);
    site.machines[2].kind = MachineType::Unknown;
    let machine = site.machines[2].clone();
    let store = Store::new();
    Seeds::new(site, Timestamp::UNIX_EPOCH).install(&store, &machine, &[]);
    let count = |namespace, kind| store.list(namespace, kind).len();
    assert_eq!(count("cluster", "Infos.cluster.talos.dev"), 0);
    assert_eq!(count("cluster", "Members.cluster.talos.dev"), 0);
    assert_eq!(count("k8s", "Nodenames.kubernetes.talos.dev"), 0);
    assert_eq!(count("runtime", "Versions.runtime.talos.dev"), 1);
}

#[test]
fn types_that_others_provide_are_left_out() {
    let kind = "Services.v1alpha1.talos.dev";
    let store = filled(TalosVersion::V1_13_9, 0, &[kind]);
    assert!(store.list("runtime", kind).is_empty());
    let value = store.get("meta", super::DEFINITIONS, &kind.to_lowercase());
    assert_eq!(value.unwrap().spec.value()["displayType"], json!("Service"));
}
