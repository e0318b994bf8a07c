//! From text to tree, in one pass over the events of the parser.

mod block;
mod builder;
mod documents;
mod events;
mod flow;
mod lines;
mod resolve;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::builder::Builder;
use super::layout::{Source, Style};
use super::{Stream, print};
use crate::Error;

/// Reads a text of one document.
///
/// # Errors
///
/// As [`Stream::parse`], and [`Error::Documents`] for a text of several documents.
pub fn read(text: &str) -> Result<Value, Error> {
    let mut documents = read_documents(text)?;
    match documents.len() {
        0 => Ok(Value::Null),
        1 => Ok(documents.remove(0)),
        count => Err(Error::Documents { count }),
    }
}

/// Reads a text of any number of documents; those without content are left out.
///
/// # Errors
///
/// As [`Stream::parse`].
pub fn read_documents(text: &str) -> Result<Vec<Value>, Error> {
    let stream = stream(text)?;
    let documents = stream.documents.iter();
    Ok(documents
        .map(|document| document.root.value())
        .filter(|value| !value.is_null())
        .collect())
}

/// Parses a text into a stream.
pub(super) fn stream(text: &str) -> Result<Stream, Error> {
    let mut builder = Builder::new(text);
    // To YAML that is an end of a line too; nobody means it, and places are told by line feeds.
    let lone = text
        .match_indices('\r')
        .find(|(at, _)| !text[at + 1..].starts_with('\n'));
    if let Some((at, _)) = lone {
        return Err(builder.unsupported(at, "a carriage return without a line feed"));
    }
    let documents = builder.documents()?;
    let style = Style {
        step: builder.step.unwrap_or(4),
        list: builder.list.unwrap_or_else(|| builder.step.unwrap_or(4)),
        crlf: text.contains("\r\n"),
    };
    let source = Source::new(text, style);
    // Whatever the parser or the builder gets wrong must not reach a file.
    let printed = print::stream(&source, &documents);
    if printed != text {
        let same = printed
            .bytes()
            .zip(text.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        return Err(builder.unsupported(same, "this form of YAML"));
    }
    Ok(Stream { source, documents })
}
