//! Which node a call concerns: itself, another one, or several.

use std::sync::Arc;

use futures::StreamExt as _;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Body as _;
use hyper::body::Frame;
use prost::bytes::Bytes;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::apid::call::{self, Caller, values};
use crate::apid::fanout;
use crate::faults::Reach;
use crate::node::NodeState;
use crate::options::TalosVersion;
use crate::shared::Shared;

/// Services whose methods may be sent to several nodes at once, since Talos 1.12.
const FAN_OUT: [&str; 5] = [
    "/machine.MachineService/",
    "/cluster.ClusterService/",
    "/inspect.InspectService/",
    "/storage.StorageService/",
    "/time.TimeService/",
];

/// Where a call goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Route {
    Here,
    One(String),
    Many(Vec<String>),
}

/// Answers a call that arrived at a node's apid.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    caller: Caller,
    request: Request<Body>,
) -> Response<Body> {
    let node = shared.nodes[caller.via].clone();
    match route(&shared, &node, request.uri().path(), request.headers()) {
        Ok(Route::Here) => call::local(&shared, &node, &caller, request).await,
        Ok(Route::One(target)) => match reach(&shared, &node, &target).await {
            Ok(target) => {
                let response = call::local(&shared, &target, &caller, request).await;
                cut_when_gone(&target, response)
            }
            Err(status) => status.into_http(),
        },
        Ok(Route::Many(targets)) => fanout::many(&shared, &node, &caller, targets, request).await,
        Err(status) => status.into_http(),
    }
}

/// Decides as facts/api-semantics.md §3.1 lists it.
fn route(
    shared: &Shared,
    node: &NodeState,
    method: &str,
    headers: &HeaderMap,
) -> Result<Route, Status> {
    if node.configs.in_maintenance() || headers.contains_key("proxyfrom") {
        return Ok(Route::Here);
    }
    let mut one = values(headers, "node");
    let mut many = values(headers, "nodes");
    if one.len() > 1 {
        return Err(Status::invalid_argument(
            "node metadata must be single-valued",
        ));
    }
    let forwards = node.is_control_plane();
    if !forwards {
        if one.first().is_some_and(|target| node.is_called(target)) {
            one.clear();
        }
        if many.len() == 1 && node.is_called(&many[0]) {
            many.clear();
        }
    }
    if !many.is_empty() {
        if !fans_out(shared.options.talos_version, method) {
            let text = format!("one-2-many proxying is not supported for method {method}");
            return Err(Status::invalid_argument(text));
        }
        check_forwarding(forwards)?;
        many.iter().try_for_each(|target| check_target(target))?;
        return Ok(Route::Many(many));
    }
    let Some(target) = one.pop() else {
        return Ok(Route::Here);
    };
    check_forwarding(forwards)?;
    check_target(&target)?;
    Ok(Route::One(target))
}

fn fans_out(version: TalosVersion, method: &str) -> bool {
    match version {
        TalosVersion::V1_11_5 => !method.starts_with("/cosi."),
        _ => FAN_OUT.iter().any(|service| method.starts_with(service)),
    }
}

fn check_forwarding(forwards: bool) -> Result<(), Status> {
    if forwards {
        return Ok(());
    }
    Err(Status::permission_denied("no request forwarding"))
}

fn check_target(target: &str) -> Result<(), Status> {
    let has_port = target.parse::<std::net::SocketAddr>().is_ok()
        || target.parse::<std::net::IpAddr>().is_err() && target.contains(':');
    if target.is_empty() || has_port {
        return Err(Status::internal(format!("invalid target {target:?}")));
    }
    Ok(())
}

/// Finds the node that a forwarding apid would dial, as that node is right now.
pub(crate) async fn reach(
    shared: &Shared,
    from: &NodeState,
    target: &str,
) -> Result<Arc<NodeState>, Status> {
    let failed = |reason: &str| {
        let address = shared
            .find(target)
            .map_or(target.to_owned(), |node| node.address.to_string());
        Status::unavailable(format!(
            "connection error: desc = \"transport: Error while dialing: dial tcp {address}:50000: {reason}\""
        ))
    };
    let Some(node) = shared.find(target) else {
        tokio::time::sleep(shared.options.delays.dial_failure).await;
        return Err(failed("connect: no route to host"));
    };
    if node.index != from.index {
        match node.faults.reach() {
            Reach::Up => {}
            Reach::Refusing => {
                tokio::time::sleep(shared.options.delays.dial_failure).await;
                return Err(failed("connect: connection refused"));
            }
            Reach::Silent => {
                tokio::time::sleep(shared.options.delays.dial_timeout).await;
                return Err(failed("i/o timeout"));
            }
        }
    }
    if node.configs.in_maintenance() {
        let text = "connection error: desc = \"transport: authentication handshake failed: tls: \
            failed to verify certificate: x509: certificate signed by unknown authority\"";
        return Err(Status::unavailable(text));
    }
    if node.index != from.index {
        from.check_peer(node).map_err(|reason| {
            Status::unavailable(format!("connection error: desc = \"{reason}\""))
        })?;
    }
    Ok(node.clone())
}

/// Ends a forwarded answer when the node that gives it loses its connections.
pub(crate) fn cut_when_gone(target: &NodeState, response: Response<Body>) -> Response<Body> {
    let mut drops = target.faults.watch_drops();
    drops.mark_unchanged();
    response.map(|body| {
        // An error without content travels in the headers, and nothing may follow it.
        if body.is_end_stream() {
            return body;
        }
        let frames = futures::stream::unfold(Some((body, drops)), |state| async move {
            let (mut body, mut drops) = state?;
            tokio::select! {
                frame = body.frame() => Some((frame?, Some((body, drops)))),
                _ = drops.changed() => Some((Ok(lost()), None)),
            }
        });
        Body::new(StreamBody::new(frames.boxed()))
    })
}

/// The trailers of a stream whose connection broke.
fn lost() -> Frame<Bytes> {
    let status = Status::new(Code::Unavailable, "error reading from server: EOF");
    let mut trailers = HeaderMap::new();
    match status.add_header(&mut trailers) {
        Ok(()) => Frame::trailers(trailers),
        Err(_) => Frame::trailers(HeaderMap::new()),
    }
}
