//! Which keys each kind of document has, in each Talos version.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::options::TalosVersion;

/// Derived from `config-fields.tsv` of the facts: kind, path, versions, what may be below, shape.
const TABLE: &str = include_str!("../../data/config-keys.tsv");

/// What is known about one key.
#[derive(Clone, Copy, Debug)]
struct Key {
    versions: &'static str,
    below: Below,
    shape: &'static str,
}

/// What may be below a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// Only keys of the table.
    Known,
    /// Any key, with known keys below each.
    Map,
    /// Anything.
    Open,
}

/// What is wrong with the content of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Misfit {
    /// The version has no such kind.
    UnknownKind,
    /// Keys that the kind does not have, with what is below them.
    UnknownKeys(Value),
    /// A value of another shape than the key holds.
    Shape { path: String, wanted: &'static str },
}

/// Checks all keys of a document; the main document's kind is `v1alpha1`.
pub(crate) fn check(kind: &str, value: &Value, version: TalosVersion) -> Result<(), Misfit> {
    let exists = |key: &Key| key.versions == "all" || key.versions.contains(short(version));
    let keys = table().get(kind).ok_or(Misfit::UnknownKind)?;
    if !keys.values().any(exists) {
        return Err(Misfit::UnknownKind);
    }
    let walk = Walk { keys, version };
    match walk.unknown("", value)? {
        Some(unknown) => Err(Misfit::UnknownKeys(unknown)),
        None => Ok(()),
    }
}

struct Walk<'a> {
    keys: &'a HashMap<&'static str, Key>,
    version: TalosVersion,
}

impl Walk<'_> {
    /// The part of a value that no key of the table covers.
    fn unknown(&self, path: &str, value: &Value) -> Result<Option<Value>, Misfit> {
        match value {
            Value::Object(map) => self.unknown_entries(path, map),
            Value::Array(items) => {
                let path = format!("{path}[]");
                let found = items.iter().map(|item| self.unknown(&path, item));
                let found: Vec<_> = found.collect::<Result<_, _>>()?;
                let found: Vec<Value> = found.into_iter().flatten().collect();
                Ok((!found.is_empty()).then_some(Value::Array(found)))
            }
            _ => Ok(None),
        }
    }

    fn unknown_entries(
        &self,
        path: &str,
        map: &Map<String, Value>,
    ) -> Result<Option<Value>, Misfit> {
        let mut found = Map::new();
        for (name, value) in map {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let Some(key) = self.find(&path) else {
                found.insert(name.clone(), value.clone());
                continue;
            };
            check_shape(&path, key.shape, value)?;
            let below = match key.below {
                Below::Open => None,
                Below::Known => self.unknown(&path, value)?,
                Below::Map => self.unknown_values(&path, value)?,
            };
            found.extend(below.map(|below| (name.clone(), below)));
        }
        Ok((!found.is_empty()).then_some(Value::Object(found)))
    }

    fn unknown_values(&self, path: &str, value: &Value) -> Result<Option<Value>, Misfit> {
        let path = format!("{path}{{}}");
        let mut found = Map::new();
        for (name, value) in value.as_object().into_iter().flatten() {
            let below = self.unknown(&path, value)?;
            found.extend(below.map(|below| (name.clone(), below)));
        }
        Ok((!found.is_empty()).then_some(Value::Object(found)))
    }

    fn find(&self, path: &str) -> Option<&Key> {
        let key = self.keys.get(path)?;
        (key.versions == "all" || key.versions.contains(short(self.version))).then_some(key)
    }
}

fn check_shape(path: &str, shape: &'static str, value: &Value) -> Result<(), Misfit> {
    let fits = match shape {
        "list" => value.is_array(),
        "text" => !value.is_array() && !value.is_object(),
        "bool" => value.is_boolean(),
        _ => true,
    };
    if fits || value.is_null() {
        return Ok(());
    }
    Err(Misfit::Shape {
        path: path.to_owned(),
        wanted: shape,
    })
}

fn short(version: TalosVersion) -> &'static str {
    version.tag().trim_start_matches('v')
}

fn table() -> &'static HashMap<&'static str, HashMap<&'static str, Key>> {
    static PARSED: OnceLock<HashMap<&'static str, HashMap<&'static str, Key>>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let mut kinds: HashMap<_, HashMap<_, _>> = HashMap::new();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let mut field = || fields.next().unwrap_or_default();
            let (kind, path, versions, below, shape) =
                (field(), field(), field(), field(), field());
            let below = match below {
                "open" => Below::Open,
                "map" => Below::Map,
                _ => Below::Known,
            };
            kinds.entry(kind).or_default().insert(
                path,
                Key {
                    versions,
                    below,
                    shape,
                },
            );
        }
        kinds
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_main(value: Value, expected: Result<(), Misfit>) {
        assert_eq!(check("v1alpha1", &value, TalosVersion::V1_13_9), expected);
    }

    #[test]
    fn unknown_keys_come_with_what_is_below_them() {
        let unknown = |value| Err(Misfit::UnknownKeys(value));
        check_main(json!({ "machine": { "type": "worker" } }), Ok(()));
        check_main(
            json!({ "machine": { "type": "worker", "bogus": 1 } }),
            unknown(json!({ "machine": { "bogus": 1 } })),
        );
        check_main(
            json!({ "machine": { "nodeLabels": { "a/b.c": "x" } } }),
            Ok(()),
        );
        let mirrors = json!({ "machine": { "registries": { "mirrors": { "docker.io": { "endpoints": [] } } } } });
        check_main(mirrors, Ok(()));
        let mirrors =
            json!({ "machine": { "registries": { "mirrors": { "docker.io": { "x": 1 } } } } });
        check_main(mirrors.clone(), unknown(mirrors));
        check_main(
            json!({ "machine": { "certSANs": "one" } }),
            Err(Misfit::Shape {
                path: "machine.certSANs".to_owned(),
                wanted: "list",
            }),
        );
    }

    #[test]
    fn kinds_belong_to_versions() {
        let document =
            json!({ "apiVersion": "v1alpha1", "kind": "HostnameConfig", "hostname": "a" });
        assert_eq!(
            check("HostnameConfig", &document, TalosVersion::V1_13_9),
            Ok(())
        );
        let old = check("HostnameConfig", &document, TalosVersion::V1_11_5);
        assert_eq!(old, Err(Misfit::UnknownKind));
    }
}
