//! Everything that is printed: results to stdout in the chosen format, the rest to stderr, secrets masked on the way.

mod credentials;

use std::borrow::Cow;
use std::io::{Read, Write};
use std::str::FromStr;

use comfy_table::{ContentArrangement, Table};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::env::Env;
use crate::error::{Code, Details, Error};
use crate::io::Io;
use crate::masker::Masker;

/// How results are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people: aligned columns or plain text.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// YAML.
    Yaml,
    /// One JSON object a line.
    Ndjson,
    /// Only names, one a line (`get`).
    Name,
    /// The result of a Kubernetes-style JSONPath on each object (`get`).
    JsonPath(String),
}

impl Format {
    /// Tells whether a script reads the output as JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::Json | Self::Ndjson)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "table" | "text" | "" => Ok(Self::Table),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "ndjson" => Ok(Self::Ndjson),
            _ => Err(format!("`{text}` is none of table, json, yaml, ndjson")),
        }
    }
}

/// Reads the formats of `get`, which has two more.
pub(crate) fn resource_format(text: &str) -> Result<Format, String> {
    match text.split_once('=') {
        Some(("jsonpath", path)) => Ok(Format::JsonPath(path.to_owned())),
        None if text == "name" => Ok(Format::Name),
        _ => text.parse().map_err(|_| {
            format!("`{text}` is none of table, json, yaml, ndjson, name, jsonpath=EXPRESSION")
        }),
    }
}

/// Reads the formats of commands whose result is a text.
pub(crate) fn text_format(text: &str) -> Result<Format, String> {
    match text {
        "table" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        _ => Err(format!("`{text}` is none of table, json")),
    }
}

/// The `-o` flag of commands that print data.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// How to print results: table, json, yaml or ndjson
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// What is printed to stderr for a failure when results are JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct ErrorDocument<'a> {
    /// What went wrong.
    pub(crate) error: &'a Details,
}

/// Where a run prints.
pub(crate) struct Output {
    io: Io,
    format: Format,
    color: bool,
    masker: Masker,
    /// What standard input was read for.
    input: Option<String>,
}

impl Output {
    pub(crate) fn new(io: Io, env: &Env) -> Self {
        let color = io.stderr_is_terminal
            && env.get("NO_COLOR").is_none()
            && env.get("TERM") != Some("dumb");
        Self {
            io,
            format: Format::Table,
            color,
            masker: Masker::default(),
            input: None,
        }
    }

    /// Returns the format the user chose.
    pub(crate) fn format(&self) -> &Format {
        &self.format
    }

    pub(crate) fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Stops masking, because the user asked for it.
    pub(crate) fn show_secrets(&mut self) {
        self.masker.show();
    }

    /// Tells whether secrets are printed as they are.
    pub(crate) fn shows_secrets(&self) -> bool {
        self.masker.shows()
    }

    /// Returns what masks secrets, for a writer of its own.
    pub(crate) fn masker(&self) -> Masker {
        self.masker.clone()
    }

    /// Remembers a secret value: from now on it is masked wherever it appears.
    pub(crate) fn learn_secret(&mut self, value: &str) {
        self.masker.learn(|secrets| secrets.add(value));
    }

    /// Remembers the secrets of a document, such as a machine config: from now on they are masked wherever they appear.
    pub(crate) fn learn_secrets_of(&mut self, document: &str) {
        self.masker.learn(|secrets| secrets.collect(document));
    }

    /// Tells whether a person reads the results.
    pub(crate) fn stdout_is_terminal(&self) -> bool {
        self.io.stdout_is_terminal
    }

    /// Tells whether a person reads progress and can answer questions.
    pub(crate) fn is_interactive(&self) -> bool {
        self.io.stdin_is_terminal && self.io.stderr_is_terminal
    }

    /// Reads standard input to its end, for verbs that read a file named `-`; `what` says for which part of the command
    /// line. There is nothing left for a second part, so that one is refused.
    pub(crate) fn read_input(&mut self, what: &str) -> Result<String, Error> {
        self.take_input(what)?;
        let mut text = String::new();
        self.io.stdin.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Reads standard input to its end, as [`Output::read_input`] does, where it need not be text.
    pub(crate) fn read_input_bytes(&mut self, what: &str) -> Result<Vec<u8>, Error> {
        self.take_input(what)?;
        let mut bytes = Vec::new();
        self.io.stdin.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn take_input(&mut self, what: &str) -> Result<(), Error> {
        if let Some(before) = self.input.replace(what.to_owned()) {
            let message =
                format!("standard input can be read once, not for both {before} and {what}");
            return Err(Error::new(Code::Usage, message).hint("put one of them into a file"));
        }
        Ok(())
    }

    /// Prints one line of results; what others wrote into it does nothing to a terminal.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Error> {
        let text = self.mask(text);
        writeln!(self.io.stdout, "{}", tame(&text))?;
        Ok(())
    }

    /// Prints text that brings its own line ends.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Error> {
        let text = self.mask(text);
        self.io.stdout.write_all(text.as_bytes())?;
        Ok(())
    }

    /// Prints bytes as they are, unmasked: a file's content that the user asked for.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.io.stdout.write_all(bytes)?;
        Ok(())
    }

    /// Hands everything printed so far to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.io.stdout.flush()?;
        Ok(())
    }

    /// Prints a value as one JSON document.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let value = self.value(value)?;
        let text = serde_json::to_string_pretty(&value)
            .map_err(|error| Error::of(Code::Failed, &error))?;
        writeln!(self.io.stdout, "{text}")?;
        Ok(())
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json_line<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let value = self.value(value)?;
        writeln!(self.io.stdout, "{value}")?;
        Ok(())
    }

    /// Prints a value as YAML.
    pub(crate) fn yaml<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let text = talos_config::yaml::write(&self.value(value)?);
        self.io.stdout.write_all(text.as_bytes())?;
        Ok(())
    }

    /// Prints a value in the chosen machine-readable format; returns false if people read the output.
    pub(crate) fn data<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<bool, Error> {
        match self.format {
            Format::Json => self.json(value)?,
            Format::Ndjson => self.json_line(value)?,
            Format::Yaml => self.yaml(value)?,
            Format::Table | Format::Name | Format::JsonPath(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Prints a table.
    pub(crate) fn table(&mut self, table: &Table) -> Result<(), Error> {
        let lines: Vec<String> = table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        self.line(&lines.join("\n"))
    }

    /// Tells the user something beside the results.
    pub(crate) fn note(&mut self, text: &str) {
        self.say("", text);
    }

    /// Tells something below a label of ours, which may have a color.
    fn say(&mut self, label: &str, text: &str) {
        let text = self.mask(text);
        let text = tame(&text);
        // A reader who closed stderr does not want to hear about it.
        let _ = writeln!(self.io.stderr, "{label}{text}");
    }

    /// Warns the user.
    pub(crate) fn warn(&mut self, text: &str) {
        let label = self.paint("33;1", "warning:");
        self.say(&format!("{label} "), text);
    }

    /// Puts a question to the user, without ending the line.
    pub(crate) fn prompt(&mut self, text: &str) {
        let text = self.mask(text);
        let _ = write!(self.io.stderr, "{text}");
        let _ = self.io.stderr.flush();
    }

    /// Reads one line of input, on a thread of its own: nothing else can be given up while a person thinks.
    pub(crate) async fn read_line(&mut self) -> Result<String, Error> {
        let mut stdin = std::mem::replace(&mut self.io.stdin, Box::new(std::io::empty()));
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || {
            let line = line_of(&mut *stdin);
            // Whoever asked may have been interrupted meanwhile.
            let _ = sender.send((stdin, line));
        });
        let (stdin, line) = receiver.await.map_err(|error| {
            Error::new(Code::Failed, "failed to read the answer").caused_by(&error)
        })?;
        self.io.stdin = stdin;
        Ok(line?)
    }

    /// Prints what is wrong with the command line, or the help that was asked for, and returns the exit code.
    pub(crate) fn usage(&mut self, error: &clap::Error) -> u8 {
        let rendered = error.render();
        if !error.use_stderr() {
            let text = if self.io.stdout_is_terminal && self.color {
                rendered.ansi().to_string()
            } else {
                rendered.to_string()
            };
            // Whoever asked for help and went away needs none.
            let _ = self.io.stdout.write_all(text.as_bytes());
            let _ = self.io.stdout.flush();
            return 0;
        }
        if self.format.is_json() {
            let text = rendered.to_string();
            let mut paragraphs = text
                .split("\n\n")
                .map(str::trim)
                .filter(|part| !part.is_empty());
            let message = paragraphs.next().unwrap_or_default();
            let message = message.strip_prefix("error: ").unwrap_or(message);
            let mut usage = Error::new(Code::Usage, message);
            if let Some(hint) = paragraphs.next() {
                usage = usage.hint(hint);
            }
            self.error(&usage);
        } else {
            let text = if self.color {
                rendered.ansi().to_string()
            } else {
                rendered.to_string()
            };
            let _ = self.io.stderr.write_all(text.as_bytes());
        }
        Code::Usage.exit()
    }

    /// Prints an error: for people with its causes and hint, as an object if results are JSON.
    pub(crate) fn error(&mut self, error: &Error) {
        if error.code() == Code::ClosedPipe {
            return;
        }
        if self.format.is_json() {
            #[derive(Serialize)]
            struct Envelope<'a> {
                error: &'a Details,
            }
            let envelope = Envelope {
                error: error.details(),
            };
            if let Ok(value) = self.value(&envelope) {
                let _ = writeln!(self.io.stderr, "{value}");
            }
            return;
        }
        let details = error.details();
        let label = self.paint("31;1", "error:");
        let place = place(details)
            .map(|place| format!("{place}: "))
            .unwrap_or_default();
        self.say(&format!("{label} "), &format!("{place}{}", details.message));
        for cause in &details.causes {
            self.note(&format!(
                "  caused by: {}",
                cause.trim_end().replace('\n', "\n    ")
            ));
        }
        if let Some(hint) = &details.hint {
            let label = self.paint("36;1", "hint:");
            self.say(&format!("  {label} "), hint);
        }
    }

    /// Masks what is secret in a text: values learned so far, and what looks secret by itself.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.masker.mask(text)
    }

    fn value<T: Serialize + ?Sized>(&self, value: &T) -> Result<Value, Error> {
        let mut value =
            serde_json::to_value(value).map_err(|error| Error::of(Code::Failed, &error))?;
        if !self.masker.shows() {
            self.mask_value(&mut value);
        }
        Ok(value)
    }

    fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.masker.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.color {
            format!("\u{1b}[{style}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Replaces control characters, with which a name or a message of somebody else could drive a terminal.
fn tame(text: &str) -> Cow<'_, str> {
    let is_wild = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    match text.contains(is_wild) {
        true => Cow::Owned(text.replace(is_wild, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Replaces control characters, line ends and tabs among them, in what somebody else wrote and is to stay on its line.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Makes a table without borders, three spaces between columns, never wrapped.
pub(crate) fn columns<const N: usize>(headers: [&str; N]) -> Table {
    column_list(headers.iter().map(|header| (*header).to_owned()).collect())
}

/// Makes the same table for headers that are only known at run time.
pub(crate) fn column_list(headers: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headers);
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table
}

/// Reads one line, byte by byte: what follows belongs to whoever reads next.
fn line_of(stdin: &mut dyn Read) -> std::io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while stdin.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Says where it failed, unless the message does.
fn place(details: &Details) -> Option<String> {
    let said = |place: &&String| !details.message.contains(place.as_str());
    match (
        details.node.as_ref().filter(said),
        details.endpoint.as_ref().filter(said),
    ) {
        (Some(node), Some(endpoint)) if node != endpoint => {
            Some(format!("{node} (through {endpoint})"))
        }
        (Some(node), _) => Some(node.clone()),
        (None, Some(endpoint)) if details.node.is_none() => Some(endpoint.clone()),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// A person who types what is sent.
    struct Typing(Receiver<u8>);

    impl Read for Typing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            Ok(self.0.recv().map_or(0, |byte| {
                buffer[0] = byte;
                1
            }))
        }
    }

    #[test]
    fn what_others_wrote_cannot_drive_a_terminal() {
        assert_eq!(
            tame("CN=evil\u{1b}[31m\r\u{9b}1m"),
            "CN=evil\u{fffd}[31m\u{fffd}\u{fffd}1m"
        );
        assert_eq!(tame("a\tb\nc \u{e9}"), "a\tb\nc \u{e9}");
    }

    #[tokio::test]
    async fn a_question_can_be_given_up_while_nobody_answers() {
        let (sender, receiver) = channel();
        let io = Io {
            stdin: Box::new(Typing(receiver)),
            stdout: Box::new(Vec::new()),
            stderr: Box::new(Vec::new()),
            stdin_is_terminal: true,
            stdout_is_terminal: true,
            stderr_is_terminal: true,
        };
        let mut output = Output::new(io, &Env::default());
        for byte in *b"yes\n" {
            sender.send(byte).unwrap();
        }
        assert_eq!(output.read_line().await.unwrap(), "yes");
        assert!(futures::poll!(std::pin::pin!(output.read_line())).is_pending());
    }
}
