//! Generated secrets, configurations and talosconfigs beside those of the official library.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use talos_config::generate::{
    Comments, Encryption, Endpoint, Params, Release, Secrets, machine_config, talosconfig,
};
use talos_config::machine::MachineType;
use talos_config::talosconfig::TalosConfig;
use talos_config::yaml::read_documents;
use talos_pki::{Algorithm, Certificate};

use super::config::Peer;

const BUNDLE: &str = include_str!("../../data/genconfig/secrets.yaml");
const KINDS: [(MachineType, &str); 2] = [
    (MachineType::ControlPlane, "controlplane"),
    (MachineType::Worker, "worker"),
];
const NOW: &str = "2026-11-30T12:00:00Z";

/// The releases that each version of the library generates for as we do; newer ones it does not know.
const CONTRACTS: [(&str, &[&str]); 3] = [
    ("1.11", &["1.8", "1.9", "1.10", "1.11"]),
    (
        "1.13",
        &[
            "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11",
            "1.12", "1.13",
        ],
    ),
    (
        "1.14",
        &[
            "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11",
            "1.12", "1.13", "1.14", "1.15",
        ],
    ),
];

/// Every combination of what an owner may choose.
fn grid(version: &str) -> Vec<Params> {
    let release = Release::parse(version).unwrap();
    let mut grid = Vec::new();
    for bits in 0..32 {
        for endpoint in [
            "https://10.5.10.2:6443",
            "https://[fd00::1]:6443",
            "https://cp.example.org/some/path",
        ] {
            let chosen = |bit: u32| bits & (1 << bit) != 0;
            let endpoint = Endpoint::parse(endpoint).unwrap();
            let mut params = Params::new("cluster-1", endpoint, release.clone());
            params.kube_span = chosen(0);
            params.discovery = !chosen(1);
            if chosen(2) {
                params.additional_sans = ["172.30.0.11", "fd00::2", "cp.example.org"]
                    .map(str::to_owned)
                    .to_vec();
            }
            if chosen(3) {
                params.registry_mirrors = BTreeMap::from([
                    (
                        "ghcr.io".to_owned(),
                        vec!["https://m.example.org/v2".to_owned()],
                    ),
                    (
                        "docker.io".to_owned(),
                        vec!["http://m:5000".to_owned(), "https://n".to_owned()],
                    ),
                    ("*".to_owned(), vec!["http://10.0.0.1:5000".to_owned()]),
                ]);
            }
            if chosen(4) {
                params.dns_domain = "example.internal".to_owned();
                params.install_disk = "/dev/disk/by-id/a \"b\"".to_owned();
                params.install_image = "registry.example.org/installer:v9".to_owned();
                params.kubernetes_version = "1.33.0-rc.1".to_owned();
            }
            grid.push(params);
        }
    }
    grid
}

fn question(params: &Params, bundle: &str) -> Value {
    json!({
        "op": "generate",
        "name": params.cluster_name,
        "endpoint": params.endpoint.as_str(),
        "secrets": bundle,
        "talosVersion": params.release.contract().to_string(),
        "kubernetesVersion": params.kubernetes_version,
        "installDisk": params.install_disk,
        "installImage": params.install_image,
        "additionalSans": params.additional_sans,
        "dnsDomain": params.dns_domain,
        "registryMirrors": params.registry_mirrors,
        "kubespan": params.kube_span,
        "discovery": params.discovery,
        "clock": NOW,
    })
}

/// The golden bundle, with the encryption that the release knows.
fn secrets_for(version: &str) -> Secrets {
    let mut secrets = Secrets::read(BUNDLE).unwrap();
    let release = Release::parse(version).unwrap();
    if !release.contract().has_secretbox() {
        let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        secrets.encryption = Encryption::AesCbc(key.to_owned());
    }
    secrets
}

/// Drops what means the same as nothing.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty)
    };
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => items.iter().map(without_empty).collect(),
        scalar => scalar.clone(),
    }
}

fn documents(text: &str) -> Vec<Value> {
    read_documents(text)
        .unwrap()
        .iter()
        .map(without_empty)
        .collect()
}

#[test]
#[ignore = "needs Go"]
fn the_official_library_generates_the_same_documents() {
    let mut compared = 0;
    for (version, contracts) in CONTRACTS {
        let mut peer = Peer::start(version);
        for contract in contracts {
            let grid = grid(contract);
            let secrets = secrets_for(contract);
            let bundle = secrets.text();
            let questions = grid
                .iter()
                .map(|params| question(params, &bundle))
                .collect();
            for (params, answer) in grid.iter().zip(peer.ask_all(questions)) {
                assert_eq!(answer["ok"], true, "{answer}");
                for (kind, name) in KINDS {
                    let ours = machine_config(kind, params, &secrets).unwrap();
                    let theirs = answer[name].as_str().unwrap();
                    assert_eq!(documents(&ours), documents(theirs), "{version}: {params:?}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 2 * 96 * (4 + 14 + 16));
}

#[test]
#[ignore = "needs Go"]
fn the_official_library_generates_the_same_talosconfig() {
    let params = Params::new(
        "cluster-1",
        Endpoint::parse("https://10.5.10.2:6443").unwrap(),
        Release::parse("1.13").unwrap(),
    );
    let answer = Peer::start("1.13").ask(question(&params, BUNDLE));
    let theirs = answer["talosconfig"].as_str().unwrap();
    let ours = talosconfig(
        &params,
        &Secrets::read(BUNDLE).unwrap(),
        NOW.parse().unwrap(),
    )
    .unwrap();
    let read = |text: &str| {
        let config = TalosConfig::parse("talosconfig", text).unwrap();
        let (name, context) = config.select(None).unwrap();
        let name = name.to_owned();
        let ca = context.ca.clone();
        assert_eq!((context.endpoints.len(), context.nodes.len()), (0, 0));
        (
            name.clone(),
            ca,
            config.credentials(&name).unwrap().identity.unwrap(),
        )
    };
    let (ours, theirs) = (read(&ours), read(theirs));
    assert_eq!((&ours.0, &ours.1), (&theirs.0, &theirs.1));
    assert_eq!(parameters(&ours.2.chain[0]), parameters(&theirs.2.chain[0]));
    assert_eq!(ours.2.key.algorithm(), Algorithm::Ed25519);
}

/// What a certificate says, apart from its keys and numbers.
fn parameters(certificate: &Certificate) -> Value {
    json!({
        "subject": certificate.subject(),
        "organizations": certificate.organizations(),
        "issuer": certificate.issuer(),
        "not before": certificate.not_before().to_string(),
        "not after": certificate.not_after().to_string(),
        "names": certificate.names(),
        "usage": format!("{:?}", certificate.key_usage()),
        "purposes": format!("{:?}", certificate.extended_key_usage()),
        "is an authority": certificate.is_ca(),
        "algorithm": certificate.algorithm(),
        "authority key": certificate.authority_key_id(),
        "length of the subject key": certificate.subject_key_id().map(<[u8]>::len),
    })
}

#[test]
#[ignore = "needs Go"]
fn the_official_library_makes_the_same_authorities() {
    for (version, contract) in [("1.13", "1.13"), ("1.14", "1.14"), ("1.13", "1.6")] {
        let release = Release::parse(contract).unwrap();
        let endpoint = Endpoint::parse("https://10.5.10.2:6443").unwrap();
        let params = Params::new("cluster-1", endpoint, release.clone());
        let mut ask = question(&params, "");
        ask["secrets"] = json!("");
        let answer = Peer::start(version).ask(ask);
        let theirs = Secrets::from_config(answer["controlplane"].as_str().unwrap()).unwrap();
        let ours = Secrets::generate(
            release.contract(),
            NOW.parse().unwrap(),
            &mut talos_pki::fill_random,
        )
        .unwrap();
        let theirs = theirs.secrets;
        for (ours, theirs) in [
            (&ours.os, &theirs.os),
            (&ours.etcd, &theirs.etcd),
            (&ours.kubernetes, &theirs.kubernetes),
            (&ours.aggregator, &theirs.aggregator),
        ] {
            let read = |pem: &str| parameters(&Certificate::many_from_pem(pem).unwrap()[0]);
            assert_eq!(read(&ours.crt), read(&theirs.crt));
            assert_eq!(label(&ours.key), label(&theirs.key));
        }
        assert_eq!(label(&ours.service_account), label(&theirs.service_account));
    }
}

fn label(pem: &str) -> &str {
    pem.lines().next().unwrap()
}

#[test]
#[ignore = "needs Go"]
fn the_official_library_accepts_what_is_generated() {
    for (version, contracts) in [
        ("1.11", &["1.8", "1.9", "1.10", "1.11"][..]),
        ("1.13", &["1.8", "1.11", "1.12", "1.13"]),
        ("1.14", &["1.8", "1.11", "1.12", "1.13", "1.14"]),
    ] {
        let mut peer = Peer::start(version);
        for contract in contracts {
            let secrets = secrets_for(contract);
            for mut params in grid(contract).into_iter().step_by(7) {
                // Discovery off and the mesh on exclude each other.
                params.discovery |= params.kube_span;
                params.comments = Comments {
                    docs: true,
                    examples: true,
                };
                for (kind, name) in KINDS {
                    let text = machine_config(kind, &params, &secrets).unwrap();
                    let modes = ["metal", "cloud", "container"];
                    let questions = modes.map(|mode| {
                        json!({"op": "validate", "config": text, "mode": mode, "strict": version == *contract})
                    });
                    for (mode, answer) in modes.iter().zip(peer.ask_all(questions.to_vec())) {
                        assert_eq!(
                            answer["ok"], true,
                            "{version} {contract} {name} {mode}: {answer}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "needs Go"]
fn the_official_library_accepts_every_example() {
    for version in ["1.11", "1.13", "1.14"] {
        let mut peer = Peer::start(version);
        let endpoint = Endpoint::parse("https://10.5.10.2:6443").unwrap();
        let mut params = Params::new("cluster-1", endpoint, Release::parse(version).unwrap());
        params.comments.examples = true;
        for (kind, name) in KINDS {
            let text = machine_config(kind, &params, &Secrets::read(BUNDLE).unwrap()).unwrap();
            let lines = text.lines().map(|line| line.replacen("# ", "", 1) + "\n");
            let text: String = lines.collect();
            let answer = peer.ask(json!({"op": "validate", "config": text, "mode": "metal"}));
            assert_eq!(answer["ok"], true, "{version} {name}: {answer}");
        }
    }
}

#[test]
#[ignore = "needs Go"]
fn the_official_library_takes_fresh_secrets() {
    for (version, contracts) in CONTRACTS {
        let mut peer = Peer::start(version);
        for contract in contracts.iter().step_by(3) {
            let release = Release::parse(contract).unwrap();
            let now = NOW.parse().unwrap();
            let fill = &mut talos_pki::fill_random;
            let secrets = Secrets::generate(release.contract(), now, fill).unwrap();
            let endpoint = Endpoint::parse("https://10.5.10.2:6443").unwrap();
            let params = Params::new("cluster-1", endpoint, release);
            let answer = peer.ask(question(&params, &secrets.text()));
            assert_eq!(answer["ok"], true, "{version} {contract}: {answer}");
            let theirs = answer["controlplane"].as_str().unwrap();
            assert_eq!(Secrets::from_config(theirs).unwrap().secrets, secrets);
        }
    }
}
