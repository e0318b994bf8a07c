//! `ichor read`: a file of a node.

use futures::StreamExt;
use talos_config::mask;

use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::session::Session;

/// Print a file of a node
///
/// Private keys and tokens in a PEM file or YAML document are masked; --show-secrets prints the file as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file's path on the node
    #[arg(value_name = "PATH")]
    path: String,
}

/// Larger files are passed on as they come, and not looked into.
const LOOKED_INTO: usize = 4 << 20;

/// Runs the verb.
pub(crate) fn run(args: Args, session: &mut Session) -> Result<Outcome, Error> {
    let target = session.reading_one("read")?;
    let runtime = session.runtime()?;
    let output = &mut session.output;
    runtime.run(async {
        let (name, node) = target.only();
        let mut stream = node.read(&args.path);
        let mut start = Vec::new();
        while start.len() <= LOOKED_INTO
            && let Some(chunk) = stream.next().await
        {
            start.extend(chunk.map_err(|error| Error::from(error).node(name))?);
        }
        print(output, &start)?;
        while let Some(chunk) = stream.next().await {
            output.bytes(&chunk.map_err(|error| Error::from(error).node(name))?)?;
        }
        output.flush()
    })?;
    Ok(Outcome::Done)
}

/// Prints a file, masking what is secret in a text.
fn print(output: &mut Output, content: &[u8]) -> Result<(), Error> {
    let text = match std::str::from_utf8(content) {
        Ok(text) if !output.shows_secrets() => text,
        _ => return output.bytes(content),
    };
    let masked = mask::text(text);
    if masked != text {
        output.note("secrets in the file are masked; --show-secrets prints it as it is");
    }
    output.bytes(masked.as_bytes())
}
