//! Whether overrides of the container runtime's base specification have the types of the OCI runtime specification.

use serde_json::Value;

use crate::validate::at::At;
use crate::validate::sink::Sink;
use crate::yaml::Kind;

/// What a field of the specification holds.
#[derive(Clone, Copy)]
enum Of {
    Text,
    Bool,
    Number,
    Texts,
    TextMap,
    Object(&'static [(&'static str, Self)]),
    Objects(&'static [(&'static str, Self)]),
}

const SPEC: Of = Of::Object(&[
    ("ociVersion", Of::Text),
    ("hostname", Of::Text),
    ("domainname", Of::Text),
    ("annotations", Of::TextMap),
    (
        "root",
        Of::Object(&[("path", Of::Text), ("readonly", Of::Bool)]),
    ),
    (
        "mounts",
        Of::Objects(&[
            ("destination", Of::Text),
            ("type", Of::Text),
            ("source", Of::Text),
            ("options", Of::Texts),
        ]),
    ),
    (
        "process",
        Of::Object(&[
            ("terminal", Of::Bool),
            ("args", Of::Texts),
            ("commandLine", Of::Text),
            ("env", Of::Texts),
            ("cwd", Of::Text),
            ("noNewPrivileges", Of::Bool),
            ("apparmorProfile", Of::Text),
            ("selinuxLabel", Of::Text),
            ("oomScoreAdj", Of::Number),
            (
                "user",
                Of::Object(&[("uid", Of::Number), ("gid", Of::Number)]),
            ),
            (
                "rlimits",
                Of::Objects(&[
                    ("type", Of::Text),
                    ("hard", Of::Number),
                    ("soft", Of::Number),
                ]),
            ),
            (
                "capabilities",
                Of::Object(&[
                    ("bounding", Of::Texts),
                    ("effective", Of::Texts),
                    ("inheritable", Of::Texts),
                    ("permitted", Of::Texts),
                    ("ambient", Of::Texts),
                ]),
            ),
        ]),
    ),
    ("hooks", Of::Object(&[])),
    (
        "linux",
        Of::Object(&[
            ("cgroupsPath", Of::Text),
            ("sysctl", Of::TextMap),
            ("rootfsPropagation", Of::Text),
            ("maskedPaths", Of::Texts),
            ("readonlyPaths", Of::Texts),
            ("mountLabel", Of::Text),
            ("resources", Of::Object(&[])),
            ("seccomp", Of::Object(&[])),
            (
                "namespaces",
                Of::Objects(&[("type", Of::Text), ("path", Of::Text)]),
            ),
            ("devices", Of::Objects(&[])),
        ]),
    ),
]);

/// Checks overrides as far as their fields are known.
pub(super) fn check(overrides: &At<'_>, sink: &mut Sink<'_>) {
    value(overrides, SPEC, sink);
}

fn value(at: &At<'_>, of: Of, sink: &mut Sink<'_>) {
    let kind = at.node().kind();
    let scalar = at.node().as_scalar();
    let (fits, expected) = match of {
        Of::Text => (matches!(scalar, Some(Value::String(_))), "text"),
        Of::Bool => (matches!(scalar, Some(Value::Bool(_))), "true or false"),
        Of::Number => (
            matches!(scalar, Some(Value::Number(number)) if !number.is_f64()),
            "a whole number",
        ),
        Of::Texts | Of::Objects(_) => (kind == Kind::List, "a list"),
        Of::TextMap | Of::Object(_) => (kind == Kind::Mapping, "a mapping"),
    };
    if kind == Kind::Null {
        return;
    }
    if !fits {
        let message = format!("the OCI runtime specification has {expected} here");
        sink.error("wrong-type", at, message);
        return;
    }
    match of {
        Of::Texts => at.items().for_each(|item| value(&item, Of::Text, sink)),
        Of::TextMap => at
            .entries()
            .for_each(|(_, item)| value(&item, Of::Text, sink)),
        Of::Objects(fields) => {
            at.items()
                .for_each(|item| value(&item, Of::Object(fields), sink));
        }
        Of::Object(fields) => {
            for (key, of) in fields {
                value(&at.field(key), *of, sink);
            }
        }
        Of::Text | Of::Bool | Of::Number => {}
    }
}
