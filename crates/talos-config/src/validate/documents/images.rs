//! Rules of images: verification, and the registries they come from.

use super::pem::{self, Look};
use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::Url;

/// Checks the rules by which images are verified.
pub(super) fn verification(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let rules = root.field("rules");
    for rule in items(&rules) {
        pattern(&rule.field("image"), context, sink);
        verifier(&rule, sink);
    }
}

fn pattern(at: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    if text.is_empty() {
        return missing(at, sink);
    }
    let mut warn = |message: &str| {
        let finding = sink.warning("hollow-pattern", at, message);
        finding.hint(
            "a pattern is held against the registry and the repository: docker.io/library/nginx",
        );
    };
    let tagged = text
        .split_once('/')
        .is_some_and(|(_, path)| path.contains(':'));
    if text.contains('@') || tagged {
        warn("tags and digests of images are not looked at");
    }
    let hollow = match context.at_least(14) {
        true => matches_nothing(&text),
        false => !text.contains('/') && text != "*",
    };
    if hollow {
        warn("no image has a name like that");
    }
}

/// Returns whether a pattern starts with something that no registry is called.
fn matches_nothing(pattern: &str) -> bool {
    let (fixed, open) = match pattern.split_once('*') {
        Some((fixed, _)) => (fixed, true),
        None => (pattern, false),
    };
    match fixed.split_once('/') {
        Some((registry, _)) => {
            !registry.contains(['.', ':']) && !registry.eq_ignore_ascii_case("localhost")
        }
        None => !open,
    }
}

fn verifier(rule: &At<'_>, sink: &mut Sink<'_>) {
    let (skip, deny) = (rule.field("skip").is_true(), rule.field("deny").is_true());
    let (keyless, public) = (rule.field("keyless"), rule.field("publicKey"));
    let ways = [skip, deny, keyless.is_set(), public.is_set()];
    if ways.into_iter().filter(|way| *way).count() != 1 {
        sink.error(
            "conflict",
            rule,
            "a rule has exactly one of skip, deny, keyless, publicKey",
        );
    }
    if keyless.is_set() {
        let issuer = keyless.field("issuer");
        if issuer.is_blank() {
            missing(&issuer, sink);
        }
        if keyless.field("subject").is_blank() && keyless.field("subjectRegex").is_blank() {
            sink.error(
                "missing-field",
                &keyless,
                "`subject` or `subjectRegex` must be set",
            );
        }
    }
    let certificate = public.field("certificate");
    if public.is_set() && certificate.is_blank() {
        missing(&certificate, sink);
    }
}

/// Checks how a registry is logged in to.
pub(super) fn registry_auth(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let (auth, token) = (root.field("auth"), root.field("identityToken"));
    let user = !root.field("username").is_blank();
    let other = if !auth.is_blank() && (user || !token.is_blank()) {
        &auth
    } else if user && !token.is_blank() {
        &token
    } else {
        return;
    };
    sink.error(
        "conflict",
        other,
        "only one of `username`, `auth` and `identityToken` can be set",
    );
}

/// Checks the mirrors of a registry.
pub(super) fn registry_mirror(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let endpoints = root.field("endpoints");
    for endpoint in items(&endpoints) {
        let at = endpoint.field("url");
        if at.is_blank() {
            missing(&at, sink);
            continue;
        }
        let text = at.text();
        if Url::parse(&text).is_ok_and(|url| !matches!(&*url.scheme, "http" | "https")) {
            sink.error(
                "bad-value",
                &at,
                "a URL that starts with http:// or https:// is expected",
            );
        }
    }
}

/// Checks what a registry is trusted by and known by.
pub(super) fn registry_tls(root: &At<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let ca = root.field("ca");
    if !ca.is_blank() && !pem::has_certificate(&ca.text()) {
        sink.error("bad-value", &ca, "a certificate in PEM is expected");
    }
    let identity = root.field("clientIdentity");
    if identity.is_set() {
        let look = if context.at_least(14) {
            Look::Outside
        } else {
            Look::Pkcs8
        };
        pem::pair(&identity, look, sink);
    }
}
