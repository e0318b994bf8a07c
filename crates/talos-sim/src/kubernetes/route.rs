//! Reads URLs of the Kubernetes API.

use std::collections::BTreeMap;

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and their parts.
    Health,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` and `/apis/GROUP/VERSION`.
    Resources {
        /// API group, empty for the core group.
        group: String,
        /// API version.
        version: String,
    },
    /// Objects of one kind, or one of them.
    Objects(ObjectPath),
    /// Nothing that is served.
    Unknown,
}

/// The parts of a path to objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    /// API group, empty for the core group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Namespace, if the path has one.
    pub(crate) namespace: Option<String>,
    /// The kind's name in URLs.
    pub(crate) plural: String,
    /// Name of the object, if the path has one.
    pub(crate) name: Option<String>,
    /// Part of the object such as `status`.
    pub(crate) subresource: Option<String>,
}

/// Reads a path.
pub(crate) fn route(path: &str) -> Route {
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match segments[..] {
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group(group.to_owned()),
        ["api", version] => resources("", version),
        ["apis", group, version] => resources(group, version),
        ["api", version, ref rest @ ..] => objects("", version, rest),
        ["apis", group, version, ref rest @ ..] => objects(group, version, rest),
        _ => Route::Unknown,
    }
}

/// Reads a query; of repeated parameters the first counts.
pub(crate) fn parameters(query: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        found.entry(decode(name)).or_insert_with(|| decode(value));
    }
    found
}

fn resources(group: &str, version: &str) -> Route {
    Route::Resources {
        group: group.to_owned(),
        version: version.to_owned(),
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Route {
    let owned = |text: &str| Some(text.to_owned());
    let (namespace, plural, name, subresource) = match *rest {
        ["namespaces"] => (None, "namespaces", None, None),
        ["namespaces", name] => (None, "namespaces", owned(name), None),
        ["namespaces", name, part @ ("status" | "finalize")] => {
            (None, "namespaces", owned(name), owned(part))
        }
        ["namespaces", space, plural] => (owned(space), plural, None, None),
        ["namespaces", space, plural, name] => (owned(space), plural, owned(name), None),
        ["namespaces", space, plural, name, part] => {
            (owned(space), plural, owned(name), owned(part))
        }
        [plural] => (None, plural, None, None),
        [plural, name] => (None, plural, owned(name), None),
        [plural, name, part] => (None, plural, owned(name), owned(part)),
        _ => return Route::Unknown,
    };
    Route::Objects(ObjectPath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        plural: plural.to_owned(),
        name: name.map(|name| decode(&name)),
        subresource,
    })
}

/// Undoes percent encoding and `+` for space.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_url_is_read(path in ".*", query in "[a-z%+&=0-9]*") {
            route(&path);
            parameters(&query);
        }

        #[test]
        fn encoded_values_come_back(value in "[^\u{fffd}]*") {
            let encoded: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let found = parameters(&format!("key={encoded}"));
            prop_assert_eq!(&found["key"], &value);
        }
    }

    #[test]
    fn paths_to_objects_are_taken_apart() {
        for (path, expected) in [
            ("/api/v1/pods", "//pods/-/-"),
            ("/api/v1/nodes/cp-1", "//nodes/cp-1/-"),
            ("/api/v1/nodes/cp-1/status", "//nodes/cp-1/status"),
            ("/api/v1/namespaces", "//namespaces/-/-"),
            (
                "/api/v1/namespaces/kube-system",
                "//namespaces/kube-system/-",
            ),
            (
                "/api/v1/namespaces/kube-system/pods",
                "/kube-system/pods/-/-",
            ),
            (
                "/apis/apps/v1/namespaces/a/daemonsets/b/status",
                "apps/a/daemonsets/b/status",
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Acoredns",
                "rbac.authorization.k8s.io//clusterroles/system:coredns/-",
            ),
        ] {
            let Route::Objects(found) = route(path) else {
                panic!("{path}")
            };
            let dash = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
            let shown = format!(
                "{}/{}/{}/{}/{}",
                found.group,
                found.namespace.unwrap_or_default(),
                found.plural,
                dash(found.name),
                dash(found.subresource)
            );
            assert_eq!(shown, expected);
        }
        assert_eq!(route("/apis/apps/v1"), resources("apps", "v1"));
        assert_eq!(route("/readyz/etcd"), Route::Health);
        assert_eq!(route("/openapi/v2"), Route::Unknown);
    }

    #[test]
    fn queries_are_decoded() {
        let found = parameters("labelSelector=k8s-app+%3D+kube-proxy&watch=true&limit");
        assert_eq!(found["labelSelector"], "k8s-app = kube-proxy");
        assert_eq!(found["watch"], "true");
        assert_eq!(found["limit"], "");
        assert_eq!(parameters("a=%zz%")["a"], "%zz%");
    }
}
