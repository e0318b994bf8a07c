//! Gauge: every request that a kube-apiserver received.

/// One request that a kube-apiserver received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeRequest {
    /// Name of the node whose kube-apiserver was asked.
    pub node: String,
    /// HTTP method such as `PATCH`.
    pub method: String,
    /// Kubernetes verb such as `list`, `watch` or `patch`; the HTTP method in lower case for paths that are no objects.
    pub verb: String,
    /// Path without the query.
    pub path: String,
    /// Query as it was sent, without the question mark.
    pub query: String,
    /// User agent; empty if none was sent.
    pub user_agent: String,
    /// User of the client certificate; absent if no accepted one was shown.
    pub user: Option<String>,
    /// Groups of the client certificate.
    pub groups: Vec<String>,
    /// Whether the request asked for `dryRun=All`.
    pub dry_run: bool,
    /// Whether the request can change objects: a write verb without `dryRun=All`.
    pub mutating: bool,
}
