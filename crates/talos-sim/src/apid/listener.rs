//! Accepts connections to one node's apid, for as long as the node is up.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use talos_pki::Certificate;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

use crate::apid::call::Caller;
use crate::apid::router;
use crate::faults::Reach;
use crate::net::Port;
use crate::node::NodeState;
use crate::servers::{Server, secure};
use crate::shared::Shared;

/// Flow control windows of the real servers, in bytes.
const STREAM_WINDOW: u32 = 65_535 * 32;
const CONNECTION_WINDOW: u32 = 65_535 * 16;
/// How long a failed accept pauses, for instance when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);
/// The role of everybody in maintenance mode.
const STRANGER: &str = "os:reader";

/// Serves a node's apid until the cluster stops; goes down and comes up again as the node does.
pub(crate) async fn serve(shared: Arc<Shared>, node: Arc<NodeState>, first: TcpListener) {
    let mut reach = node.faults.watch_reach();
    let mut listener = Some(first);
    loop {
        let now = *reach.borrow_and_update();
        if now == Reach::Refusing {
            listener = None;
        } else if listener.is_none() {
            let port = node.ports.get(&Server::Apid);
            listener = port.map(Port::listen).and_then(Result::ok);
        }
        match (&listener, now) {
            (Some(listener), Reach::Up) => {
                tokio::select! {
                    () = accept(&shared, &node, listener) => {}
                    changed = reach.changed() => if changed.is_err() { return },
                }
            }
            (None, Reach::Up | Reach::Silent) => tokio::time::sleep(ACCEPT_PAUSE).await,
            _ => {
                if reach.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn accept(shared: &Arc<Shared>, node: &Arc<NodeState>, listener: &TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let mut drops = node.faults.watch_drops();
        drops.mark_unchanged();
        let work = connection(shared.clone(), node.clone(), stream, drops);
        shared.spawn(work);
    }
}

/// Serves one connection until the client leaves or the node drops it.
async fn connection(
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    stream: TcpStream,
    mut drops: watch::Receiver<u64>,
) {
    let streams = CancellationToken::new();
    let _guard = streams.clone().drop_guard();
    tokio::select! {
        () = speak(shared, node, stream, streams) => {}
        _ = drops.changed() => {}
    }
}

async fn speak(
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    stream: TcpStream,
    streams: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let in_maintenance = node.configs.in_maintenance();
    let Some(stream) = secure(&shared, &node, Server::Apid, stream).await else {
        return;
    };
    let organizations: Arc<[String]> = if in_maintenance {
        Arc::new([STRANGER.to_owned()])
    } else {
        let leaf = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(<[_]>::first);
        let leaf = leaf.and_then(|der| Certificate::from_der(der).ok());
        leaf.map(|leaf| leaf.organizations().to_vec())
            .unwrap_or_default()
            .into()
    };
    let caller = Caller {
        organizations,
        via: node.index,
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, caller) = (shared.clone(), caller.clone());
        async move {
            let answer = router::handle(shared, caller, request.map(Body::new)).await;
            Ok::<Response<Body>, Infallible>(answer)
        }
    });
    // The client's own fault if this fails: it has gone or broke the protocol.
    let _ended = http2::Builder::new(Streams(streams))
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(None)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Runs the streams of one connection, and ends them with it.
#[derive(Clone)]
struct Streams(CancellationToken);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let token = self.0.clone();
        tokio::spawn(async move {
            let _cut = token.run_until_cancelled_owned(stream).await;
        });
    }
}
