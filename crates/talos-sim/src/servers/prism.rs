//! KubePrism: forwards to a kube-apiserver that answers.

use std::sync::Arc;

use tokio::net::TcpStream;

use super::Server;
use crate::node::NodeState;
use crate::shared::Shared;

/// Carries bytes between a client and the first kube-apiserver that takes the connection, the node's own first.
pub(crate) async fn forward(shared: &Shared, node: &Arc<NodeState>, mut client: TcpStream) {
    let own = std::iter::once(node).filter(|node| node.is_control_plane());
    let others = shared
        .control_planes()
        .filter(|other| other.index != node.index);
    for target in own.chain(others) {
        let Some(port) = target.ports.get(&Server::KubeApiServer) else {
            continue;
        };
        if let Ok(mut server) = TcpStream::connect(port.address()).await {
            // Either side may end as it likes.
            let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}
