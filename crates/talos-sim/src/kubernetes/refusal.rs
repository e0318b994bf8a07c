//! Refusals of the Kubernetes API and the `Status` objects that carry them.

use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// Why a request is not carried out, as a `Status` object says it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// HTTP status code.
    pub(crate) code: u16,
    /// Reason for programs such as `NotFound`.
    pub(crate) reason: &'static str,
    /// Sentence for people.
    pub(crate) message: String,
    /// Group, kind, name and causes.
    pub(crate) details: Option<Value>,
}

impl Refusal {
    /// Refuses a caller without a client certificate that the cluster accepts.
    pub(crate) fn unauthorized() -> Self {
        Self::plain(401, "Unauthorized", "Unauthorized".to_owned())
    }

    /// Refuses a known user who may not do this.
    pub(crate) fn forbidden(user: &str, verb: &str, kind: &Kind, namespace: &str) -> Self {
        let scope = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let message = format!(
            "{resource} is forbidden: User \"{user}\" cannot {verb} resource \"{plural}\" in API group \"{group}\" {scope}",
            resource = kind.resource(),
            plural = kind.plural,
            group = kind.group,
        );
        Self::plain(403, "Forbidden", message).about(kind, "")
    }

    /// Refuses a path that nothing serves.
    pub(crate) fn no_such_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::plain(404, "NotFound", message)
    }

    /// Refuses an object that does not exist.
    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.resource());
        Self::plain(404, "NotFound", message).about(kind, name)
    }

    /// Refuses to create what exists.
    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::plain(409, "AlreadyExists", message).about(kind, name)
    }

    /// Refuses a write that was prepared on an older version of the object.
    pub(crate) fn conflict(kind: &Kind, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the object has been modified; \
             please apply your changes to the latest version and try again",
            kind.resource()
        );
        Self::plain(409, "Conflict", message).about(kind, name)
    }

    /// Refuses an apply that would take fields from other managers; each pair is manager and field.
    pub(crate) fn apply_conflict(conflicts: &[(String, String)]) -> Self {
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|(manager, field)| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {manager}"),
                    "field": field,
                })
            })
            .collect();
        let message = match conflicts {
            [(manager, field)] => {
                format!("Apply failed with 1 conflict: conflict with {manager}: {field}")
            }
            _ => {
                let lines: Vec<String> = conflicts
                    .iter()
                    .map(|(manager, field)| format!("conflict with {manager}: {field}"))
                    .collect();
                format!(
                    "Apply failed with {} conflicts: {}",
                    conflicts.len(),
                    lines.join("\n")
                )
            }
        };
        let mut refusal = Self::plain(409, "Conflict", message);
        refusal.details = Some(json!({ "causes": causes }));
        refusal
    }

    /// Refuses an object whose field has a value that is not allowed.
    pub(crate) fn invalid(kind: &Kind, name: &str, field: &str, problem: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {field}: {problem}", kind.kind);
        let mut refusal = Self::plain(422, "Invalid", message).about(kind, name);
        if let Some(Value::Object(details)) = refusal.details.as_mut() {
            let cause =
                json!({ "reason": "FieldValueInvalid", "message": problem, "field": field });
            details.insert("causes".to_owned(), json!([cause]));
        }
        refusal
    }

    /// Refuses a request that makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message.into())
    }

    /// Refuses a body in an encoding that is not understood.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::plain(415, "UnsupportedMediaType", message)
    }

    /// Refuses a verb that the kind does not have.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::plain(405, "MethodNotAllowed", message)
    }

    /// Refuses to continue a watch from a version that is forgotten.
    pub(crate) fn expired(wanted: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {wanted} ({oldest})");
        Self::plain(410, "Expired", message)
    }

    /// Fails as a broken server does.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::plain(500, "InternalError", message.into())
    }

    /// Returns the `Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if let (Some(details), Some(fields)) = (&self.details, status.as_object_mut()) {
            fields.insert("details".to_owned(), details.clone());
        }
        status
    }

    fn plain(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: None,
        }
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".to_owned(), json!(name));
        }
        if !kind.group.is_empty() {
            details.insert("group".to_owned(), json!(kind.group));
        }
        details.insert("kind".to_owned(), json!(kind.plural));
        self.details = Some(Value::Object(details));
        self
    }
}
