//! Validation, held against the judgements of the official tool and against configurations that are fine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value;
use talos_config::generate::{Comments, Endpoint, Params, Release, Secrets, machine_config};
use talos_config::machine::MachineType;
use talos_config::validate::{Finding, Mode, Options, Report, Severity, validate};

/// What the official tool accepts wrongly, and the field that is warned of.
const WRONGLY_ACCEPTED: [(&str, &str); 11] = [
    ("endpoint-http", "cluster.controlPlane.endpoint"),
    ("bad-podsubnet", "cluster.network.podSubnets[0]"),
    ("cni-custom-nourl", "cluster.network.cni.urls"),
    ("old-kubelet", "machine.kubelet.image"),
    ("new-kubelet", "machine.kubelet.image"),
    ("kubelet-notag", "machine.kubelet.image"),
    ("kubeprism-port", "machine.features.kubePrism.port"),
    ("dup-interface", "machine.network.interfaces[1]"),
    ("file-op", "machine.files[0].op"),
    ("file-path", "machine.files[0].path"),
    ("bad-version", "version"),
];

const BUNDLE: &str = include_str!("../../../tests/data/genconfig/secrets.yaml");
const MODES: [Mode; 4] = [Mode::Metal, Mode::MetalAgent, Mode::Cloud, Mode::Container];

fn options(mode: Mode, strict: bool, talos_version: Option<&str>) -> Options {
    Options {
        mode,
        strict,
        talos_version: talos_version.map(str::to_owned),
    }
}

fn mode(text: &str) -> Mode {
    MODES
        .into_iter()
        .find(|mode| mode.to_string() == text)
        .unwrap()
}

/// Returns the control plane's or worker's configuration of a release.
fn generated(version: &str, kind: MachineType, change: impl Fn(&mut Params)) -> String {
    let endpoint = Endpoint::parse("https://10.5.10.2:6443").unwrap();
    let mut params = Params::new("cluster-1", endpoint, Release::parse(version).unwrap());
    change(&mut params);
    machine_config(kind, &params, &Secrets::read(BUNDLE).unwrap()).unwrap()
}

/// Returns a control plane's configuration of 1.13 with a piece of text in the place of another.
fn changed(from: &str, to: &str) -> String {
    let text = generated("1.13", MachineType::ControlPlane, |_| {});
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

fn findings(text: &str) -> Vec<Finding> {
    validate(text, &options(Mode::Metal, false, None))
        .unwrap()
        .findings
}

/// Returns severity, code and path of what is found, but for newer ways.
fn found(text: &str) -> Vec<(Severity, &'static str, String)> {
    findings(text)
        .into_iter()
        .filter(|finding| finding.code != "newer-way")
        .map(|finding| (finding.severity, finding.code, finding.path))
        .collect()
}

#[test]
fn judgements_are_those_of_the_official_tool() {
    let golden: Value = serde_json::from_str(include_str!("data/validate.json")).unwrap();
    let cases = golden.as_array().unwrap();
    assert_eq!(cases.len(), 42);
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let strict = case["strict"].as_bool().unwrap();
        let report = validate(text("config"), &options(mode(text("mode")), strict, None));
        let name = text("name");
        let accepted = report.as_ref().is_ok_and(Report::is_valid);
        assert_eq!(accepted, case["ok"] == true, "{name}: {report:?}");
        let Ok(report) = report else { continue };
        let warned: Vec<&str> = report
            .of(Severity::Warning)
            .map(|one| one.path.as_str())
            .collect();
        match WRONGLY_ACCEPTED.iter().find(|(case, _)| *case == name) {
            Some((_, path)) => {
                assert_eq!(warned, [*path], "{name}");
                let strict = options(mode(text("mode")), true, None);
                assert!(
                    !validate(text("config"), &strict).unwrap().is_valid(),
                    "{name}"
                );
            }
            None if case["ok"] == true => {
                assert_eq!(
                    warned.len() as u64,
                    case["warnings"].as_u64().unwrap(),
                    "{name}"
                );
            }
            None => {}
        }
    }
}

#[test]
fn nothing_is_found_in_fresh_configurations() {
    for version in ["1.8", "1.9", "1.10", "1.11", "1.12", "1.13", "1.14"] {
        for kind in [MachineType::ControlPlane, MachineType::Worker] {
            for all in [false, true] {
                let text = generated(version, kind, |params| {
                    params.comments = Comments {
                        docs: all,
                        examples: all,
                    };
                    if all {
                        params.kube_span = true;
                        params.additional_sans = vec!["api.example.com".into(), "fd00::1".into()];
                        params
                            .add_registry_mirror("docker.io=https://mirror.example.com")
                            .unwrap();
                    }
                });
                for mode in MODES {
                    for talos in [None, Some(version)] {
                        let report = validate(&text, &options(mode, true, talos)).unwrap();
                        let notes = |one: &&Finding| one.severity != Severity::Note;
                        let found: Vec<&Finding> = report.findings.iter().filter(notes).collect();
                        assert!(found.is_empty(), "{version} {kind:?} {mode}: {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_finding_names_document_path_and_line() {
    let text = "apiVersion: v1alpha1\nkind: VLANConfig\nname: v\nparent: eth0\nvlanID: 5\nmtu: big\n---\n\
        apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses:\n  - address: 10.0.0.1/24\n  \
        - adress: 10.0.0.2/24\n";
    let report = validate(text, &options(Mode::Metal, false, Some("1.13"))).unwrap();
    let found: Vec<_> = report
        .of(Severity::Error)
        .map(|one| (one.document.as_str(), one.path.as_str(), one.line, one.code))
        .collect();
    assert_eq!(found[0], ("VLANConfig/v", "mtu", Some(6), "bad-value"));
    assert_eq!(
        found[1],
        (
            "LinkConfig/eth0",
            "addresses[1].adress",
            Some(13),
            "unknown-field"
        )
    );
    assert_eq!(
        report.findings[1].hint.as_deref(),
        Some("did you mean `address`?")
    );
}

#[test]
fn an_unknown_kind_or_field_is_refused_for_known_versions_and_a_warning_for_newer_ones() {
    let kind = "apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {a: b}\n";
    let field = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\nfuture: 1\n";
    let judge = |text: &str, version: &str| {
        let report = validate(text, &options(Mode::Metal, false, Some(version))).unwrap();
        let first = report.findings.first();
        first.map(|one| (one.severity, one.code, one.hint.clone()))
    };
    let hint = Some("Talos 1.14.1 has it".to_owned());
    assert_eq!(
        judge(kind, "v1.13.2"),
        Some((Severity::Error, "unknown-kind", hint))
    );
    assert_eq!(judge(kind, "v1.14.0"), None);
    assert_eq!(
        judge(field, "1.14"),
        Some((Severity::Error, "unknown-field", None))
    );
    assert_eq!(
        judge(field, "1.16.0"),
        Some((Severity::Warning, "unknown-field", None))
    );
    let unknown = "apiVersion: v1alpha1\nkind: FutureConfig\n";
    assert_eq!(judge(unknown, "1.14").unwrap().0, Severity::Error);
    assert_eq!(judge(unknown, "1.15.1").unwrap().0, Severity::Warning);
}

#[test]
fn the_target_version_is_the_one_asked_for_then_the_installed_one() {
    let version = |text: &str, asked| {
        validate(text, &options(Mode::Metal, false, asked))
            .unwrap()
            .talos_version
    };
    let installs = "machine:\n  install: {image: 'host:5000/installer:v1.11.3@sha256:00'}\n";
    assert_eq!(version(installs, None), "1.11.3");
    assert_eq!(version(installs, Some("v1.12.0")), "1.12.0");
    let document = "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {image: 'x/installer:v1.13.2'}\n";
    assert_eq!(version(document, None), "1.13.2");
    assert_eq!(version("machine: {install: {image: x}}\n", None), "1.14.1");
}

#[test]
fn a_config_in_the_form_of_1_14_that_installs_a_newer_talos_may_have_unknown_fields() {
    let text = |installed: &str| {
        generated("1.14", MachineType::Worker, |params| {
            params.install_image = format!("a.example:5000/installer:{installed}");
        }) + "---\napiVersion: v1alpha1\nkind: RegistryTLSConfig\nname: a.example\nfuture: 1\n"
    };
    let unknown = |installed: &str| {
        let report = validate(&text(installed), &options(Mode::Metal, false, None)).unwrap();
        let found = report
            .findings
            .iter()
            .find(|one| one.code == "unknown-field");
        (report.talos_version.clone(), found.unwrap().severity)
    };
    assert_eq!(unknown("v1.15.0"), ("1.15.0".to_owned(), Severity::Warning));
    assert_eq!(unknown("v1.14.0"), ("1.14.0".to_owned(), Severity::Error));
}

#[test]
fn what_is_left_of_patches_and_texts_without_documents_are_refused() {
    let code = |text: &str| findings(text).first().map(|one| (one.severity, one.code));
    for (text, expected) in [
        ("", "no-document"),
        ("# nothing\n---\n---\n", "no-document"),
        ("- a\n", "not-a-document"),
        ("a: 1\n", "no-kind"),
        ("kind: HostnameConfig\nhostname: a\n", "no-api-version"),
        ("machine: {$patch: delete}\n", "patch-left"),
        (
            "apiVersion: v1alpha2\nkind: HostnameConfig\n",
            "unknown-kind",
        ),
    ] {
        assert_eq!(code(text), Some((Severity::Error, expected)), "{text}");
    }
    let twice = generated("1.13", MachineType::Worker, |_| {}) + "---\nmachine: {}\n";
    let found = findings(&twice);
    assert!(found.iter().any(|one| one.code == "duplicate-document"));
}

#[test]
fn values_that_may_be_secret_are_not_in_messages() {
    let key = "c2VjcmV0LXNlY3JldC1zZWNyZXQ*";
    let text = changed("    key: LS0t", &format!("    key: {key}"));
    let found = findings(&text);
    assert!(found.iter().any(|one| one.code == "bad-value"), "{found:?}");
    for finding in found {
        assert!(!format!("{finding:?}").contains(key));
    }
}

#[test]
fn subnets_of_pods_services_and_nodes_are_apart() {
    use Severity::Warning;
    let pods = |to: &str| found(&changed("- 10.244.0.0/16", to));
    let path = |index: usize| format!("cluster.network.podSubnets[{index}]");
    assert_eq!(pods("- 10.244.0.0"), [(Warning, "bad-subnet", path(0))]);
    assert_eq!(pods("- 127.1.0.0/16"), [(Warning, "overlap", path(0))]);
    assert_eq!(
        pods("- 10.96.0.0/16"),
        [(
            Warning,
            "overlap",
            "cluster.network.serviceSubnets[0]".into()
        )]
    );
    assert_eq!(
        pods("- 10.5.0.0/16"),
        [(Warning, "overlap", "cluster.controlPlane.endpoint".into())]
    );
    assert_eq!(pods("- fd00::/48"), []);
    let network =
        "machine:\n    network: {interfaces: [{interface: eth0, addresses: [10.244.9.1/24]}]}\n";
    assert_eq!(
        found(&changed("machine:\n", network)),
        [(
            Warning,
            "overlap",
            "machine.network.interfaces[0].addresses[0]".into()
        )]
    );
    let wide = "kubelet:\n        nodeIP: {validSubnets: [0.0.0.0/0, 10.0.0.0/8]}\n";
    assert_eq!(found(&changed("kubelet:\n", wide)), []);
}

#[test]
fn thousands_of_subnets_are_judged_at_once() {
    const ENOUGH: Duration = Duration::from_secs(5);
    let judge = |subnets: &[String]| {
        let list = format!("podSubnets: [{}]", subnets.join(", "));
        let text = format!("cluster:\n  network: {{{list}}}\n");
        let start = Instant::now();
        let found = findings(&text);
        assert!(start.elapsed() < ENOUGH, "{:?}", start.elapsed());
        found.iter().filter(|one| one.code == "overlap").count()
    };
    let apart: Vec<String> = (0..15_000)
        .map(|number| format!("10.{}.{}.0/24", number / 256, number % 256))
        .collect();
    assert_eq!(judge(&apart), 0);
    let equal = vec!["10.244.0.0/16".to_owned(); 15_000];
    assert!(judge(&equal) > 900);
}

#[test]
fn names_and_endpoints_are_ones_that_certificates_cover() {
    use Severity::{Note, Warning};
    let sans = |list: &str| found(&changed("certSANs: []", &format!("certSANs: {list}")));
    assert_eq!(
        sans("[a.example.com, '*.example.com', 10.0.0.1, 'fd00::1']"),
        []
    );
    for bad in ["https://a", "a:6443", "10.0.0.0/24", "a b", "300.1.1.1"] {
        assert_eq!(
            sans(&format!("['{bad}']")),
            [(Warning, "bad-san", "machine.certSANs[0]".into())],
            "{bad}"
        );
    }
    assert_eq!(
        sans("[10.5.10.2]"),
        [(Note, "san-elsewhere", "machine.certSANs[0]".into())]
    );
    let endpoint = |to: &str| found(&changed("https://10.5.10.2:6443", to));
    let path = || "cluster.controlPlane.endpoint".to_owned();
    assert_eq!(
        endpoint("https://k8s.example.com"),
        [(Warning, "no-port", path())]
    );
    assert_eq!(endpoint("https://k8s_.example.com:6443"), []);
    assert_eq!(
        endpoint("https://-a.b:6443"),
        [(Warning, "bad-san", path())]
    );
    assert_eq!(
        endpoint("https://:6443"),
        [(Severity::Error, "bad-endpoint", path())]
    );
    let worker = generated("1.13", MachineType::Worker, |_| {}).replacen(
        "cluster:\n",
        "cluster:\n    apiServer: {certSANs: [a.b]}\n",
        1,
    );
    assert_eq!(
        found(&worker),
        [(Warning, "no-effect", "cluster.apiServer.certSANs".into())]
    );
}

#[test]
fn too_many_findings_are_cut_off() {
    let keys: String = (0..5000)
        .map(|number| format!("  k{number}: 1\n"))
        .collect();
    let found = findings(&format!("machine:\n{keys}"));
    assert_eq!(found.len(), 1001);
    assert_eq!(found.last().unwrap().code, "too-many");
}

/// Texts that are nearly configurations.
fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("machine"),
        Just("cluster"),
        Just("network"),
        Just("interfaces"),
        Just("kind"),
        Just("apiVersion"),
        Just("name"),
        Just("VLANConfig"),
        Just("v1alpha1"),
        Just("<<"),
        Just("&a"),
        Just("*a"),
        Just("1"),
        Just("~"),
        Just("x"),
        Just("10.0.0.0/8"),
    ];
    let glue = prop_oneof![
        Just(": "),
        Just(":\n  "),
        Just("\n"),
        Just("\n- "),
        Just(" {"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("\n---\n"),
        Just(", "),
        Just("\n    "),
    ];
    prop::collection::vec((word, glue), 0..30).prop_map(|parts| {
        parts
            .iter()
            .map(|(word, glue)| format!("{word}{glue}"))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_text_is_judged(text in prop_oneof![texts(), any::<String>()], strict: bool) {
        for mode in MODES {
            if let Ok(report) = validate(&text, &options(mode, strict, None)) {
                let lines = text.matches('\n').count() as u64 + 1;
                for finding in report.findings {
                    prop_assert!(finding.line.is_none_or(|line| (1..=lines).contains(&line)));
                }
            }
        }
    }

    #[test]
    fn a_damaged_configuration_is_judged(at in 0usize..11_000, junk in "[ -~\n]{0,12}") {
        let mut text = generated("1.13", MachineType::ControlPlane, |_| {});
        let at = at.min(text.len());
        text.insert_str(at, &junk);
        let lines = text.matches('\n').count() as u64 + 1;
        if let Ok(report) = validate(&text, &options(Mode::Metal, false, None)) {
            for finding in report.findings {
                prop_assert!(finding.line.is_none_or(|line| (1..=lines).contains(&line)));
            }
        }
    }
}
