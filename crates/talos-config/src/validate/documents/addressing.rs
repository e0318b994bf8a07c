//! Rules of names, addresses and time: host name, DHCP, resolvers, time servers, KubeSpan and probes.

use super::items;
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::{self, Url};

/// Checks a DHCP client.
pub(super) fn dhcp(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let duid = root.field("duidRaw");
    let wanted = root
        .field("clientIdentifier")
        .text()
        .eq_ignore_ascii_case("duid");
    if wanted && duid.is_blank() {
        sink.error(
            "missing-field",
            &duid,
            "a client identifier of `duid` needs it",
        );
    } else if !wanted && !duid.is_blank() {
        sink.error(
            "conflict",
            &duid,
            "it is for a client identifier of `duid` only",
        );
    }
}

/// Checks the host name.
pub(super) fn hostname(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let (auto, hostname) = (root.field("auto"), root.field("hostname"));
    let kind = auto.text().to_ascii_lowercase();
    let name = hostname.text();
    if !auto.is_set() && name.is_empty() {
        sink.error(
            "missing-field",
            &auto,
            "either it or `hostname` must be set",
        );
    }
    if !matches!(&*kind, "" | "off" | "stable") {
        sink.error("bad-value", &auto, "`off` or `stable` is expected");
    }
    if name.is_empty() {
        return;
    }
    if !matches!(&*kind, "" | "off") {
        sink.error(
            "conflict",
            &hostname,
            format!("`auto: {kind}` makes a name of its own"),
        );
    }
    let host = name.split('.').next().unwrap_or_default();
    if name.len() > 253 {
        sink.error("bad-value", &hostname, "a name has at most 253 characters");
    }
    if host.is_empty() || host.len() > 63 {
        sink.error(
            "bad-value",
            &hostname,
            "the part before the first dot has 1 to 63 characters",
        );
    }
}

/// Checks KubeSpan.
pub(super) fn kubespan(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    subnets(&root.fields(&["filters", "endpoints"]), sink);
}

/// Checks a list of prefixes and addresses, where `!` excludes.
pub(in crate::validate) fn subnets(list: &At<'_>, sink: &mut Sink<'_>) {
    for item in items(list) {
        let text = item.text();
        let subnet = text.strip_prefix('!').unwrap_or(&text);
        if value::prefix_or_address(subnet).is_none() {
            sink.error(
                "bad-value",
                &item,
                "an address or a prefix is expected, perhaps after a `!`",
            );
        }
    }
}

/// Checks the resolvers.
pub(super) fn resolver(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    if !context.at_least(14) {
        return;
    }
    let host = root.field("hostDNS");
    if !host.field("enabled").is_true() {
        for key in ["forwardKubeDNSToHost", "resolveMemberNames"] {
            let at = host.field(key);
            if at.is_true() {
                sink.error("conflict", &at, "it needs `hostDNS.enabled`");
            }
        }
    }
    let servers = root.field("nameservers");
    let (mut all, mut encrypted) = (0, 0);
    for server in items(&servers) {
        all += 1;
        let address = server.field("address");
        if address.is_blank() {
            super::missing(&address, sink);
        }
        let protocol = server.field("protocol").text().to_ascii_lowercase();
        let name = server.field("tlsServerName");
        match &*protocol {
            "dot" | "doh" => {
                encrypted += 1;
                if name.is_blank() {
                    sink.error(
                        "missing-field",
                        &name,
                        "encrypted DNS needs the name in the certificate of the server",
                    );
                }
            }
            _ if !name.is_blank() => {
                sink.error(
                    "conflict",
                    &name,
                    "plain DNS has no certificate; set `protocol` to DoT or DoH",
                );
            }
            _ => {}
        }
    }
    if encrypted > 0 && encrypted == all {
        let finding = sink.warning(
            "only-encrypted-dns",
            &servers,
            "all servers are encrypted, which needs a right clock, which may need DNS",
        );
        finding.hint("add a plain server, or name time servers by address");
    }
}

/// Checks time synchronization.
pub(super) fn time_sync(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let (ntp, ptp) = (root.field("ntp"), root.field("ptp"));
    if ntp.is_set() && ptp.is_set() {
        sink.error("conflict", &ptp, "only one of `ntp` and `ptp` can be set");
    }
    if !ntp.field("useNTS").is_true() {
        return;
    }
    let servers = ntp.field("servers");
    for server in items(&servers) {
        if value::ip(&server.text()).is_some() {
            sink.error(
                "bad-value",
                &server,
                "NTS needs the name of a server, not its address",
            );
        }
    }
}

/// Checks a probe over HTTP.
pub(super) fn http_probe(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    has_host(&root.field("url"), &["http", "https"], sink);
}

/// Checks a discovery service.
pub(super) fn discovery(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    has_host(&root.field("endpoint"), &["http", "https", "grpc"], sink);
}

/// Reports a URL of one of some schemes that has no host.
fn has_host(at: &At<'_>, schemes: &[&str], sink: &mut Sink<'_>) {
    let text = at.text();
    let Ok(url) = Url::parse(&text) else { return };
    if schemes.contains(&&*url.scheme) && url.plain_host().is_empty() {
        sink.error("bad-value", at, "the URL has no host");
    }
}
