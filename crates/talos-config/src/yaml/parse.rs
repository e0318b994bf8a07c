//! From text to tree: the structure comes from the lossless parser, the values from the one that reads as Go does.

mod builder;
mod content;
mod flow;
mod lines;

use std::sync::Arc;

use rowan::ast::AstNode;
use serde_json::Value;
use yaml_edit::{SyntaxKind, YamlFile};

use self::builder::Builder;
use self::content::{Syntax, span};
use super::layout::{Source, Style};
use super::{Stream, print};
use crate::Error;

/// Reads a text of one document.
///
/// # Errors
///
/// [`Error::Syntax`] for a text that is not YAML, has a key twice in one mapping, or holds several documents.
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
/// [`Error::Syntax`] for a text that is not YAML or has a key twice in one mapping.
pub fn read_documents(text: &str) -> Result<Vec<Value>, Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
        // A snippet of a machine configuration may show a secret.
        with_snippet: false,
    };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(syntax_error)?;
    Ok(documents
        .into_iter()
        .filter(|value| !value.is_null())
        .collect())
}

/// Parses a text into a stream.
pub(super) fn stream(text: &str) -> Result<Stream, Error> {
    let mut values = read_documents(text)?.into_iter();
    let file = YamlFile::parse(text);
    if let Some(error) = file.positioned_errors().first() {
        let start = error.start_position(text);
        return Err(Error::Syntax {
            line: start.line as u64,
            column: start.column as u64,
            message: error.message.clone(),
        });
    }
    // A copy that cannot be changed: walking it is several times as fast.
    let tree = file.tree().syntax().clone_subtree();
    let nodes: Vec<Syntax> = tree
        .children()
        .filter(|node| node.kind() == SyntaxKind::DOCUMENT)
        .collect();
    let mut builder = Builder::new(text);
    let mut documents = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let start = if index == 0 { 0 } else { span(node).start };
        let end = nodes
            .get(index + 1)
            .map_or(text.len(), |next| span(next).start);
        documents.push(builder.document(node, start..end, &mut values)?);
    }
    if nodes.is_empty() && !text.is_empty() {
        documents.push(Builder::empty_document(0..text.len()));
    }
    if values.next().is_some() {
        return Err(builder.unsupported(0, "documents that cannot be told apart"));
    }
    let style = Style {
        step: builder.step.unwrap_or(4),
        list: builder.list.unwrap_or_else(|| builder.step.unwrap_or(4)),
        crlf: text.contains("\r\n"),
    };
    let source = Source {
        text: Arc::from(text),
        style,
    };
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

fn syntax_error(error: serde_saphyr::Error) -> Error {
    let location = error.location();
    Error::Syntax {
        line: location.map_or(0, |at| at.line()),
        column: location.map_or(0, |at| at.column()),
        message: error.without_snippet().to_string(),
    }
}
