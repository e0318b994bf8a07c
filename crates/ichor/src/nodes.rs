//! Which nodes a verb acts on: reading takes the context's list, changing something needs them named.

use crate::error::{Code, Error};

/// Where nodes to act on were named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    /// The nodes of `-n`.
    pub(crate) named: &'a [String],
    /// The context's own list.
    pub(crate) context: &'a [String],
    /// Whether `--all-nodes` was given.
    pub(crate) all: bool,
}

impl Choice<'_> {
    /// Returns the nodes to read from: those named, else the context's.
    pub(crate) fn to_read(self) -> Result<Vec<String>, Error> {
        let nodes = if self.named.is_empty() {
            self.context
        } else {
            self.named
        };
        if nodes.is_empty() {
            return Err(Error::new(
                Code::Usage,
                "no nodes are named, and the context lists none",
            )
            .hint("name nodes with -n, or give the context a list with `ichor config node`"));
        }
        distinct(nodes)
    }

    /// Returns the nodes to change: those named, or the context's with `--all-nodes`.
    pub(crate) fn to_change(self) -> Result<Vec<String>, Error> {
        let nodes = match (self.named.is_empty(), self.all) {
            (false, false) => self.named,
            (true, true) => self.context,
            (false, true) => {
                return Err(Error::new(
                    Code::Usage,
                    "-n and --all-nodes exclude each other",
                ));
            }
            (true, false) => {
                return Err(Error::new(
                    Code::Usage,
                    "a command that changes something needs its nodes named",
                )
                .hint("name them with -n, or take all nodes of the context with --all-nodes"));
            }
        };
        if nodes.is_empty() {
            return Err(Error::new(
                Code::Usage,
                "--all-nodes is given, but the context lists no nodes",
            )
            .hint("name nodes with -n, or give the context a list with `ichor config node`"));
        }
        distinct(nodes)
    }
}

/// Returns the only node of a list, for verbs that work on one.
pub(crate) fn only(nodes: Vec<String>, verb: &str) -> Result<String, Error> {
    match <[String; 1]>::try_from(nodes) {
        Ok([node]) => Ok(node),
        Err(nodes) => Err(Error::new(
            Code::Usage,
            format!("{verb} works on exactly one node, not on {}", nodes.len()),
        )
        .hint("name one node with -n")),
    }
}

/// Drops repeated names, keeping the order.
///
/// An empty name is an error: it is what an unset variable of a script leaves, and no work on no node is a success.
fn distinct(nodes: &[String]) -> Result<Vec<String>, Error> {
    let mut kept: Vec<String> = Vec::with_capacity(nodes.len());
    for node in nodes.iter().map(|node| node.trim()) {
        if node.is_empty() {
            return Err(Error::new(Code::Usage, "the name of a node is empty")
                .hint("look at what -n was given, and at the nodes of the context"));
        }
        if !kept.iter().any(|seen| seen == node) {
            kept.push(node.to_owned());
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        named: &[&str],
        context: &[&str],
        all: bool,
        read: Result<&[&str], ()>,
        change: Result<&[&str], ()>,
    ) {
        let own = |nodes: &[&str]| {
            nodes
                .iter()
                .map(|node| (*node).to_owned())
                .collect::<Vec<_>>()
        };
        let (named, context) = (own(named), own(context));
        let choice = Choice {
            named: &named,
            context: &context,
            all,
        };
        assert_eq!(
            choice.to_read().map_err(|_| ()),
            read.map(own),
            "read {choice:?}"
        );
        assert_eq!(
            choice.to_change().map_err(|_| ()),
            change.map(own),
            "change {choice:?}"
        );
    }

    #[test]
    fn changing_needs_nodes_named() {
        check(&[], &["a", "b"], false, Ok(&["a", "b"]), Err(()));
        check(&[], &["a", "b"], true, Ok(&["a", "b"]), Ok(&["a", "b"]));
        check(
            &["b", "b", " c"],
            &["a"],
            false,
            Ok(&["b", "c"]),
            Ok(&["b", "c"]),
        );
        check(&["b"], &["a"], true, Ok(&["b"]), Err(()));
        check(&[], &[], false, Err(()), Err(()));
        check(&[], &[], true, Err(()), Err(()));
    }

    #[test]
    fn an_empty_name_is_no_node() {
        check(&[""], &["a"], false, Err(()), Err(()));
        check(&["a", " "], &["a"], false, Err(()), Err(()));
        check(&[], &[""], true, Err(()), Err(()));
    }

    #[test]
    fn some_verbs_take_one_node() {
        assert_eq!(only(vec!["a".to_owned()], "bootstrap").unwrap(), "a");
        let error = only(vec!["a".to_owned(), "b".to_owned()], "bootstrap").unwrap_err();
        assert_eq!(
            error.to_string(),
            "bootstrap works on exactly one node, not on 2"
        );
    }
}
