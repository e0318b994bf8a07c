//! A file of expectations: which names which servers are to be valid for.
//!
//! ```yaml
//! - target: kube-apiserver      # a kind of server, a node, NODE/KIND, or `all`
//!   names: [lb.example, 172.30.0.11]
//! ```

use std::fmt;

use talos_config::yaml::{Kind, Node, Step, Stream};
use talos_pki::Name;

use super::ExpectedName;
use crate::ServerKind;

/// Something in a file of expectations that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ExpectProblem {
    /// File as it was given.
    pub file: String,
    /// Line, counted from 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ExpectProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            message,
        } = self;
        match line {
            Some(line) => write!(out, "{file}:{line}: {message}"),
            None => write!(out, "{file}: {message}"),
        }
    }
}

/// Reads a file of expectations, a list of `target` and `names`.
///
/// # Errors
/// Everything in the text that cannot be used, each with its line.
pub fn read_expectations(file: &str, text: &str) -> Result<Vec<ExpectedName>, Vec<ExpectProblem>> {
    let mut reading = Reading {
        file,
        problems: Vec::new(),
        expected: Vec::new(),
    };
    match Stream::parse(text) {
        Ok(stream) => {
            for (index, root) in stream.roots().enumerate() {
                reading.document(&stream, index, root);
            }
        }
        // The error names the line itself.
        Err(error) => reading.add(None, error.to_string()),
    }
    match reading.problems.is_empty() {
        true => Ok(reading.expected),
        false => Err(reading.problems),
    }
}

struct Reading<'a> {
    file: &'a str,
    problems: Vec<ExpectProblem>,
    expected: Vec<ExpectedName>,
}

impl Reading<'_> {
    fn add(&mut self, line: Option<u64>, message: impl Into<String>) {
        self.problems.push(ExpectProblem {
            file: self.file.to_owned(),
            line,
            message: message.into(),
        });
    }

    fn document(&mut self, stream: &Stream, document: usize, root: &Node) {
        if root.is_null() {
            return;
        }
        if root.kind() != Kind::List {
            let line = stream.line(document, &[]);
            return self.add(line, "this is no list of `target` and `names`");
        }
        for index in 0..root.len() {
            if let Some(entry) = root.item(index) {
                self.entry(stream, document, index, entry);
            }
        }
    }

    fn entry(&mut self, stream: &Stream, document: usize, index: usize, entry: &Node) {
        let line = |below: &[Step]| {
            let path: Vec<Step> = std::iter::once(Step::Index(index))
                .chain(below.iter().cloned())
                .collect();
            stream.line(document, &path)
        };
        if entry.kind() != Kind::Mapping {
            return self.add(line(&[]), "this is no mapping of `target` and `names`");
        }
        for (key, _) in entry.entries() {
            if !["target", "names"].contains(&key) {
                self.add(
                    line(&[key.into()]),
                    format!("`{key}` is neither target nor names"),
                );
            }
        }
        let target = match entry.get("target") {
            None => {
                self.add(
                    line(&[]),
                    "`target` is missing: a kind of server, a node, NODE/KIND or all",
                );
                return;
            }
            Some(target) => match target.as_str().map(read_target) {
                Some(Ok(target)) => target,
                Some(Err(why)) => return self.add(line(&["target".into()]), why),
                None => return self.add(line(&["target".into()]), "`target` is no text"),
            },
        };
        let Some(names) = entry
            .get("names")
            .filter(|names| names.kind() == Kind::List)
        else {
            let at = line(&["names".into()]);
            return self.add(at, "`names` is missing or no list of names and addresses");
        };
        if names.is_empty() {
            self.add(line(&["names".into()]), "`names` is empty");
        }
        for at in 0..names.len() {
            let text = names.item(at).and_then(Node::as_str);
            let read = text.ok_or_else(|| "this is no text".to_owned());
            match read.and_then(|text| Name::parse(text).map_err(|error| error.to_string())) {
                Ok(name) => self.expected.push(ExpectedName {
                    kind: target.0,
                    node: target.1.clone(),
                    name,
                }),
                Err(why) => self.add(line(&["names".into(), at.into()]), why),
            }
        }
    }
}

/// Reads `all`, `KIND`, `NODE` or `NODE/KIND`.
fn read_target(text: &str) -> Result<(Option<ServerKind>, Option<String>), String> {
    let of = |word: &str| {
        let mut kinds = ServerKind::OF_NODES.into_iter();
        kinds.find(|kind| kind.as_str() == word)
    };
    if text.is_empty() {
        return Err("`target` is empty".to_owned());
    }
    if text == "all" {
        return Ok((None, None));
    }
    if let Some(kind) = of(text) {
        return Ok((Some(kind), None));
    }
    match text.split_once('/') {
        None => Ok((None, Some(text.to_owned()))),
        Some((node, word)) => match of(word) {
            Some(kind) if !node.is_empty() => Ok((Some(kind), Some(node.to_owned()))),
            _ => Err(format!("`{text}` is no NODE/KIND: kinds are {}", kinds())),
        },
    }
}

fn kinds() -> String {
    let words: Vec<&str> = ServerKind::OF_NODES
        .iter()
        .map(|kind| kind.as_str())
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_kinds_nodes_or_both() {
        let text = "# where people come from\n- target: kube-apiserver\n  names: [lb.example, 172.30.0.11]\n\
                    - target: 10.5.0.2/apid\n  names:\n  - vpn.example\n- {target: 10.5.0.3, names: ['fd00::1']}\n- {target: all, names: [x.example]}\n";
        let read = read_expectations("expect.yaml", text).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|expected| {
                let kind = expected.kind.map(ServerKind::as_str);
                (kind, expected.node.as_deref(), expected.name.to_string())
            })
            .collect();
        assert_eq!(
            read,
            [
                (Some("kube-apiserver"), None, "lb.example".to_owned()),
                (Some("kube-apiserver"), None, "172.30.0.11".to_owned()),
                (Some("apid"), Some("10.5.0.2"), "vpn.example".to_owned()),
                (None, Some("10.5.0.3"), "fd00::1".to_owned()),
                (None, None, "x.example".to_owned()),
            ]
        );
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_its_line() {
        let check = |text: &str, expected: &[(u64, &str)]| {
            let problems = read_expectations("e.yaml", text).unwrap_err();
            assert_eq!(problems.len(), expected.len(), "{problems:?}");
            for (problem, (line, words)) in problems.iter().zip(expected) {
                let shown = problem.to_string();
                assert!(shown.starts_with(&format!("e.yaml:{line}: ")), "{shown}");
                assert!(shown.contains(words), "{shown}");
            }
        };
        check(
            "- target: apid\n  names: [https://x]\n- names: [a.example]\n- target: 10.5.0.2/nothing\n  names: [a]\n- target: apid\n  name: a\n",
            &[
                (2, "https://x"),
                (3, "`target` is missing"),
                (4, "NODE/KIND"),
                (7, "`name` is neither"),
                (6, "`names` is missing"),
            ],
        );
        check("target: apid\n", &[(1, "no list")]);
        check("- target: apid\n  names: []\n", &[(2, "empty")]);
        check("- apid\n", &[(1, "no mapping")]);
        let broken = read_expectations("e.yaml", "- [").unwrap_err();
        assert!(broken[0].to_string().starts_with("e.yaml: "), "{broken:?}");
    }
}
