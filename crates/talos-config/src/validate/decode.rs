//! What the decoder of the target version refuses: kinds and fields it does not know, and values of another type.

pub(crate) mod scalar;

use std::collections::HashSet;

use serde_json::Value;

use super::at::{At, Document};
use super::lint;
use super::sink::Sink;
use super::target::Context;
use crate::schema::{Field, MAIN, Shape};
use crate::yaml::{Kind, Step, Stream};

/// Checks all documents and returns those whose rules are worth checking.
pub(super) fn check<'a>(
    documents: &'a [Document<'a>],
    context: &Context<'_>,
    sink: &mut Sink<'_>,
) -> Vec<Document<'a>> {
    let mut seen = HashSet::new();
    let mut worth = Vec::with_capacity(documents.len());
    for document in documents {
        let root = document.root();
        if !seen.insert((document.kind, document.name)) {
            let message = match document.is_main() {
                true => "there is a main document already",
                false => "there is a document of this kind and name already",
            };
            sink.refused("duplicate-document", &root, message);
            continue;
        }
        if !document.is_main() && !is_versioned(document, sink) {
            continue;
        }
        let Some(fields) = context.schema.kind(document.kind) else {
            unknown_kind(document, context, sink);
            continue;
        };
        Decoder { context, sink }.value(&root, fields, "");
        worth.push(*document);
    }
    worth
}

/// Checks that no document is empty: Talos 1.11 gives up there.
pub(super) fn empty(stream: &Stream, context: &Context<'_>, sink: &mut Sink<'_>) {
    if context.at_least(12) {
        return;
    }
    for (index, node) in stream
        .roots()
        .enumerate()
        .filter(|(_, node)| node.is_null())
    {
        let document = Document::unnamed(node, index);
        sink.refused("not-a-document", &document.root(), "the document is empty")
            .hint("remove its `---`");
    }
}

/// Checks the `apiVersion` of a document.
fn is_versioned(document: &Document<'_>, sink: &mut Sink<'_>) -> bool {
    let root = document.root();
    let version = root.field("apiVersion");
    match &*version.text() {
        "v1alpha1" => return true,
        "" => sink
            .refused(
                "no-api-version",
                &version,
                "the document has no `apiVersion`",
            )
            .hint("add `apiVersion: v1alpha1`"),
        other => {
            let message = format!("Talos has no documents of `apiVersion: {other}`");
            sink.refused("unknown-kind", &version, message)
                .hint("every kind is `apiVersion: v1alpha1`");
        }
    }
    false
}

fn unknown_kind(document: &Document<'_>, context: &Context<'_>, sink: &mut Sink<'_>) {
    let root = document.root();
    let at = root.field("kind");
    let kind = document.kind;
    let other = context.schema.version_with(kind, &[]);
    if !context.schema.is_known() {
        let message = format!(
            "Talos {} has no kind `{kind}`; whether {} has it is not known here",
            context.schema.table_version(),
            context.version()
        );
        sink.warning("unknown-kind", &at, message);
        return;
    }
    let message = format!("Talos {} has no kind `{kind}`", context.version());
    let finding = sink.refused("unknown-kind", &at, message);
    let near = || nearest(kind, context.schema.kinds());
    if let Some(version) = other {
        finding.hint(format!("Talos {version} has it"));
    } else if let Some(near) = near() {
        finding.hint(format!("did you mean `{near}`?"));
    }
}

/// Walks a document along the table of fields.
struct Decoder<'c, 'd, 's, 't> {
    context: &'c Context<'d>,
    sink: &'s mut Sink<'t>,
}

impl Decoder<'_, '_, '_, '_> {
    fn value(&mut self, at: &At<'_>, field: &'static Field, key: &str) {
        let merges = at.node().has_merge();
        if merges && matches!(field.shape, Shape::Struct | Shape::Map) {
            self.merge(at);
        }
        match (field.shape, at.node().kind()) {
            (_, Kind::Null) => {}
            (Shape::Struct, Kind::Mapping) => self.mapping(at, field),
            (Shape::List, Kind::List) => {
                if let Some(element) = &field.element {
                    at.items().for_each(|item| self.value(&item, element, key));
                }
            }
            (Shape::Map, Kind::Mapping) => {
                if let Some(element) = &field.element {
                    for (_, value) in at.entries() {
                        self.value(&value, element, key);
                    }
                }
            }
            (Shape::Free, kind) => self.free(at, field, key, kind),
            (shape, Kind::Scalar) if !matches!(shape, Shape::Struct | Shape::List | Shape::Map) => {
                let value = at.node().as_scalar().unwrap_or(&Value::Null);
                if self.trips_on_alias(at, field) {
                    self.sink
                        .refused("alias", at, "Talos 1.12 and 1.13 cannot read an alias here")
                        .hint("write out what it stands for");
                    return;
                }
                // Since Talos 1.12, the number 0 is a duration too.
                let strict = field.of == "int64(Duration)" && !self.context.at_least(12);
                match scalar::check(value, field) {
                    Ok(()) if strict && value.is_number() => {
                        self.sink
                            .refused("bad-value", at, "is not a duration such as `10s`");
                    }
                    Ok(()) => lint::field(at, field, key, self.sink),
                    Err(message) => {
                        self.sink.refused("bad-value", at, message);
                    }
                }
            }
            (shape, kind) => self.wrong(at, expected(shape), kind),
        }
    }

    /// Returns whether a place is an alias of what Talos 1.12 and 1.13 can read where it is written out only.
    fn trips_on_alias(&self, at: &At<'_>, field: &Field) -> bool {
        let own_syntax = match field.of {
            "text(PortRange)" | "text(SizeMatch)" => false,
            of => of.starts_with("text(") || of == "bytes(HardwareAddr)",
        };
        let context = self.context;
        at.node().is_alias() && own_syntax && context.at_least(12) && !context.at_least(14)
    }

    /// Refuses a `<<`, which Talos takes where anything may stand and nowhere else.
    fn merge(&mut self, at: &At<'_>) {
        self.sink
            .refused("merge-key", at, "Talos does not take `<<` here")
            .hint("write out what it stands for");
    }

    /// Checks what has no known fields below it.
    fn free(&mut self, at: &At<'_>, field: &'static Field, key: &str, kind: Kind) {
        match key {
            "nodeID" if kind == Kind::Mapping => {
                for (name, value) in at.entries() {
                    self.unknown(&value, name, field);
                }
            }
            "extraArgs" => match kind {
                Kind::List => {
                    for item in at.items() {
                        let kind = item.node().kind();
                        if matches!(kind, Kind::Mapping | Kind::List) {
                            self.wrong(&item, "text", kind);
                        }
                    }
                }
                Kind::Mapping => self.wrong(at, "text or a list of texts", kind),
                Kind::Scalar | Kind::Null => {}
            },
            _ if field.of == "struct" && kind != Kind::Mapping => self.wrong(at, "a mapping", kind),
            _ => {}
        }
    }

    fn mapping(&mut self, at: &At<'_>, field: &'static Field) {
        let top = at.is_top() && !at.document().is_main();
        for (key, value) in at.entries() {
            match field.fields.get(key) {
                Some(field) => self.value(&value, field, key),
                None if top && matches!(key, "kind" | "apiVersion") => {}
                None => self.unknown(&value, key, field),
            }
        }
    }

    fn unknown(&mut self, at: &At<'_>, key: &str, among: &'static Field) {
        if self.sink.is_full() {
            return;
        }
        if key == "$patch" {
            self.sink
                .refused("patch-left", at, "`$patch` has a meaning in a patch only")
                .hint("apply the patch with `ichor machineconfig patch`");
            return;
        }
        let schema = self.context.schema;
        if !schema.is_known() {
            let message = format!(
                "Talos {} has no field `{key}` here; whether {} has it is not known here",
                schema.table_version(),
                self.context.version()
            );
            self.sink.warning("unknown-field", at, message);
            return;
        }
        let message = format!("Talos {} has no field `{key}` here", self.context.version());
        let steps = at.steps();
        let keys: Vec<&str> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Key(key) => Some(key.as_str()),
                Step::Index(_) => None,
            })
            .collect();
        let finding = self.sink.refused("unknown-field", at, message);
        if let Some(version) = schema.version_with(at.document().kind, &keys) {
            finding.hint(format!("Talos {version} has it"));
        } else if let Some(near) = nearest(key, among.fields.keys().copied()) {
            finding.hint(format!("did you mean `{near}`?"));
        }
    }

    fn wrong(&mut self, at: &At<'_>, expected: &str, found: Kind) {
        let found = match found {
            Kind::Null => "nothing",
            Kind::Scalar => "a single value",
            Kind::Mapping => "a mapping",
            Kind::List => "a list",
        };
        let message = format!("expected {expected}, found {found}");
        self.sink.refused("wrong-type", at, message);
    }
}

fn expected(shape: Shape) -> &'static str {
    match shape {
        Shape::Bool => "true or false",
        Shape::Number => "a whole number",
        Shape::Text | Shape::Either => "text",
        Shape::Url => "a URL",
        Shape::Struct | Shape::Map => "a mapping",
        Shape::List => "a list",
        Shape::Free => "any value",
    }
}

/// Returns the name that is at most two letters away from a mistyped one.
fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .filter(|name| *name != MAIN)
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, name)| *distance <= 2 && *distance < name.len() / 2 + 1)
        .min()
        .map(|(_, name)| name)
}

/// Counts the letters that have to change, whatever their case.
fn distance(left: &str, right: &str) -> usize {
    if left.len().abs_diff(right.len()) > 2 {
        return usize::MAX;
    }
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, one) in left.bytes().enumerate() {
        let mut diagonal = index;
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let change = diagonal + usize::from(!one.eq_ignore_ascii_case(other));
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
