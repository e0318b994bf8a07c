//! Patches, held against those of the official library on random configurations.
//!
//! Both sides patch the same text with the same patches, ours with `compat`, which promises the official result of the
//! version in everything. Results are compared as the official library reads them, so that layout, order of keys and
//! ways to write a scalar mean nothing.

mod classes;
mod mended;

use std::fmt::Write as _;

use serde_json::{Value, json};
use talos_config::Schema;
use talos_config::patch::{Options, Patch, apply_with};
use talos_config::yaml::read_documents;

use super::config::Peer;
use crate::machineconfig::generator::Generator;
use classes::CLASSES;

/// How many cases are compared, unless `ICHOR_CASES` says otherwise.
const CASES: usize = 21_000;

/// The seed of the cases, unless `ICHOR_SEED` says otherwise: the same ones in every run.
const SEED: u64 = 20_261_130;

/// How many cases are made and asked at once.
const PORTION: usize = 500;

/// The version of the library, and the one whose fields the cases are made of.
const VERSIONS: [(&str, &str); 3] = [("1.11", "1.11.5"), ("1.13", "1.13.9"), ("1.14", "1.14.1")];

/// A configuration, its patches, and what either side made of them.
struct Case {
    version: &'static str,
    config: String,
    patches: Vec<String>,
    ours: Result<String, String>,
    theirs: Result<String, String>,
    /// Both results as the official library writes them anew, if it decodes both.
    anew: Option<[String; 2]>,
}

impl Case {
    /// Returns whether the last patch is a JSON Patch, after which the official tool decodes nothing.
    fn ends_with_json(&self) -> bool {
        let last = self.patches.last().map(|text| Patch::parse(text));
        matches!(last, Some(Ok(patch)) if patch.is_json())
    }

    fn show(&self) -> String {
        let mut text = format!("--- Talos {}\n{}\n", self.version, self.config);
        for patch in &self.patches {
            let _ = writeln!(text, "--- patch\n{patch}");
        }
        for (side, result) in [("ours", &self.ours), ("theirs", &self.theirs)] {
            let _ = match result {
                Ok(result) => writeln!(text, "--- {side}\n{result}"),
                Err(error) => writeln!(text, "--- {side} refused: {error}"),
            };
        }
        text
    }
}

#[test]
#[ignore = "needs Go"]
fn patches_give_what_the_official_library_gives() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("ICHOR_SEED").unwrap_or(SEED);
    let cases = number("ICHOR_CASES").map_or(CASES, |cases| cases as usize);
    println!("seed {seed}, {cases} cases (ICHOR_SEED, ICHOR_CASES)");
    let differences: Vec<Case> = std::thread::scope(|scope| {
        let count = cases.div_ceil(VERSIONS.len());
        let workers: Vec<_> = VERSIONS
            .into_iter()
            .map(|(library, version)| scope.spawn(move || differing(library, version, seed, count)))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    let mut counts = [0_usize; CLASSES.len()];
    let mut unexplained = Vec::new();
    for case in &differences {
        match CLASSES.iter().position(|class| (class.is_it)(case)) {
            Some(index) => counts[index] += 1,
            None => unexplained.push(case),
        }
    }
    for (class, count) in CLASSES.iter().zip(counts) {
        println!("{count:6}  {}: {}", class.name, class.reason);
    }
    let share = 100.0 * differences.len() as f64 / cases as f64;
    println!(
        "{:6}  differences of {cases} cases, {share:.2} %",
        differences.len()
    );
    for case in unexplained.iter().take(20) {
        println!("=== unexplained\n{}", case.show());
    }
    assert!(CLASSES.len() <= 15);
    assert_eq!(
        unexplained.len(),
        0,
        "unexplained differences with seed {seed}"
    );
    assert!(share <= 2.0, "{share} % of the cases differ");
}

/// Makes configurations, each with its patches.
fn inputs(generator: &mut Generator, count: usize) -> Vec<(String, Vec<String>)> {
    (0..count)
        .map(|index| {
            let config = generator.config();
            let patches = 1 + usize::from(index % 10 == 0);
            let patches = (0..patches).map(|_| generator.patch_for(&config)).collect();
            (config, patches)
        })
        .collect()
}

/// Returns the cases of one version in which the sides differ.
fn differing(library: &str, version: &'static str, seed: u64, count: usize) -> Vec<Case> {
    let mut peer = Peer::start(library);
    let mut generator = Generator::new(seed, version);
    let mut differing = Vec::new();
    let mut left = count;
    while left > 0 {
        let inputs = inputs(&mut generator, left.min(PORTION));
        left -= inputs.len();
        let questions = inputs
            .iter()
            .map(|(config, patches)| json!({"op": "patch", "config": config, "patches": patches}))
            .collect();
        let answers = peer.ask_all(questions);
        let cases = inputs
            .into_iter()
            .zip(answers)
            .map(|((config, patches), answer)| Case {
                version,
                ours: ours(&config, &patches, version, true),
                theirs: result(&answer),
                anew: None,
                config,
                patches,
            });
        let different =
            cases.filter_map(|mut case| (!is_same(&mut case, &mut peer)).then_some(case));
        differing.extend(different);
    }
    differing
}

/// Patches with our library.
fn ours(config: &str, patches: &[String], version: &str, compat: bool) -> Result<String, String> {
    let options = Options {
        compat,
        ..Options::from(Schema::for_talos(version))
    };
    let patches: Result<Vec<Patch>, _> = patches.iter().map(|text| Patch::parse(text)).collect();
    patches
        .and_then(|patches| apply_with(config, &patches, &options))
        .map(|patched| patched.text)
        .map_err(|error| chain(&error))
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// Reads an answer of the peer.
fn result(answer: &Value) -> Result<String, String> {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    match answer["ok"] == true {
        true => Ok(text("text")),
        false => Err(text("error")),
    }
}

/// Returns whether both sides refused, or made the same documents.
fn is_same(case: &mut Case, peer: &mut Peer) -> bool {
    let (ours, theirs) = match (&case.ours, &case.theirs) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => return ours.is_err() == theirs.is_err(),
    };
    if documents(ours) == documents(theirs) {
        return true;
    }
    // Then as the official library writes either text anew.
    let (ours, ours_empty) = without_empty_documents(ours);
    let (theirs, theirs_empty) = without_empty_documents(&readable(theirs));
    let mut ask = |question: [Value; 2]| -> Option<[String; 2]> {
        let answers = peer.ask_all(question.to_vec());
        match [&answers[0], &answers[1]].map(result) {
            [Ok(ours), Ok(theirs)] => Some([readable(&ours), readable(&theirs)]),
            _ => None,
        }
    };
    let equal = |[ours, theirs]: &[String; 2]| documents(ours) == documents(theirs);
    case.anew = ask([&ours, &theirs].map(|text| json!({"op": "load", "config": text})));
    if ours_empty != theirs_empty || case.anew.as_ref().is_some_and(equal) {
        return ours_empty == theirs_empty;
    }
    // A JSON Patch writes all scalars by the rules of YAML 1.1.
    let rewritten = |text| json!({"op": "patch", "config": text, "patches": ["[]"]});
    case.ends_with_json() && ask([&ours, &theirs].map(rewritten)).is_some_and(|texts| equal(&texts))
}

/// Takes out what the official tool writes for no protocol, and does not read.
fn readable(text: &str) -> String {
    text.replace("    protocol: Protocol(0)\n", "")
}

/// Takes out the empty documents, which the official tool writes but does not read, and counts them.
fn without_empty_documents(text: &str) -> (String, usize) {
    let mut documents = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            documents.push(String::new());
        }
        documents.last_mut().unwrap().push_str(line);
    }
    let all = documents.len();
    documents.retain(|document| document.trim_start_matches("---").trim() != "{}");
    (documents.concat(), all - documents.len())
}

/// Reads documents without what means the same as nothing.
fn documents(text: &str) -> Option<Vec<Value>> {
    let documents = read_documents(text).ok()?;
    Some(documents.into_iter().map(without_empty).collect())
}

fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        // 1 and 1.0 are the same number.
        Value::Number(number) => number
            .as_f64()
            .filter(|float| float.fract() == 0.0 && float.abs() < 1e15)
            .map_or(Value::Number(number), |float| json!(float as i64)),
        value => value,
    }
}
