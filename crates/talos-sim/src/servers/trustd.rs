//! trustd: signs the certificates of workers that know the machine token.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::SignedDuration;
use serde_json::Value;
use talos_api::securityapi::{CertificateRequest, CertificateResponse};
use talos_pki::SigningRequest;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tonic::Status;
use tonic::body::Body;

use crate::grpc;
use crate::node::NodeState;
use crate::shared::Shared;

/// The one method.
const CERTIFICATE: &str = "/securityapi.SecurityService/Certificate";
/// Lifetime of what trustd signs.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Serves one connection.
pub(crate) async fn speak(shared: Arc<Shared>, node: Arc<NodeState>, stream: TlsStream<TcpStream>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, node) = (shared.clone(), node.clone());
        async move {
            let answer = answer(shared, node, request.map(Body::new)).await;
            Ok::<Response<Body>, Infallible>(answer)
        }
    });
    // The client's own fault if this fails: it has gone or broke the protocol.
    let _ended = http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    request: Request<Body>,
) -> Response<Body> {
    let token = request
        .headers()
        .get("token")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let expected = node.documents().and_then(|config| {
        config
            .at("/machine/token")
            .and_then(Value::as_str)
            .map(str::to_owned)
    });
    if token.is_none() || token != expected {
        return Status::unauthenticated("invalid token").into_http();
    }
    if request.uri().path() != CERTIFICATE {
        return Status::unimplemented("unknown method").into_http();
    }
    grpc::unary(false, request, |message: CertificateRequest| async move {
        sign(&shared, &node, &message)
    })
    .await
}

fn sign(
    shared: &Shared,
    node: &NodeState,
    message: &CertificateRequest,
) -> Result<CertificateResponse, Status> {
    let refused =
        |error: talos_pki::Error| Status::internal(format!("failed to sign CSR: {error}"));
    let request = SigningRequest::from_pem(&message.csr).map_err(refused)?;
    let trust = node.trust();
    let signer = trust.talos.signer.as_ref();
    let signer = signer.ok_or_else(|| Status::internal("no issuing CA"))?;
    let certificate = signer
        .sign_server_request(&request, DAY, node.now(shared))
        .map_err(refused)?;
    Ok(CertificateResponse {
        ca: trust.talos.all_pem().into_bytes(),
        crt: certificate.pem().into_bytes(),
    })
}
