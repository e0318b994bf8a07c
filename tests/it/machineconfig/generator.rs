//! Random machine configurations and patches that Talos nearly always reads, the same ones for the same seed.
//!
//! What exists is read off `tests/data/config-fields.tsv`: every kind of document, every field, every list with a merge
//! of its own. Nothing of the library's own table is used, so that a mistake there cannot hide here.

mod changes;
mod patches;
mod random;
mod table;
mod tree;
mod values;

use std::collections::HashSet;

pub(crate) use random::Random;
pub(crate) use table::VERSIONS;
use table::{Field, Shape};
use tree::{Style, Tree};

/// A source of configurations, patches and pairs of configurations for one Talos version.
pub(crate) struct Generator {
    random: Random,
    kinds: &'static [Field],
}

/// A document and the table of its kind.
#[derive(Clone)]
struct Document {
    fields: &'static Field,
    tree: Tree,
}

/// What one document is made with.
struct Making<'a> {
    random: &'a mut Random,
    kind: &'static str,
    path: Vec<&'static str>,
    /// How many more scalars the document may get.
    budget: usize,
    /// Anchors so far: their names, and the type of what they stand at.
    anchors: Vec<(String, &'static str)>,
    anchors_wanted: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64, version: &str) -> Self {
        let minor = version
            .bytes()
            .fold(0u64, |sum, byte| sum * 31 + u64::from(byte));
        Self {
            random: Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ minor),
            kinds: table::kinds(version),
        }
    }

    /// Returns a configuration.
    pub(crate) fn config(&mut self) -> String {
        let documents = self.documents();
        let text = self.write(&documents);
        match self.random.percent(2) {
            true => self.spoil(&text),
            false => text,
        }
    }

    /// Returns a strategic merge patch or a JSON Patch that suits a configuration.
    pub(crate) fn patch_for(&mut self, config: &str) -> String {
        patches::patch(&mut self.random, self.kinds, config)
    }

    /// Returns two configurations, the second mostly a changed copy of the first.
    pub(crate) fn pair(&mut self) -> (String, String) {
        let mut documents = self.documents();
        let first = self.write(&documents);
        if self.random.percent(4) {
            documents = self.documents();
        }
        for _ in 0..self.random.between(0, 6) {
            self.change(&mut documents);
        }
        if documents.is_empty() {
            documents = self.documents();
        }
        let second = self.write(&documents);
        (first, second)
    }

    fn write(&mut self, documents: &[Document]) -> String {
        let style = Style::any(&mut self.random);
        let trees: Vec<Tree> = documents
            .iter()
            .map(|document| document.tree.clone())
            .collect();
        style.write(&mut self.random, &trees)
    }

    fn documents(&mut self) -> Vec<Document> {
        let mut documents = Vec::new();
        if self.random.percent(88) {
            documents.push(self.document(&self.kinds[0], &mut HashSet::new()));
        }
        let mut names = HashSet::new();
        let most = if documents.is_empty() { 5 } else { 4 };
        for _ in 0..self.random.between(usize::from(documents.is_empty()), most) {
            let kind = &self.kinds[self.random.between(1, self.kinds.len() - 1)];
            let again = documents
                .iter()
                .any(|other: &Document| other.fields.name == kind.name);
            if !again || (kind.is_named() && self.random.percent(50)) {
                documents.push(self.document(kind, &mut names));
            }
        }
        documents
    }

    /// Returns a document of a kind whose name is not one of `names`.
    fn document(&mut self, fields: &'static Field, names: &mut HashSet<String>) -> Document {
        let budget = if fields.name == MAIN {
            self.random.between(10, 130)
        } else {
            25
        };
        let mut making = Making {
            anchors_wanted: self.random.percent(10),
            random: &mut self.random,
            kind: fields.name,
            path: Vec::new(),
            budget,
            anchors: Vec::new(),
        };
        Document {
            fields,
            tree: making.document(fields, names),
        }
    }

    /// Makes a text one that Talos refuses.
    fn spoil(&mut self, text: &str) -> String {
        match self.random.below(4) {
            0 => format!("{text}---\nkind: NoSuchKind\napiVersion: v1alpha1\n"),
            1 => format!("{text}---\nmachine: {{nonsense: 1}}\n"),
            2 => text.replacen(": ", ": [", 1),
            _ => format!("{text}---\napiVersion: v1alpha1\n"),
        }
    }

    /// Changes one thing of a configuration, or which documents it has.
    fn change(&mut self, documents: &mut Vec<Document>) {
        match self.random.below(12) {
            0 => {
                let kind = &self.kinds[self.random.between(1, self.kinds.len() - 1)];
                let mut names: HashSet<String> =
                    documents.iter().map(|other| other.name()).collect();
                let again = documents.iter().any(|other| other.fields.name == kind.name);
                if !again || kind.is_named() {
                    let document = self.document(kind, &mut names);
                    documents.push(document);
                }
            }
            1 if documents.len() > 1 => {
                // The main document only now and then: no strategic patch takes it away.
                let at = self.random.below(documents.len());
                if documents[at].fields.name != MAIN || self.random.percent(5) {
                    documents.remove(at);
                }
            }
            2 if documents.len() > 1 => {
                let last = documents.len() - 1;
                let at = self.random.below(last);
                documents.swap(at, last);
            }
            _ => {
                let at = self.random.below(documents.len());
                let Some(document) = documents.get_mut(at) else {
                    return;
                };
                let mut making = Making {
                    random: &mut self.random,
                    kind: document.fields.name,
                    path: Vec::new(),
                    budget: 12,
                    anchors: Vec::new(),
                    anchors_wanted: false,
                };
                making.change(&mut document.tree, document.fields);
            }
        }
    }
}

/// How the table calls the main document.
const MAIN: &str = "v1alpha1";

impl Document {
    fn name(&self) -> String {
        self.tree
            .get("name")
            .and_then(Tree::as_str)
            .unwrap_or_default()
            .to_owned()
    }
}

impl Making<'_> {
    fn document(&mut self, fields: &'static Field, names: &mut HashSet<String>) -> Tree {
        let Tree::Map(mut entries) = self.fields(fields) else {
            return Tree::empty();
        };
        if fields.name == MAIN {
            if entries.iter().all(|(key, _)| key == "version") {
                entries.push((
                    "machine".to_owned(),
                    Tree::Map(vec![("type".to_owned(), Tree::text("worker"))]),
                ));
            }
            return Tree::Map(entries);
        }
        entries.retain(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "name"));
        let mut head = vec![
            ("apiVersion".to_owned(), Tree::text(MAIN)),
            ("kind".to_owned(), Tree::text(fields.name)),
        ];
        if fields.is_named() {
            let name = self.name(fields.name, names);
            head.push(("name".to_owned(), Tree::Text(name)));
        }
        if self.random.percent(10) {
            head.reverse();
        }
        head.append(&mut entries);
        Tree::Map(head)
    }

    /// Returns a name for a document of a kind, none of `names`.
    fn name(&mut self, kind: &str, names: &mut HashSet<String>) -> String {
        let mut number = self.random.below(3);
        loop {
            let name = match kind {
                "HCloudVIPConfig" | "Layer2VIPConfig" | "StaticHostConfig" => {
                    format!("10.0.0.{number}")
                }
                "BlackholeRouteConfig" => format!("10.{number}.0.0/16"),
                "PCIDriverRebindConfig" => format!("0000:04:00.0{number}"),
                "RoutingRuleConfig" => format!("{}", 1000 + number),
                "VolumeConfig" => ["EPHEMERAL", "STATE", "IMAGECACHE"]
                    .get(number)
                    .map_or_else(|| format!("V{number}"), |name| (*name).to_owned()),
                "RegistryMirrorConfig" | "RegistryAuthConfig" | "RegistryTLSConfig" => {
                    format!("registry{number}.local:5000")
                }
                kind if kind.contains("Volume") => format!("volume-{number}"),
                kind if kind.ends_with("LinkConfig") || kind.contains("DHCP") => {
                    format!("eth{number}")
                }
                _ => format!("item{number}"),
            };
            if names.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    /// Returns a mapping with some of the fields of a struct.
    fn fields(&mut self, field: &'static Field) -> Tree {
        let count = field.fields.len();
        let wanted = match self.path.len() {
            0 if self.kind == MAIN => count,
            1 if self.kind == MAIN => self.random.between(3, 10),
            0 => self.random.between(2, 7),
            _ => self.random.between(1, 4),
        };
        let mut chosen = self.random.some(count, wanted);
        if self.random.percent(10) {
            chosen.reverse();
        }
        let mut entries = Vec::new();
        for at in chosen {
            let below = &field.fields[at];
            if self.budget == 0 && !entries.is_empty() {
                break;
            }
            entries.push((below.name.to_owned(), self.field(below)));
        }
        Tree::Map(entries)
    }

    /// Returns a value of a field.
    fn field(&mut self, field: &'static Field) -> Tree {
        self.path.push(field.name);
        let tree = if field.shape != Shape::Scalar && self.random.percent(3) {
            match field.shape {
                Shape::List => Tree::List(Vec::new()),
                _ => Tree::empty(),
            }
        } else if self.random.percent(1) {
            Tree::raw(self.random.one(&["null", "~"]))
        } else {
            self.anchored(field)
        };
        self.path.pop();
        tree
    }

    /// Returns a value, now and then one that has an anchor or that stands for an earlier one of the same type.
    fn anchored(&mut self, field: &'static Field) -> Tree {
        let replaced = matches!(
            field.name,
            "apiVersion" | "kind" | "name" | "interface" | "vlanId" | "mountPath" | "image"
        );
        if !self.anchors_wanted
            || !self.random.percent(40)
            || replaced
            || field.of.contains("struct")
        {
            return self.plain(field);
        }
        let known: Vec<String> = self
            .anchors
            .iter()
            .filter(|(_, of)| *of == field.of)
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(name) = known.last() {
            return match self.plain(field) {
                Tree::Map(mut entries) if !entries.is_empty() && self.random.percent(50) => {
                    entries.insert(0, ("<<".to_owned(), Tree::Alias(name.clone())));
                    Tree::Map(entries)
                }
                _ => Tree::Alias(name.clone()),
            };
        }
        let name = format!("a{}", self.anchors.len());
        let tree = self.plain(field);
        if tree == Tree::empty() || tree == Tree::List(Vec::new()) {
            return tree;
        }
        self.anchors.push((name.clone(), field.of));
        Tree::Anchor(name, Box::new(tree))
    }

    fn plain(&mut self, field: &'static Field) -> Tree {
        self.budget = self.budget.saturating_sub(1);
        match field.shape {
            Shape::Scalar => self.scalar(field.of),
            Shape::Struct => self.fields(field),
            // The key that the node's own identity makes has no fields.
            Shape::Free if field.name == "nodeID" => Tree::empty(),
            Shape::Free => values::object(self.random, 2),
            Shape::List => {
                let count = self.random.between(1, 3);
                Tree::List((0..count).map(|_| self.element(field)).collect())
            }
            Shape::Map => {
                let mut entries: Vec<(String, Tree)> = Vec::new();
                for _ in 0..self.random.between(1, 3) {
                    let key = values::key(self.random, field.name);
                    if entries.iter().all(|(known, _)| known != key) {
                        entries.push((key.to_owned(), self.element(field)));
                    }
                }
                Tree::Map(entries)
            }
        }
    }

    /// Returns an element of a list, or a value of a map.
    fn element(&mut self, field: &'static Field) -> Tree {
        match field.element() {
            "struct" if !field.fields.is_empty() => {
                let Tree::Map(mut entries) = self.fields(field) else {
                    return Tree::empty();
                };
                if let Some(key) = field.pairing()
                    && let Some(below) = field.field(key)
                    && self.random.percent(85)
                {
                    entries.retain(|(known, _)| known != key);
                    let name = self.field(below);
                    entries.insert(0, (key.to_owned(), name));
                }
                Tree::Map(entries)
            }
            // Arguments of a component: a string or several.
            "struct" if field.name == "extraArgs" => match self.random.percent(30) {
                true => Tree::List((0..2).map(|_| self.scalar("string")).collect()),
                false => self.scalar("string"),
            },
            "struct" => values::object(self.random, 2),
            of => self.scalar(of),
        }
    }

    fn scalar(&mut self, of: &str) -> Tree {
        let place = format!("{}.{}", self.kind, self.path.join("."));
        values::scalar(self.random, of, &place)
    }
}
