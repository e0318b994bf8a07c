//! What Talos takes without a word although nobody can mean it.

mod images;
mod names;
mod newer;
mod subnets;

use std::collections::HashSet;

use super::at::{At, Document};
use super::main::Role;
use super::sink::Sink;
use super::target::Context;
use crate::schema::{Field, Shape};

/// Checks all documents.
pub(super) fn check(documents: &[Document<'_>], context: &Context<'_>, sink: &mut Sink<'_>) {
    subnets::check(documents, sink);
    names::check(documents, context, sink);
    images::check(documents, context, sink);
    for document in documents.iter().filter(|document| document.is_main()) {
        let root = document.root();
        let version = root.field("version");
        if !version.is_blank() && version.text() != "v1alpha1" {
            sink.warning("bad-value", &version, "the only version is `v1alpha1`");
        }
        interfaces(&root, sink);
        files(&root, sink);
        newer::check(&root, context, sink);
    }
}

/// Checks a field whose name says what it is, in any document.
pub(super) fn field(at: &At<'_>, field: &Field, key: &str, sink: &mut Sink<'_>) {
    if field.shape == Shape::Number && (key == "port" || key.ends_with("Port")) {
        let out = |port: i128| !(0..=65535).contains(&port);
        if at.number().is_some_and(out) {
            sink.warning("bad-port", at, "the port is not between 1 and 65535");
        }
    }
    if key == "image" && field.shape == Shape::Text {
        images::reference(at, sink);
    }
}

/// Checks that no interface and no VLAN is configured twice.
fn interfaces(root: &At<'_>, sink: &mut Sink<'_>) {
    let mut seen = HashSet::new();
    let list = root.fields(&["machine", "network", "interfaces"]);
    for interface in list.items() {
        let name = interface.field("interface");
        let selector = interface.field("deviceSelector");
        let id = match name.is_blank() {
            false => name.text().into_owned(),
            true if selector.len() > 0 => selector.node().value().to_string(),
            true => continue,
        };
        if !seen.insert(id) {
            sink.warning(
                "duplicate",
                &interface,
                "the interface is configured already",
            );
        }
        let mut vlans = HashSet::new();
        for vlan in interface.field("vlans").items() {
            let id = vlan.field("vlanId");
            if !vlans.insert(id.number()) {
                sink.warning("duplicate", &id, "the VLAN is configured already");
            }
        }
    }
}

fn files(root: &At<'_>, sink: &mut Sink<'_>) {
    /// The one file outside of `/var` that Talos creates.
    const CUSTOMIZATION: &str = "/etc/cri/conf.d/20-customization.part";
    for file in root.fields(&["machine", "files"]).items() {
        let op = file.field("op");
        let operation = op.text();
        if !matches!(&*operation, "create" | "append" | "overwrite") {
            sink.warning("bad-value", &op, "is not one of create, append, overwrite");
        }
        let path = file.field("path");
        let text = path.text();
        if !text.starts_with('/') {
            sink.warning("bad-value", &path, "the path does not start with `/`");
        } else if operation == "create" && !text.starts_with("/var/") && text != CUSTOMIZATION {
            let message = "files are created below /var only";
            sink.warning("bad-value", &path, message);
        }
    }
}

/// Returns what the machine is, if the configuration says it.
fn role(context: &Context<'_>) -> Role {
    context.main().map_or(Role::Unknown, |main| {
        let root = main.root();
        Role::of(&root.field("machine"))
    })
}
