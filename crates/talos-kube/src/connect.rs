//! Connections to one address, over TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use talos_pki::Name;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

use crate::verify::server_name;
use crate::{Address, Cause};

/// Dials one fixed address, whatever the request's URI says.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Address,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) limit: Duration,
}

impl Connector {
    /// Opens a connection and finishes the handshake.
    pub(crate) async fn open(&self) -> io::Result<TlsStream<TcpStream>> {
        let timed_out = |_| io::Error::from(io::ErrorKind::TimedOut);
        tokio::time::timeout(self.limit, self.handshake())
            .await
            .map_err(timed_out)?
    }

    async fn handshake(&self) -> io::Result<TlsStream<TcpStream>> {
        let Address { host, port } = &self.address;
        let stream = match host {
            Name::Ip(address) => TcpStream::connect((*address, *port)).await?,
            Name::Dns(name) => TcpStream::connect((name.as_str(), *port)).await?,
        };
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        connector.connect(server_name(host), stream).await
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.open().await.map(|tls| Stream(TokioIo::new(tls))) })
    }
}

/// A TLS connection in the form hyper wants.
pub(crate) struct Stream(TokioIo<TlsStream<TcpStream>>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Names the reason why a connection could not be opened.
pub(crate) fn cause(error: &io::Error) -> Cause {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(tls) = tls {
        return Cause::Tls(tls.to_string());
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Cause::ConnectionRefused,
        io::ErrorKind::TimedOut => Cause::TimedOut,
        io::ErrorKind::ConnectionReset => Cause::Connection("connection reset".to_owned()),
        io::ErrorKind::UnexpectedEof => Cause::Connection("connection closed".to_owned()),
        // The resolver's failures have no kind of their own.
        _ if error.to_string().contains("failed to lookup address") => Cause::NameNotFound,
        _ => Cause::Connection(error.to_string()),
    }
}
