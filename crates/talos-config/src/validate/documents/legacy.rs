//! What the main document must not say if a document of its own says it.

use super::volumes;
use crate::facts::exclusive::{EXCLUSIVE, When};
use crate::validate::at::{At, Document};
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// Checks every document against the main one.
pub(super) fn check(
    main: &Document<'_>,
    documents: &[Document<'_>],
    context: &Context<'_>,
    sink: &mut Sink<'_>,
) {
    let root = main.root();
    for document in documents.iter().filter(|document| !document.is_main()) {
        let rows = EXCLUSIVE.iter();
        for row in rows.filter(|row| row.kind == document.kind) {
            let keys: Vec<&str> = row.path.split('.').collect();
            let at = root.fields(&keys);
            if context.at_least(row.since) && is_said(&at, row.when) {
                said_twice(&at, document, sink);
            }
        }
        match document.kind {
            "VolumeConfig" => encryption(&root, document, sink),
            "ResolverConfig" => host_dns(&root, document, sink),
            _ => {}
        }
    }
}

fn is_said(at: &At<'_>, when: When) -> bool {
    match when {
        When::Set => at.is_set(),
        When::Text => !at.is_blank() && at.number() != Some(0),
        When::True => at.is_true(),
        When::Filled => at.len() > 0,
        When::Addresses => at
            .items()
            .any(|item| value::address(&item.text()).is_some()),
        When::Duration => value::duration(&at.text()).is_some_and(|duration| duration != 0),
    }
}

fn said_twice(at: &At<'_>, document: &Document<'_>, sink: &mut Sink<'_>) {
    let label = document.label();
    let finding = sink.error(
        "conflict",
        at,
        format!("the document {label} is there too, which excludes it"),
    );
    finding.hint("keep it in one of the two; `machineconfig migrate` moves it to the document");
}

fn encryption(root: &At<'_>, document: &Document<'_>, sink: &mut Sink<'_>) {
    let key = match document.name {
        "STATE" => "state",
        "EPHEMERAL" => "ephemeral",
        _ => return,
    };
    let keys = ["machine", "systemDiskEncryption", key];
    let at = root.fields(&keys);
    let own = document.root();
    if at.is_set() && !volumes::is_none(&own.fields(&["encryption", "provider"])) {
        said_twice(&at, document, sink);
    }
}

fn host_dns(root: &At<'_>, document: &Document<'_>, sink: &mut Sink<'_>) {
    let own = document.root();
    let own = own.field("hostDNS");
    let any = own.entries().any(|(_, at)| at.is_set());
    let at = root.fields(&["machine", "features", "hostDNS"]);
    if any && at.is_set() {
        said_twice(&at, document, sink);
    }
}
