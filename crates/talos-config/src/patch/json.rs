//! JSON Patch (RFC 6902) on the lossless tree, with the two liberties the official tool takes: negative list positions,
//! and `replace` of a key that is not there.

use serde_json::{Map, Value};

use super::strategic::main_document;
use crate::Error;
use crate::yaml::{Kind, Node, Stream};

/// One operation.
#[derive(Clone)]
pub(super) struct Operation {
    /// Its position in the patch, counted from 1.
    number: usize,
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

/// Reads the operations of a patch.
pub(super) fn parse(items: Vec<Value>) -> Result<Vec<Operation>, Error> {
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| operation(index + 1, item))
        .collect()
}

/// Applies the operations to the main document; none of them is seen if one fails.
pub(super) fn apply(stream: &mut Stream, operations: &[Operation]) -> Result<(), Error> {
    let index = match main_document(stream) {
        Some(index) => index,
        None => {
            let content = stream
                .roots()
                .enumerate()
                .filter(|(_, root)| !root.is_null());
            let indexes: Vec<usize> = content.map(|(index, _)| index).collect();
            match indexes.as_slice() {
                [index] => *index,
                _ => {
                    return Err(Error::NoMainDocument {
                        count: indexes.len(),
                    });
                }
            }
        }
    };
    if let Some(root) = stream.root_mut(index) {
        for operation in operations {
            operation.apply(root)?;
        }
    }
    Ok(())
}

fn operation(number: usize, item: Value) -> Result<Operation, Error> {
    let invalid = |reason: String| Error::Operation { number, reason };
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
    fn apply(&self, root: &mut Node) -> Result<(), Error> {
        match &self.action {
            Action::Add(value) => self.add(root, value.clone(), "add"),
            Action::Replace(value) => self.replace(root, value),
            Action::Remove => self.remove(root, &self.path, "remove"),
            Action::Test(value) => self.test(root, value),
            Action::Copy(from) => {
                let value = self.find(root, from, "copy")?.value();
                self.add(root, value, "copy")
            }
            Action::Move(from) => {
                let value = self.find(root, from, "move")?.value();
                if self.path.parts.starts_with(&from.parts)
                    && self.path.parts.len() > from.parts.len()
                {
                    return Err(self.missing("move", &self.path));
                }
                self.remove(root, from, "move")?;
                self.add(root, value, "move")
            }
        }
    }

    fn add(&self, root: &mut Node, value: Value, op: &'static str) -> Result<(), Error> {
        let Some((last, parents)) = self.path.parts.split_last() else {
            root.assign(value);
            return Ok(());
        };
        let missing = || self.missing(op, &self.path);
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

    fn replace(&self, root: &mut Node, value: &Value) -> Result<(), Error> {
        let Some((last, parents)) = self.path.parts.split_last() else {
            root.assign(value.clone());
            return Ok(());
        };
        let missing = || self.missing("replace", &self.path);
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

    fn remove(&self, root: &mut Node, path: &Pointer, op: &'static str) -> Result<(), Error> {
        let missing = || self.missing(op, path);
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

    fn test(&self, root: &Node, value: &Value) -> Result<(), Error> {
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
                path: self.path.text.clone(),
            }),
            (false, None) => Err(self.missing("test", &self.path)),
        }
    }

    fn find<'a>(
        &self,
        root: &'a Node,
        path: &Pointer,
        op: &'static str,
    ) -> Result<&'a Node, Error> {
        walk(root, &path.parts).ok_or_else(|| self.missing(op, path))
    }

    fn missing(&self, op: &'static str, path: &Pointer) -> Error {
        Error::MissingPath {
            number: self.number,
            op,
            path: path.text.clone(),
        }
    }
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
