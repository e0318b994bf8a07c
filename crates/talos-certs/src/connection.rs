//! One TLS connection that is opened only to see the server's certificate.

mod recorder;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use rustls_pki_types::{CertificateDer, IpAddr, ServerName};
use talos_client::{ServerVerifier, VerifierError, server_name};
use talos_pki::{Certificate, Name};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Error;
use crate::probe::{Alert, Failure, Outcome, Probe, ProbeOptions, TlsVersion};
use recorder::{Recorder, Seen};
use stream::Watched;

/// Longest wait for a server that asked for a client certificate to say that it misses one.
const REFUSAL: Duration = Duration::from_secs(1);

/// Whom a connection trusts.
pub(crate) enum Trust {
    /// Nobody: every certificate is looked at and none is believed.
    Nobody,
    /// Those whom this verifier accepts.
    Verified(Arc<ServerVerifier>),
}

impl Trust {
    pub(crate) fn authorities(
        name: &Name,
        authorities: &[Certificate],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(
            authorities
                .iter()
                .map(|authority| CertificateDer::from(authority.der().to_vec())),
        );
        let verifier = ServerVerifier::new(roots, std::slice::from_ref(name), now);
        match verifier {
            Ok(verifier) => Ok(Self::Verified(Arc::new(verifier))),
            Err(VerifierError::Name { name }) => Err(Error::Name { name }),
            Err(_) => Err(Error::Authorities {
                count: authorities.len(),
            }),
        }
    }
}

/// Opens a connection, notes what the server presents and says, and closes it; the second value is why the certificate
/// does not verify, if somebody is trusted and it does not.
pub(crate) async fn open(
    address: SocketAddr,
    options: &ProbeOptions,
    trust: Trust,
) -> (Probe, Option<rustls::Error>) {
    let recorder = Arc::new(Recorder::new(trust));
    let outcome = talk(address, options, &recorder).await;
    let Seen {
        presented,
        rejection,
        ..
    } = recorder.take();
    let (chain, unreadable) = read(&presented);
    let outcome = match (outcome, unreadable) {
        (Outcome::Completed { .. } | Outcome::Refused { .. }, Some(failure)) => {
            Outcome::Failed(failure)
        }
        (outcome, _) => outcome,
    };
    let probe = Probe {
        address,
        chain,
        presented,
        outcome,
    };
    (probe, rejection)
}

async fn talk(address: SocketAddr, options: &ProbeOptions, recorder: &Arc<Recorder>) -> Outcome {
    let deadline = Instant::now() + options.timeout;
    let socket = match timeout_at(deadline, TcpStream::connect(address)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => return Outcome::Failed(unreachable(&error)),
        Err(_) => return Outcome::Failed(Failure::ConnectTimedOut),
    };
    let config = match config(options, recorder) {
        Ok(config) => config,
        Err(error) => return Outcome::Failed(protocol(&error)),
    };
    let name = options.server_name.as_ref().and_then(server_name);
    let name = name.unwrap_or_else(|| ServerName::IpAddress(IpAddr::from(address.ip())));
    let mut watched = Watched::new(socket);
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, &mut watched);
    let shaken = timeout_at(deadline, connecting).await;
    let mut stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            let presented = recorder.has_chain();
            return failed(&error, presented, &watched);
        }
        Err(_) => return Outcome::Failed(Failure::HandshakeTimedOut),
    };
    let asked = recorder.was_asked();
    if asked && let Some(refused) = refusal(&mut stream, deadline).await {
        return refused;
    }
    let (_, session) = stream.get_ref();
    Outcome::Completed {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => TlsVersion::V1_2,
            _ => TlsVersion::V1_3,
        },
        http2: session.alpn_protocol() == Some(b"h2"),
        asks_for_client_certificate: asked,
    }
}

/// In TLS 1.3 our side is done before the server looks at our missing certificate: it answers with an alert, by closing,
/// or with the first bytes of its protocol.
async fn refusal(stream: &mut TlsStream<&mut Watched>, deadline: Instant) -> Option<Outcome> {
    let mut byte = [0];
    let until = deadline.min(Instant::now() + REFUSAL);
    match timeout_at(until, stream.read(&mut byte)).await {
        Ok(Ok(0)) => Some(Outcome::Refused { alert: None }),
        Ok(Err(error)) => Some(Outcome::Refused {
            alert: alert(&error),
        }),
        Ok(Ok(_)) | Err(_) => None,
    }
}

fn failed(error: &io::Error, presented: bool, watched: &Watched) -> Outcome {
    if presented {
        return Outcome::Refused {
            alert: alert(error),
        };
    }
    Outcome::Failed(match tls_error(error) {
        Some(rustls::Error::AlertReceived(alert)) => Failure::Alert {
            alert: Alert::new(*alert),
        },
        Some(rustls::Error::PeerIncompatible(_)) => Failure::Incompatible,
        Some(_) if watched.began_with(b"HTTP/") => Failure::PlainHttp,
        Some(_) if !watched.began_like_tls() => Failure::NotTls,
        Some(error) => protocol(error),
        None => Failure::Closed,
    })
}

fn unreachable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::ConnectionRefused,
        io::ErrorKind::TimedOut => Failure::ConnectTimedOut,
        _ => Failure::Unreachable {
            message: error.to_string(),
        },
    }
}

fn protocol(error: &rustls::Error) -> Failure {
    Failure::Protocol {
        message: error.to_string(),
    }
}

fn alert(error: &io::Error) -> Option<Alert> {
    match tls_error(error) {
        Some(rustls::Error::AlertReceived(alert)) => Some(Alert::new(*alert)),
        _ => None,
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn config(options: &ProbeOptions, recorder: &Arc<Recorder>) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::<Recorder>::clone(recorder))
        .with_client_cert_resolver(Arc::<Recorder>::clone(recorder));
    if options.http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    Ok(config)
}

/// Reads the certificates up to the first that is malformed.
fn read(presented: &[Vec<u8>]) -> (Vec<Certificate>, Option<Failure>) {
    let mut chain = Vec::new();
    for (der, number) in presented.iter().zip(1..) {
        match Certificate::from_der(der) {
            Ok(certificate) => chain.push(certificate),
            Err(error) => {
                let message = format!("certificate {number}: {error}");
                return (chain, Some(Failure::UnreadableCertificate { message }));
            }
        }
    }
    (chain, None)
}
