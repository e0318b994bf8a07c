//! Where rules report what they find.

use super::at::At;
use super::{Finding, Severity};
use crate::yaml::{Step, Stream};

/// How many findings are collected; a text with more is no configuration.
const MOST: usize = 1000;

/// The findings so far.
pub(super) struct Sink<'a> {
    stream: &'a Stream,
    strict: bool,
    findings: Vec<(usize, Finding)>,
    /// Takes what is reported once there are too many.
    rest: Option<Finding>,
}

impl<'a> Sink<'a> {
    /// Starts without findings.
    pub(super) fn new(stream: &'a Stream, strict: bool) -> Self {
        Self {
            stream,
            strict,
            findings: Vec::new(),
            rest: None,
        }
    }

    /// Reports what Talos refuses.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Error, code, at, message.into())
    }

    /// Reports what Talos takes although it is hardly meant; an error if warnings count as errors.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        let severity = match self.strict {
            true => Severity::Error,
            false => Severity::Warning,
        };
        self.add(severity, code, at, message.into())
    }

    /// Reports what can be said in a newer way.
    pub(super) fn note(
        &mut self,
        code: &'static str,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Note, code, at, message.into())
    }

    /// Reports that the text holds no document.
    pub(super) fn nothing(&mut self) {
        let finding = Finding {
            severity: Severity::Error,
            code: "no-document",
            document: String::new(),
            path: String::new(),
            line: None,
            message: "there is no configuration in the text".to_owned(),
            hint: None,
        };
        self.findings.push((0, finding));
    }

    /// Returns whether nothing was reported.
    pub(super) fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns what was reported, in the order of the text.
    pub(super) fn findings(mut self) -> Vec<Finding> {
        let place = |(document, finding): &(usize, Finding)| (*document, finding.line);
        self.findings.sort_by_key(place);
        let findings = self.findings.into_iter().map(|(_, finding)| finding);
        let mut findings: Vec<Finding> = findings.collect();
        if let Some(last) = self.rest {
            findings.push(Finding {
                severity: Severity::Error,
                code: "too-many",
                document: String::new(),
                path: String::new(),
                message: format!("there is more than these {MOST} findings"),
                hint: None,
                ..last
            });
        }
        findings
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        at: &At<'_>,
        message: String,
    ) -> &mut Finding {
        let full = self.findings.len() >= MOST;
        let (line, path) = match full {
            true => (None, String::new()),
            false => {
                let steps = at.steps();
                (self.stream.line(at.document().index, &steps), path(&steps))
            }
        };
        let finding = Finding {
            severity,
            code,
            document: at.document().label(),
            path,
            line,
            message,
            hint: None,
        };
        if full {
            return self.rest.insert(finding);
        }
        let index = self.findings.len();
        self.findings.push((at.document().index, finding));
        &mut self.findings[index].1
    }
}

/// Writes a path as people do: `machine.network.interfaces[0].mtu`; a key with dots stands in brackets.
fn path(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            Step::Index(index) => out.push_str(&format!("[{index}]")),
            Step::Key(key) if key.contains(['.', '[', ' ']) || key.is_empty() => {
                out.push_str(&format!("[{key:?}]"));
            }
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
        }
    }
    out
}
