//! Aliases that no longer mean what they meant when the text was read.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::yaml::layout::{Document, Form};
use crate::yaml::node::{Data, Node};

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
            for child in children {
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
