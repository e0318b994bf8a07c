//! Expressions in CEL, read as far as their types tell whether Talos takes them.
//!
//! An expression is typed while it is read, left to right; no tree is made and nothing is evaluated. What the reader
//! does not know (names of messages, namespaced constants) has the type of anything, so a wrong expression may pass, but
//! a right one is not refused.

mod functions;
mod lex;
mod read;
#[cfg(test)]
mod tests;
mod types;
mod variables;

pub(super) use variables::Variables;

use types::Type;

use super::missing;
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;

/// Checks an expression; whether it must be there.
pub(super) fn check(
    at: &At<'_>,
    variables: Variables,
    needed: bool,
    context: &Context<'_>,
    sink: &mut Sink<'_>,
) {
    let text = at.text();
    if text.is_empty() {
        if needed {
            missing(at, sink);
        }
        return;
    }
    if let Err(wrong) = types_well(&text, variables, context.schema.table_version()) {
        sink.error("bad-expression", at, wrong);
    }
}

/// Reads an expression that must have the type its variables are for.
fn types_well(text: &str, variables: Variables, version: &'static str) -> Result<(), String> {
    let expected = match variables {
        Variables::Ranking => Type::Double,
        _ => Type::Bool,
    };
    match read::expression(text, variables, version)? {
        found if found == expected => Ok(()),
        found => Err(format!("the expression gives {found}, not {expected}")),
    }
}
