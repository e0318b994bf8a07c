//! Connecting to a host: to whichever of its addresses answers, noticing when the other side is gone.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::net::TcpStream;
use tower::{ServiceExt as _, service_fn};

use super::DialError;

/// After this long without a word, the other side's system is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How often it is asked before the connection counts as broken.
const KEEPALIVE_TRIES: u32 = 4;

#[derive(Debug, thiserror::Error)]
#[error("no address")]
struct Unresolved(#[source] io::Error);

/// Connects to a host, IPv6 without brackets.
pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let resolve = service_fn(|name: Name| async move {
        let found = tokio::net::lookup_host((name.as_str(), 0)).await;
        let found = found.map_err(Unresolved)?;
        Ok::<_, Unresolved>(found.collect::<Vec<_>>().into_iter())
    });
    let mut connector = HttpConnector::new_with_resolver(resolve);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE));
    connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    match connector.oneshot(address(host, port)?).await {
        Ok(stream) => Ok(stream.into_inner()),
        Err(error) => Err(explain(&error)),
    }
}

fn address(host: &str, port: u16) -> Result<Uri, DialError> {
    let text = match host.contains(':') {
        true => format!("http://[{host}]:{port}"),
        false => format!("http://{host}:{port}"),
    };
    text.parse().map_err(|_| DialError::Resolve {
        source: Arc::new(io::ErrorKind::InvalidInput.into()),
    })
}

fn explain(error: &(dyn Error + 'static)) -> DialError {
    if let Some(Unresolved(source)) = find(error) {
        return DialError::Resolve {
            source: Arc::new(copy(source)),
        };
    }
    let source = find(error).map_or_else(|| io::Error::other(error.to_string()), copy);
    DialError::Connect {
        source: Arc::new(source),
    }
}

/// Finds the first error of a type among an error and its causes.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
