//! Property tests of the lossless tree.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Texts that people write: several styles of the same things.
fn texts() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("a"),
        Just("\"q\""),
        Just("'s'"),
        Just("1"),
        Just("0o644"),
        Just("yes"),
        Just("~"),
        Just("[]"),
        Just("{}"),
        Just("[a, b , c]"),
        Just("{x: 1, \"y.z/w\": ''}"),
        Just("v1.34.0 # c"),
        Just("[\n     p,\n     q, # c\n  ]"),
        Just("&anchor v"),
        Just("http://h:1/p"),
        Just("|\n      line 1\n\n      line 2\n"),
        Just(">-\n      fold\n      ed"),
    ];
    let key = prop_oneof![
        Just("k"),
        Just("a.b/c"),
        Just("\"x y\""),
        Just("on"),
        Just("image")
    ];
    let comment = prop_oneof![3 => Just(""), 1 => Just("# c\n"), 1 => Just("\n# d\n\n"), 1 => Just("  # e\n")];
    let line = (comment, key, scalar, 0usize..4);
    prop::collection::vec(line, 1..8).prop_map(|lines| {
        let mut out = String::new();
        for (index, (comment, key, scalar, shape)) in lines.into_iter().enumerate() {
            let key = key.trim_matches('"');
            out.push_str(comment);
            match shape {
                0 => out.push_str(&format!("\"{key}{index}\": {scalar}\n")),
                1 => out.push_str(&format!(
                    "{key}{index}:\n  # in\n  n: {scalar}\n  m:   1   # one\n"
                )),
                2 => out.push_str(&format!(
                    "{key}{index}: # l\n- {scalar}\n\n- b: {scalar}\n  c: 2\n-  - d\n"
                )),
                _ => out.push_str(&format!(
                    "{key}{index}:\n    - {scalar}\n    -\n      e: 1\n"
                )),
            }
        }
        out.replace("&anchor", "&anchor_").replace("\n\n\n", "\n\n")
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9_:#.,'\"{}\\[\\]~!&*% \n-]{0,12}".prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z./ ~0-9]{1,5}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// One edit, by positions that are taken modulo what is there.
#[derive(Clone, Debug)]
enum Edit {
    Set(Vec<usize>, usize, Value),
    Add(Vec<usize>, String, Value),
    Remove(Vec<usize>, usize),
    Insert(Vec<usize>, usize, Value),
    Assign(Vec<usize>, Value),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let path = || prop::collection::vec(0usize..8, 0..3);
    let edit = prop_oneof![
        (path(), 0usize..8, values()).prop_map(|(p, k, v)| Edit::Set(p, k, v)),
        (path(), "[a-z.]{1,4}", values()).prop_map(|(p, k, v)| Edit::Add(p, k, v)),
        (path(), 0usize..8).prop_map(|(p, k)| Edit::Remove(p, k)),
        (path(), 0usize..8, values()).prop_map(|(p, k, v)| Edit::Insert(p, k, v)),
        (path(), values()).prop_map(|(p, v)| Edit::Assign(p, v)),
    ];
    prop::collection::vec(edit, 1..6)
}

/// Walks to a node and to the same place of a plain value.
fn walk<'a>(
    mut node: &'a mut Node,
    mut value: &'a mut Value,
    path: &[usize],
) -> (&'a mut Node, &'a mut Value) {
    for step in path {
        let len = node.len();
        if len == 0 {
            break;
        }
        let at = step % len;
        match value {
            Value::Object(map) => {
                let key = map.keys().nth(at).unwrap().clone();
                node = node.get_mut(&key).unwrap();
                value = map.get_mut(&key).unwrap();
            }
            Value::Array(items) => {
                node = node.item_mut(at).unwrap();
                value = &mut items[at];
            }
            _ => break,
        }
    }
    (node, value)
}

fn apply(root: &mut Node, plain: &mut Value, edit: Edit) {
    match edit {
        Edit::Set(path, key, new) => {
            let (node, value) = walk(root, plain, &path);
            if let Value::Object(map) = value
                && let Some(key) = map.keys().nth(key % map.len().max(1)).cloned()
            {
                node.set(&key, new.clone());
                map.insert(key, new);
            }
        }
        Edit::Add(path, key, new) => {
            let (node, value) = walk(root, plain, &path);
            if let Value::Object(map) = value {
                node.set(&key, new.clone());
                map.insert(key, new);
            }
        }
        Edit::Remove(path, key) => {
            let (node, value) = walk(root, plain, &path);
            match value {
                Value::Object(map) if !map.is_empty() => {
                    let key = map.keys().nth(key % map.len()).unwrap().clone();
                    assert!(node.remove(&key));
                    map.shift_remove(&key);
                }
                Value::Array(items) if !items.is_empty() => {
                    let at = key % items.len();
                    assert!(node.remove_item(at));
                    items.remove(at);
                }
                _ => {}
            }
        }
        Edit::Insert(path, at, new) => {
            let (node, value) = walk(root, plain, &path);
            if let Value::Array(items) = value {
                let at = at % (items.len() + 1);
                node.insert(at, new.clone());
                items.insert(at, new);
            }
        }
        Edit::Assign(path, new) => {
            let (node, value) = walk(root, plain, &path);
            node.assign(new.clone());
            *value = new;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn printing_gives_back_what_was_parsed(text in texts()) {
        if let Ok(stream) = Stream::parse(&text) {
            prop_assert_eq!(stream.to_string(), text);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-c:#\\-\\[\\]{}&*|>\"' \n,?!<~0-9]{0,40}") {
        if let Ok(stream) = Stream::parse(&text) {
            prop_assert_eq!(stream.to_string(), text.clone());
            let values: Vec<Value> = stream.roots().map(Node::value).filter(|v| !v.is_null()).collect();
            prop_assert_eq!(values, read_documents(&text).unwrap());
        }
    }

    #[test]
    fn edits_read_back_as_the_same_edits_of_plain_values(text in texts(), edits in edits()) {
        if let Ok(mut stream) = Stream::parse(&text) {
            let mut plain = read(&text).unwrap();
            for edit in edits {
                apply(stream.root_mut(0).unwrap(), &mut plain, edit);
                prop_assert_eq!(&stream.root(0).unwrap().value(), &plain);
            }
            let printed = stream.to_string();
            let again = read(&printed);
            prop_assert!(again.is_ok(), "{:?}\n{}", again, printed);
            prop_assert_eq!(again.unwrap(), plain, "{}", printed);
        }
    }

    #[test]
    fn values_read_back_as_written(value in values()) {
        prop_assert_eq!(read(&write(&value)).unwrap(), value);
    }

    #[test]
    fn a_new_value_of_one_key_leaves_every_other_line(text in texts(), at in 0usize..8, value in values()) {
        if let Ok(mut stream) = Stream::parse(&text) {
            let root = stream.root_mut(0).unwrap();
            let keys: Vec<String> = root.entries().map(|(key, _)| key.to_owned()).collect();
            if keys.len() > 1 {
                root.set(&keys[at % keys.len()], value);
                let printed = stream.to_string();
                let whole = Stream::parse(&text).unwrap();
                for (key, _) in whole.root(0).unwrap().entries().filter(|(key, _)| **key != keys[at % keys.len()]) {
                    let line = text.lines().find(|line| line.trim_matches('"').starts_with(key)).unwrap();
                    prop_assert!(printed.contains(line), "{line}\n{printed}");
                }
            }
        }
    }
}
