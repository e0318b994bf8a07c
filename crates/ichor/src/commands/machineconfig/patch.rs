//! `ichor machineconfig patch`: patching a machine config in a file.

use std::path::PathBuf;

use serde::Serialize;
use talos_config::Schema;
use talos_config::patch::{Options, Patch, apply_with};

use crate::commands::patch::input;
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access};
use crate::output::{Format, text_format};
use crate::session::Session;
use crate::values;

/// Patch a machine config in a file
///
/// Lines that no patch touches stay as they are, comments included. A patch is a strategic merge patch or a JSON Patch;
/// what is wrong with all of them is reported together, and then nothing is written. A patch that says nothing (an empty
/// text, [] or {}) changes nothing, and neither does no patch at all: the config is printed as it is, with a warning.
/// --compat refuses {}, as the official tool does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file with the machine config, - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A patch, or @FILE to read one; may be given several times, applied in order
    #[arg(short, long, value_name = "PATCH")]
    patch: Vec<String>,
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Allow what this Talos version knows, such as v1.13; if not given, the newer of the installer images of config and
    /// patches, else the newest that is known
    #[arg(long, value_name = "VERSION", value_parser = values::talos_version)]
    talos_version: Option<String>,
    /// The document that JSON Patches change, as KIND or KIND/NAME; the main one if not given
    #[arg(long, value_name = "KIND[/NAME]")]
    document: Option<String>,
    /// Do exactly what the official tool of the Talos version does, defects and refusals included
    #[arg(long)]
    compat: bool,
    /// How to print the result: table (the text itself) or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = text_format)]
    format: Format,
}

/// A patched machine config.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct PatchedData {
    /// The text, with its secrets; absent if it went to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
    /// What the patches did that their author may not expect.
    warnings: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let path = args.file.display().to_string();
    let text = input::text_of(session, &path)?;
    session.output.learn_secrets_of(&text);
    let patches = input::unread(session, "--patch", &args.patch)?;
    let is_json = |patch: &Patch| patch.is_json() || patch.is_unread();
    if let Some(document) = &args.document
        && !patches.iter().any(is_json)
    {
        let message = format!("--document {document} is for JSON Patches, and there is none");
        return Err(Error::new(Code::Usage, message).hint(
            "a strategic merge patch names its document by `apiVersion`, `kind` and `name`",
        ));
    }
    let options = Options {
        schema: args.talos_version.as_deref().map(Schema::for_talos),
        compat: args.compat,
        document: args.document,
        strict: false,
    };
    let mut patched = apply_with(&text, &patches, &options).map_err(|error| {
        input::refused(&error, &args.patch).context(format!("{path} cannot be patched"))
    })?;
    if patches.is_empty() {
        let warning = "no patch is given: nothing is changed";
        patched.warnings.push(warning.to_owned());
    }
    let output = &mut session.output;
    if !output.format().is_json() {
        for warning in &patched.warnings {
            output.warn(warning);
        }
    }
    let target = args.output.filter(|path| !files::is_stdout(path));
    if let Some(path) = &target {
        files::write(path, patched.text.as_bytes(), Access::of(&patched.text))?;
        if !output.format().is_json() {
            return Ok(Outcome::Done);
        }
    }
    if output.format().is_json() {
        // The file was handed in with its secrets, and is handed on with them.
        let document = PatchedData {
            config: target.is_none().then_some(patched.text),
            warnings: patched.warnings,
        };
        output.credentials_json(&document)?;
        return Ok(Outcome::Done);
    }
    output.credentials(&patched.text, "-o FILE, a pipe")?;
    Ok(Outcome::Done)
}
