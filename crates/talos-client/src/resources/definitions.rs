//! Which resource types a node has, and what users may call them.

use prost::Message as _;
use serde_json::Value;
use talos_api::cosi::resource::meta::ResourceDefinitionSpec;

use super::Resource;
use crate::{Error, Node, Result};

const TYPE: &str = "ResourceDefinitions.meta.cosi.dev";
const NAMESPACE: &str = "meta";

/// A resource type of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// The type in lower case.
    pub id: String,
    /// The type as requests must write it, such as `Members.cluster.talos.dev`.
    pub resource_type: String,
    /// The type for people, such as `Member`.
    pub display_type: String,
    /// The namespace that is meant when none is said.
    pub default_namespace: String,
    /// Short names.
    pub aliases: Vec<String>,
    /// All names that can be used, beside the id.
    pub all_aliases: Vec<String>,
    /// Columns to show in a table.
    pub columns: Vec<Column>,
    /// Whether only `os:admin` reads it.
    pub sensitive: bool,
}

/// A column to show in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Where its value is, as Kubernetes' JSONPath.
    pub json_path: String,
}

impl Node {
    /// Reads which resource types the node has.
    ///
    /// # Errors
    /// The call gave no answer.
    pub async fn definitions(&self) -> Result<Vec<Definition>> {
        let list = self.list(NAMESPACE, TYPE).await?;
        Ok(list.iter().filter_map(Definition::from_resource).collect())
    }
}

impl Definition {
    /// Reads a definition; none if the content is not one.
    pub fn from_resource(resource: &Resource) -> Option<Self> {
        let id = resource.metadata.id.clone();
        let spec = ResourceDefinitionSpec::decode(resource.proto_spec.as_slice())
            .ok()
            .filter(|spec| !spec.resource_type.is_empty());
        match spec {
            Some(spec) => Some(Self::from_proto(id, spec)),
            None => Self::from_yaml(id, &resource.spec().ok()?),
        }
    }

    fn from_proto(id: String, spec: ResourceDefinitionSpec) -> Self {
        let sensitive = spec.sensitivity != 0;
        let columns = spec.print_columns.into_iter();
        Self {
            id,
            resource_type: spec.resource_type,
            display_type: spec.display_type,
            default_namespace: spec.default_namespace,
            aliases: spec.aliases,
            all_aliases: spec.all_aliases,
            columns: columns
                .map(|column| Column {
                    name: column.name,
                    json_path: column.json_path,
                })
                .collect(),
            sensitive,
        }
    }

    fn from_yaml(id: String, spec: &Value) -> Option<Self> {
        let text = |key: &str| spec.get(key).and_then(Value::as_str).map(str::to_string);
        let list = |key: &str| {
            let items = spec.get(key).and_then(Value::as_array);
            let texts = items.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_string).collect()
        };
        let columns = spec.get("printColumns").and_then(Value::as_array);
        let column = |column: &Value| {
            Some(Column {
                name: column.get("name")?.as_str()?.to_string(),
                json_path: column.get("jsonPath")?.as_str()?.to_string(),
            })
        };
        Some(Self {
            id,
            resource_type: text("type")?,
            display_type: text("displayType").unwrap_or_default(),
            default_namespace: text("defaultNamespace").unwrap_or_default(),
            aliases: list("aliases"),
            all_aliases: list("allAliases"),
            columns: columns.into_iter().flatten().filter_map(column).collect(),
            sensitive: text("sensitivity").is_some_and(|level| level == "sensitive"),
        })
    }

    fn is_called(&self, name: &str) -> bool {
        self.names().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let aliases = self.all_aliases.iter().chain(&self.aliases);
        std::iter::once(self.id.as_str()).chain(aliases.map(String::as_str))
    }
}

/// Finds the type that a user means; upper and lower case do not matter.
///
/// # Errors
/// No type has this name ([`Error::NoSuchType`], with near ones), or several do ([`Error::AmbiguousType`]).
pub fn resolve<'a>(definitions: &'a [Definition], name: &str) -> Result<&'a Definition> {
    let mut found = definitions.iter().filter(|one| one.is_called(name));
    match (found.next(), found.next()) {
        (None, _) => Err(Error::NoSuchType {
            name: name.to_string(),
            near: near_names(definitions, name),
        }),
        (Some(one), None) => Ok(one),
        (Some(first), Some(second)) => Err(Error::AmbiguousType {
            name: name.to_string(),
            types: [first, second]
                .into_iter()
                .chain(found)
                .map(|one| one.resource_type.to_lowercase())
                .collect(),
        }),
    }
}

/// How many near names are worth showing.
const MOST_NEAR: usize = 5;

/// Returns names of types that are written almost like this one, nearest first.
pub fn near_names(definitions: &[Definition], name: &str) -> Vec<String> {
    let name = name.to_lowercase();
    let far = (name.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for definition in definitions {
        let best = definition
            .names()
            .filter(|own| !own.contains('.') || name.contains('.'))
            .filter_map(|own| {
                let distance = distance(&name, own);
                let inside = name.len() >= 4 && own.contains(name.as_str());
                (distance <= far || inside).then_some((distance, own))
            })
            .min();
        near.extend(best);
    }
    near.sort_unstable();
    near.dedup_by(|a, b| a.1 == b.1);
    near.iter()
        .take(MOST_NEAR)
        .map(|(_, own)| (*own).to_string())
        .collect()
}

/// Counts the letters to put in, take out, change or swap with their neighbor to make one text of another.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(resource_type: &str, aliases: &[&str]) -> Definition {
        let id = resource_type.to_lowercase();
        let plural = id.split('.').next().unwrap().to_string();
        let mut all_aliases = vec![plural];
        all_aliases.extend(aliases.iter().map(|alias| alias.to_string()));
        Definition {
            id,
            resource_type: resource_type.to_string(),
            aliases: aliases.iter().map(|alias| alias.to_string()).collect(),
            all_aliases,
            ..Definition::default()
        }
    }

    fn some() -> Vec<Definition> {
        vec![
            definition("Members.cluster.talos.dev", &["member"]),
            definition("Namespaces.meta.cosi.dev", &["namespace", "ns"]),
            definition(
                "NodenameStatuses.kubernetes.talos.dev",
                &["nodenamestatus", "ns"],
            ),
            definition("MachineConfigs.config.talos.dev", &["machineconfig", "mc"]),
        ]
    }

    #[test]
    fn a_type_is_found_by_each_of_its_names() {
        let definitions = some();
        for name in [
            "mc",
            "MC",
            "MachineConfigs",
            "machineconfigs.config.talos.dev",
        ] {
            let found = resolve(&definitions, name).unwrap();
            assert_eq!(found.resource_type, "MachineConfigs.config.talos.dev");
        }
    }

    #[test]
    fn a_name_of_several_types_lists_them() {
        let Err(Error::AmbiguousType { types, .. }) = resolve(&some(), "ns") else {
            panic!("ns must be ambiguous");
        };
        assert_eq!(
            types,
            [
                "namespaces.meta.cosi.dev",
                "nodenamestatuses.kubernetes.talos.dev"
            ]
        );
    }

    #[test]
    fn an_unknown_name_gets_near_ones() {
        let near = |name| match resolve(&some(), name) {
            Err(Error::NoSuchType { near, .. }) => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("membres"), ["members"]);
        assert_eq!(near("machinconfig"), ["machineconfig"]);
        assert_eq!(near("xyzzy"), [""; 0]);
    }
}
