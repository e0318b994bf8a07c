//! Documents that exclude each other.

use std::collections::HashMap;

use crate::facts::RIVALS;
use crate::validate::at::{At, Document};
use crate::validate::sink::Sink;
use crate::validate::target::Context;

/// Reports documents of related kinds with the same name.
pub(super) fn check(documents: &[Document<'_>], context: &Context<'_>, sink: &mut Sink<'_>) {
    let mut owners: HashMap<(usize, String), &Document<'_>> = HashMap::new();
    let family = |document: &Document<'_>| {
        RIVALS
            .iter()
            .position(|kinds| kinds.contains(&document.kind))
    };
    for (family, document) in documents
        .iter()
        .filter_map(|document| Some((family(document)?, document)))
    {
        let root = document.root();
        let peer = root.field("peer");
        let mut claim = |at: &At<'_>, sink: &mut Sink<'_>| {
            let name = at.text().into_owned();
            let owner = *owners.entry((family, name)).or_insert(document);
            let same = owner.kind == document.kind && owner.name == document.name;
            if !same {
                let label = owner.label();
                let finding = sink.error(
                    "conflict",
                    at,
                    format!("the document {label} has this name too"),
                );
                finding.hint("one document says all about one name");
            }
        };
        claim(&root.field("name"), sink);
        if document.kind == "VethConfig" && context.at_least(14) {
            claim(&peer.field("name"), sink);
        }
    }
}
