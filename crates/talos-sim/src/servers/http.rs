//! What kubelet and etcd answer over HTTP, which is next to nothing.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use prost::bytes::Bytes;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::Server;
use crate::kubernetes::User;
use crate::node::NodeState;
use crate::shared::Shared;

/// Serves one connection.
pub(crate) async fn speak(
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    server: Server,
    stream: TlsStream<TcpStream>,
) {
    let user = match server {
        Server::Kubelet => {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            node.kubernetes_user(&shared, chain)
        }
        _ => None,
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (status, text) = match server {
            Server::Kubelet => kubelet(user.as_ref(), request.uri().path()),
            Server::EtcdClient => etcd(request.uri().path()),
            _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
        };
        async move { Ok::<_, Infallible>(answer(status, text)) }
    });
    // The client's own fault if this fails: it has gone or broke the protocol.
    let _ended = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn kubelet(user: Option<&User>, path: &str) -> (StatusCode, String) {
    let Some(user) = user else {
        return (StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
    };
    if !user.groups.iter().any(|group| group == "system:masters") {
        let text = format!(
            "Forbidden (user={}, verb=get, resource=nodes, subresource(s)=[proxy])",
            user.name
        );
        return (StatusCode::FORBIDDEN, text);
    }
    match path {
        "/healthz" => (StatusCode::OK, "ok".to_owned()),
        _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
    }
}

fn etcd(path: &str) -> (StatusCode, String) {
    match path {
        "/health" => (
            StatusCode::OK,
            r#"{"health":"true","reason":""}"#.to_owned(),
        ),
        "/version" => {
            let text = r#"{"etcdserver":"3.6.12","etcdcluster":"3.6.0"}"#;
            (StatusCode::OK, text.to_owned())
        }
        _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
    }
}

fn answer(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
