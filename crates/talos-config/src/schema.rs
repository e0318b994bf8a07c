//! What the fields of machine configurations are, per Talos version: names, types and how a patch merges into them.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use crate::yaml::Node;

/// The table of fields that a Talos version decodes configurations with.
#[derive(Clone, Copy)]
pub struct Schema {
    table: &'static Table,
    known: bool,
}

impl Schema {
    /// Returns the table for a Talos version such as `v1.13.9` or `1.13`.
    ///
    /// There are tables of 1.11, 1.13 (used for 1.12 too) and 1.14. Any other version, and a text that is no version,
    /// gets the nearest one, and [`Self::is_known`] is false.
    pub fn for_talos(version: &str) -> Self {
        let (minor, known) = match minor(version) {
            Some(minor @ 11..=14) => (minor, true),
            Some(minor) => (minor, false),
            None => (u64::MAX, false),
        };
        let index = match minor {
            ..=11 => 0,
            12 | 13 => 1,
            _ => 2,
        };
        Self {
            table: &tables()[index],
            known,
        }
    }

    /// Returns the table of the newest Talos version that is known.
    pub fn newest() -> Self {
        Self::for_talos("1.14")
    }

    /// Returns whether the table is the one of the version asked for, so that what it lacks does not exist.
    pub fn is_known(self) -> bool {
        self.known
    }

    /// Returns the Talos version the table was read off.
    pub fn table_version(self) -> &'static str {
        self.table.version
    }

    /// Returns whether an optional field of value zero overwrites: since Talos 1.12.
    pub(crate) fn zero_overwrites(self) -> bool {
        self.table.version != VERSIONS[0]
    }

    /// Returns whether a patch may have several documents for one of the configuration: since Talos 1.14.
    pub(crate) fn several_of_one_document(self) -> bool {
        self.table.version == VERSIONS[2]
    }

    /// Returns whether the official tool of the version adds a document that a patch deletes from, though there is none.
    pub(crate) fn adds_missing(self) -> bool {
        self.table.version != VERSIONS[2]
    }

    /// Returns whether what reads as a time is no text, and nothing is no element: since Talos 1.14.
    pub(crate) fn reads_times(self) -> bool {
        self.table.version == VERSIONS[2]
    }

    /// Returns the Talos version that a configuration installs: the tag of its installer's image.
    ///
    /// The image stands in the main document, since Talos 1.14 in one of the kind `UnattendedInstallConfig`. A digest after
    /// the tag, a registry's port and a tag that is no version are not taken for one.
    pub fn installed<'a>(mut roots: impl Iterator<Item = &'a Node>) -> Option<&'a str> {
        roots.find_map(|root| {
            let path: &[&str] = match root.get("kind").and_then(Node::as_str) {
                None => &["machine", "install", "image"],
                Some("UnattendedInstallConfig") => &["installer", "image"],
                Some(_) => return None,
            };
            Self::tag_of(root.at(path)?.as_str()?)
        })
    }

    /// Returns the Talos version that the image of an installer has as its tag.
    pub(crate) fn tag_of(image: &str) -> Option<&str> {
        let image = image.split('@').next()?;
        let (_, tag) = image.rsplit('/').next()?.rsplit_once(':')?;
        minor(tag).map(|_| tag)
    }

    /// Returns the table for the newest of several Talos versions; nothing if there are none.
    pub fn for_newest_of<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let versions = versions.into_iter();
        versions
            .max_by_key(|version| minor(version))
            .map(Self::for_talos)
    }

    /// Returns the fields of a kind of document; the main document is [`MAIN`].
    pub(crate) fn kind(self, kind: &str) -> Option<&'static Field> {
        self.table.kinds.get(kind)
    }

    /// Returns the names of all kinds.
    pub(crate) fn kinds(self) -> impl Iterator<Item = &'static str> {
        self.table.kinds.keys().copied()
    }

    /// Returns the first version that has a kind, or a field of it, if a version other than this one does.
    pub(crate) fn version_with(self, kind: &str, path: &[&str]) -> Option<&'static str> {
        let has = |table: &&Table| table.kinds.get(kind).is_some_and(|field| field.has(path));
        tables().iter().find(has).map(|table| table.version)
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema of {}", self.table.version)
    }
}

/// The name that stands for the kind of the main document, which has none.
pub(crate) const MAIN: &str = "v1alpha1";

/// The versions that tables exist of, oldest first.
const VERSIONS: [&str; 3] = ["1.11.5", "1.13.9", "1.14.1"];

struct Table {
    version: &'static str,
    kinds: HashMap<&'static str, Field>,
}

/// A field, or a whole document.
#[derive(Default)]
pub(crate) struct Field {
    pub(crate) shape: Shape,
    /// The type in the words of the table, such as `uint16` or `text(Prefix)`.
    pub(crate) of: &'static str,
    /// Whether a value that is present counts even if it is zero.
    pub(crate) optional: bool,
    pub(crate) rule: Rule,
    /// The fields below, if this is a struct.
    pub(crate) fields: BTreeMap<&'static str, Self>,
    /// What the list or map holds, if this is one.
    pub(crate) element: Option<Box<Self>>,
    /// Whether the official tool cannot merge a value into another one: it fails.
    pub(crate) unmergeable: bool,
    /// Whether a patch that leaves out this struct, or a field of it, changes a field below in the official tool.
    pub(crate) absent_matters: bool,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    Bool,
    Number,
    Text,
    /// A string or number with a syntax of its own: sizes, durations, modes.
    Either,
    Url,
    Struct,
    /// Anything, merged by what is found.
    #[default]
    Free,
    List,
    Map,
}

/// How a patch merges into a field, where it is not the way of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    #[default]
    Usual,
    /// The value of the patch is taken as a whole.
    Replace,
    /// The value of the patch is taken even where the patch has none.
    Always,
    /// The elements of a list are paired by what they are named by.
    Paired(Pairing),
}

/// What the elements of a list are paired by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// The `interface`, else an equal `deviceSelector`.
    Interface,
    /// A field; the pair is merged.
    Key(&'static str),
    /// A field; the element of the patch replaces the other.
    KeyReplaced(&'static str),
}

impl Field {
    /// Returns whether documents of this kind have a name.
    pub(crate) fn is_named(&self) -> bool {
        self.fields.contains_key("name")
    }

    fn has(&self, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return true;
        };
        match &self.element {
            Some(element) if self.shape == Shape::Map => element.has(rest),
            Some(element) => element.has(path),
            None => self.fields.get(first).is_some_and(|field| field.has(rest)),
        }
    }

    /// Returns the field that a path of the table leads to, made where it is not yet.
    fn make(&mut self, path: &'static str) -> &mut Self {
        path.split('.').fold(self, |field, part| {
            let name = part.trim_end_matches("[]").trim_end_matches("{}");
            let field = field.fields.entry(name).or_default();
            match part.len() > name.len() {
                true => field.element.get_or_insert_default(),
                false => field,
            }
        })
    }

    /// Sets what the columns of a row say.
    fn describe(&mut self, name: &str, nullable: &str, kind: &'static str, merge: &str) {
        self.optional = nullable == "pointer";
        self.shape = shape(kind);
        self.of = match (kind, name) {
            ("bytes", "hardwareAddr" | "duidRaw") => "bytes(HardwareAddr)",
            ("bytes", "key") => "bytes(Key)",
            _ => kind,
        };
        // Values of these types merge since Talos 1.14.
        const ADDRESSES: [&str; 3] = ["text(Addr)", "text(Prefix)", "text(AddrPort)"];
        self.unmergeable = merge.is_empty() && ADDRESSES.contains(&kind);
        let inner = match self.shape {
            Shape::List => kind.strip_prefix("list<"),
            Shape::Map => kind.strip_prefix("map<string,"),
            _ => None,
        };
        if let Some(inner) = inner {
            let element = self.element.get_or_insert_default();
            element.of = inner.trim_end_matches('>');
            element.shape = shape(element.of);
        }
        self.rule = match (merge, name) {
            ("replace", _) => Rule::Replace,
            ("own", _) if self.shape == Shape::Map => Rule::Replace,
            ("own", "interfaces") => Rule::Paired(Pairing::Interface),
            ("own", "vlans") => Rule::Paired(Pairing::Key("vlanId")),
            ("own", "admissionControl") => Rule::Paired(Pairing::Key("name")),
            ("own", "configFiles") => Rule::Paired(Pairing::Key("mountPath")),
            ("own", "rules") => Rule::Paired(Pairing::KeyReplaced("image")),
            ("own", _) if matches!(kind, "text(Expression)" | "text(ByteSize)") => Rule::Always,
            _ => Rule::Usual,
        };
    }

    /// Tells structs apart: those that are written as one word, and those without known fields, which hold anything.
    fn settle(&mut self) {
        if self.shape == Shape::Struct {
            let has = |names: &[&str]| names.iter().all(|name| self.fields.contains_key(name));
            if has(&["scheme", "opaque", "host", "rawquery"]) {
                self.shape = Shape::Url;
                self.fields.clear();
            } else if has(&["lo", "hi"]) || has(&["matchdata"]) {
                // A range of ports, and a disk size with an operator.
                self.of = match has(&["lo"]) {
                    true => "text(PortRange)",
                    false => "text(SizeMatch)",
                };
                self.unmergeable = self.of == "text(SizeMatch)";
                self.shape = Shape::Either;
                self.fields.clear();
            } else if self.fields.is_empty() {
                self.shape = Shape::Free;
            }
        }
        self.fields.values_mut().for_each(Self::settle);
        if let Some(element) = &mut self.element {
            element.settle();
        }
        self.absent_matters = self.fields.values().any(|field| {
            let plain = !field.optional;
            field.rule == Rule::Always
                || (plain && field.shape == Shape::Bool)
                || (plain && field.unmergeable)
                || (plain && field.shape == Shape::Struct && field.absent_matters)
        });
    }
}

fn shape(kind: &str) -> Shape {
    match kind {
        "bool" => Shape::Bool,
        "struct" => Shape::Struct,
        "string" | "bytes" => Shape::Text,
        _ if kind.starts_with("list<") => Shape::List,
        _ if kind.starts_with("map<") => Shape::Map,
        _ if kind.starts_with("string(") => Shape::Text,
        _ if kind.contains('(') => Shape::Either,
        _ if kind.starts_with("int") || kind.starts_with("uint") => Shape::Number,
        _ => Shape::Free,
    }
}

fn tables() -> &'static [Table; 3] {
    static TABLES: OnceLock<[Table; 3]> = OnceLock::new();
    TABLES.get_or_init(|| VERSIONS.map(table))
}

/// Reads the table of one version.
fn table(version: &'static str) -> Table {
    const ROWS: &str = include_str!("../data/fields.tsv");
    let mut kinds: HashMap<&'static str, Field> = HashMap::new();
    for row in ROWS.lines().skip(1) {
        let mut columns = row.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        let (kind, path, nullable, of, merge) = (column(), column(), column(), column(), column());
        let versions = {
            column();
            column()
        };
        if versions != "all" && !versions.split(',').any(|named| named == version) {
            continue;
        }
        let document = kinds.entry(kind).or_default();
        document.shape = Shape::Struct;
        let name = path.rsplit('.').next().unwrap_or(path);
        document.make(path).describe(name, nullable, of, merge);
    }
    kinds.values_mut().for_each(Field::settle);
    Table { version, kinds }
}

/// Returns the minor version of a Talos 1 version.
fn minor(version: &str) -> Option<u64> {
    let mut parts = version
        .trim()
        .trim_start_matches('v')
        .split(['.', '-', '+']);
    let major: u64 = parts.next()?.parse().ok()?;
    let minor: u64 = parts.next()?.parse().ok()?;
    match major {
        0 => Some(0),
        1 => Some(minor),
        _ => Some(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::Stream;

    fn field(version: &str, kind: &str, path: &[&'static str]) -> &'static Field {
        path.iter().fold(
            Schema::for_talos(version).kind(kind).unwrap(),
            |field, name| &field.fields[name],
        )
    }

    #[test]
    fn the_table_follows_the_version() {
        for (version, table, known) in [
            ("v1.11.5", "1.11.5", true),
            ("1.12.3", "1.13.9", true),
            ("v1.13.9", "1.13.9", true),
            ("v1.14.0-rc.1", "1.14.1", true),
            ("v1.15.0", "1.14.1", false),
            ("v1.9.2", "1.11.5", false),
            ("v2.0.0", "1.14.1", false),
            ("unknown", "1.14.1", false),
        ] {
            let schema = Schema::for_talos(version);
            assert_eq!(
                (schema.table_version(), schema.is_known()),
                (table, known),
                "{version}"
            );
        }
    }

    #[test]
    fn fields_have_their_shape_and_rule() {
        let endpoint = field("1.13.9", MAIN, &["cluster", "controlPlane", "endpoint"]);
        assert_eq!((endpoint.shape, endpoint.optional), (Shape::Url, true));
        let interfaces = field("1.13.9", MAIN, &["machine", "network", "interfaces"]);
        assert_eq!(interfaces.rule, Rule::Paired(Pairing::Interface));
        let element = interfaces.element.as_ref().unwrap();
        assert_eq!(
            element.fields["vlans"].rule,
            Rule::Paired(Pairing::Key("vlanId"))
        );
        assert_eq!(
            field("1.13.9", MAIN, &["cluster", "apiServer", "auditPolicy"]).rule,
            Rule::Replace
        );
        assert_eq!(
            field("1.13.9", MAIN, &["cluster", "apiServer", "auditPolicy"]).shape,
            Shape::Free
        );
        assert_eq!(
            field("1.13.9", MAIN, &["cluster", "apiServer", "extraArgs"]).rule,
            Rule::Replace
        );
        assert_eq!(
            field("1.11.5", MAIN, &["cluster", "apiServer", "extraArgs"]).rule,
            Rule::Usual
        );
        assert_eq!(
            field("1.13.9", "UserVolumeConfig", &["provisioning", "minSize"]).rule,
            Rule::Always
        );
        assert_eq!(
            field("1.13.9", "UserVolumeConfig", &["provisioning", "maxSize"]).rule,
            Rule::Usual
        );
        let mirrors = field("1.13.9", MAIN, &["machine", "registries", "mirrors"]);
        assert_eq!(
            mirrors.element.as_ref().unwrap().fields["endpoints"].shape,
            Shape::List
        );
        assert_eq!(
            field("1.13.9", MAIN, &["machine", "pods"])
                .element
                .as_ref()
                .unwrap()
                .shape,
            Shape::Free
        );
    }

    #[test]
    fn a_kind_of_a_later_version_is_named_with_it() {
        let schema = Schema::for_talos("1.11.5");
        assert!(schema.kind("HostnameConfig").is_none());
        assert_eq!(schema.version_with("HostnameConfig", &[]), Some("1.13.9"));
        assert_eq!(
            schema.version_with("UserVolumeConfig", &["filesystem", "xfs"]),
            Some("1.14.1")
        );
        assert_eq!(schema.version_with(MAIN, &["machine", "bogus"]), None);
    }

    #[test]
    fn the_installed_version_is_the_tag_of_the_installer_of_either_form() {
        let document = |image: &str| {
            format!(
                "machine: {{type: worker}}\n---\napiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {{image: '{image}'}}\n"
            )
        };
        let main = |image: &str| format!("machine: {{install: {{image: '{image}'}}}}\n");
        for (image, expected) in [
            ("ghcr.io/siderolabs/installer:v1.13.9", Some("v1.13.9")),
            ("host:5000/installer:v1.15.0@sha256:00", Some("v1.15.0")),
            ("host:5000/installer", None),
            ("host:5000/installer@sha256:00", None),
            ("installer:latest", None),
            ("", None),
        ] {
            for text in [main(image), document(image)] {
                let stream = Stream::parse(&text).unwrap();
                assert_eq!(Schema::installed(stream.roots()), expected, "{text}");
            }
        }
        let elsewhere =
            "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\nimage: x/installer:v1.14.0\n";
        let stream = Stream::parse(elsewhere).unwrap();
        assert_eq!(Schema::installed(stream.roots()), None);
    }
}
