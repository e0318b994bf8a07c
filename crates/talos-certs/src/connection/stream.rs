//! A socket that remembers how the server's side of the conversation began.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that are remembered.
const BEGINNING: usize = 8;

/// A TCP connection that remembers the first bytes it received.
pub(super) struct Watched {
    socket: TcpStream,
    beginning: Vec<u8>,
}

impl Watched {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            beginning: Vec::with_capacity(BEGINNING),
        }
    }

    /// Tells whether the server began with these bytes.
    pub(super) fn began_with(&self, bytes: &[u8]) -> bool {
        self.beginning.starts_with(bytes)
    }

    /// Tells whether the server began with a TLS record: a content type from 20 to 24 and major version 3.
    pub(super) fn began_like_tls(&self) -> bool {
        matches!(self.beginning.as_slice(), [20..=24, 3, ..])
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        let missing = BEGINNING - self.beginning.len();
        if missing > 0 {
            let new = &buffer.filled()[before..];
            self.beginning.extend(new.iter().take(missing));
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
