//! Rules of containers that Talos runs itself, and of what the container runtime is given.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;

use super::{items, missing};
use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::validate::target::Context;
use crate::validate::value::{self, Url};
use crate::yaml::Kind;

const MOUNT_OPTIONS: [&str; 8] = [
    "ro", "rw", "noexec", "nosuid", "nodev", "noatime", "rbind", "rshared",
];

const CONDITIONS: [&str; 4] = ["addresses", "connectivity", "hostname", "etcfiles"];

/// Checks a container.
pub(super) fn container(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    name(&root.field("name"), sink);
    image(&root.field("image"), sink);
    let environment = root.field("environment");
    for variable in items(&environment) {
        if !variable.text().contains('=') {
            sink.error(
                "bad-value",
                &variable,
                "a variable is written as NAME=value",
            );
        }
    }
    mounts(&root.field("mounts"), sink);
    security(&root.field("security"), sink);
    word(&root.fields(&["network", "mode"]), &["none", "host"], sink);
    limits(&root.fields(&["resources", "limits"]), sink);
    depends_on(&root.field("dependsOn"), &root.field("name").text(), sink);
    for keys in [["runAs", "uid"], ["runAs", "gid"]] {
        let at = root.fields(&keys);
        if at.number().is_some_and(|number| number < 0) {
            sink.error("bad-value", &at, "it must not be negative");
        }
    }
}

fn name(at: &At<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() {
        missing(at, sink);
    } else if text.len() > 63 || !text.bytes().all(known) {
        sink.error(
            "bad-name",
            at,
            "a name has 1 to 63 lower case letters, digits and `-`",
        );
    }
}

fn image(at: &At<'_>, sink: &mut Sink<'_>) {
    let text = at.text();
    if text.is_empty() {
        return missing(at, sink);
    }
    match is_image(&text) {
        Some(true) => {}
        Some(false) => {
            let finding = sink.warning(
                "moving-image",
                at,
                "the image is not told by its digest, so a restart may run another",
            );
            finding.hint("append the digest: @sha256:...");
        }
        None => {
            sink.error("bad-value", at, "a reference of an image is expected");
        }
    }
}

/// Returns whether a reference of an image has a digest; none if it is no reference.
fn is_image(text: &str) -> Option<bool> {
    if let Some((base, digest)) = text.split_once('@') {
        let hash = digest.strip_prefix("sha256:")?;
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let whole = hash.len() == 64 && hash.bytes().all(hex);
        let base = tagged(base).unwrap_or(base);
        return (whole && is_repository(base)).then_some(true);
    }
    is_repository(tagged(text)?).then_some(false)
}

/// Returns a reference without its tag; none if the tag is none.
fn tagged(text: &str) -> Option<&str> {
    match text.rsplit_once(':') {
        Some((base, tag)) if !tag.contains('/') => {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            ((1..=128).contains(&tag.len()) && tag.bytes().all(known)).then_some(base)
        }
        _ => Some(text),
    }
}

fn is_repository(text: &str) -> bool {
    let (registry, path) = match text.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
        _ => ("", text),
    };
    let known =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-./".contains(&byte);
    let host = format!("//{registry}");
    let host = Url::parse(&host).is_ok_and(|url| url.authority == registry);
    (2..=255).contains(&path.len()) && path.bytes().all(known) && host
}

fn mounts(list: &At<'_>, sink: &mut Sink<'_>) {
    let mut destinations: HashSet<String> = HashSet::new();
    for mount in items(list) {
        let kinds = ["userVolume", "tmpfs", "hostPath"];
        let mut set = kinds.into_iter().filter(|kind| mount.field(kind).is_set());
        let (Some(kind), None) = (set.next(), set.next()) else {
            sink.error(
                "conflict",
                &mount,
                "a mount is exactly one of userVolume, tmpfs, hostPath",
            );
            continue;
        };
        let at = mount.field(kind);
        let (source, destination) = (at.field("source"), at.field("destination"));
        let volume = at.field("name");
        if kind == "userVolume" && volume.is_blank() {
            missing(&volume, sink);
        }
        let good = (kind != "hostPath" || path(&source, sink)) & path(&destination, sink);
        let good = options(&at.field("options"), sink) && good;
        let text = destination.text().into_owned();
        if good && destinations.contains(&text) {
            sink.error(
                "duplicate",
                &mount,
                format!("something is mounted at {text} already"),
            );
        }
        destinations.insert(text);
    }
}

/// Reports a path that is not absolute, and returns whether it is.
fn path(at: &At<'_>, sink: &mut Sink<'_>) -> bool {
    let text = at.text();
    if text.is_empty() {
        missing(at, sink);
    } else if !text.starts_with('/') {
        sink.error("bad-value", at, "an absolute path is expected");
    }
    text.starts_with('/')
}

fn options(list: &At<'_>, sink: &mut Sink<'_>) -> bool {
    let mut good = true;
    for option in items(list) {
        if !MOUNT_OPTIONS.contains(&&*option.text()) {
            good = false;
            sink.error(
                "bad-value",
                &option,
                format!("one of {} is expected", MOUNT_OPTIONS.join(", ")),
            );
        }
    }
    let has = |name: &str| items(list).any(|option| option.text() == name);
    if has("ro") && has("rw") {
        good = false;
        sink.error("conflict", list, "only one of `ro` and `rw` can be set");
    }
    good
}

fn word(at: &At<'_>, words: &[&str], sink: &mut Sink<'_>) {
    if !at.is_blank() && !words.contains(&&*at.text()) {
        sink.error(
            "bad-value",
            at,
            format!("one of {} is expected", words.join(", ")),
        );
    }
}

fn security(at: &At<'_>, sink: &mut Sink<'_>) {
    word(&at.field("profile"), &["restricted", "privileged"], sink);
    let (added, dropped) = (
        at.fields(&["capabilities", "add"]),
        at.fields(&["capabilities", "drop"]),
    );
    for (list, all) in [(&added, false), (&dropped, true)] {
        for item in items(list) {
            capability(&item, all, sink);
        }
    }
    for item in items(&added) {
        let name = item.text();
        if name != "ALL" && items(&dropped).any(|other| other.text() == name) {
            sink.error("conflict", &item, format!("{name} is added and dropped"));
        }
    }
}

fn capability(at: &At<'_>, all: bool, sink: &mut Sink<'_>) {
    let name = at.text();
    let known = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    if name == "ALL" && !all {
        sink.error(
            "bad-value",
            at,
            "all capabilities are what `profile: privileged` gives",
        );
    } else if name.is_empty() || name.starts_with("CAP_") || !name.bytes().all(known) {
        sink.error(
            "bad-value",
            at,
            "a capability is written without CAP_ and in upper case: NET_ADMIN",
        );
    }
}

fn limits(at: &At<'_>, sink: &mut Sink<'_>) {
    let (cpu, memory) = (at.field("cpu"), at.field("memory"));
    if !memory.is_blank() && value::size(&memory.text()).is_none() {
        sink.error("bad-value", &memory, "a size such as 512MiB is expected");
    }
    let text = cpu.text();
    let number = text
        .strip_suffix('m')
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let millicores: Option<u64> = number.and_then(|number| number.parse().ok());
    if !text.is_empty() && millicores.is_none_or(|number| number == 0) {
        sink.error(
            "bad-value",
            &cpu,
            "thousandths of a core are expected: 1500m",
        );
    }
}

fn depends_on(at: &At<'_>, own: &str, sink: &mut Sink<'_>) {
    let (paths, networks) = (at.field("paths"), at.field("networks"));
    let containers = at.field("containers");
    for item in items(&paths) {
        path(&item, sink);
    }
    for item in items(&networks) {
        if !CONDITIONS.contains(&&*item.text()) {
            sink.error(
                "bad-value",
                &item,
                format!("one of {} is expected", CONDITIONS.join(", ")),
            );
        }
    }
    for item in items(&containers) {
        match item.text() {
            name if name.is_empty() => missing(&item, sink),
            name if name == own => {
                sink.error("conflict", &item, "a container cannot wait for itself");
            }
            _ => {}
        }
    }
}

/// Checks what is laid over the runtime specification.
pub(super) fn base_runtime_spec(root: &At<'_>, _: &Context<'_>, sink: &mut Sink<'_>) {
    runtime_spec(&root.field("overrides"), sink);
}

/// Checks that fields of the runtime specification have its types.
pub(in crate::validate) fn runtime_spec(overrides: &At<'_>, sink: &mut Sink<'_>) {
    typed_entries(overrides, "", sink);
}

fn typed_entries(at: &At<'_>, path: &str, sink: &mut Sink<'_>) {
    for (key, value) in at.entries() {
        let dot = if path.is_empty() { "" } else { "." };
        typed(
            &value,
            &format!("{path}{dot}{}", key.to_ascii_lowercase()),
            sink,
        );
    }
}

fn typed(at: &At<'_>, path: &str, sink: &mut Sink<'_>) {
    let Some(kind) = spec().get(path).filter(|_| at.is_set()) else {
        return;
    };
    let found = at.node().kind();
    let scalar = at.node().as_scalar();
    let good = match *kind {
        "struct" | "map" => found == Kind::Mapping,
        "list" => found == Kind::List,
        "string" => scalar.is_some_and(Value::is_string),
        "bool" => scalar.is_some_and(Value::is_boolean),
        "interface" => return,
        number => scalar.is_some_and(|value| fits(value, number)),
    };
    if !good {
        let expected = match *kind {
            "struct" | "map" => "a mapping",
            "list" => "a list",
            "string" => "a text",
            "bool" => "true or false",
            _ => "a whole number in range",
        };
        sink.error(
            "bad-type",
            at,
            format!("the runtime specification has {expected} here"),
        );
        return;
    }
    match *kind {
        "struct" => typed_entries(at, path, sink),
        "map" => at
            .entries()
            .for_each(|(_, value)| typed(&value, &format!("{path}{{}}"), sink)),
        "list" => at
            .items()
            .for_each(|item| typed(&item, &format!("{path}[]"), sink)),
        _ => {}
    }
}

/// Returns whether a number fits a type of so many bits.
fn fits(value: &Value, kind: &str) -> bool {
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 1e21;
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
    let number = match value {
        Value::Number(number) => number.as_i128().or_else(|| {
            number
                .as_f64()
                .filter(|number| whole(*number))
                .map(|number| number as i128)
        }),
        _ => None,
    };
    let (signed, bits) = match kind.strip_prefix('u') {
        Some(rest) => (false, rest),
        None => (true, kind),
    };
    let bits: u32 = bits.trim_start_matches("int").parse().unwrap_or(64);
    let (least, most) = match signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    number.is_some_and(|number| (least..=most).contains(&number))
}

/// Returns the types of the fields of the runtime specification, by path in lower case.
fn spec() -> &'static HashMap<String, &'static str> {
    static SPEC: OnceLock<HashMap<String, &'static str>> = OnceLock::new();
    SPEC.get_or_init(|| {
        let rows = include_str!("../../../data/runtime-spec.tsv")
            .lines()
            .skip(1);
        let row = |row: &'static str| row.split_once('\t');
        rows.filter_map(row)
            .map(|(path, kind)| (path.to_ascii_lowercase(), kind))
            .collect()
    })
}
