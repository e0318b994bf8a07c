//! Answers requests to one kube-apiserver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::bodies::{Body, aggregated, decode, object, refused, response, text, wants_aggregated};
use super::discovery;
use super::kinds::Kind;
use super::refusal::Refusal;
use super::requests::KubeRequest;
use super::route::{ObjectPath, Route, parameters, route};
use super::selectors::Selection;
use super::tables::{table, wants_table};
use super::tls::User;
use super::verbs::{PatchKind, Write, key};
use super::watching::{Watch, stream};
use super::{Kubernetes, Member};
use crate::shared::Shared;

/// One kube-apiserver.
#[derive(Debug)]
pub(crate) struct ApiServer {
    /// The cluster.
    pub(crate) shared: Arc<Shared>,
    /// Name of the node that it runs on.
    pub(crate) node: String,
    /// What is particular to Kubernetes on that node.
    pub(crate) member: Arc<Member>,
}

/// One request, taken apart.
struct Call<'a> {
    user: &'a User,
    verb: &'a str,
    path: ObjectPath,
    parameters: BTreeMap<String, String>,
    headers: &'a HeaderMap,
    body: &'a [u8],
}

/// How long a watch lasts if it does not say.
const WATCH_TIMEOUT: u64 = 1800;

impl ApiServer {
    /// Answers one request.
    pub(crate) async fn answer(
        &self,
        user: Option<User>,
        request: http::Request<Incoming>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return refused(&Refusal::bad_request("the body ended early"));
        };
        let body = body.to_bytes();
        if !self.member.answers() {
            // The connection is about to be cut.
            return std::future::pending().await;
        }
        let verb = self.record(user.as_ref(), &parts);
        if let Some(code) = self.member.faults.next_failure() {
            let mut refusal = Refusal::internal("the simulated server was told to fail");
            refusal.code = code;
            return refused(&refusal);
        }
        let Some(user) = user else {
            return refused(&Refusal::unauthorized());
        };
        let path = parts.uri.path();
        let catalog = &self.kubernetes().catalog;
        let result = match route(path) {
            Route::Version => Ok(discovery::version(&self.member.api_version())),
            Route::Health => return text("ok"),
            Route::CoreVersions if wants_aggregated(&parts.headers) => {
                return aggregated(&discovery::aggregated(catalog, true));
            }
            Route::Groups if wants_aggregated(&parts.headers) => {
                return aggregated(&discovery::aggregated(catalog, false));
            }
            Route::CoreVersions => Ok(discovery::core_versions()),
            Route::Groups => Ok(discovery::groups(catalog)),
            Route::Group(name) => discovery::group(catalog, &name),
            Route::Resources { group, version } => discovery::resources(catalog, &group, &version),
            Route::Unknown => Err(Refusal::no_such_path()),
            Route::Objects(path) => {
                let call = Call {
                    user: &user,
                    verb: &verb,
                    path,
                    parameters: parameters(parts.uri.query().unwrap_or_default()),
                    headers: &parts.headers,
                    body: &body,
                };
                return self
                    .objects(&call)
                    .unwrap_or_else(|refusal| refused(&refusal));
            }
        };
        match result {
            Ok(value) => object(StatusCode::OK, &value),
            Err(refusal) => refused(&refusal),
        }
    }

    fn kubernetes(&self) -> &Kubernetes {
        &self.shared.kubernetes
    }

    /// Writes down what arrived and returns the verb.
    fn record(&self, user: Option<&User>, parts: &Parts) -> String {
        let query = parts.uri.query().unwrap_or_default();
        let parameters = parameters(query);
        let verb = verb(&parts.method, &route(parts.uri.path()), &parameters);
        let dry_run = parameters.get("dryRun").is_some_and(|value| value == "All");
        let writes = matches!(
            verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        );
        let user_agent = parts.headers.get(header::USER_AGENT);
        self.kubernetes().requests.record(KubeRequest {
            node: self.node.clone(),
            method: parts.method.to_string(),
            verb: verb.clone(),
            path: parts.uri.path().to_owned(),
            query: query.to_owned(),
            user_agent: user_agent
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            user: user.map(|user| user.name.clone()),
            groups: user.map(|user| user.groups.clone()).unwrap_or_default(),
            dry_run,
            mutating: writes && !dry_run,
        });
        verb
    }

    /// Carries out a request for objects.
    fn objects(&self, call: &Call<'_>) -> Result<Response<Body>, Refusal> {
        let path = &call.path;
        let catalog = &self.kubernetes().catalog;
        let kind = catalog
            .by_plural(&path.group, &path.version, &path.plural)
            .ok_or_else(Refusal::no_such_path)?;
        let namespace = path.namespace.as_deref().unwrap_or_default();
        let allowed = call
            .user
            .groups
            .iter()
            .any(|group| group == "system:masters")
            || call.user.name.starts_with("system:");
        if !allowed {
            return Err(Refusal::forbidden(
                &call.user.name,
                call.verb,
                &kind,
                namespace,
            ));
        }
        if !kind.allows(call.verb)
            || path
                .subresource
                .as_deref()
                .is_some_and(|part| part != "status")
        {
            return Err(Refusal::method_not_allowed());
        }
        match (call.verb, &path.name) {
            ("list", None) => self.list(call, &kind),
            ("watch", None) => self.watch(call, &kind),
            ("get", Some(name)) => {
                let found = self.kubernetes().objects.get(&key(&kind, namespace, name));
                let found = found.ok_or_else(|| Refusal::not_found(&kind, name))?;
                if wants_table(call.headers) {
                    let version = found["metadata"]["resourceVersion"]
                        .as_str()
                        .unwrap_or_default();
                    let table = table(&kind.kind, &[&found], version, self.shared.now());
                    return Ok(object(StatusCode::OK, &table));
                }
                Ok(object(StatusCode::OK, &found))
            }
            (_, name) => self.write(call, &kind, namespace, name.as_deref()),
        }
    }

    fn list(&self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Body>, Refusal> {
        let selection = selection(&call.parameters)?;
        let (mut objects, revision) = self
            .kubernetes()
            .objects
            .list(kind, call.path.namespace.as_deref());
        objects.retain(|object| selection.matches(object));
        if wants_table(call.headers) {
            let objects: Vec<&Value> = objects.iter().map(AsRef::as_ref).collect();
            let version = revision.to_string();
            let table = table(&kind.kind, &objects, &version, self.shared.now());
            return Ok(object(StatusCode::OK, &table));
        }
        // Items of a list do not repeat what they are.
        let items: Vec<Value> = objects
            .iter()
            .map(|object| {
                let mut item = object.as_ref().clone();
                if let Some(fields) = item.as_object_mut() {
                    fields.shift_remove("apiVersion");
                    fields.shift_remove("kind");
                }
                item
            })
            .collect();
        let list = json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": { "resourceVersion": revision.to_string() },
            "items": items,
        });
        Ok(object(StatusCode::OK, &list))
    }

    fn watch(&self, call: &Call<'_>, kind: &Arc<Kind>) -> Result<Response<Body>, Refusal> {
        let parameter = |name: &str| call.parameters.get(name).map(String::as_str);
        let is_true = |name: &str| matches!(parameter(name), Some("true" | "1"));
        let initial_events = is_true("sendInitialEvents");
        if initial_events {
            if self.member.faults.streaming_lists_refused() {
                let problem = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
                return Err(Refusal::invalid(kind, "", "sendInitialEvents", problem));
            }
            if parameter("resourceVersionMatch") != Some("NotOlderThan") {
                let problem = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return Err(Refusal::invalid(kind, "", "resourceVersionMatch", problem));
            }
        }
        let from =
            match parameter("resourceVersion") {
                None | Some("" | "0") => None,
                Some(text) => Some(text.parse().map_err(|_| {
                    Refusal::bad_request(format!("invalid resource version {text:?}"))
                })?),
            };
        let timeout = parameter("timeoutSeconds").and_then(|text| text.parse().ok());
        let watch = Watch {
            kind: Arc::clone(kind),
            namespace: call.path.namespace.clone(),
            selection: selection(&call.parameters)?,
            from,
            initial_events,
            bookmarks: is_true("allowWatchBookmarks"),
            timeout: Duration::from_secs(timeout.unwrap_or(WATCH_TIMEOUT)),
        };
        let objects = Arc::clone(&self.kubernetes().objects);
        let events = stream(objects, watch, self.member.faults.watch_drops());
        let body = StreamBody::new(events).boxed_unsync();
        Ok(response(StatusCode::OK, "application/json", body))
    }

    fn write(
        &self,
        call: &Call<'_>,
        kind: &Arc<Kind>,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<Response<Body>, Refusal> {
        let dry_run = match call.parameters.get("dryRun").map(String::as_str) {
            None | Some("") => false,
            Some("All") => true,
            Some(other) => {
                return Err(Refusal::bad_request(format!(
                    "invalid dryRun directive: {other:?}"
                )));
            }
        };
        let agent = call
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let agent = agent
            .unwrap_or("unknown")
            .split('/')
            .next()
            .unwrap_or_default();
        let manager = call.parameters.get("fieldManager").map(String::as_str);
        let write = Write {
            objects: &self.kubernetes().objects,
            now: self.shared.now(),
            dry_run,
            manager: manager.filter(|name| !name.is_empty()).unwrap_or(agent),
            status: call.path.subresource.is_some(),
        };
        let content_type = call
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or("application/json").split(';').next();
        let content_type = content_type.unwrap_or_default().trim();
        let result = match (call.verb, name) {
            ("create", None) => {
                self.namespace_exists(kind, namespace)?;
                let body = decode(content_type, call.body)?;
                let created = write.create(kind, namespace, body)?;
                self.kubernetes().notice(&created);
                return Ok(object(StatusCode::CREATED, &created));
            }
            ("update", Some(name)) => write.update(
                &key(kind, namespace, name),
                decode(content_type, call.body)?,
            )?,
            ("patch", Some(name)) => {
                let how = patch_kind(content_type, &call.parameters)?;
                if matches!(how, PatchKind::Apply { .. }) {
                    self.namespace_exists(kind, namespace)?;
                    if manager.is_none_or(str::is_empty) {
                        let problem = "Required value: is required for apply patch";
                        return Err(Refusal::invalid(kind, name, "fieldManager", problem));
                    }
                }
                write.patch(
                    &key(kind, namespace, name),
                    how,
                    &decode(content_type, call.body)?,
                )?
            }
            ("delete", Some(name)) => {
                let options = if call.body.is_empty() {
                    json!({})
                } else {
                    decode(content_type, call.body)?
                };
                let gone = write.delete(&key(kind, namespace, name), &options)?;
                if kind.kind == "Namespace" && !dry_run {
                    self.kubernetes()
                        .objects
                        .clear_namespace(name, self.shared.now());
                }
                if gone["metadata"]["deletionTimestamp"].is_string() {
                    return Ok(object(StatusCode::OK, &gone));
                }
                json!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": { "name": name, "group": kind.group, "kind": kind.plural, "uid": gone["metadata"]["uid"] },
                })
                .into()
            }
            ("deletecollection", None) => {
                let selection = selection(&call.parameters)?;
                let (found, _) = write.objects.list(kind, call.path.namespace.as_deref());
                for item in found.iter().filter(|item| selection.matches(item)) {
                    let metadata = &item["metadata"];
                    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
                    write.delete(&key(kind, text("namespace"), text("name")), &json!({}))?;
                }
                json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" })
                    .into()
            }
            _ => return Err(Refusal::method_not_allowed()),
        };
        self.kubernetes().notice(&result);
        Ok(object(StatusCode::OK, &result))
    }

    fn namespace_exists(&self, kind: &Kind, namespace: &str) -> Result<(), Refusal> {
        if !kind.namespaced {
            return Ok(());
        }
        let kubernetes = self.kubernetes();
        let namespaces = kubernetes.catalog.by_plural("", "v1", "namespaces");
        let namespaces = namespaces.ok_or_else(Refusal::no_such_path)?;
        match kubernetes.objects.get(&key(&namespaces, "", namespace)) {
            Some(_) => Ok(()),
            None => Err(Refusal::not_found(&namespaces, namespace)),
        }
    }
}

/// Returns the Kubernetes verb of a request.
fn verb(method: &Method, route: &Route, parameters: &BTreeMap<String, String>) -> String {
    let Route::Objects(path) = route else {
        return method.as_str().to_lowercase();
    };
    let watches = parameters
        .get("watch")
        .is_some_and(|value| value == "true" || value == "1");
    let verb = match (method, &path.name) {
        (&Method::GET | &Method::HEAD, None) if watches => "watch",
        (&Method::GET | &Method::HEAD, None) => "list",
        (&Method::GET | &Method::HEAD, Some(_)) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, None) => "deletecollection",
        (&Method::DELETE, Some(_)) => "delete",
        _ => return method.as_str().to_lowercase(),
    };
    verb.to_owned()
}

fn selection(parameters: &BTreeMap<String, String>) -> Result<Selection, Refusal> {
    let text = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
    Selection::parse(text("labelSelector"), text("fieldSelector"))
}

fn patch_kind(
    content_type: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<PatchKind, Refusal> {
    let force = parameters.get("force").is_some_and(|value| value == "true");
    match content_type {
        "application/json-patch+json" => Ok(PatchKind::Json),
        "application/merge-patch+json" => Ok(PatchKind::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchKind::Strategic),
        "application/apply-patch+yaml" => Ok(PatchKind::Apply { force }),
        _ => Err(Refusal::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, \
             application/strategic-merge-patch+json, application/apply-patch+yaml",
        )),
    }
}
