//! The program on the official configuration library, in three versions.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// A running program that answers questions with the official library of one version.
pub(crate) struct Peer {
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    child: Child,
}

impl Peer {
    /// Builds the program for `1.11`, `1.13` or `1.14` where that was not done yet, and starts it.
    pub(crate) fn start(version: &str) -> Self {
        let mut child = Command::new(built(version))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Asks one question, an object with the field `op`, and waits for the answer.
    pub(crate) fn ask(&mut self, question: Value) -> Value {
        self.ask_all(vec![question]).remove(0)
    }

    /// Asks many questions without waiting in between; the answers come in the same order.
    pub(crate) fn ask_all(&mut self, questions: Vec<Value>) -> Vec<Value> {
        let count = questions.len();
        let input = self.input.as_mut().unwrap();
        let output = &mut self.output;
        std::thread::scope(|scope| {
            let sender = scope.spawn(move || {
                let mut input = BufWriter::new(input);
                for (id, mut question) in questions.into_iter().enumerate() {
                    question["id"] = json!(id);
                    serde_json::to_writer(&mut input, &question).unwrap();
                    input.write_all(b"\n").unwrap();
                }
                input.flush().unwrap();
            });
            let mut line = String::new();
            let answers = (0..count)
                .map(|id| {
                    line.clear();
                    output.read_line(&mut line).unwrap();
                    let answer: Value = serde_json::from_str(&line).unwrap();
                    assert_eq!(answer["id"], id, "{line}");
                    answer
                })
                .collect();
            sender.join().unwrap();
            answers
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The program ends at the end of its input.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Builds the program for a version, the first time it is asked for, and returns where it is.
fn built(version: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built
        .entry(version.to_owned())
        .or_insert_with(|| build(version))
        .clone()
}

fn build(version: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/config");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-config-{version}"));
    let status = Command::new("go")
        .arg("-C")
        .arg(folder)
        .arg("build")
        .arg(format!("-modfile=go-{version}.mod"))
        .arg(format!("-tags=talos{version}"))
        .arg("-o")
        .arg(&program)
        .arg(".")
        .status()
        .expect("Go is installed");
    assert!(status.success(), "the peer of {version} does not build");
    program
}

const VERSIONS: [&str; 3] = ["1.11", "1.13", "1.14"];
const WORKER: &str = "version: v1alpha1\nmachine:\n  type: worker\n";

#[test]
#[ignore = "needs Go"]
fn answers_come_in_the_order_of_the_questions() {
    for version in VERSIONS {
        let mut peer = Peer::start(version);
        let questions = (0..500)
            .map(|number| {
                let patch = format!("machine: {{token: t{number}}}\n");
                json!({"op": "patch", "config": WORKER, "patches": [patch]})
            })
            .collect();
        for (number, answer) in peer.ask_all(questions).iter().enumerate() {
            assert_eq!(answer["ok"], true, "{answer}");
            let text = answer["text"].as_str().unwrap();
            assert!(text.contains(&format!("token: t{number}\n")), "{text}");
        }
    }
}

#[test]
#[ignore = "needs Go"]
fn a_refusal_of_the_library_is_an_answer() {
    for version in VERSIONS {
        let mut peer = Peer::start(version);
        let refused = peer.ask(json!({"op": "load", "config": "machine: {typo: 1}\n"}));
        assert_eq!(refused["ok"], false);
        assert!(refused["error"].as_str().unwrap().contains("unknown keys"));
        let invalid = peer.ask(json!({"op": "validate", "config": WORKER, "mode": "cloud"}));
        assert_eq!(invalid["ok"], false);
        assert!(invalid["errors"].as_str().unwrap().contains("cluster"));
        let asked_again = peer.ask(json!({"op": "load", "config": WORKER}));
        assert_eq!(asked_again["ok"], true);
    }
}
