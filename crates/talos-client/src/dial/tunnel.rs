//! Opening a way through a proxy.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_socks::tcp::Socks5Stream;

use super::{DialError, Io, tcp};
use crate::proxy::Scheme;
use crate::tls;
use crate::{Endpoint, ProxyFailure, ProxyUrl, SystemRoots};

/// Opens a byte stream to the endpoint through a proxy.
pub(super) async fn open(
    proxy: &ProxyUrl,
    endpoint: &Endpoint,
    system_roots: SystemRoots,
) -> Result<Box<dyn Io>, DialError> {
    let failed = |source| DialError::Proxy {
        proxy: proxy.to_string(),
        source,
    };
    let stream = tcp::connect(proxy.host(), proxy.port())
        .await
        .map_err(|error| {
            failed(ProxyFailure::Unreachable {
                source: Box::new(error),
            })
        })?;
    match proxy.scheme() {
        Scheme::Socks5 => socks5(stream, proxy, endpoint).await.map_err(failed),
        Scheme::Http => connect_method(stream, proxy, endpoint)
            .await
            .map_err(failed),
        Scheme::Https => {
            let stream = tls::to_proxy(proxy.host(), stream, system_roots)
                .await
                .map_err(failed)?;
            connect_method(stream, proxy, endpoint)
                .await
                .map_err(failed)
        }
    }
}

async fn socks5(
    tcp: tokio::net::TcpStream,
    proxy: &ProxyUrl,
    endpoint: &Endpoint,
) -> Result<Box<dyn Io>, ProxyFailure> {
    let host = endpoint.host();
    let target = (host.as_str(), endpoint.port());
    let stream = match proxy.credentials() {
        None => Socks5Stream::connect_with_socket(tcp, target).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(tcp, target, user, password).await
        }
    };
    match stream {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(ProxyFailure::Socks {
            source: Arc::new(error),
        }),
    }
}

/// No proxy needs more than this to answer a CONNECT.
const LONGEST_ANSWER: usize = 16 * 1024;

async fn connect_method<S: Io + 'static>(
    mut stream: S,
    proxy: &ProxyUrl,
    endpoint: &Endpoint,
) -> Result<Box<dyn Io>, ProxyFailure> {
    let broken = |source: io::Error| ProxyFailure::Broken {
        source: Arc::new(source),
    };
    let mut request = format!(
        "CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\nUser-Agent: {}\r\n",
        concat!("talos-client/", env!("CARGO_PKG_VERSION"))
    );
    if let Some(value) = proxy.basic_authorization() {
        request.push_str(&format!("Proxy-Authorization: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;

    // Byte by byte: what follows the answer belongs to the other end.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == LONGEST_ANSWER {
            return Err(ProxyFailure::NotHttp);
        }
        answer.push(stream.read_u8().await.map_err(broken)?);
    }
    match status_of(&answer) {
        None => Err(ProxyFailure::NotHttp),
        Some(200) => Ok(Box::new(stream)),
        Some(status) => Err(ProxyFailure::Refused { status }),
    }
}

fn status_of(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_status_is_the_second_word_of_the_first_line() {
        assert_eq!(
            status_of(b"HTTP/1.1 200 Connection established\r\n\r\n"),
            Some(200)
        );
        assert_eq!(status_of(b"HTTP/1.0 407\r\nA: b\r\n\r\n"), Some(407));
        for wrong in [
            &b""[..],
            b"SSH-2.0-x\r\n",
            b"HTTP/2 200\r\n",
            b"HTTP/1.1\r\n",
            b"\xff 200\r\n",
        ] {
            assert_eq!(status_of(wrong), None);
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = status_of(&bytes);
        }
    }
}
