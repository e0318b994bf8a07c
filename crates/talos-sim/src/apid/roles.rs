//! Which methods exist in a Talos version, and who may call them.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::options::TalosVersion;

/// Methods and the roles that they accept, as `rbac-by-version.json` lists them.
const TABLE: &str = include_str!("../../data/rbac-by-version.json");

/// The role that may say on whose behalf it calls.
const IMPERSONATOR: &str = "os:impersonator";

type Methods = HashMap<String, Vec<String>>;

/// The roles that a method accepts, or `None` if the version does not have the method.
pub(crate) fn accepted(version: TalosVersion, method: &str) -> Option<&'static [String]> {
    table().get(version.table())?.get(method).map(Vec::as_slice)
}

/// Whether the version has a service, given by its full name.
pub(crate) fn has_service(version: TalosVersion, service: &str) -> bool {
    let mut methods = table()
        .get(version.table())
        .into_iter()
        .flat_map(HashMap::keys);
    methods.any(|method| method.split('/').nth(1) == Some(service))
}

/// The roles that a call runs with: the certificate's, or those named by a trusted go-between.
pub(crate) fn effective(certificate: &[String], asserted: &[String]) -> Vec<String> {
    let is_impersonator = certificate.iter().any(|role| role == IMPERSONATOR);
    let roles = if is_impersonator && !asserted.is_empty() {
        asserted
    } else {
        certificate
    };
    let trimmed = roles.iter().map(|role| role.trim());
    trimmed
        .filter(|role| !role.is_empty())
        .map(str::to_owned)
        .collect()
}

fn table() -> &'static HashMap<String, Methods> {
    static PARSED: OnceLock<HashMap<String, Methods>> = OnceLock::new();
    PARSED.get_or_init(|| serde_json::from_str(TABLE).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_methods_of_the_facts() {
        let count = |version: TalosVersion| table()[version.table()].len();
        assert_eq!(count(TalosVersion::V1_13_9), 74);
        assert!(accepted(TalosVersion::V1_11_5, "/machine.ImageService/List").is_none());
        assert!(accepted(TalosVersion::V1_14, "/machine.MDService/Destroy").is_some());
    }

    #[test]
    fn only_an_impersonator_names_other_roles() {
        let check = |certificate: &[&str], asserted: &[&str], expected: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
            assert_eq!(effective(&owned(certificate), &owned(asserted)), expected);
        };
        check(&["os:reader"], &["os:admin"], &["os:reader"]);
        check(&["os:impersonator"], &["os:admin"], &["os:admin"]);
        check(&["os:impersonator"], &[], &["os:impersonator"]);
        check(&[" os:admin ", ""], &[], &["os:admin"]);
    }
}
