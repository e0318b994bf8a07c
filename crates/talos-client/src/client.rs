//! The client: endpoints and credentials, shared by the handles of all nodes.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use http::{HeaderName, HeaderValue};

use crate::dial::Dialer;
use crate::pool::Pool;
use crate::tls::TlsSetup;
use crate::wire::Metadata;
use crate::{Endpoint, Error, Node, Options, Result, Security};

/// A client of one cluster; clones share endpoints and connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) pool: Arc<Pool>,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) roles: Vec<String>,
    pub(crate) request_timeout: Duration,
}

impl Client {
    /// Makes a client; nothing is dialled before the first call.
    ///
    /// # Errors
    /// There is no endpoint, or one cannot be read; the client certificate is expired or not made for clients; the
    /// authorities cannot be used.
    pub fn new(options: Options) -> Result<Self> {
        let dialer = Dialer {
            tls: TlsSetup::new(&options)?,
            proxy: options.proxy.clone(),
            system_roots: options.system_roots,
            connect_timeout: options.connect_timeout,
        };
        let maintenance = matches!(options.security, Security::Maintenance { .. });
        Ok(Self {
            inner: Arc::new(Inner {
                pool: Arc::new(Pool::new(&options.endpoints, dialer, maintenance)?),
                metadata: Arc::new(metadata(&options)?),
                roles: roles(&options.security),
                request_timeout: options.request_timeout,
            }),
        })
    }

    /// Returns a handle whose calls go to one node, named as the endpoints see it.
    pub fn node(&self, name: impl Into<String>) -> Node {
        Node::new(self.clone(), Some(name.into()))
    }

    /// Returns a handle whose calls are answered by whichever endpoint takes them.
    pub fn endpoint(&self) -> Node {
        Node::new(self.clone(), None)
    }

    /// Returns the endpoints, in the order they were given.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.inner.pool.endpoints().cloned().collect()
    }

    /// Does something on many nodes, at most `concurrency` at a time, and returns what came of it on each, in the order
    /// of the nodes.
    pub async fn each<T, E, F, Fut>(
        &self,
        nodes: &[String],
        concurrency: usize,
        run: F,
    ) -> Vec<(String, Result<T, E>)>
    where
        F: Fn(Node) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut outcomes: Vec<_> = futures::stream::iter(nodes.iter().enumerate())
            .map(|(index, name)| {
                let outcome = run(self.node(name));
                async move { (index, name.clone(), outcome.await) }
            })
            .buffer_unordered(concurrency.max(1))
            .collect()
            .await;
        outcomes.sort_by_key(|(index, _, _)| *index);
        outcomes
            .into_iter()
            .map(|(_, name, outcome)| (name, outcome))
            .collect()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoints: Vec<String> = self.endpoints().iter().map(Endpoint::to_string).collect();
        f.debug_struct("Client")
            .field("endpoints", &endpoints)
            .field("roles", &self.inner.roles)
            .finish_non_exhaustive()
    }
}

fn metadata(options: &Options) -> Result<Metadata> {
    let mut metadata = vec![(
        HeaderName::from_static("runtime"),
        HeaderValue::from_static("Talos"),
    )];
    if let Some(cluster) = options.cluster.as_deref().filter(|name| !name.is_empty()) {
        let value = HeaderValue::from_str(cluster).map_err(|_| Error::Cluster {
            text: cluster.to_string(),
        })?;
        metadata.push((HeaderName::from_static("context"), value));
    }
    if let Some(basic) = &options.basic {
        let pair = format!("{}:{}", basic.username, basic.password.reveal());
        let text = format!("Basic {}", STANDARD.encode(pair));
        // Base64 is always a valid header.
        if let Ok(mut value) = HeaderValue::from_str(&text) {
            value.set_sensitive(true);
            metadata.push((http::header::AUTHORIZATION, value));
        }
    }
    Ok(metadata)
}

/// Roles are the organizations of the client certificate; in maintenance mode everybody is a reader.
fn roles(security: &Security) -> Vec<String> {
    match security {
        Security::Maintenance { .. } => vec!["os:reader".to_string()],
        Security::Mutual(credentials) => {
            let leaf = credentials
                .identity
                .as_ref()
                .and_then(|identity| identity.chain.first());
            leaf.map_or_else(Vec::new, |leaf| leaf.organizations().to_vec())
        }
    }
}
