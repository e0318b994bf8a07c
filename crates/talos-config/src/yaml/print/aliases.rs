//! Aliases that no longer mean what they meant when the text was read.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Printer;
use crate::yaml::layout::{Document, Form};
use crate::yaml::node::{Child, Data, Node};

impl Printer<'_> {
    /// Returns a mapping with what a `<<` brought in written as its own, where the alias does not mean that any more.
    pub(super) fn unmerged<'n>(&self, node: &'n Node) -> Cow<'n, Node> {
        let is_broken = |child: &Child| child.merge && self.is_fresh(&child.value);
        match &node.data {
            Data::Mapping(children) if children.iter().any(is_broken) && !node.is_empty() => {
                let mut own = node.clone();
                own.unmerge();
                Cow::Owned(own)
            }
            _ => Cow::Borrowed(node),
        }
    }
}

/// Finds the aliases whose anchor was changed or removed since.
pub(super) fn broken_aliases(documents: &[Document]) -> HashSet<usize> {
    let mut broken = HashSet::new();
    for document in documents
        .iter()
        .filter(|document| has_alias(&document.root))
    {
        find_broken(&document.root, &mut HashMap::new(), &mut broken);
    }
    broken
}

fn find_broken(node: &Node, anchors: &mut HashMap<String, Value>, broken: &mut HashSet<usize>) {
    match (&node.data, &node.form) {
        (Data::Alias(target), Form::Plain(span, _)) => {
            let name = target.anchor.as_deref().unwrap_or_default();
            if !anchors.get(name).is_some_and(|value| target.means(value)) {
                broken.insert(span.start);
            }
        }
        (Data::Mapping(children) | Data::List(children), _) => {
            for child in children.iter() {
                find_broken(&child.value, anchors, broken);
            }
        }
        _ => {}
    }
    if let (Some(name), false) = (&node.anchor, matches!(node.form, Form::Fresh(_))) {
        anchors.insert(name.to_string(), node.value());
    }
}

fn has_alias(node: &Node) -> bool {
    match &node.data {
        Data::Alias(_) => true,
        Data::Mapping(children) | Data::List(children) => {
            children.iter().any(|child| has_alias(&child.value))
        }
        Data::Scalar(_) => false,
    }
}
