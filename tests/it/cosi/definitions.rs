//! Resource types: their names and columns.

use std::collections::{BTreeMap, BTreeSet};

use talos_client::{Definition, Error, Kind, columns, resolve};

use crate::client::{client, client_as, cluster, node};

/// Types of Talos 1.13.9 with their names, and which of these are ambiguous.
const NAMES: &str = include_str!("../../data/resource-names.tsv");

async fn definitions() -> Vec<Definition> {
    let cluster = cluster(1, 0).await;
    let client = client_as(&cluster, &["os:reader"]);
    node(&client, &cluster, 0).definitions().await.unwrap()
}

#[tokio::test]
async fn every_name_of_every_type_is_resolved_or_called_ambiguous() {
    let definitions = definitions().await;
    let mut meanings: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut ambiguous = BTreeSet::new();
    for line in NAMES.lines().skip(1) {
        let [resource_type, names, unclear] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        for name in names.split(' ') {
            meanings
                .entry(name)
                .or_default()
                .insert(resource_type.to_lowercase());
        }
        ambiguous.extend(unclear.split(' ').filter(|name| !name.is_empty()));
        let by_type = resolve(&definitions, resource_type).unwrap();
        assert_eq!(by_type.resource_type, resource_type);
    }
    assert_eq!(definitions.len(), 167);
    assert!(ambiguous.contains("ns") && ambiguous.contains("as"));
    for (name, types) in meanings {
        match resolve(&definitions, &name.to_uppercase()) {
            Ok(definition) => {
                assert_eq!(BTreeSet::from([definition.id.clone()]), types, "{name}");
                assert!(!ambiguous.contains(name), "{name}");
            }
            Err(Error::AmbiguousType { types: found, .. }) => {
                assert_eq!(BTreeSet::from_iter(found), types, "{name}");
                assert!(ambiguous.contains(name), "{name}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[tokio::test]
async fn an_unknown_name_gets_near_ones() {
    let definitions = definitions().await;
    for (name, near) in [
        ("membres", "members"),
        ("machinestatuss", "machinestatus"),
        ("nodenam", "nodename"),
        ("discoveredvolume.block", "discoveredvolumes.block"),
    ] {
        let error = resolve(&definitions, name).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        let Error::NoSuchType { near: found, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(found.iter().any(|own| own == near), "{name}: {found:?}");
        assert!(error.to_string().contains(near), "{error}");
    }
}

#[tokio::test]
async fn columns_show_what_a_real_machine_shows() {
    let cluster = cluster(1, 0).await;
    let client = client(&cluster);
    let node = node(&client, &cluster, 0);
    let definitions = node.definitions().await.unwrap();
    let rows = async |name: &str| {
        let definition = resolve(&definitions, name).unwrap();
        let list = node
            .list(&definition.default_namespace, &definition.resource_type)
            .await
            .unwrap();
        let headers: Vec<&str> = definition
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let rows: Vec<Vec<String>> = list
            .iter()
            .map(|resource| columns(definition, &resource.spec().unwrap()))
            .collect();
        (headers.join("|"), rows)
    };
    let host = cluster.nodes()[0].name();
    let address = cluster.nodes()[0].address();

    let (headers, members) = rows("members").await;
    assert_eq!(headers, "Hostname|Machine Type|OS|Addresses");
    assert_eq!(
        members,
        [[
            host,
            "controlplane",
            "Talos (v1.13.9)",
            &format!("[\"{address}\"]")
        ]]
    );

    let (headers, statuses) = rows("machinestatus").await;
    assert_eq!(
        (headers.as_str(), statuses),
        (
            "Stage|Ready",
            vec![vec!["running".to_string(), "true".to_string()]]
        )
    );

    let (headers, pods) = rows("staticpodstatus").await;
    assert_eq!(
        (headers.as_str(), pods),
        ("Ready", vec![vec!["True".to_string()]; 3])
    );

    let (headers, types) = rows("rd").await;
    assert_eq!(
        (headers.as_str(), types[0][0].as_str()),
        ("Aliases", "acquireconfigspec acs")
    );
}

#[tokio::test]
async fn sensitive_types_are_known() {
    let definitions = definitions().await;
    let sensitive = definitions.iter().filter(|definition| definition.sensitive);
    assert_eq!(sensitive.count(), 35);
    assert!(resolve(&definitions, "mc").unwrap().sensitive);
}
