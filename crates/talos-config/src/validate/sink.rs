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
    /// Takes what is reported once there are too many, and what is no news.
    rest: Option<Finding>,
    too_many: bool,
    /// The places whose values the decoder refuses, where no rule has anything to add.
    refused: Vec<(usize, Vec<Step>)>,
}

impl<'a> Sink<'a> {
    /// Starts without findings.
    pub(super) fn new(stream: &'a Stream, strict: bool) -> Self {
        Self {
            stream,
            strict,
            findings: Vec::new(),
            rest: None,
            too_many: false,
            refused: Vec::new(),
        }
    }

    /// Reports what the decoder of Talos refuses; rules that find fault with the same value are not heard.
    pub(super) fn refused(
        &mut self,
        code: &'static str,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        if self.findings.len() < MOST {
            self.refused.push((at.document().index, at.steps()));
        }
        self.add(Severity::Error, code, at, message.into(), false)
    }

    /// Reports what Talos refuses.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Error, code, at, message.into(), true)
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
        self.add(severity, code, at, message.into(), true)
    }

    /// Reports what can be said in a newer way.
    pub(super) fn note(
        &mut self,
        code: &'static str,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Note, code, at, message.into(), true)
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

    /// Returns whether there are so many findings that what would be one more is only counted, which it is here.
    pub(super) fn is_full(&mut self) -> bool {
        let full = self.findings.len() >= MOST;
        self.too_many |= full;
        full
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
        if self.too_many {
            findings.push(Finding {
                severity: Severity::Error,
                code: "too-many",
                document: String::new(),
                path: String::new(),
                line: None,
                message: format!("there is more than these {MOST} findings"),
                hint: None,
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
        rule: bool,
    ) -> &mut Finding {
        let index = at.document().index;
        let steps = at.steps();
        let said = rule && self.is_refused(index, &steps);
        let full = self.findings.len() >= MOST;
        self.too_many |= full && !said;
        let line = match full || said {
            true => None,
            false => self.stream.line(index, &steps),
        };
        let finding = Finding {
            severity,
            code,
            document: at.document().label(),
            path: path(&steps),
            line,
            message,
            hint: None,
        };
        if full || said {
            return self.rest.insert(finding);
        }
        let last = self.findings.len();
        self.findings.push((index, finding));
        &mut self.findings[last].1
    }

    /// Returns whether the decoder refuses the value at a place, or one that it is in.
    fn is_refused(&self, document: usize, steps: &[Step]) -> bool {
        self.refused
            .iter()
            .any(|(index, place)| *index == document && steps.starts_with(place))
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
