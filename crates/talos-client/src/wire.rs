//! The way of one request: metadata, an endpoint, the connection, and a trace of it for errors.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{HeaderName, HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use tonic::body::Body;

use crate::Call;
use crate::dial::{Attempt, Connection};
use crate::pool::{Pool, Unavailable};

/// Metadata that every request of a client carries.
pub(crate) type Metadata = Vec<(HeaderName, HeaderValue)>;

/// Carries requests for one node; generated clients sit on top of it.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) pool: Arc<Pool>,
    pub(crate) metadata: Arc<Metadata>,
    pub(crate) node: Option<String>,
    pub(crate) trace: Arc<Trace>,
}

/// What became of one request.
#[derive(Default)]
pub(crate) struct Trace {
    inner: Mutex<Steps>,
}

#[derive(Default)]
struct Steps {
    method: String,
    attempts: Vec<Attempt>,
    connection: Option<Arc<Connection>>,
}

impl Trace {
    pub(crate) fn call(&self, node: Option<&str>) -> Box<Call> {
        let steps = self.steps();
        let endpoint = steps.connection.as_ref().map(|live| &live.endpoint);
        Box::new(Call {
            node: node.map(str::to_string),
            endpoint: endpoint.map_or_else(String::new, ToString::to_string),
            method: steps.method.trim_start_matches('/').to_string(),
        })
    }

    pub(crate) fn method(&self) -> String {
        self.steps().method.clone()
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.steps().attempts.clone()
    }

    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        self.steps().connection.clone()
    }

    fn steps(&self) -> std::sync::MutexGuard<'_, Steps> {
        self.inner
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Why a request was not answered by a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("no endpoint answers")]
    NoEndpoint,
    #[error("the node is not among the endpoints")]
    UnknownNode,
    #[error("{0:?} cannot be the name or address of a node")]
    NodeName(String),
    #[error("{0}")]
    Lost(String),
}

/// How often a request that a dying connection never took is given to another one.
const TRIES: usize = 3;

impl Wire {
    async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, TransportError> {
        let mut request = self.addressed(request)?;
        self.trace.steps().method = request.uri().path().to_string();
        let mut tries = 1;
        loop {
            let connection = self
                .pool
                .connection(self.node.as_deref(), |attempt| {
                    self.trace.steps().attempts.push(attempt);
                })
                .await
                .map_err(|error| match error {
                    Unavailable::Tried => TransportError::NoEndpoint,
                    Unavailable::Unknown => TransportError::UnknownNode,
                })?;
            self.trace.steps().connection = Some(connection.clone());
            *request.uri_mut() = at_endpoint(request.uri(), &connection);
            let mut sender = connection.sender.clone();
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    Some(untouched) if tries < TRIES => request = untouched,
                    _ => return Err(TransportError::Lost(chain(error.error()))),
                },
            }
            tries += 1;
        }
    }

    fn addressed(&self, mut request: Request<Body>) -> Result<Request<Body>, TransportError> {
        let headers = request.headers_mut();
        for (name, value) in self.metadata.iter() {
            headers.insert(name, value.clone());
        }
        if let Some(node) = &self.node
            && self.pool.forwards()
        {
            let value = HeaderValue::from_str(node)
                .ok()
                .filter(|value| !value.is_empty())
                .ok_or_else(|| TransportError::NodeName(node.clone()))?;
            headers.insert(NODE, value);
        }
        Ok(request)
    }
}

const NODE: HeaderName = HeaderName::from_static("node");

fn at_endpoint(uri: &Uri, connection: &Connection) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(http::uri::Scheme::HTTPS);
    if let Ok(authority) = connection.endpoint.to_string().parse() {
        parts.authority = Some(authority);
    }
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Puts an error and all its causes into one text.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl tower::Service<Request<Body>> for Wire {
    type Response = Response<Incoming>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
