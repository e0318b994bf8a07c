//! Edits that leave all other lines alone.

mod traps;

use std::path::Path;

use serde_json::{Value, json};
use talos_config::yaml::{Kind, Node, Step, Stream, read_documents};

use super::generator::{Generator, Random, VERSIONS};

/// Printed by a failure; the same seed gives the same texts and edits.
const SEED: u64 = 20_261_130;

#[test]
fn random_edits_of_generated_configurations_touch_only_their_lines() {
    let threads: Vec<_> = VERSIONS
        .into_iter()
        .map(|version| {
            std::thread::spawn(move || {
                let mut generator = Generator::new(SEED, version);
                let mut random = Random::new(SEED);
                let texts = std::iter::repeat_with(|| generator.config());
                let readable = texts.filter(|text| read_documents(text).is_ok());
                readable
                    .take(1_700)
                    .enumerate()
                    .filter_map(|(number, text)| {
                        edit(&text, &mut random, &format!("{version}, {number}"))
                    })
                    .collect::<Vec<String>>()
            })
        })
        .collect();
    let wrong: Vec<String> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    none(&wrong);
}

#[test]
fn random_edits_of_golden_configurations_touch_only_their_lines() {
    let mut texts = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/genconfig"),
        &mut texts,
    );
    assert!(texts.len() >= 10, "{}", texts.len());
    let golden = include_str!("../../../crates/talos-config/tests/data/patch.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    for (name, text) in golden["bases"].as_object().unwrap() {
        texts.push((name.clone(), text.as_str().unwrap().to_owned()));
    }
    let mut random = Random::new(SEED);
    let mut wrong = Vec::new();
    for (name, text) in &texts {
        for number in 0..20 {
            wrong.extend(edit(text, &mut random, &format!("{name}, {number}")));
        }
    }
    none(&wrong);
}

/// Asserts that nothing is wrong, else shows the first of it.
fn none(wrong: &[String]) {
    let shown = wrong.iter().take(5).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    assert!(
        wrong.is_empty(),
        "{} edits, such as\n{}",
        wrong.len(),
        shown.join("\n#####\n")
    );
}

/// Collects the YAML files of a folder and those below.
fn collect(folder: &Path, texts: &mut Vec<(String, String)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, texts);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            texts.push((path.display().to_string(), text));
        }
    }
}

/// One place of a text.
#[derive(Clone, Debug)]
struct Place {
    document: usize,
    path: Vec<Step>,
    line: usize,
    kind: Kind,
    length: usize,
}

/// Lists all places of a text in its order, with their lines only if these are wanted.
fn places(stream: &Stream, lines: bool) -> Vec<Place> {
    fn walk(
        stream: Option<&Stream>,
        document: usize,
        node: &Node,
        path: &mut Vec<Step>,
        all: &mut Vec<Place>,
    ) {
        let line = stream.and_then(|stream| stream.line(document, path));
        let line = line.unwrap_or_default();
        all.push(Place {
            document,
            path: path.clone(),
            line: usize::try_from(line).unwrap(),
            kind: node.kind(),
            length: node.len(),
        });
        for (key, below) in node.entries() {
            path.push(Step::from(key));
            walk(stream, document, below, path, all);
            path.pop();
        }
        for (index, below) in node.items().enumerate() {
            path.push(Step::from(index));
            walk(stream, document, below, path, all);
            path.pop();
        }
    }
    let mut all = Vec::new();
    for (document, root) in stream.roots().enumerate() {
        if !root.is_null() {
            let stream = lines.then_some(stream);
            walk(stream, document, root, &mut Vec::new(), &mut all);
        }
    }
    all
}

/// Edits a text at a random place and, beside it, plain values; then twice more without a look at the lines.
///
/// Returns what is wrong if lines beside the edit were touched.
fn edit(text: &str, random: &mut Random, case: &str) -> Option<String> {
    let mut stream = Stream::parse(text).unwrap();
    let mut plain: Vec<Value> = stream.roots().map(Node::value).collect();
    let edited = change(&mut stream, &mut plain, random, Some(text));
    let after = stream.to_string();
    same(&after, &plain, &format!("{case}: {edited:?}\n{text}"));
    let shared = ["&", "*", "<<"]
        .iter()
        .any(|mark| text.contains(&format!(": {mark}a")) || text.contains("<<: "));
    let wrong = match (&edited, shared) {
        (Some(edited), false) => edited.touches_more(text, &after, case),
        _ => None,
    };
    for _ in 0..2 {
        change(&mut stream, &mut plain, random, None);
    }
    same(
        &stream.to_string(),
        &plain,
        &format!("{case}, later\n{text}"),
    );
    wrong
}

/// What was edited, and what of the text it may touch.
#[derive(Debug)]
struct Edited {
    what: &'static str,
    place: Place,
    /// The lines that may be gone or changed, counted from 1; none if lines may only come.
    lines: Option<(usize, usize)>,
}

impl Edited {
    /// Returns what is wrong if the lines beside the edit are not the same in both texts.
    fn touches_more(&self, before: &str, after: &str, case: &str) -> Option<String> {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (before.split('\n').collect(), after.split('\n').collect());
        let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let back = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let fits = match self.lines {
            Some((start, end)) => {
                let (above, below) = (start - 1, old.len().saturating_sub(end));
                front >= above && back >= below && above + below <= new.len()
            }
            // Every line is there still.
            None => front + back >= old.len() && new.len() >= old.len(),
        };
        (!fits).then(|| {
            format!(
                "{case}: {} {:?} touched more than {:?}; {front} lines are the same above, {back} below\n{before}\n=== became\n{after}",
                self.what, self.place.path, self.lines,
            )
        })
    }
}

/// Makes one random edit on both sides; which lines it may touch is told if the stream is as `text` has it.
fn change(
    stream: &mut Stream,
    plain: &mut [Value],
    random: &mut Random,
    text: Option<&str>,
) -> Option<Edited> {
    let all = places(stream, text.is_some());
    if all.is_empty() {
        return None;
    }
    let lines: Vec<&str> = text.unwrap_or_default().split('\n').collect();
    let at = random.below(all.len());
    let place = all[at].clone();
    let parent = all.iter().position(|other| {
        other.document == place.document
            && other.path.len() + 1 == place.path.len()
            && place.path.starts_with(&other.path)
    });
    // To the line before what comes next, at least its own.
    let span = |at: usize| {
        let of = &all[at];
        let next = all[at + 1..]
            .iter()
            .find(|other| other.document != of.document || !other.path.starts_with(&of.path));
        let end = next.map_or(lines.len(), |next| next.line.saturating_sub(1));
        (of.line, end.max(of.line))
    };
    let value = fresh(random, 2);
    let (what, allowed) = match (random.below(4), place.kind, place.path.last()) {
        (0, _, Some(step)) => {
            let (mut start, mut end) = span(at);
            if parent.is_some_and(|parent| all[parent].length == 1) {
                (start, end) = span(parent?);
            }
            // What comes next moves up to the dash of an item that loses its first key.
            if parent.is_some_and(|parent| all[parent].line == place.line) {
                end += 1;
            }
            // Its comments go with it.
            while start > 1 && lines.get(start - 2).is_some_and(|line| is_remark(line)) {
                start -= 1;
            }
            let node = target(stream, &place, 1);
            let beside = reach(
                &mut plain[place.document],
                &place.path[..place.path.len() - 1],
            );
            match step {
                Step::Key(key) => {
                    assert!(node.remove(key));
                    beside.as_object_mut().unwrap().shift_remove(key);
                }
                Step::Index(index) => {
                    assert!(node.remove_item(*index));
                    beside.as_array_mut().unwrap().remove(*index);
                }
            }
            ("removed", Some((start, end)))
        }
        (1, Kind::Mapping, _) => {
            let key = random.one(&["new.key/with-dots", "fresh", "yes", "a b", "1"]);
            target(stream, &place, 0).set(key, value.clone());
            let known = reach(&mut plain[place.document], &place.path)
                .as_object_mut()
                .unwrap()
                .insert(key.to_owned(), value);
            let appended = place.length > 0 && known.is_none() && !is_flow(&all, at);
            ("set a new key", (!appended).then(|| span(at)))
        }
        (1, Kind::List, _) => {
            target(stream, &place, 0).push(value.clone());
            reach(&mut plain[place.document], &place.path)
                .as_array_mut()
                .unwrap()
                .push(value);
            let appended = place.length > 0 && !is_flow(&all, at);
            ("pushed", (!appended).then(|| span(at)))
        }
        _ => {
            target(stream, &place, 0).assign(value.clone());
            *reach(&mut plain[place.document], &place.path) = value;
            let (mut start, end) = span(at);
            // A document that becomes another kind of value loses its comments.
            while place.path.is_empty()
                && start > 1
                && lines.get(start - 2).is_some_and(|line| is_remark(line))
            {
                start -= 1;
            }
            ("assigned", Some((start, end)))
        }
    };
    Some(Edited {
        what,
        place,
        lines: allowed,
    })
}

fn is_remark(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Returns whether a collection stands in brackets: its first child is on its own line.
fn is_flow(all: &[Place], at: usize) -> bool {
    let of = &all[at];
    let below = all
        .get(at + 1)
        .filter(|below| below.document == of.document && below.path.starts_with(&of.path));
    let first_of_item = matches!(of.path.last(), Some(Step::Index(_)) | None);
    below.is_some_and(|below| below.line == of.line) && (!first_of_item || of.kind == Kind::List)
        || in_brackets(all, at)
}

/// Returns whether everything below a place is on its line, as it is between brackets.
fn in_brackets(all: &[Place], at: usize) -> bool {
    let of = &all[at];
    let mut below = all[at + 1..]
        .iter()
        .take_while(|below| below.document == of.document && below.path.starts_with(&of.path));
    below.all(|below| below.line == of.line)
}

/// Returns the node of a place, or the one so many steps above it.
fn target<'a>(stream: &'a mut Stream, place: &Place, above: usize) -> &'a mut Node {
    let root = stream.root_mut(place.document).unwrap();
    let path = &place.path[..place.path.len() - above];
    path.iter().fold(root, |node, step| match step {
        Step::Key(key) => node.get_mut(key).unwrap(),
        Step::Index(index) => node.item_mut(*index).unwrap(),
    })
}

fn reach<'a>(value: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Index(index) => &mut value[*index],
    })
}

/// Returns a new value, often one that is easily misread.
fn fresh(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 7 }) {
        0 => json!(random.one(&[
            "1_000",
            "0_7",
            "0x_1",
            "2024-01-02",
            "yes",
            "null",
            "",
            "a: b",
            "- x",
            "# y",
            "0644",
            "1.10",
            " pad ",
            "12:30:45",
            "<<",
            "=",
            "!tag",
            "&a",
            "*a",
        ])),
        1 => json!(random.one(&[
            "plain",
            "two\nlines\n",
            "no end\nof line",
            "  indented\nfirst",
            "tab\t",
            "ü€😀",
            "a\n\n"
        ])),
        2 => json!(random.between(0, 1_000_000)),
        3 => json!(random.percent(50)),
        4 => random
            .one(&[
                &Value::Null,
                &json!(1.5),
                &json!(-3),
                &json!([]),
                &json!({}),
            ])
            .clone(),
        5 => (0..random.between(1, 3))
            .map(|_| fresh(random, depth - 1))
            .collect(),
        _ => {
            let keys = ["a", "b.c/d", "off"];
            let count = random.between(1, 3);
            Value::Object(
                keys[..count]
                    .iter()
                    .map(|key| ((*key).to_owned(), fresh(random, depth - 1)))
                    .collect(),
            )
        }
    }
}

/// Asserts that a text reads as these documents.
fn same(text: &str, plain: &[Value], case: &str) {
    let read =
        read_documents(text).unwrap_or_else(|error| panic!("{error}: {case}\n=== became\n{text}"));
    let meant: Vec<&Value> = plain.iter().filter(|value| !value.is_null()).collect();
    let equal = read.len() == meant.len()
        && read
            .iter()
            .zip(&meant)
            .all(|(read, meant)| Node::from((*read).clone()).means(meant));
    assert!(equal, "{case}\n=== became\n{text}");
}
