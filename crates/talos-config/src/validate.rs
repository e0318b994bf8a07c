//! Whether a machine configuration is one that Talos takes, and what in it will not do what was meant.
//!
//! [`validate`] reads a text once and collects what is wrong with any of its documents: what the decoder of the target
//! version refuses (`decode`), what Talos checks in the main document (`main`) and in the others (`documents`), and what
//! it takes without a word although nobody can mean it (`lint`). A rule stands at a place ([`at::At`]) of the parsed text
//! and reports there; lines and paths are worked out for findings only.
//!
//! An absent field reads as the zero value of its type, as it does for Talos.

mod at;
pub(crate) mod decode;
mod documents;
mod lint;
mod main;
mod sink;
mod target;
mod value;

use crate::Error;
use crate::yaml::Stream;

use at::Document;
use sink::Sink;
use target::Context;

/// Where Talos is to run, which decides what a configuration must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A machine that installs Talos to its disk.
    Metal,
    /// A machine that was booted to be taken over by an agent.
    MetalAgent,
    /// A machine of a cloud, which boots an image that has Talos on it.
    Cloud,
    /// A container.
    Container,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Metal => "metal",
            Self::MetalAgent => "metal-agent",
            Self::Cloud => "cloud",
            Self::Container => "container",
        })
    }
}

/// What a configuration is held against.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where Talos is to run.
    pub mode: Mode,
    /// Whether a warning makes the configuration invalid.
    pub strict: bool,
    /// The Talos version that is to take it; otherwise the one that the configuration installs, or the newest.
    pub talos_version: Option<String>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Talos refuses the configuration, or it is a warning and warnings count as errors.
    Error,
    /// Talos takes the configuration; what it does is hardly what was meant.
    Warning,
    /// There is a newer way to say it. Never makes a configuration invalid.
    Note,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One thing that was found in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is, as a word that stays the same.
    pub code: &'static str,
    /// The kind and name of the document, such as `VLANConfig/eth0.5`; empty for the main one.
    pub document: String,
    /// The path of the field, such as `machine.network.interfaces[0].mtu`; empty for the document itself.
    pub path: String,
    /// The line of the field, or of what is nearest to it, counted from 1.
    pub line: Option<u64>,
    /// What is wrong. Never shows a value that may be secret.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Finding {
    /// Sets what to do about it.
    fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(hint.into());
    }
}

/// What was found in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The findings in the order of the text.
    pub findings: Vec<Finding>,
    /// The Talos version whose fields and rules were used.
    pub talos_version: String,
}

impl Report {
    /// Returns whether nothing was found that makes the configuration invalid.
    pub fn is_valid(&self) -> bool {
        !self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// Returns the findings of one severity.
    pub fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    }
}

/// Checks a configuration of any number of documents.
///
/// # Errors
///
/// If the text is not YAML; whatever else is wrong is a finding.
pub fn validate(text: &str, options: &Options) -> Result<Report, Error> {
    let stream = Stream::parse(text)?;
    let mut sink = Sink::new(&stream, options.strict);
    let names = Document::odd_names(&stream);
    let roots = Document::all(&stream, &names, &mut sink);
    let context = Context::new(options, &roots);
    decode::empty(&stream, &context, &mut sink);
    let documents = decode::check(&roots, &context, &mut sink);
    for document in &documents {
        match document.is_main() {
            true => main::check(document, &context, &mut sink),
            false => documents::check(document, &context, &mut sink),
        }
    }
    documents::conflicts(&documents, &context, &mut sink);
    lint::check(&documents, &context, &mut sink);
    Ok(Report {
        findings: sink.findings(),
        talos_version: context.version().to_owned(),
    })
}
