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
use rustls_pki_types::ServerName;
use talos_client::{DialError, Endpoint, ProxyRules, SystemRoots};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

use crate::{Address, Cause};

/// Dials one fixed address, whatever the request's URI says.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Address,
    /// The host of the address, as TLS asks for it.
    pub(crate) name: ServerName<'static>,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) proxy: Arc<ProxyRules>,
    pub(crate) system_roots: SystemRoots,
    pub(crate) limit: Duration,
}

impl Connector {
    /// Opens a connection and finishes the handshake.
    pub(crate) async fn open(&self) -> Result<Tls, DialFailure> {
        tokio::time::timeout(self.limit, self.handshake())
            .await
            .unwrap_or(Err(DialFailure::Handshake(io::ErrorKind::TimedOut.into())))
    }

    async fn handshake(&self) -> Result<Tls, DialFailure> {
        let endpoint: Result<Endpoint, _> = self.address.to_string().parse();
        let endpoint = endpoint.map_err(|source| DialFailure::Dial(DialError::Name { source }))?;
        let stream = talos_client::open(&endpoint, &self.proxy, self.system_roots).await;
        let stream: Box<dyn Io> = Box::new(stream.map_err(DialFailure::Dial)?);
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let tls = connector.connect(self.name.clone(), stream);
        tls.await.map_err(DialFailure::Handshake)
    }
}

/// Both ends of TCP and proxies look like this.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

type Tls = TlsStream<Box<dyn Io>>;

/// Why a connection did not come about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialFailure {
    /// Nothing could be reached.
    #[error("connecting failed")]
    Dial(#[source] DialError),
    /// The other side was reached, and that was all.
    #[error("the TLS handshake failed")]
    Handshake(#[source] io::Error),
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = DialFailure;
    type Future = BoxFuture<'static, Result<Stream, DialFailure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.open().await.map(|tls| Stream(TokioIo::new(tls))) })
    }
}

/// A TLS connection in the form hyper wants.
pub(crate) struct Stream(TokioIo<Tls>);

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
pub(crate) fn cause(failure: &DialFailure) -> Cause {
    match failure {
        DialFailure::Dial(DialError::Resolve { .. }) => Cause::NameNotFound,
        DialFailure::Dial(DialError::TimedOut { .. }) => Cause::TimedOut,
        DialFailure::Dial(DialError::Connect { source }) => of_io(source),
        DialFailure::Dial(DialError::Proxy { proxy, source }) => Cause::Proxy {
            proxy: proxy.clone(),
            problem: innermost(source),
        },
        DialFailure::Dial(other) => Cause::Connection(innermost(other)),
        DialFailure::Handshake(error) => of_io(error),
    }
}

fn of_io(error: &io::Error) -> Cause {
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
        _ => Cause::Connection(error.to_string()),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
