//! The comments of fields that move: those above a field and the one behind it.

use std::collections::BTreeMap;
use std::collections::HashSet;

use serde_json::Value;

use super::drafts::Draft;
use super::work::{Field, Work};
use crate::yaml::{Kind, Step, Stream};

/// Returns the text of a document with the comments that its settings had in the main document.
pub(super) fn carried(
    work: &Work<'_>,
    draft: &Draft,
    value: &Value,
    written: &Stream,
    text: &str,
) -> String {
    let mut carrier = Carrier {
        work,
        written,
        lines: text.lines().map(str::to_owned).collect(),
        above: BTreeMap::new(),
        used: HashSet::new(),
        used_behind: HashSet::new(),
    };
    for (from, to) in &draft.copies {
        let reached = to.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        });
        if let (Some(value), Some(source)) = (reached, field_at(work, from)) {
            carrier.field(&source, value, to);
        }
    }
    carrier.text()
}

struct Carrier<'a, 'w> {
    work: &'a Work<'w>,
    /// The new document without comments.
    written: &'a Stream,
    lines: Vec<String>,
    /// The comments that go above lines.
    above: BTreeMap<usize, Vec<String>>,
    /// The lines of the main document of which the comments above have gone.
    used: HashSet<usize>,
    /// The lines of the main document of which the comment behind has gone.
    used_behind: HashSet<usize>,
}

impl Carrier<'_, '_> {
    /// Carries the comments of a field over, and of what is below it where it was copied as it is.
    fn field(&mut self, source: &Field<'_>, value: &Value, to: &[Step]) {
        let from = self.work.line(&source.path) as usize - 1;
        let Some(line) = self.written.line(0, to).map(|line| line as usize - 1) else {
            return;
        };
        if self.begins(from, source) {
            self.line(from, line, to.is_empty());
        }
        if !source.node.means(value) {
            return;
        }
        match source.node.kind() {
            Kind::Mapping => {
                for (key, field) in source.entries() {
                    if let Some(value) = value.get(&key) {
                        self.field(&field, value, &[to, &[Step::Key(key)]].concat());
                    }
                }
            }
            Kind::List => {
                for (index, field) in source.items().into_iter().enumerate() {
                    if let Some(value) = value.get(index) {
                        self.field(&field, value, &[to, &[Step::Index(index)]].concat());
                    }
                }
            }
            Kind::Scalar | Kind::Null => {}
        }
    }

    /// Returns whether a line of the main document begins with a field, so that comments there are about it.
    fn begins(&self, line: usize, source: &Field<'_>) -> bool {
        let text = self
            .work
            .lines
            .get(line)
            .map_or("", |text| text.trim_start());
        match source.path.last() {
            Some(Step::Key(key)) => text
                .trim_start_matches(['-', ' ', '"', '\''])
                .starts_with(key.as_str()),
            _ => text.starts_with('-'),
        }
    }

    /// Carries the comments of a line over; those of a whole section all go above its document.
    fn line(&mut self, from: usize, to: usize, section: bool) {
        let (Some(original), Some(own)) = (self.work.lines.get(from), self.lines.get(to)) else {
            return;
        };
        let indent = own[..indentation(own)].to_owned();
        let comment = |text: &&&str| {
            text.trim_start().starts_with('#') && indentation(text) == indentation(original)
        };
        if self.used.insert(from) {
            let before = self.work.lines[..from].iter().rev().take_while(comment);
            let mut before: Vec<String> = before
                .map(|text| format!("{indent}{}", text.trim()))
                .collect();
            before.reverse();
            if !before.is_empty() {
                self.above.entry(to).or_default().extend(before);
            }
        }
        let Some(comment) = behind(original) else {
            return;
        };
        let fits = section || (behind(own).is_none() && !begins_text(own));
        if !fits || !self.used_behind.insert(from) {
            return;
        }
        match section {
            true => self.above.entry(to).or_default().push(comment.to_owned()),
            false => self.lines[to] = format!("{own} {comment}"),
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (number, line) in self.lines.iter().enumerate() {
            for line in self.above.get(&number).into_iter().flatten().chain([line]) {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

fn field_at<'a>(work: &Work<'a>, path: &[Step]) -> Option<Field<'a>> {
    let node = path
        .iter()
        .try_fold(work.root.node, |node, step| match step {
            Step::Key(key) => node.get(key),
            Step::Index(index) => node.item(*index),
        })?;
    let path = path.to_vec();
    Some(Field { path, node })
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the comment at the end of a line.
fn behind(line: &str) -> Option<&str> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if c == '#' && before.is_whitespace() => return Some(&line[at..]),
            None if matches!(c, '"' | '\'') && matches!(before, ' ' | '[' | '{' | ',' | ':') => {
                quote = Some(c);
            }
            None => {}
        }
        before = c;
    }
    None
}

/// Returns whether a text of several lines begins on a line, so that no comment can stand behind it.
fn begins_text(line: &str) -> bool {
    line.trim_end().ends_with(['|', '>', '-', '+'])
}
