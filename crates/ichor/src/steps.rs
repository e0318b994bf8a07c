//! Changing nodes so that Ctrl-C neither tears a change nor loses what was done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;

use talos_client::Node;

use crate::connect::Target;
use crate::error::{Code, Error};
use crate::report::NodeResult;
use crate::runtime::interrupted;
use crate::session::Session;

/// How far the change of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    UnderWay,
    Done,
    Failed,
}

impl Session {
    /// Changes every node, several at the same time, and returns what came of it in the order of the nodes.
    ///
    /// At the first Ctrl-C no further node is started and those under way are finished: the run ends with exit code 130
    /// after its results. At the second it ends at once, and the error says how far each node was.
    pub(crate) fn change_each<T, F>(
        &mut self,
        target: &Target,
        call: impl Fn(Node) -> F,
    ) -> Result<Vec<NodeResult<T>>, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let runtime = self.runtime()?;
        let output = &mut self.output;
        let (call, steps) = (&call, &RefCell::new(BTreeMap::new()));
        let result = runtime.run_steps(async |mut interrupt| {
            let asked = interrupt.clone();
            let mut work = pin!(target.each(async |node| {
                if asked.is_asked() {
                    return Err(not_started());
                }
                let name = node.name().unwrap_or_default().to_owned();
                steps.borrow_mut().insert(name.clone(), Step::UnderWay);
                let result = call(node).await;
                let step = if result.is_ok() { Step::Done } else { Step::Failed };
                steps.borrow_mut().insert(name, step);
                result
            }));
            let results = tokio::select! {
                results = &mut work => results,
                () = interrupt.wait() => {
                    output.note("stopping: the nodes under way are finished first; Ctrl-C again stops at once");
                    work.await
                }
            };
            Ok((results, asked.is_asked()))
        });
        match result {
            Ok((results, asked)) => {
                if asked {
                    self.stopped(&left(&results));
                }
                Ok(results)
            }
            Err(error) if error.code() == Code::Interrupted => {
                Err(interrupted().hint(torn(&target.nodes, &steps.borrow())))
            }
            Err(error) => Err(error),
        }
    }
}

/// Makes the error of a node whose turn did not come because the user asked to stop.
pub(crate) fn not_started() -> Error {
    Error::new(Code::Interrupted, "not started: the run was interrupted")
}

/// Returns the nodes that are still to be done.
pub(crate) fn left<T>(results: &[NodeResult<T>]) -> Vec<String> {
    let failed = results.iter().filter(|(_, result)| result.is_err());
    failed.map(|(name, _)| name.clone()).collect()
}

/// Says how far each node was when the run was ended at once, and how to go on.
fn torn(nodes: &[String], steps: &BTreeMap<String, Step>) -> String {
    let at = |step: Option<Step>| -> Vec<&str> {
        let nodes = nodes
            .iter()
            .filter(|name| steps.get(*name).copied() == step);
        nodes.map(String::as_str).collect()
    };
    let (done, failed, under_way, waiting) = (
        at(Some(Step::Done)),
        at(Some(Step::Failed)),
        at(Some(Step::UnderWay)),
        at(None),
    );
    let mut parts = Vec::new();
    for (what, names) in [
        ("done on", &done),
        ("failed on", &failed),
        ("under way on, and perhaps done on,", &under_way),
        ("not started on", &waiting),
    ] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    let left = [failed, under_way, waiting].concat().join(",");
    let next = match left.is_empty() {
        true => "nothing is left to do".to_owned(),
        false => format!("look, then run the same command with -n {left} to go on"),
    };
    format!("{}; {next}", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_ended_at_once_says_how_far_each_node_was() {
        let nodes = ["a", "b", "c", "d"].map(str::to_owned);
        let steps = BTreeMap::from([
            ("a".to_owned(), Step::Done),
            ("b".to_owned(), Step::UnderWay),
            ("d".to_owned(), Step::Failed),
        ]);
        assert_eq!(
            torn(&nodes, &steps),
            "done on a; failed on d; under way on, and perhaps done on, b; not started on c; look, then run the same command with -n d,b,c to go on"
        );
        assert_eq!(
            torn(&nodes[..1], &steps),
            "done on a; nothing is left to do"
        );
    }
}
