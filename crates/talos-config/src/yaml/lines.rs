//! On which line of the text something stands.

use super::Stream;
use super::layout::{Document, Form, Quote};
use super::node::{Data, Node};

/// One step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A key of a mapping.
    Key(String),
    /// The position of an item of a list, from 0.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl Stream {
    /// Returns the line, counted from 1, of the last step of a path that stands in the text.
    ///
    /// A path of no steps, or of none that is there, gives the line on which the document starts. What was added since
    /// the text was read stands on no line.
    pub fn line(&self, document: usize, path: &[Step]) -> Option<u64> {
        let document = self.documents.get(document)?;
        let mut node = &document.root;
        let mut at = start(document)?;
        for step in path {
            let Some((offset, below)) = child(node, step) else {
                break;
            };
            at = offset.unwrap_or(at);
            node = below;
        }
        Some(self.source.line(at))
    }

    /// Returns a scalar without quotes as it is written, such as `0644` or `1.10`: that is what a field for text gets,
    /// even if the scalar reads as a number.
    pub(crate) fn written(&self, node: &Node) -> Option<&str> {
        match &node.followed().form {
            Form::Plain(span, Quote::None) => self.source.text.get(span.clone()),
            _ => None,
        }
    }
}

/// Returns where the content of a document starts.
fn start(document: &Document) -> Option<usize> {
    let prefix = document.prefix.as_ref()?.end;
    let first = match &document.root.data {
        Data::Mapping(children) | Data::List(children) => children
            .first()
            .and_then(|child| child.place.as_ref())
            .map(|place| place.name.start),
        _ => None,
    };
    Some(match &document.root.form {
        Form::Block { .. } => first.unwrap_or(prefix),
        _ => prefix,
    })
}

/// Returns the child that a step leads to, and where it stands; a child of something an alias names stands elsewhere.
fn child<'a>(node: &'a Node, step: &Step) -> Option<(Option<usize>, &'a Node)> {
    let own = match (&node.data, step) {
        (Data::Mapping(children), Step::Key(key)) => children
            .position(key)
            .and_then(|position| children.get(position)),
        (Data::List(children), Step::Index(index)) => children.get(*index),
        _ => None,
    };
    if let Some(child) = own {
        let offset = child.place.as_ref().map(|place| place.name.start);
        return Some((offset, &child.value));
    }
    let inherited = match step {
        Step::Key(key) => node.get(key),
        Step::Index(index) => node.item(*index),
    };
    inherited.map(|node| (None, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_its_line() {
        let text = "# head\na: 1\nb:\n  # above\n  c:\n    - x\n    - {d: 1,\n       e: 2}\n---\nkind: K\n";
        let stream = Stream::parse(text).unwrap();
        let line = |document, path: &[Step]| stream.line(document, path);
        assert_eq!(line(0, &[]), Some(2));
        assert_eq!(line(0, &["a".into()]), Some(2));
        assert_eq!(line(0, &["b".into(), "c".into(), 0.into()]), Some(6));
        assert_eq!(line(0, &["b".into(), "c".into(), 1.into()]), Some(7));
        let deep: [Step; 4] = ["b".into(), "c".into(), 1.into(), "e".into()];
        assert_eq!(line(0, &deep), Some(8));
        assert_eq!(line(0, &["b".into(), "missing".into()]), Some(3));
        assert_eq!(line(1, &[]), Some(10));
        assert_eq!(line(2, &[]), None);
    }

    #[test]
    fn a_scalar_without_quotes_is_known_as_it_is_written() {
        let text = "a: 0644 # mode\nb: [1_000, &x 1.10, 'q', *x]\nc: yes\n";
        let stream = Stream::parse(text).unwrap();
        let root = stream.root(0).unwrap();
        let written = |node: Option<&Node>| stream.written(node.unwrap()).map(str::to_owned);
        assert_eq!(written(root.get("a")).as_deref(), Some("0644"));
        assert_eq!(written(root.get("c")).as_deref(), Some("yes"));
        let items: Vec<_> = root
            .get("b")
            .unwrap()
            .items()
            .map(|node| written(Some(node)))
            .collect();
        let want = [Some("1_000"), Some("1.10"), None, Some("1.10")];
        assert_eq!(items, want.map(|text| text.map(str::to_owned)));
    }
}
