//! Dialling one endpoint: TCP, perhaps through a proxy, TLS, and the first words of HTTP/2.

mod tcp;
mod tunnel;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::tls::{Record, TlsSetup, Watched, server_name};
use crate::{Endpoint, EndpointError, ProxyFailure, ProxyRules, SystemRoots, TlsRefusal};

/// An endpoint that was tried in vain.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// What went wrong.
    pub cause: DialError,
}

impl Attempt {
    pub(crate) fn timed_out(&self) -> bool {
        matches!(self.cause, DialError::TimedOut { .. })
    }
}

impl fmt::Display for Attempt {
    /// Writes the endpoint with the whole chain of causes: several attempts are no one chain of sources.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.endpoint, self.cause)?;
        let mut source = std::error::Error::source(&self.cause);
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// Tells why an endpoint cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The name cannot be resolved.
    #[error("the name cannot be resolved")]
    Resolve {
        /// What the resolver says.
        source: Arc<io::Error>,
    },
    /// No TCP connection comes about.
    #[error("connecting failed")]
    Connect {
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// The endpoint did not answer in time.
    #[error("no answer within {after:?}")]
    TimedOut {
        /// How long it was waited.
        after: Duration,
    },
    /// The proxy does not let us through.
    #[error("proxy {proxy} does not let us through")]
    Proxy {
        /// The proxy, without its password.
        proxy: String,
        /// What it does instead.
        source: ProxyFailure,
    },
    /// The host of the endpoint cannot be verified in a certificate.
    #[error("the endpoint cannot be verified")]
    Name {
        /// What is wrong with it.
        source: EndpointError,
    },
    /// One side refused the other in TLS.
    #[error("TLS refused")]
    Tls {
        /// Who refused what.
        source: TlsRefusal,
    },
    /// The connection ended before the server said anything.
    #[error("the connection ended before the server said anything")]
    Ended {
        /// What the transport says.
        source: Arc<io::Error>,
    },
}

/// A living connection to one endpoint.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    pub(crate) sender: http2::SendRequest<tonic::body::Body>,
    pub(crate) record: Arc<Record>,
}

impl Connection {
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// What dialling needs beside the endpoint.
pub(crate) struct Dialer {
    pub(crate) tls: TlsSetup,
    pub(crate) proxy: ProxyRules,
    pub(crate) system_roots: SystemRoots,
    pub(crate) connect_timeout: Duration,
}

/// Both ends of TCP, proxies and TLS look like this.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Dialer {
    /// Returns a connection over which the server has spoken, so that it has accepted our certificate.
    pub(crate) async fn dial(&self, endpoint: &Endpoint) -> Result<Connection, DialError> {
        let after = self.connect_timeout;
        match tokio::time::timeout(after, self.dial_patiently(endpoint)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(DialError::TimedOut { after }),
        }
    }

    async fn dial_patiently(&self, endpoint: &Endpoint) -> Result<Connection, DialError> {
        let name = endpoint.name();
        let server = server_name(&name).ok_or(DialError::Name {
            source: EndpointError::Host,
        })?;
        let stream = open(endpoint, &self.proxy, self.system_roots).await?;
        let stream = self
            .tls
            .handshake(name, server, Box::new(stream))
            .await
            .map_err(|source| match source {
                Ok(source) => DialError::Tls { source },
                Err(source) => DialError::Ended {
                    source: Arc::new(source),
                },
            })?;
        speak(endpoint.clone(), stream).await
    }
}

/// Opens a byte stream to an endpoint, through a proxy where the rules say so; TLS is the caller's. The system's roots
/// are read only for a proxy that is spoken to over TLS.
///
/// # Errors
/// The name cannot be resolved, or the endpoint or the proxy does not let us through. It waits as long as they do.
pub async fn open(
    endpoint: &Endpoint,
    proxy: &ProxyRules,
    system_roots: SystemRoots,
) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, DialError> {
    let stream: Box<dyn Io> = match proxy.for_endpoint(endpoint) {
        None => Box::new(tcp::connect(&endpoint.host(), endpoint.port()).await?),
        Some(proxy) => tunnel::open(proxy, endpoint, system_roots).await?,
    };
    Ok(stream)
}

/// Starts HTTP/2 and waits for the server's first words: in TLS 1.3 the server judges our certificate after the
/// handshake is over for us, and what it says then is either settings or an alert.
async fn speak(endpoint: Endpoint, stream: Watched) -> Result<Connection, DialError> {
    let record = stream.record();
    let ended = |source: hyper::Error| match record.refusal() {
        Some(source) => DialError::Tls { source },
        None => DialError::Ended {
            source: Arc::new(io::Error::other(source)),
        },
    };
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(LONGEST_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(ended)?;
    let (tell_end, end) = oneshot::channel();
    tokio::spawn(async move {
        // Nobody listens any more once the server has spoken; the record keeps what matters.
        let _ = tell_end.send(connection.await);
    });
    tokio::select! {
        biased;
        () = record.spoken() => Ok(Connection { endpoint, sender, record: record.clone() }),
        outcome = end => Err(match outcome {
            Ok(Err(error)) => ended(error),
            _ => match record.refusal() {
                Some(source) => DialError::Tls { source },
                None => DialError::Ended {
                    source: Arc::new(io::ErrorKind::UnexpectedEof.into()),
                },
            },
        }),
    }
}

/// The windows that Talos' own client uses.
const STREAM_WINDOW: u32 = 65535 * 32;
const CONNECTION_WINDOW: u32 = 65535 * 16;

/// What a node says about a refusal comes in a header, and can be long: a difference of configurations, for one.
const LONGEST_HEADERS: u32 = 16 * 1024 * 1024;
