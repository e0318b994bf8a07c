//! The fields of each kind of document, read off the table of facts.

use std::sync::OnceLock;

/// A field, or a whole document.
#[derive(Debug, Default)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The type as the table has it.
    pub(crate) of: &'static str,
    pub(crate) shape: Shape,
    /// The column `merge`.
    pub(crate) merge: &'static str,
    /// What is below: fields of a struct, or of the elements of a list or map.
    pub(crate) fields: Vec<Self>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    #[default]
    Scalar,
    Struct,
    /// A mapping of anything.
    Free,
    List,
    Map,
}

impl Field {
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(crate) fn is_named(&self) -> bool {
        self.field("name").is_some()
    }

    /// Returns the type of what a list or map holds.
    pub(crate) fn element(&self) -> &'static str {
        let inner = self
            .of
            .strip_prefix("list<")
            .or_else(|| self.of.strip_prefix("map<string,"));
        inner.map_or("", |inner| inner.strip_suffix('>').unwrap_or(inner))
    }

    /// Returns the name of the field by which elements of the list are paired, if they are.
    pub(crate) fn pairing(&self) -> Option<&'static str> {
        match (self.merge, self.name) {
            ("own", "interfaces") => Some("interface"),
            ("own", "vlans") => Some("vlanId"),
            ("own", "admissionControl") => Some("name"),
            ("own", "configFiles") => Some("mountPath"),
            ("own", "rules") => Some("image"),
            _ => None,
        }
    }

    fn make(&mut self, path: &'static str) -> &mut Self {
        path.split('.').fold(self, |field, part| {
            let name = part.trim_end_matches("[]").trim_end_matches("{}");
            let at = field.fields.iter().position(|field| field.name == name);
            let at = at.unwrap_or_else(|| {
                field.fields.push(Self {
                    name,
                    ..Self::default()
                });
                field.fields.len() - 1
            });
            &mut field.fields[at]
        })
    }

    /// Settles what is a struct in the table and something else in a text.
    fn settle(&mut self) {
        let has = |field: &Self, name| field.field(name).is_some();
        self.shape = match self.of {
            "struct" if has(self, "rawquery") => Shape::Scalar,
            "struct" if has(self, "matchdata") => Shape::Scalar,
            "struct" if self.fields.is_empty() => Shape::Free,
            "struct" => Shape::Struct,
            of if of.starts_with("list<") => Shape::List,
            of if of.starts_with("map<") => Shape::Map,
            _ => Shape::Scalar,
        };
        if self.of == "struct" && self.shape == Shape::Scalar {
            self.of = if has(self, "rawquery") {
                "url"
            } else {
                "match"
            };
            self.fields.clear();
        }
        if self.of == "list<struct>" && has(self, "rawquery") {
            self.of = "list<url>";
            self.fields.clear();
        }
        if self.of == "list<struct>" && has(self, "lo") && has(self, "hi") {
            self.of = "list<ports>";
            self.fields.clear();
        }
        self.fields.iter_mut().for_each(Self::settle);
    }
}

/// The versions that the table has.
pub(crate) const VERSIONS: [&str; 3] = ["1.11.5", "1.13.9", "1.14.1"];

/// Returns the kinds of documents of a version, the main one first.
pub(crate) fn kinds(version: &str) -> &'static [Field] {
    static TABLES: OnceLock<[Vec<Field>; 3]> = OnceLock::new();
    let tables = TABLES.get_or_init(|| VERSIONS.map(read));
    let at = VERSIONS.iter().position(|known| *known == version);
    &tables[at.unwrap_or_else(|| panic!("no table of {version}"))]
}

fn read(version: &str) -> Vec<Field> {
    let rows = include_str!("../../../data/config-fields.tsv");
    let mut kinds: Vec<Field> = Vec::new();
    for row in rows.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [kind, path, _, of, merge, _, versions] = columns[..] else {
            panic!("{row}");
        };
        if versions != "all" && !versions.split(',').any(|named| named == version) {
            continue;
        }
        if kinds.last().is_none_or(|last| last.name != kind) {
            kinds.push(Field {
                name: kind,
                of: "struct",
                ..Field::default()
            });
        }
        let field = kinds.last_mut().unwrap().make(path);
        (field.of, field.merge) = (of, merge);
    }
    kinds.iter_mut().for_each(Field::settle);
    kinds
}
