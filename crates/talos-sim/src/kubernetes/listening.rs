//! The socket of a kube-apiserver: accepting, refusing and going away.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::api::ApiServer;
use crate::faults::Reach;
use crate::node::NodeState;
use crate::servers::{Server, secure};

/// How long a connection may still finish answers after the server was told to stop.
const GRACE: Duration = Duration::from_millis(50);

/// Serves the API on a port until the cluster stops.
pub(crate) async fn serve(
    server: Arc<ApiServer>,
    node: Arc<NodeState>,
    mut first: Option<TcpListener>,
) {
    let Some(port) = node.ports.get(&Server::KubeApiServer) else {
        return;
    };
    let mut running = server.member.running.subscribe();
    let mut reach = server.member.faults.watch_reach();
    loop {
        let state = (*running.borrow_and_update(), *reach.borrow_and_update());
        let listener = match state {
            (true, Reach::Up | Reach::Silent) => first.take().or_else(|| port.listen().ok()),
            _ => {
                first = None;
                None
            }
        };
        let life = CancellationToken::new();
        let _ends_connections = life.clone().drop_guard();
        loop {
            let accepted = async {
                match &listener {
                    Some(listener) => listener.accept().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = running.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                changed = reach.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Ok((stream, _)) = accepted => {
                    let life = life.clone();
                    if state.1 == Reach::Silent {
                        tokio::spawn(async move {
                            life.cancelled().await;
                            drop(stream);
                        });
                    } else {
                        let (server, node) = (Arc::clone(&server), Arc::clone(&node));
                        tokio::spawn(connection(server, node, stream, life));
                    }
                }
            }
        }
    }
}

/// Answers the requests of one connection.
async fn connection(
    server: Arc<ApiServer>,
    node: Arc<NodeState>,
    stream: TcpStream,
    life: CancellationToken,
) {
    let _unused = stream.set_nodelay(true);
    let handshake = secure(&server.shared, &node, Server::KubeApiServer, stream);
    let Some(Some(stream)) = life.run_until_cancelled(handshake).await else {
        return;
    };
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let user = node.kubernetes_user(&server.shared, chain);
    let answering = Arc::clone(&server);
    let service = service_fn(move |request| {
        let (server, user) = (Arc::clone(&answering), user.clone());
        async move { Ok::<_, Infallible>(server.answer(user, request).await) }
    });
    let builder = Builder::new(TokioExecutor::new());
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let stopped = tokio::select! {
        _ended = serving.as_mut() => false,
        () = life.cancelled() => true,
    };
    if stopped {
        serving.as_mut().graceful_shutdown();
        let _cut = tokio::time::timeout(GRACE, serving).await;
    }
}
