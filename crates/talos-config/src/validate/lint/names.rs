//! Names that certificates are issued for, and the endpoint that clients connect to.
//!
//! The certificate of kube-apiserver has the host of the cluster's endpoint by itself, and the names of
//! `cluster.apiServer.certSANs`; `machine.certSANs` are for the machine's own API alone.

use super::role;
use crate::validate::at::{At, Document};
use crate::validate::main::Role;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value;

/// Checks names and endpoints of all documents.
pub(super) fn check(documents: &[Document<'_>], context: &Context<'_>, sink: &mut Sink<'_>) {
    for document in documents {
        let root = document.root();
        let of_server = match document.kind {
            _ if document.is_main() => {
                let of_machine = root.fields(&["machine", "certSANs"]);
                let of_server = root.fields(&["cluster", "apiServer", "certSANs"]);
                sans(&of_machine, sink);
                sans(&of_server, sink);
                let at = root.fields(&["cluster", "controlPlane", "endpoint"]);
                endpoint(&at, sink);
                misplaced(&of_machine, &at, &of_server, sink);
                of_server
            }
            "KubeAPIServerConfig" => {
                let of_server = root.field("certExtraSANs");
                sans(&of_server, sink);
                of_server
            }
            "KubeClusterConfig" => {
                endpoint(&root.field("endpoint"), sink);
                continue;
            }
            _ => continue,
        };
        if of_server.len() > 0 && role(context) == Role::Worker {
            let message = "a worker has no kube-apiserver, so nothing is issued for these names";
            sink.warning("no-effect", &of_server, message)
                .hint("names of a worker's own API stand in `machine.certSANs`");
        }
    }
}

/// Checks names that certificates are to have.
fn sans(list: &At<'_>, sink: &mut Sink<'_>) {
    for item in list.items() {
        let text = item.text();
        if value::ip(&text).is_none() && !value::is_dns_name(&text) {
            sink.warning("bad-san", &item, "is neither a DNS name nor an IP address")
                .hint("write the name alone, without scheme, port or prefix length");
        }
    }
}

fn endpoint(at: &At<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    let Ok(url) = value::Url::parse(&text) else {
        return;
    };
    let host = url.plain_host();
    if host.is_empty() {
        return;
    }
    if url.port().is_empty() {
        let port = if url.scheme == "http" { 80 } else { 443 };
        sink.warning(
            "no-port",
            at,
            format!("without a port, this is port {port}"),
        )
        .hint("kube-apiserver listens on port 6443");
    }
    if url.scheme != "https" {
        sink.warning("bad-value", at, "the scheme is not https");
    }
    if value::ip(&host).is_none() && !value::is_dns_name(&host) {
        let message =
            "the host is neither a DNS name nor an IP address, so no certificate covers it";
        sink.warning("bad-san", at, message);
    }
}

/// Finds the endpoint's host among the names of the machine's own API.
fn misplaced(of_machine: &At<'_>, endpoint: &At<'_>, of_server: &At<'_>, sink: &mut Sink<'_>) {
    let text = endpoint.text();
    let Ok(url) = value::Url::parse(&text) else {
        return;
    };
    let host = url.plain_host();
    let same = |item: &At<'_>| !host.is_empty() && item.text().eq_ignore_ascii_case(&host);
    if of_server.items().any(|item| same(&item)) {
        return;
    }
    for item in of_machine.items().filter(same) {
        let message = "is issued for the machine's own API only";
        sink.note("san-elsewhere", &item, message).hint(
            "the certificate of Kubernetes has the endpoint's host anyway; more of its names stand in `cluster.apiServer.certSANs`",
        );
    }
}
