use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::examples::{self, Audience};
use super::*;
use crate::patch::{Patch, apply};
use crate::yaml::read_documents;
use crate::{Schema, yaml};

pub(super) const BUNDLE: &str = include_str!("../../../../tests/data/genconfig/secrets.yaml");

pub(super) fn params(version: &str) -> Params {
    let endpoint = Endpoint::parse("https://10.5.10.2:6443").unwrap();
    Params::new("cluster-1", endpoint, Release::parse(version).unwrap())
}

pub(super) fn secrets() -> Secrets {
    Secrets::read(BUNDLE).unwrap()
}

pub(super) const VERSIONS: [&str; 7] = ["1.8", "1.9", "1.10", "1.11", "1.12", "1.13", "1.14"];
pub(super) const KINDS: [MachineType; 2] = [MachineType::ControlPlane, MachineType::Worker];

/// Drops what means the same as nothing.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| {
        value.is_null()
            || value.as_object().is_some_and(serde_json::Map::is_empty)
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

/// Compares with what the official tool generated.
fn check_golden(name: &str, params: &Params, control_plane: &str, worker: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/genconfig")
        .join(name);
    let patch = |text: &str, patch: &str| match patch {
        "" => text.to_owned(),
        patch => {
            let patches = [Patch::parse(patch).unwrap()];
            apply(text, &patches, Schema::for_talos("1.13"))
                .unwrap()
                .text
        }
    };
    for (kind, file, change) in [
        (
            MachineType::ControlPlane,
            "controlplane.yaml",
            control_plane,
        ),
        (MachineType::Worker, "worker.yaml", worker),
    ] {
        let expected = std::fs::read_to_string(folder.join(file)).unwrap();
        let made = machine_config(kind, params, &secrets()).unwrap();
        assert_eq!(
            documents(&patch(&made, change)),
            documents(&expected),
            "{name} {file}"
        );
        if change.is_empty() {
            // The order of fields and the quotes are the official tool's too.
            let lines = |text: &str| -> Vec<String> {
                let lines = text.lines().map(|line| line.trim_start().to_owned());
                lines.filter(|line| line != "network: {}").collect()
            };
            assert_eq!(lines(&made), lines(&expected), "{name} {file}");
        }
        let expected =
            yaml::read(&std::fs::read_to_string(folder.join("talosconfig")).unwrap()).unwrap();
        let made = yaml::read(
            &talosconfig(params, &secrets(), "2026-11-30T00:00:00Z".parse().unwrap()).unwrap(),
        )
        .unwrap();
        let keys = |value: &Value| -> Vec<String> {
            let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(made["context"], expected["context"]);
        let (made, expected) = (
            &made["contexts"]["cluster-1"],
            &expected["contexts"]["cluster-1"],
        );
        assert_eq!(keys(made), keys(expected));
        assert_eq!(
            (&made["ca"], &made["endpoints"]),
            (&expected["ca"], &expected["endpoints"])
        );
    }
}

#[test]
fn configurations_are_those_of_the_official_tool() {
    check_golden("default", &params("1.13"), "", "");
    let with = |version: &str, kubernetes: &str| Params {
        install_image: "ghcr.io/siderolabs/installer:v1.13.9".to_owned(),
        kubernetes_version: kubernetes.to_owned(),
        ..params(version)
    };
    check_golden("contract-1.12", &with("1.12", "1.35.0"), "", "");
    check_golden("contract-1.11", &with("1.11", "1.34.0"), "", "");
    let sans = Params {
        additional_sans: vec!["172.30.0.11".to_owned(), "cp.example.org".to_owned()],
        ..params("1.13")
    };
    check_golden("sans", &sans, "", "");
    check_golden(
        "patch-cp-worker",
        &with("1.11", "1.33.4"),
        r#"[{"op":"replace","path":"/cluster/apiServer/certSANs","value":["172.30.0.11","10.5.10.2","127.0.0.1"]}]"#,
        "machine:\n  nodeLabels: {role: worker}\n",
    );
}

fn with_everything(version: &str) -> Params {
    Params {
        additional_sans: vec!["cp.example.org".to_owned(), "fd00::1".to_owned()],
        registry_mirrors: BTreeMap::from([(
            "docker.io".to_owned(),
            vec!["http://m:5000".to_owned(), "https://n".to_owned()],
        )]),
        kube_span: true,
        ..params(version)
    }
}

#[test]
fn comments_do_not_change_the_meaning() {
    for version in VERSIONS.into_iter().chain(["1.0", "1.2", "1.15"]) {
        let mut secrets = secrets();
        if !Release::parse(version).unwrap().contract().has_secretbox() {
            secrets.encryption =
                Encryption::AesCbc("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned());
        }
        for kind in KINDS {
            let mut params = with_everything(version);
            let plain = machine_config(kind, &params, &secrets).unwrap();
            let mut lengths = vec![plain.len()];
            for (docs, examples) in [(false, true), (true, false), (true, true)] {
                params.comments = Comments { docs, examples };
                let commented = machine_config(kind, &params, &secrets).unwrap();
                let bare: String = commented
                    .lines()
                    .filter(|line| !line.trim_start().starts_with('#'))
                    .flat_map(|line| [line, "\n"])
                    .collect();
                assert_eq!(bare, plain, "{version} {kind:?}");
                assert_eq!(
                    read_documents(&commented).unwrap(),
                    read_documents(&plain).unwrap()
                );
                lengths.push(commented.len());
            }
            assert!(
                lengths.is_sorted_by(|one, other| one < other || other > &plain.len()),
                "{lengths:?}"
            );
        }
    }
}

#[test]
fn every_field_and_document_is_explained() {
    fn walk(kind: &str, value: &Value, path: &str, missing: &mut Vec<String>) {
        for (key, below) in value.as_object().into_iter().flatten() {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            if matches!(path.as_str(), "apiVersion" | "kind" | "name") {
                continue;
            }
            if explain::field(kind, &path).is_none() {
                missing.push(format!("{kind}: {path}"));
            }
            if !explain::is_free(&path) {
                walk(kind, below, &path, missing);
            }
        }
    }
    let mut missing = Vec::new();
    for version in VERSIONS {
        for kind in KINDS {
            let text = machine_config(kind, &with_everything(version), &secrets()).unwrap();
            for document in read_documents(&text).unwrap() {
                let kind = document["kind"].as_str().unwrap_or_default();
                if !kind.is_empty() && explain::document(kind).is_none() {
                    missing.push(kind.to_owned());
                }
                walk(kind, &document, "", &mut missing);
            }
        }
    }
    missing.dedup();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_example_can_be_used() {
    for version in ["1.11", "1.12", "1.13", "1.14"] {
        for kind in KINDS {
            let params = params(version);
            let audience = Audience {
                contract: params.release.contract(),
                kind,
            };
            let config = machine_config(kind, &params, &secrets()).unwrap();
            let places = examples::FIELDS
                .iter()
                .map(|example| (example.kind, example.path));
            let mut places: Vec<_> = places.collect();
            places.dedup();
            let mut patches: Vec<String> = Vec::new();
            for (kind, path) in places {
                for example in examples::fields(audience, kind, path) {
                    let mut value = yaml::read(example.text).unwrap();
                    for key in path.split('.').rev().filter(|key| !key.is_empty()) {
                        value = json!({ key: value });
                    }
                    if !kind.is_empty() {
                        value["apiVersion"] = json!("v1alpha1");
                        value["kind"] = json!(kind);
                    }
                    patches.push(yaml::write(&value));
                }
            }
            patches.extend(examples::documents(audience).map(|example| example.text.to_owned()));
            assert!(patches.len() > 5);
            for patch in patches {
                let parsed = [Patch::parse(&patch).unwrap()];
                let patched = apply(&config, &parsed, Schema::for_talos(version));
                let patched =
                    patched.unwrap_or_else(|error| panic!("{version} {kind:?} {patch}: {error:?}"));
                assert_eq!(patched.warnings, Vec::<String>::new(), "{version} {patch}");
            }
        }
    }
}

#[test]
fn uncommented_examples_are_yaml() {
    for version in VERSIONS {
        for kind in KINDS {
            let mut params = params(version);
            params.comments.examples = true;
            let text = machine_config(kind, &params, &secrets()).unwrap();
            let uncommented: String = text
                .lines()
                .flat_map(|line| [line.replacen("# ", "", 1), "\n".to_owned()])
                .collect();
            let count = |text: &str| read_documents(text).unwrap().len();
            let documents = examples::documents(Audience {
                contract: params.release.contract(),
                kind,
            });
            let shown =
                documents.filter(|example| !text.contains(&format!("\nkind: {}\n", example.kind)));
            assert_eq!(
                count(&uncommented),
                count(&text) + shown.count(),
                "{version}"
            );
        }
    }
}

#[test]
fn the_talosconfig_follows_from_secrets_and_time() {
    let (params, secrets) = (params("1.13"), secrets());
    let at = |time: &str| talosconfig(&params, &secrets, time.parse().unwrap()).unwrap();
    assert_eq!(at("2026-11-30T12:00:00Z"), at("2026-11-30T12:00:00.9Z"));
    assert_ne!(at("2026-11-30T12:00:00Z"), at("2026-11-30T12:00:01Z"));
    let text = at("2026-11-30T12:00:00Z");
    let config = crate::talosconfig::TalosConfig::parse("talosconfig", &text).unwrap();
    let identity = config.credentials("cluster-1").unwrap().identity.unwrap();
    assert_eq!(identity.chain[0].organizations(), ["os:admin"]);
}

#[test]
fn all_problems_of_the_parameters_are_told_together() {
    let mut bad = Params {
        cluster_name: " ".to_owned(),
        dns_domain: "Not_a_domain".to_owned(),
        additional_sans: vec!["a b".to_owned(), "10.5.0.2".to_owned()],
        kubernetes_version: "v1.34".to_owned(),
        ..params("1.13")
    };
    bad.add_registry_mirror("docker.io=ftp://m").unwrap();
    let error = machine_config(MachineType::Worker, &bad, &secrets()).unwrap_err();
    let problems: Vec<String> = error.problems().iter().map(Problem::to_string).collect();
    assert_eq!(
        problems,
        [
            "the cluster name is empty",
            "the DNS domain \"Not_a_domain\" is not a domain name",
            "the additional name \"a b\" is neither a DNS name nor an IP address",
            "the Kubernetes version \"v1.34\" is not a version such as 1.36.3",
            "the mirror \"ftp://m\" of the registry docker.io is not a URL that begins with http:// or https://",
        ]
    );
    for text in ["docker.io", "=http://m", "docker.io="] {
        assert!(
            bad.add_registry_mirror(text).unwrap_err().problems()[0]
                .to_string()
                .contains(text)
        );
    }
}

#[test]
fn passwords_of_mirrors_are_not_repeated() {
    for (text, field) in [
        (
            "docker.io=ftp://user:pa55word@h",
            "the mirror \"ftp://h\" of the registry docker.io",
        ),
        (
            "docker.io=https://user:pa55word@h:0",
            "the mirror \"https://h:0\" of the registry docker.io",
        ),
        (
            "https://user:pa55word@h",
            "the registry mirror \"https://h\"",
        ),
    ] {
        let mut params = params("1.13");
        let error = params.add_registry_mirror(text);
        let error = error.and_then(|()| params.check()).unwrap_err();
        assert_eq!(error.problems()[0].field, field);
        assert!(!format!("{error:?}").contains("pa55word"));
    }
    let mut params = params("1.13");
    params
        .add_registry_mirror("docker.io=https://user:pa55word@h:5000/v2?ns=docker.io")
        .unwrap();
    assert!(params.check().is_ok());
    let text = format!("{params:?}");
    assert!(text.contains("docker.io"), "{text}");
    assert!(
        !text.contains("pa55word") && !text.contains("user"),
        "{text}"
    );
}

#[test]
fn odd_choices_are_warned_of() {
    let warnings = |release: &str, kubernetes: &str| {
        let mut params = params(release);
        if !kubernetes.is_empty() {
            kubernetes.clone_into(&mut params.kubernetes_version);
        }
        params.warnings()
    };
    for version in VERSIONS {
        assert_eq!(warnings(version, ""), Vec::<String>::new(), "{version}");
    }
    assert_eq!(
        warnings("1.13", "1.40.0"),
        ["Talos v1.13 runs Kubernetes 1.31 to 1.36, not 1.40.0"]
    );
    assert_eq!(warnings("1.99", "").len(), 1);
}

#[test]
fn a_release_without_a_field_for_a_secret_is_refused() {
    let error = machine_config(MachineType::ControlPlane, &params("1.2"), &secrets()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Talos v1.2 has no field for secrets.secretboxencryptionsecret"
    );
    assert!(machine_config(MachineType::Worker, &params("1.2"), &secrets()).is_ok());
}

#[test]
fn what_is_generated_is_valid_here_too() {
    use crate::validate::{Mode, Options, Severity, validate};
    for version in ["1.11", "1.12", "1.13", "1.14"] {
        for kind in KINDS {
            let mut params = with_everything(version);
            params.additional_sans.push("10.5.10.2".to_owned());
            params.comments = Comments {
                docs: true,
                examples: true,
            };
            let text = machine_config(kind, &params, &secrets()).unwrap();
            for mode in [Mode::Metal, Mode::Cloud, Mode::Container] {
                let options = Options {
                    mode,
                    strict: true,
                    talos_version: None,
                };
                let report = validate(&text, &options).unwrap();
                let findings = report.findings.iter();
                let bad: Vec<_> = findings
                    .filter(|it| it.severity != Severity::Note)
                    .collect();
                assert!(bad.is_empty(), "{version} {kind:?} {mode:?}: {bad:?}");
            }
        }
    }
}
