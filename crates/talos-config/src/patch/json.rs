//! JSON Patch (RFC 6902) on the lossless tree, with the two liberties the official tool takes: negative list positions,
//! and `replace` of a key that is not there.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Settings;
use super::decode;
use super::documents::{Identity, known, main_document};
use super::walk::append;
use crate::yaml::{Kind, Node, Step, Stream};
use crate::{Error, Place, Schema};

/// One operation.
#[derive(Clone)]
pub(super) struct Operation {
    /// Its position in the patch, counted from 1.
    number: usize,
    /// The line on which it stands.
    line: Option<u64>,
    path: Pointer,
    action: Action,
}

#[derive(Clone)]
enum Action {
    Add(Value),
    Remove,
    Replace(Value),
    Move(Pointer),
    Copy(Pointer),
    Test(Value),
}

/// A JSON pointer: its text and its unescaped parts.
#[derive(Clone)]
struct Pointer {
    text: String,
    parts: Vec<String>,
}

/// Reads the operations of a patch; what is wrong with them is reported together.
pub(super) fn parse(
    stream: &Stream,
    document: usize,
    root: &Node,
) -> Result<Vec<Operation>, Error> {
    let mut operations = Vec::with_capacity(root.len());
    let mut problems = Vec::new();
    for (index, item) in root.items().enumerate() {
        let line = stream.line(document, &[Step::from(index)]);
        match operation(index + 1, line, item.value()) {
            Ok(operation) => operations.push(operation),
            Err(problem) => append(&mut problems, [problem]),
        }
    }
    match problems.is_empty() {
        true => Ok(operations),
        false => Err(super::together(problems)),
    }
}

/// Applies the operations to a document; none of them is seen if one fails.
///
/// Those after one that failed are tried all the same, unless they touch what it was to change.
/// They may write what Talos does not decode, as they may for the official tool, which is then a warning or an error.
pub(super) fn apply(
    stream: &mut Stream,
    operations: &[Operation],
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<(), Vec<Error>> {
    let alone = |problem| vec![problem];
    let index = target(stream, settings).map_err(alone)?;
    let document = stream
        .root(index)
        .and_then(|root| known(stream, root))
        .map_or_else(String::new, |identity| identity.label());
    let before = decode::faults(stream, index, settings, &[]);
    let mut appended = Vec::with_capacity(operations.len());
    if let Some(root) = stream.root_mut(index) {
        let names = names(root);
        let mut at_fault = None;
        let mut failed = Failed::default();
        for operation in operations {
            appended.push(operation.appends_at(root));
            if failed.concerns(operation) {
                failed.pass_over(root, operation);
                continue;
            }
            if let Err(problem) = operation.apply(root, &document, settings.compat) {
                failed.add(root, operation, problem);
                continue;
            }
            if let Some(reason) = misnamed(root, &names) {
                at_fault = at_fault.or(Some((operation, reason)));
            } else {
                at_fault = None;
            }
        }
        failed.finish()?;
        // The official tool writes that too.
        if let Some((operation, reason)) = at_fault.filter(|_| !settings.compat) {
            return Err(vec![Error::Operation {
                number: operation.number,
                reason: reason.to_owned(),
                line: operation.line,
            }]);
        }
    }
    let after = decode::faults(stream, index, settings, &[]);
    let added = decode::added(&before, &after);
    if added.is_empty() {
        return Ok(());
    }
    // Lines would have told faults apart that are the same.
    let operations = operations.iter().zip(appended);
    let operations: Vec<Operation> = operations.map(|(each, at)| each.at(at)).collect();
    let mut faults: Vec<_> = decode::faults(stream, index, settings, &operations)
        .into_iter()
        .map(Some)
        .collect();
    let added = added
        .into_iter()
        .filter_map(|at| faults.get_mut(at)?.take());
    decode::report(added.collect(), settings.strict, warnings)
}

/// Returns the line of the last operation that wrote a place or what holds it.
///
/// Positions in lists may have changed since, so that another position of the same list is better than nothing.
pub(super) fn line_of(operations: &[Operation], path: &[Step]) -> Option<u64> {
    let writes = |operation: &&Operation, is_same: fn(&str, usize) -> bool| {
        let parts = operation.path.parts.iter();
        !matches!(operation.action, Action::Test(_))
            && parts.len() <= path.len()
            && parts.zip(path).all(|(part, step)| match step {
                Step::Key(key) => part == key,
                Step::Index(index) => is_same(part, *index),
            })
    };
    let exactly = |part: &str, index: usize| part.parse() == Ok(index);
    let nearly = |part: &str, _| part.parse::<i64>().is_ok();
    let last = |is_same| operations.iter().rev().find(|each| writes(each, is_same));
    last(exactly).or_else(|| last(nearly))?.line
}

/// The operations that failed, and what cannot be told of others after them.
#[derive(Default)]
struct Failed<'a> {
    problems: Vec<Error>,
    not_judged: Vec<usize>,
    /// What they were to change.
    places: HashSet<&'a [String]>,
    /// All that holds one of these places.
    above: HashSet<&'a [String]>,
}

impl<'a> Failed<'a> {
    /// Returns whether an operation touches what one that failed was to change.
    fn concerns(&self, operation: &Operation) -> bool {
        let touches = |parts: &[String]| {
            self.above.contains(parts)
                || (0..=parts.len()).any(|length| self.places.contains(&parts[..length]))
        };
        !self.places.is_empty()
            && (touches(&operation.path.parts)
                || operation.from().is_some_and(|from| touches(&from.parts)))
    }

    fn add(&mut self, root: &Node, operation: &'a Operation, problem: Error) {
        append(&mut self.problems, [problem]);
        self.mark(root, operation);
    }

    fn pass_over(&mut self, root: &Node, operation: &'a Operation) {
        self.not_judged.push(operation.number);
        self.mark(root, operation);
    }

    /// Keeps what an operation was to change.
    fn mark(&mut self, root: &Node, operation: &'a Operation) {
        let from = match &operation.action {
            Action::Test(_) => return,
            Action::Move(from) => Some(from),
            _ => None,
        };
        for pointer in std::iter::once(&operation.path).chain(from) {
            let mut place = pointer.parts.as_slice();
            // The elements behind it would have moved too.
            if let Some((_, parents)) = place.split_last()
                && parent(root, pointer).is_some_and(|parent| parent.kind() == Kind::List)
            {
                place = parents;
            }
            self.places.insert(place);
            self.above
                .extend((0..place.len()).map(|length| &place[..length]));
        }
    }

    fn finish(self) -> Result<(), Vec<Error>> {
        let mut problems = self.problems;
        if problems.is_empty() {
            return Ok(());
        }
        if !self.not_judged.is_empty() {
            problems.push(Error::NotJudged {
                operations: self.not_judged,
            });
        }
        Err(problems)
    }
}

/// What tells which document one is.
const NAMES: [&str; 2] = ["apiVersion", "kind"];

fn names(root: &Node) -> [Option<Value>; 2] {
    NAMES.map(|key| root.get(key).map(Node::value))
}

/// Says why a document is not the one any more that it was.
fn misnamed(root: &Node, before: &[Option<Value>; 2]) -> Option<&'static str> {
    if !is_mapping(root) {
        return Some("the document would be no mapping any more");
    }
    (names(root) != *before)
        .then_some("`apiVersion` and `kind` tell what the document is, and cannot be changed")
}

/// Returns what the document that is changed is known by.
pub(super) fn changed(stream: &Stream, settings: &Settings) -> Option<Identity> {
    let index = target(stream, settings).ok()?;
    let root = stream.root(index)?;
    Some(known(stream, root).unwrap_or_else(Identity::main))
}

/// Returns the Talos version whose installer the operations write.
pub(super) fn installed(operations: &[Operation]) -> Option<&str> {
    const IMAGE: [&str; 3] = ["machine", "install", "image"];
    operations.iter().rev().find_map(|operation| {
        let (Action::Add(value) | Action::Replace(value)) = &operation.action else {
            return None;
        };
        let below = IMAGE.get(operation.path.parts.len()..)?;
        let is_above = operation
            .path
            .parts
            .iter()
            .eq(&IMAGE[..IMAGE.len() - below.len()]);
        let value = below
            .iter()
            .try_fold(value, |value, key| value.get(key))
            .filter(|_| is_above)?;
        Schema::tag_of(value.as_str()?)
    })
}

/// Returns the position of the document that is changed.
fn target(stream: &Stream, settings: &Settings) -> Result<usize, Error> {
    let content = stream.roots().enumerate();
    let content: Vec<(usize, &Node)> = content.filter(|(_, root)| !root.is_null()).collect();
    if let Some(wanted) = &settings.document {
        return chosen(stream, &content, wanted);
    }
    match content.as_slice() {
        [(index, _)] => Ok(*index),
        _ if settings.compat => Err(Error::SeveralDocuments {
            count: content.len(),
        }),
        _ => main_document(stream).ok_or(Error::NoMainDocument {
            count: content.len(),
        }),
    }
}

/// Returns the position of the one document of a kind, or of a kind and name.
fn chosen(stream: &Stream, content: &[(usize, &Node)], wanted: &str) -> Result<usize, Error> {
    let identities = content
        .iter()
        .filter_map(|(index, root)| Some((*index, known(stream, root)?)));
    let identities: Vec<(usize, Identity)> = identities.collect();
    let is_meant = |identity: &Identity| match wanted.split_once('/') {
        Some((kind, name)) => identity.kind == kind && identity.name == name,
        None => identity.kind == wanted || (identity.is_main() && wanted == "main"),
    };
    let mut meant = identities.iter().filter(|(_, identity)| is_meant(identity));
    match (meant.next(), meant.next()) {
        (Some((index, _)), None) => Ok(*index),
        _ => Err(Error::NotChosen {
            wanted: wanted.to_owned(),
            there: identities
                .iter()
                .map(|(_, identity)| identity.full_label())
                .collect(),
        }),
    }
}

fn operation(number: usize, line: Option<u64>, item: Value) -> Result<Operation, Error> {
    let invalid = |reason: String| Error::Operation {
        number,
        reason,
        line,
    };
    let Value::Object(mut fields) = item else {
        return Err(invalid(
            "expected a mapping with `op` and `path`".to_owned(),
        ));
    };
    let op = match fields.get("op") {
        Some(Value::String(op)) => op.clone(),
        _ => return Err(invalid("`op` is missing".to_owned())),
    };
    let path = pointer(&fields, "path").map_err(invalid)?;
    let mut value = || {
        fields
            .shift_remove("value")
            .ok_or_else(|| invalid(format!("`{op}` of `{}` lacks its `value`", path.text)))
    };
    let action = match op.as_str() {
        "add" => Action::Add(value()?),
        "replace" => Action::Replace(value()?),
        "test" => Action::Test(value()?),
        "remove" => Action::Remove,
        "move" => Action::Move(pointer(&fields, "from").map_err(invalid)?),
        "copy" => Action::Copy(pointer(&fields, "from").map_err(invalid)?),
        _ => return Err(invalid(format!("unknown `op` `{op}` for `{}`", path.text))),
    };
    Ok(Operation {
        number,
        line,
        path,
        action,
    })
}

fn pointer(fields: &Map<String, Value>, name: &str) -> Result<Pointer, String> {
    let Some(Value::String(text)) = fields.get(name) else {
        return Err(format!("`{name}` is missing"));
    };
    if !text.is_empty() && !text.starts_with('/') {
        return Err(format!(
            "`{name}` is no JSON pointer: `{text}` does not start with `/`"
        ));
    }
    let escaped = text.split('~').skip(1);
    if escaped
        .into_iter()
        .any(|after| !after.starts_with(['0', '1']))
    {
        return Err(format!(
            "`{name}` is no JSON pointer: in `{text}` a `~` is neither `~0`, which stands for `~`, nor `~1`, for `/`"
        ));
    }
    let parts = text
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    Ok(Pointer {
        text: text.clone(),
        parts,
    })
}

impl Operation {
    /// Returns where the operation takes its value from.
    fn from(&self) -> Option<&Pointer> {
        match &self.action {
            Action::Move(from) | Action::Copy(from) => Some(from),
            _ => None,
        }
    }

    /// Returns the position that an element gets which the operation appends.
    fn appends_at(&self, root: &Node) -> Option<usize> {
        let (last, _) = self.path.parts.split_last()?;
        (last == "-").then(|| parent(root, &self.path).map_or(0, Node::len))
    }

    /// Returns the operation with a position instead of the end of the list.
    fn at(&self, position: Option<usize>) -> Self {
        let mut operation = self.clone();
        if let (Some(position), Some(last)) = (position, operation.path.parts.last_mut()) {
            *last = position.to_string();
        }
        operation
    }

    fn apply(&self, root: &mut Node, document: &str, compat: bool) -> Result<(), Error> {
        match &self.action {
            Action::Add(value) => self.add(root, document, value.clone(), "add"),
            Action::Replace(value) => self.replace(root, document, value),
            Action::Remove => self.remove(root, document, &self.path, "remove"),
            Action::Test(value) => self.test(root, document, value),
            Action::Copy(from) => {
                let found = self.find(root, document, from, "copy");
                let value = match found {
                    // To the official tool a key that is not there holds nothing.
                    Err(_) if compat && parent(root, from).is_some_and(is_mapping) => Value::Null,
                    found => found?.value(),
                };
                self.add(root, document, value, "copy")
            }
            Action::Move(from) => {
                let value = self.find(root, document, from, "move")?.value();
                if self.path.parts.starts_with(&from.parts)
                    && self.path.parts.len() > from.parts.len()
                {
                    return Err(self.missing("move", document, &self.path));
                }
                self.remove(root, document, from, "move")?;
                self.add(root, document, value, "move")
            }
        }
    }

    fn add(
        &self,
        root: &mut Node,
        document: &str,
        value: Value,
        op: &'static str,
    ) -> Result<(), Error> {
        let Some((last, parents)) = self.path.parts.split_last() else {
            root.assign(value);
            return Ok(());
        };
        let missing = || self.missing(op, document, &self.path);
        let parent = walk_mut(root, parents).ok_or_else(missing)?;
        match parent.kind() {
            Kind::Mapping => parent.set(last, value),
            Kind::List if last == "-" => parent.push(value),
            Kind::List => {
                let index = position(last, parent.len() + 1).ok_or_else(missing)?;
                parent.insert(index, value);
            }
            _ => return Err(missing()),
        }
        Ok(())
    }

    fn replace(&self, root: &mut Node, document: &str, value: &Value) -> Result<(), Error> {
        let Some((last, parents)) = self.path.parts.split_last() else {
            root.assign(value.clone());
            return Ok(());
        };
        let missing = || self.missing("replace", document, &self.path);
        let parent = walk_mut(root, parents).ok_or_else(missing)?;
        match parent.kind() {
            Kind::Mapping => parent.set(last, value.clone()),
            Kind::List => {
                let index = position(last, parent.len()).ok_or_else(missing)?;
                parent
                    .item_mut(index)
                    .ok_or_else(missing)?
                    .assign(value.clone());
            }
            _ => return Err(missing()),
        }
        Ok(())
    }

    fn remove(
        &self,
        root: &mut Node,
        document: &str,
        path: &Pointer,
        op: &'static str,
    ) -> Result<(), Error> {
        let missing = || self.missing(op, document, path);
        let (last, parents) = path.parts.split_last().ok_or_else(missing)?;
        let parent = walk_mut(root, parents).ok_or_else(missing)?;
        let removed = match parent.kind() {
            Kind::Mapping => parent.remove(last),
            Kind::List => {
                let index = position(last, parent.len()).ok_or_else(missing)?;
                parent.remove_item(index)
            }
            _ => false,
        };
        if removed { Ok(()) } else { Err(missing()) }
    }

    fn test(&self, root: &Node, document: &str, value: &Value) -> Result<(), Error> {
        let found = walk(root, &self.path.parts);
        let holds = match found {
            Some(node) => node.means(value),
            // Nothing there is as good as null.
            None => {
                value.is_null()
                    && self
                        .path
                        .parts
                        .split_last()
                        .is_some_and(|(_, up)| walk(root, up).is_some())
            }
        };
        match (holds, found) {
            (true, _) => Ok(()),
            (false, Some(_)) => Err(Error::TestFailed {
                number: self.number,
                place: self.place(document, &self.path),
            }),
            (false, None) => Err(self.missing("test", document, &self.path)),
        }
    }

    fn find<'a>(
        &self,
        root: &'a Node,
        document: &str,
        path: &Pointer,
        op: &'static str,
    ) -> Result<&'a Node, Error> {
        walk(root, &path.parts).ok_or_else(|| self.missing(op, document, path))
    }

    fn missing(&self, op: &'static str, document: &str, path: &Pointer) -> Error {
        Error::MissingPath {
            number: self.number,
            op,
            place: self.place(document, path),
        }
    }

    fn place(&self, document: &str, path: &Pointer) -> Place {
        Place {
            document: document.to_owned(),
            path: path.text.clone(),
            line: self.line,
        }
    }
}

/// Returns the node that holds what a pointer leads to.
fn parent<'a>(root: &'a Node, pointer: &Pointer) -> Option<&'a Node> {
    let (_, parents) = pointer.parts.split_last()?;
    walk(root, parents)
}

fn is_mapping(node: &Node) -> bool {
    node.kind() == Kind::Mapping
}

fn walk<'a>(root: &'a Node, parts: &[String]) -> Option<&'a Node> {
    parts.iter().try_fold(root, |node, part| match node.kind() {
        Kind::List => node.item(position(part, node.len())?),
        _ => node.get(part),
    })
}

/// Walks to a node that will be changed; nothing is changed on the way if it is not there.
fn walk_mut<'a>(root: &'a mut Node, parts: &[String]) -> Option<&'a mut Node> {
    walk(root, parts)?;
    parts.iter().try_fold(root, |node, part| match node.kind() {
        Kind::List => {
            let index = position(part, node.len())?;
            node.item_mut(index)
        }
        _ => node.get_mut(part),
    })
}

/// Reads a list position below `len`; a negative one counts from the end.
fn position(part: &str, len: usize) -> Option<usize> {
    let (negative, digits) = match part.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, part),
    };
    let canonical = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    let number: usize = canonical.then(|| digits.parse().ok())??;
    let index = if negative {
        len.checked_sub(number)?
    } else {
        number
    };
    (index < len).then_some(index)
}
