//! Validation as the official library does it: what it refuses is refused here, and nothing else as an error.

mod explained;
mod mutation;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use talos_config::validate::{Mode, Options, Severity, validate};
use talos_config::yaml;

use super::config::Peer;
use crate::machineconfig::generator::{Generator, Random};
use explained::{Explanation, MISSED, TOO_STRICT};

/// The versions of the official library, and those of the tables of fields.
const VERSIONS: [(&str, &str); 3] = [("1.11", "1.11.5"), ("1.13", "1.13.9"), ("1.14", "1.14.1")];

/// How many configurations each version is asked about; `ICHOR_VALIDATION_CASES` says another number.
const CASES: usize = 3000;

/// A configuration to be judged twice.
struct Case {
    text: String,
    mode: &'static str,
    strict: bool,
    /// How it was made.
    origin: String,
}

#[test]
#[ignore = "needs Go"]
fn what_the_official_library_refuses_is_refused() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().unwrap())
    };
    let seed = number("ICHOR_SEED", 20_261_130);
    let count = usize::try_from(number("ICHOR_VALIDATION_CASES", CASES as u64)).unwrap();
    println!("seed {seed}, {count} cases a version (ICHOR_SEED, ICHOR_VALIDATION_CASES)");
    let mut explained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for (version, table) in VERSIONS {
        let mut peer = Peer::start(version);
        let cases = cases(&mut peer, version, table, seed, count);
        let questions = cases.iter().map(|case| {
            json!({"op": "validate", "config": case.text, "mode": case.mode, "strict": case.strict})
        });
        let answers = peer.ask_all(questions.collect());
        let mut refused = 0;
        for (case, answer) in cases.iter().zip(&answers) {
            refused += usize::from(answer["ok"] != true);
            match judge(case, answer, table) {
                Ok(None) => {}
                Ok(Some(reason)) => *explained.entry(reason).or_default() += 1,
                Err(difference) => unexplained.push(format!("{version}: {difference}")),
            }
        }
        println!("{version}: {refused} of {} refused", cases.len());
        // Cases that are all refused, or none, would show nothing.
        assert!((cases.len() / 4..cases.len() * 3 / 4).contains(&refused));
    }
    for (reason, count) in &explained {
        println!("{count:5} {reason}");
    }
    let shown = unexplained.iter().take(40).map(String::as_str);
    assert!(
        unexplained.is_empty(),
        "{} differences:\n{}",
        unexplained.len(),
        shown.collect::<Vec<_>>().join("\n----\n")
    );
}

/// Compares the two judgements; a difference that is explained gives its reason.
fn judge(case: &Case, answer: &Value, table: &str) -> Result<Option<&'static str>, String> {
    let options = Options {
        mode: match case.mode {
            "metal" => Mode::Metal,
            "cloud" => Mode::Cloud,
            _ => Mode::Container,
        },
        strict: case.strict,
        talos_version: Some(table.to_owned()),
    };
    let report = validate(&case.text, &options);
    let ours: Vec<String> = match &report {
        Err(error) => vec![format!("not-yaml : {error}")],
        Ok(report) => report
            .of(Severity::Error)
            .map(|finding| {
                format!(
                    "{} {}:{} {}",
                    finding.code, finding.document, finding.path, finding.message
                )
            })
            .collect(),
    };
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    let theirs = text("error") + &text("errors");
    let accepted = answer["ok"] == true;
    let found = |table: &'static [Explanation], what: &dyn Fn(&Explanation) -> bool| {
        table
            .iter()
            .find(|explanation| what(explanation))
            .map(|explanation| explanation.reason)
    };
    let reason = match (accepted, ours.is_empty()) {
        (true, true) | (false, false) => return Ok(None),
        // Warnings of the library and ours are not the same, so only its refusals count with --strict.
        (true, false) if case.strict => return Ok(None),
        (true, false) => found(TOO_STRICT, &|explanation| {
            ours.iter().all(|finding| explanation.is_of(finding))
        }),
        (false, true) => found(MISSED, &|explanation| explanation.is_of(&theirs)),
    };
    reason.map(Some).ok_or_else(|| {
        let verdict = match accepted {
            true => format!("accepted there, refused here: {ours:?}"),
            false => format!("refused there, accepted here: {theirs}"),
        };
        format!(
            "{} in mode {}: {verdict}\n{}",
            case.origin,
            case.mode,
            shown(case)
        )
    })
}

/// Returns the part of a case that was changed, or all of it if it is short.
fn shown(case: &Case) -> String {
    case.text
        .chars()
        .take(if case.text.len() > 600 { 0 } else { 600 })
        .collect()
}

/// A configuration that the official library accepts, to be changed.
struct Base {
    documents: Vec<Value>,
    origin: String,
    /// Whether the last document is what the base is about.
    last: bool,
}

fn cases(peer: &mut Peer, version: &str, table: &str, seed: u64, count: usize) -> Vec<Case> {
    const MODES: [&str; 4] = ["metal", "metal", "cloud", "container"];
    let mut random = Random::new(seed ^ u64::from(version.bytes().last().unwrap()));
    let mut generator = Generator::new(seed, table);
    let plain = bases(peer, version);
    let mut cases = Vec::with_capacity(count + plain.len());
    for (name, base) in &plain {
        for mode in ["metal", "cloud", "container"] {
            let origin = format!("{name} as generated");
            cases.push(Case {
                text: base.clone(),
                mode,
                strict: false,
                origin,
            });
        }
    }
    // Parts of random configurations, each in one that is fine; what the library accepts is changed below.
    let mut richer = Vec::new();
    while richer.len() < count * 2 / 5 {
        let (name, base) = &plain[random.below(plain.len())];
        let mut documents = yaml::read_documents(base).unwrap();
        let other = yaml::read_documents(&generator.config()).unwrap_or_default();
        let last = random.percent(60);
        let origin = match last {
            true => mutation::add_document(&mut random, &mut documents, other),
            false => mutation::graft(&mut random, &mut documents, &other),
        };
        if let Some(origin) = origin {
            let origin = format!("{name}, {origin}");
            richer.push(Base {
                documents,
                origin,
                last,
            });
        }
    }
    let texts: Vec<String> = richer
        .iter()
        .map(|base| mutation::write(&base.documents))
        .collect();
    let question = |text| json!({"op": "validate", "config": text, "mode": "metal"});
    let answers = peer.ask_all(texts.iter().map(question).collect());
    let mut accepted = answers.iter().map(|answer| answer["ok"] == true);
    for (base, text) in richer.iter().zip(texts) {
        let origin = base.origin.clone();
        cases.push(Case {
            text,
            mode: random.one(&MODES),
            strict: random.percent(10),
            origin,
        });
    }
    richer.retain(|_| accepted.next().unwrap());
    for (name, base) in &plain {
        let documents = yaml::read_documents(base).unwrap();
        let base = || Base {
            documents: documents.clone(),
            origin: name.clone(),
            last: false,
        };
        richer.extend((0..30).map(|_| base()));
    }
    while cases.len() < count {
        if random.percent(5) {
            let origin = "a random configuration".to_owned();
            cases.push(Case {
                text: generator.config(),
                mode: "metal",
                strict: false,
                origin,
            });
            continue;
        }
        let base = &richer[random.below(richer.len())];
        let mut documents = base.documents.clone();
        let change = mutation::mutate(&mut random, &mut documents, base.last);
        cases.push(Case {
            text: mutation::write(&documents),
            mode: random.one(&MODES),
            strict: random.percent(10),
            origin: base.origin.clone() + &change,
        });
    }
    cases
}

/// Returns the configurations that the library of a version makes itself.
fn bases(peer: &mut Peer, version: &str) -> Vec<(String, String)> {
    let secrets = include_str!("../../data/genconfig/secrets.yaml");
    let mut bases = Vec::new();
    for kubespan in [false, true] {
        let answer = peer.ask(json!({
            "op": "generate",
            "name": "c1",
            "endpoint": "https://10.5.0.2:6443",
            "secrets": secrets,
            "talosVersion": format!("v{version}"),
            "kubernetesVersion": "1.34.0",
            "installDisk": "/dev/sda",
            "installImage": format!("ghcr.io/siderolabs/installer:v{version}.1"),
            "additionalSans": if kubespan { json!(["api.example.com"]) } else { json!([]) },
            "dnsDomain": "cluster.local",
            "registryMirrors": if kubespan { json!({"docker.io": ["https://mirror.example.com"]}) } else { json!({}) },
            "kubespan": kubespan,
            "discovery": true,
        }));
        for kind in ["controlplane", "worker"] {
            let text = answer[kind].as_str().unwrap_or_else(|| panic!("{answer}"));
            bases.push((format!("{kind} of {version}"), text.to_owned()));
        }
    }
    bases
}
