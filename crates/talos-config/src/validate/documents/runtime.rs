//! Rules of the system: environment, files, logs, extensions, SideroLink and installation.

use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::Url;

/// Files in `/etc` that Talos writes itself.
const FILES: [&str; 7] = [
    "resolv.conf",
    "hosts",
    "machine-id",
    "extensions.yaml",
    "localtime",
    "os-release",
    "xattr.conf",
];

/// Directories in `/etc` that Talos writes itself.
const DIRECTORIES: [&str; 12] = [
    "apparmor.d",
    "apparmor",
    "ca-certificates",
    "cni",
    "cri",
    "iscsi",
    "kubernetes",
    "lvm",
    "nvme",
    "pki",
    "selinux",
    "ssl",
];

/// Checks the names of environment variables.
pub(super) fn environment(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let variables = root.field("variables");
    for (name, at) in variables.entries() {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let first = name
            .bytes()
            .next()
            .is_some_and(|byte| !byte.is_ascii_digit());
        if !first || !name.bytes().all(known) {
            sink.error(
                "bad-name",
                &at,
                "a variable has letters, digits and `_`, and starts with none of the digits",
            );
        }
    }
}

/// Checks that kernel parameters have names.
pub(super) fn parameters(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let params = root.field("params");
    for (_, at) in params.entries().filter(|(name, _)| name.is_empty()) {
        sink.error("bad-name", &at, "a parameter needs a name");
    }
}

/// Checks a file in `/etc`.
pub(super) fn etc_file(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let name = root.field("name");
    let path = name.text();
    let within = |directory: &&str| {
        path.strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if path.is_empty() {
        missing(&name, sink);
    } else if path.starts_with(['.', '/']) || leaves(&path) {
        sink.error(
            "bad-name",
            &name,
            "a path below /etc is expected, which starts with no `.`",
        );
    } else if FILES.contains(&&*path) || DIRECTORIES.iter().any(within) {
        sink.error("bad-name", &name, "Talos writes this file itself");
    }
}

/// Returns whether a path goes above where it starts.
fn leaves(path: &str) -> bool {
    let mut depth: i64 = 0;
    path.split('/').any(|part| {
        depth += match part {
            "" | "." => 0,
            ".." => -1,
            _ => 1,
        };
        depth < 0
    })
}

/// Checks the service of an extension.
pub(super) fn extension_service(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let (files, environment) = (root.field("configFiles"), root.field("environment"));
    if items(&files).next().is_none() && items(&environment).next().is_none() {
        sink.error(
            "missing-field",
            root,
            "either `configFiles` or `environment` must be set",
        );
    }
    for file in items(&files) {
        for at in [file.field("content"), file.field("mountPath")] {
            if at.is_blank() {
                missing(&at, sink);
            }
        }
    }
}

/// Checks where the kernel log goes.
pub(super) fn kmsg_log(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    bare_url(&root.field("url"), &["tcp", "udp"], true, sink);
}

/// Checks the connection to SideroLink.
pub(super) fn siderolink(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    bare_url(&root.field("apiUrl"), &["https", "grpc"], false, sink);
}

fn bare_url(at: &At<'_>, schemes: &[&str], port: bool, sink: &mut Sink<'_>) {
    if at.is_blank() {
        return missing(at, sink);
    }
    let text = at.text();
    let Ok(url) = Url::parse(&text) else { return };
    if !schemes.contains(&&*url.scheme) {
        sink.error(
            "bad-value",
            at,
            format!(
                "a URL that starts with {}:// is expected",
                schemes.join(":// or ")
            ),
        );
    } else if !matches!(url.path, "" | "/") {
        sink.error("bad-value", at, "the URL must have no path");
    } else if port && url.port().is_empty() {
        sink.error("bad-value", at, "the URL needs a port");
    }
}

/// Checks an installation without questions.
pub(super) fn unattended_install(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    let image = root.fields(&["installer", "image"]);
    if image.is_blank() {
        let finding = sink.warning(
            "missing-field",
            &image,
            "without an image only a medium of Image Factory can install",
        );
        finding.hint("set the installer image, such as factory.talos.dev/metal-installer/<schematic>:<version>");
    }
}
