//! Results of several nodes in one document, with the exit code they add up to.

use comfy_table::Table;
use serde::Serialize;

use crate::error::{Code, Details, Error, Outcome};
use crate::output::{Format, Output};

/// What one node answered.
pub(crate) type NodeResult<T> = (String, Result<T, Error>);

/// The JSON document of a command over nodes.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Report<'a, T> {
    /// One entry per node, in the order the nodes were named.
    pub(crate) nodes: Vec<Entry<'a, T>>,
}

/// One node's part of a report.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Entry<'a, T> {
    /// The node as the user named it.
    pub(crate) node: &'a str,
    /// Whether the node did what was asked.
    pub(crate) ok: bool,
    /// The node's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<&'a T>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'a Details>,
}

/// Prints what the nodes answered: one JSON or YAML document, a JSON object a line, or for people whatever `show` prints
/// for the nodes that answered, followed by one error per node that did not.
pub(crate) fn report<T: Serialize>(
    output: &mut Output,
    results: &[NodeResult<T>],
    show: impl FnOnce(&mut Output, &[(&str, &T)]) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    match output.format() {
        Format::Json | Format::Yaml => {
            let nodes = results.iter().map(entry).collect();
            output.data(&Report { nodes })?;
        }
        Format::Ndjson => {
            for result in results {
                output.json_line(&entry(result))?;
            }
        }
        Format::Table | Format::Name | Format::JsonPath(_) => {
            let answered: Vec<(&str, &T)> = results
                .iter()
                .filter_map(|(node, result)| Some((node.as_str(), result.as_ref().ok()?)))
                .collect();
            if !answered.is_empty() {
                show(output, &answered)?;
            }
            output.flush()?;
            for error in results
                .iter()
                .filter_map(|(_, result)| result.as_ref().err())
            {
                output.error(error);
            }
        }
    }
    output.flush()?;
    Ok(outcome(results))
}

/// Prints a report for people as one table with `row` adding the rows of each node.
pub(crate) fn report_table<T: Serialize>(
    output: &mut Output,
    results: &[NodeResult<T>],
    mut table: Table,
    mut row: impl FnMut(&mut Table, &str, &T),
) -> Result<Outcome, Error> {
    report(output, results, |output, answered| {
        for (node, data) in answered {
            row(&mut table, node, data);
        }
        output.table(&table)
    })
}

/// Adds up what the nodes answered: all failing gives their common code or plain failure, some failing gives exit 4.
pub(crate) fn outcome<T>(results: &[NodeResult<T>]) -> Outcome {
    let mut codes = results
        .iter()
        .filter_map(|(_, result)| result.as_ref().err().map(Error::code));
    let Some(first) = codes.next() else {
        return Outcome::Done;
    };
    let rest: Vec<Code> = codes.collect();
    if rest.len() + 1 < results.len() {
        Outcome::SomeNodesFailed
    } else if rest.iter().all(|code| code.exit() == first.exit()) {
        Outcome::AllNodesFailed(first)
    } else {
        Outcome::AllNodesFailed(Code::Failed)
    }
}

/// Makes one node's part of a report.
pub(crate) fn entry<T>((node, result): &NodeResult<T>) -> Entry<'_, T> {
    Entry {
        node,
        ok: result.is_ok(),
        data: result.as_ref().ok(),
        error: result.as_ref().err().map(Error::details),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(codes: &[Option<Code>], expected: u8) {
        let results: Vec<NodeResult<()>> = codes
            .iter()
            .map(|code| {
                (
                    "n".to_owned(),
                    code.map_or(Ok(()), |code| Err(Error::new(code, "x"))),
                )
            })
            .collect();
        assert_eq!(outcome(&results).exit(), expected, "{codes:?}");
    }

    #[test]
    fn exit_codes_of_nodes_add_up() {
        check(&[], 0);
        check(&[None, None], 0);
        check(&[None, Some(Code::Unreachable)], 4);
        check(&[Some(Code::Unreachable), Some(Code::TimedOut)], 7);
        check(&[Some(Code::Unreachable), Some(Code::NotAllowed)], 1);
        check(&[Some(Code::NotAllowed)], 6);
    }
}
