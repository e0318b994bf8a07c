//! Who may read what: the policy that machined puts before its state.

use tonic::Status;

use super::Roles;
use crate::cosi::{DEFINITIONS, NAMESPACES};
use crate::store::Store;

/// Refuses types and namespaces that do not exist, and sensitive types for all but `os:admin`.
pub(super) fn check(
    store: &Store,
    roles: &Roles,
    namespace: &str,
    kind: &str,
) -> Result<(), Status> {
    let definition = store
        .get("meta", DEFINITIONS, &kind.to_lowercase())
        .ok_or_else(|| {
            Status::permission_denied(format!("resource type {kind:?} is not supported"))
        })?;
    let sensitive = definition.spec.value()["sensitivity"] == "sensitive";
    if sensitive && !roles.0.iter().any(|role| role == "os:admin") {
        return Err(Status::permission_denied("not authorized"));
    }
    if store.get("meta", NAMESPACES, namespace).is_none() {
        return Err(Status::permission_denied(format!(
            "namespace {namespace:?} is not supported"
        )));
    }
    Ok(())
}

/// The answer to every write.
pub(super) fn read_only() -> Status {
    Status::permission_denied("write access is not allowed")
}
