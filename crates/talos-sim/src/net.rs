//! Loopback ports that stay ours while nothing listens on them.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait to be accepted before more are refused.
const BACKLOG: u32 = 1024;

/// A port that can be listened on, closed and listened on again.
///
/// A bound socket that does not listen keeps a port that the system chose: a dial is refused, and
/// no other program gets the number meanwhile.
#[derive(Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    _reservation: Option<TcpSocket>,
}

impl Port {
    /// Reserves an address; port 0 takes any free one.
    pub(crate) fn reserve(address: SocketAddr) -> io::Result<Self> {
        let socket = socket(address)?;
        let chosen = socket.local_addr()?;
        // Other systems than Linux refuse a second socket on the port of the first.
        let keeps = address.port() == 0 && cfg!(target_os = "linux");
        Ok(Self {
            address: chosen,
            _reservation: keeps.then_some(socket),
        })
    }

    /// The address with its real port number.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to listen; dropping the listener makes dials be refused again.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        socket(self.address)?.listen(BACKLOG)
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}
