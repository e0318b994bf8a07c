//! Which roles a node accepts for which call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    methods: BTreeMap<String, Vec<String>>,
    sensitive: BTreeSet<String>,
}

/// Talos gives methods without a rule to this role alone, and sensitive resource types too.
static ADMIN: LazyLock<Vec<String>> = LazyLock::new(|| vec!["os:admin".to_string()]);

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // The text is a constant; a test parses it.
    serde_json::from_str(include_str!("../data/access.json")).unwrap_or_else(|_| Table {
        methods: BTreeMap::new(),
        sensitive: BTreeSet::new(),
    })
});

/// Returns the roles of which a caller needs one; `resource_type` matters to calls of the state API.
pub(crate) fn roles_for(method: &str, resource_type: Option<&str>) -> &'static [String] {
    if resource_type.is_some_and(|name| TABLE.sensitive.contains(name)) {
        return &ADMIN;
    }
    TABLE.methods.get(method).unwrap_or(&ADMIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, resource_type: Option<&str>, expected: &[&str]) {
        assert_eq!(roles_for(method, resource_type), expected, "{method}");
    }

    #[test]
    fn roles_are_those_of_a_configured_node() {
        let readers = ["os:admin", "os:operator", "os:reader"];
        check("/machine.MachineService/Version", None, &readers);
        check(
            "/machine.MachineService/ApplyConfiguration",
            None,
            &["os:admin"],
        );
        check(
            "/machine.MachineService/Reboot",
            None,
            &["os:admin", "os:operator"],
        );
        check(
            "/cosi.resource.State/Get",
            Some("Members.cluster.talos.dev"),
            &readers,
        );
        check(
            "/cosi.resource.State/Get",
            Some("MachineConfigs.config.talos.dev"),
            &["os:admin"],
        );
        check("/machine.MachineService/Unheard", None, &["os:admin"]);
    }

    #[test]
    fn the_table_is_whole() {
        assert_eq!((TABLE.methods.len(), TABLE.sensitive.len()), (81, 35));
    }
}
