//! Migration held against the official library: what is migrated loads, is as valid as before, and means the same by the
//! library's own accessors.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use talos_config::migrate::{Refusal, Target, migrate};
use talos_config::patch::{Patch, apply};
use talos_config::yaml::{Kind, Step, Stream, read_documents};
use talos_config::{Error, Schema};

use super::config::Peer;
use crate::machineconfig::generator::{Generator, Random};

/// A secrets bundle.
const SECRETS: &str = include_str!("../../data/genconfig/secrets.yaml");

/// Nearly every deprecated field that has an equal, as a patch.
const FIELDS: &str = include_str!("../../data/migration.yaml");

/// How many random configurations are migrated to each version; `ICHOR_MIGRATION_CASES` says another number.
const CASES: u64 = 1000;

/// What only the new form has, which migrating must not add.
const NEW_DEFAULTS: [&str; 3] = [
    "FilesystemTrimConfig",
    "SecurityProfileConfig",
    "VolumeConfig/EPHEMERAL",
];

/// Documents of the new form that say nothing: what they say is so without them too.
const SAYS_NOTHING: [&str; 2] = ["KubeCoreDNSConfig", "KubeNodeConfig"];

/// Documents that say in the new form what a new cluster has, and in a migrated one what the old form implied.
const KEEPS_OLD_DEFAULTS: [&str; 3] = [
    // Anonymous requests were never answered.
    "KubeAuthenticationConfig",
    // What is not encrypted yet can be read.
    "KubeEtcdEncryptionConfig",
    // There were no startup probes.
    "KubeAPIServerConfig",
];

fn generate(peer: &mut Peer, contract: &str, more: &Value) -> Value {
    let mut question = json!({
        "op": "generate", "name": "c", "endpoint": "https://10.0.0.1:6443", "secrets": SECRETS,
        "talosVersion": contract, "kubernetesVersion": "1.34.0", "installDisk": "/dev/sda",
        "installImage": "ghcr.io/siderolabs/installer:v1.14.1", "additionalSans": ["a.example"],
        "dnsDomain": "cluster.local", "registryMirrors": {}, "kubespan": false, "discovery": true,
        "clock": "2026-01-01T00:00:00Z",
    });
    question
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let answer = peer.ask(question);
    assert_eq!(answer["ok"], true, "{answer}");
    answer
}

fn to(version: &str) -> Target {
    Target::parse(version).unwrap()
}

/// Returns what the library says a configuration means.
fn meaning(answer: &Value) -> Value {
    serde_json::from_str(answer["text"].as_str().unwrap()).unwrap()
}

/// Returns the places where two values differ.
fn differences(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (&a.get(key), &b.get(key));
                let (a, b) = (a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null));
                differences(a, b, &format!("{path}.{key}"), found);
            }
        }
        _ if old != new => found.push(format!("{path}: {old} became {new}")),
        _ => {}
    }
}

/// Asserts that a migrated configuration is what the old one was.
fn assert_same(peer: &mut Peer, old: &str, new: &str) {
    let answers = peer.ask_all(vec![
        json!({"op": "effective", "config": old}),
        json!({"op": "effective", "config": new}),
        json!({"op": "validate", "config": new, "mode": "metal"}),
    ]);
    assert_eq!(answers[0]["ok"], true, "{}", answers[0]["error"]);
    assert_eq!(answers[1]["ok"], true, "{}\n{new}", answers[1]["error"]);
    assert_eq!(answers[2]["ok"], true, "{}\n{new}", answers[2]);
    let mut found = Vec::new();
    differences(&meaning(&answers[0]), &meaning(&answers[1]), "", &mut found);
    assert!(found.is_empty(), "{found:#?}\n{new}");
}

#[test]
#[ignore = "needs Go"]
fn generated_configurations_mean_the_same_afterwards() {
    let mut peer = Peer::start("1.14");
    let options = [
        json!({}),
        json!({"kubespan": true, "registryMirrors": {"docker.io": ["https://m.example", "http://n.example"]}}),
        json!({"discovery": false, "additionalSans": [], "dnsDomain": "k8s.local"}),
        json!({"kubernetesVersion": "1.30.0", "installImage": "", "kubespan": true}),
    ];
    for contract in ["v1.8", "v1.11", "v1.12", "v1.13"] {
        for more in &options {
            let old = generate(&mut peer, contract, more);
            for kind in ["controlplane", "worker"] {
                let text = old[kind].as_str().unwrap();
                for version in ["1.12", "1.13", "1.14"] {
                    let migrated = migrate(text, to(version))
                        .unwrap_or_else(|error| panic!("{contract} {kind} {more}: {error}"));
                    assert_same(&mut peer, text, &migrated.text);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs Go"]
fn every_deprecated_field_means_the_same_in_its_document() {
    let mut peer = Peer::start("1.14");
    // Without the document for KubeSpan or for names, which the patch has in the old form.
    let old = generate(&mut peer, "v1.11", &json!({}));
    let plain = old["controlplane"]
        .as_str()
        .unwrap()
        .replace("        disk: /dev/sda\n", "");
    let patch = Patch::parse(FIELDS).unwrap();
    let patched = apply(&plain, &[patch], Schema::for_talos("1.14"))
        .unwrap()
        .text;
    for version in ["1.12", "1.13", "1.14"] {
        let migrated = migrate(&patched, to(version)).unwrap();
        assert_same(&mut peer, &patched, &migrated.text);
    }
    let migrated = migrate(&patched, to("1.14")).unwrap();
    let deprecated: Vec<_> = migrated
        .plan
        .stays
        .iter()
        .map(|stay| stay.path.as_str())
        .collect();
    assert_eq!(
        deprecated,
        [
            "version",
            "debug",
            "persist",
            "machine.type",
            "machine.token",
            "machine.ca",
            "machine.certSANs",
            "machine.features.rbac",
            "machine.features.apidCheckExtKeyUsage",
            "machine.features.diskQuotaSupport",
            "cluster.token",
            "cluster.etcd",
        ]
    );
}

/// Returns the documents of a configuration by kind and name, without what is empty.
fn by_name(text: &str) -> BTreeMap<String, Value> {
    let name = |document: &Value| match (&document["kind"], &document["name"]) {
        (Value::String(kind), Value::String(name)) => format!("{kind}/{name}"),
        (Value::String(kind), _) => kind.clone(),
        _ => String::new(),
    };
    let documents = read_documents(text).unwrap().into_iter();
    documents
        .map(|mut document| {
            let name = name(&document);
            without_empty(&mut document);
            (name, document)
        })
        .collect()
}

fn without_empty(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(without_empty);
        fields.retain(|_, value| value != &json!({}) && value != &json!([]));
    }
}

#[test]
#[ignore = "needs Go"]
fn a_migrated_configuration_is_the_one_that_is_generated_anew_but_for_its_defaults() {
    let mut peer = Peer::start("1.14");
    let more = json!({"kubespan": true, "registryMirrors": {"docker.io": ["https://m.example"]}});
    let (old, new) = (
        generate(&mut peer, "v1.13", &more),
        generate(&mut peer, "v1.14", &more),
    );
    for kind in ["controlplane", "worker"] {
        let migrated = migrate(old[kind].as_str().unwrap(), to("1.14")).unwrap();
        let migrated = by_name(&migrated.text);
        let anew = by_name(new[kind].as_str().unwrap());
        for (name, document) in &anew {
            let name = name.as_str();
            match migrated.get(name) {
                None => assert!(
                    NEW_DEFAULTS.contains(&name) || SAYS_NOTHING.contains(&name),
                    "{name}"
                ),
                Some(_) if KEEPS_OLD_DEFAULTS.contains(&name) => {}
                Some(there) => assert_eq!(there, document, "{kind} {name}"),
            }
        }
        let added: Vec<_> = migrated
            .keys()
            .filter(|name| !anew.contains_key(*name))
            .collect();
        assert!(added.is_empty(), "{added:?}");
    }
}

/// Leaves out most parts of the main document and often the other documents, and says what the machine is.
fn thinned(text: &str, random: &mut Random) -> Option<String> {
    let mut stream = Stream::parse(text).ok()?;
    let main = stream.roots().position(|root| !root.contains("kind"))?;
    let role = if random.percent(60) {
        "controlplane"
    } else {
        "worker"
    };
    let root = stream.root_mut(main)?;
    if root
        .get("machine")
        .is_none_or(|machine| machine.kind() != Kind::Mapping)
    {
        root.set("machine", json!({}));
    }
    for part in ["machine", "cluster"] {
        let keys: Vec<String> = root
            .get(part)
            .map(|part| part.entries().map(|(key, _)| key.to_owned()).collect())?;
        let part = root.get_mut(part)?;
        for key in keys {
            if random.percent(70) {
                part.remove(&key);
            }
        }
    }
    root.get_mut("machine")?.set("type", json!(role));
    if random.percent(70) {
        for index in (0..stream.len()).rev() {
            if stream.root(index)?.contains("kind") {
                stream.remove(index);
            }
        }
    }
    Some(stream.to_string())
}

/// Reads the path of a refusal, such as `machine.registries.config["a.b"].tls`.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end;
        if let Some(quoted) = rest.strip_prefix("[\"") {
            end = quoted.find("\"]").unwrap() + 4;
            steps.push(Step::from(quoted[..end - 4].replace("\\\"", "\"").as_str()));
        } else if let Some(index) = rest.strip_prefix('[') {
            end = index.find(']').unwrap() + 2;
            steps.push(Step::from(index[..end - 2].parse::<usize>().unwrap()));
        } else {
            rest = rest.trim_start_matches('.');
            end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::from(&rest[..end]));
        }
        rest = &rest[end..];
    }
    steps
}

/// Removes what is refused from the main document.
fn without(text: &str, refusals: &[Refusal]) -> Option<String> {
    let mut stream = Stream::parse(text).ok()?;
    let main = stream.roots().position(|root| !root.contains("kind"))?;
    let mut removed = false;
    for refusal in refusals.iter().rev() {
        let mut steps = steps(&refusal.path);
        let Some(last) = steps.pop() else { continue };
        let node = steps
            .iter()
            .try_fold(stream.root_mut(main)?, |node, step| match step {
                Step::Key(key) => node.get_mut(key),
                Step::Index(index) => node.item_mut(*index),
            });
        removed |= node.is_some_and(|node| match &last {
            Step::Key(key) => node.remove(key),
            Step::Index(index) => node.remove_item(*index),
        });
    }
    removed.then(|| stream.to_string())
}

/// What came of the random configurations for one version.
#[derive(Debug, Default)]
struct Count {
    migrated: usize,
    refusals: usize,
    moves: usize,
    compared: usize,
}

/// Migrates a configuration, without the parts that are refused; every refusal says where and why.
fn migrated(text: &mut String, target: Target, count: &mut Count) -> Option<String> {
    loop {
        match migrate(text, target) {
            Ok(migrated) => {
                count.migrated += 1;
                count.moves += migrated.plan.moves.len();
                let again = migrate(&migrated.text, target).unwrap();
                assert_eq!(again.text, migrated.text);
                return Some(migrated.text);
            }
            Err(Error::NotMovable { plan }) => {
                count.refusals += plan.refusals.len();
                for refusal in &plan.refusals {
                    assert!(refusal.line > 0 && !refusal.reason.is_empty(), "{refusal}");
                }
                *text = without(text, &plan.refusals)?;
            }
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

#[test]
#[ignore = "needs Go"]
fn random_configurations_mean_the_same_afterwards_or_are_refused() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().unwrap())
    };
    let seed = number("ICHOR_SEED", 20_261_130);
    let cases = number("ICHOR_MIGRATION_CASES", CASES);
    println!("seed {seed}, {cases} cases a version (ICHOR_SEED, ICHOR_MIGRATION_CASES)");
    let mut newest = Peer::start("1.14");
    let mut older = Peer::start("1.13");
    for (version, table) in [("1.12", "1.13.9"), ("1.13", "1.13.9"), ("1.14", "1.14.1")] {
        let mut count = Count::default();
        for case in seed..seed + cases {
            let mut random = Random::new(case);
            let config = Generator::new(case, table).config();
            let Some(mut text) = thinned(&config, &mut random) else {
                continue;
            };
            let target = if version == "1.14" {
                &mut newest
            } else {
                &mut older
            };
            if target.ask(json!({"op": "load", "config": text}))["ok"] != true {
                continue;
            }
            let Some(new) = migrated(&mut text, to(version), &mut count) else {
                continue;
            };
            let validate = |text: &str| json!({"op": "validate", "config": text, "mode": "cloud"});
            let valid = target.ask_all(vec![validate(&text), validate(&new)]);
            assert!(
                valid[1]["error"].is_null(),
                "case {case}: {}\n{text}\n{new}",
                valid[1]
            );
            let was_valid = valid[0]["ok"] == true;
            assert!(
                !was_valid || valid[1]["ok"] == true,
                "case {case}: {}\n{text}\n{new}",
                valid[1]
            );
            // Where documents and the main document say the same thing the library takes one of them, and refuses it.
            let alone = Stream::parse(&text)
                .unwrap()
                .roots()
                .all(|root| !root.contains("kind"));
            if !was_valid && !alone {
                continue;
            }
            let effective = |text: &str| json!({"op": "effective", "config": text});
            let answers = newest.ask_all(vec![effective(&text), effective(&new)]);
            // The accessors of the library fail on some configurations that it would not take.
            if answers[0]["ok"] != true {
                continue;
            }
            assert_eq!(
                answers[1]["ok"], true,
                "case {case}: {}\n{text}\n{new}",
                answers[1]["error"]
            );
            let mut found = Vec::new();
            differences(&meaning(&answers[0]), &meaning(&answers[1]), "", &mut found);
            assert!(found.is_empty(), "case {case}: {found:#?}\n{text}\n{new}");
            count.compared += 1;
        }
        println!("{version}: {count:?}");
        assert!(count.compared as u64 * 3 > cases, "{version}: {count:?}");
    }
}
