//! Where metrics go: a file for a collector that reads files, and a port for one that asks.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use http::{Method, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use talos_certs::{Change, LastErrors, Snapshot, metrics};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::gather::Judged;
use crate::error::{Code, Error};
use crate::files::{self, Access};
use crate::output::Output;

/// Content type of the text format, of which OpenMetrics is the standard.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where metrics go.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// Write metrics to this file after each look, for a collector of text files
    #[arg(long, value_name = "FILE")]
    pub(super) textfile: Option<PathBuf>,
    /// Serve metrics at http://ADDRESS/metrics; :PORT listens on all addresses
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub(super) listen: Option<SocketAddr>,
}

/// Takes one look after the other and hands its metrics out.
pub(super) struct Exporter {
    textfile: Option<PathBuf>,
    served: Option<watch::Sender<String>>,
    before: Snapshot,
    last_errors: LastErrors,
}

impl Exporter {
    /// Begins to listen where that was asked for.
    pub(super) async fn start(args: &ExportArgs, output: &mut Output) -> Result<Self, Error> {
        let served = match args.listen {
            Some(address) => Some(listen(address, output).await?),
            None => None,
        };
        Ok(Self {
            textfile: args.textfile.clone(),
            served,
            before: Snapshot::default(),
            last_errors: LastErrors::new(),
        })
    }

    /// Hands out the metrics of a look; returns them, and what changed since the last look.
    pub(super) fn publish(&mut self, judged: &Judged) -> Result<(String, Vec<Change>), Error> {
        let mut snapshot = Snapshot::new(&judged.evidence, &judged.report);
        for spot in snapshot.failures.keys() {
            self.last_errors.insert(spot.clone(), judged.at);
        }
        let text = metrics(&snapshot, &self.last_errors, judged.at);
        let changes = snapshot.changes_since(&self.before);
        snapshot.remember(&self.before);
        self.before = snapshot;
        if let Some(served) = &self.served {
            served.send_replace(text.clone());
        }
        if let Some(file) = &self.textfile {
            files::write(file, text.as_bytes(), Access::Everyone)?;
        }
        Ok((text, changes))
    }
}

/// Serves the newest metrics for as long as the sender lives.
async fn listen(address: SocketAddr, output: &mut Output) -> Result<watch::Sender<String>, Error> {
    let refused = |error: std::io::Error| {
        Error::new(Code::Failed, format!("cannot listen on {address}")).caused_by(&error)
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    output.note(&format!("metrics are served at http://{bound}/metrics"));
    let (sender, receiver) = watch::channel(String::new());
    tokio::spawn(async move {
        loop {
            // What cannot be accepted now, for want of file handles, may be accepted later.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let receiver = receiver.clone();
            tokio::spawn(async move {
                let answering = service_fn(move |request| {
                    let answer = answer(&request, &receiver.borrow());
                    async move { Ok::<_, std::convert::Infallible>(answer) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                // A client that goes away ends its own connection and nothing else.
                let _ended = server
                    .serve_connection(TokioIo::new(stream), answering)
                    .await;
            });
        }
    });
    Ok(sender)
}

fn answer(request: &http::Request<Incoming>, metrics: &str) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") if metrics.is_empty() => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the first look is not over\n",
        ),
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, metrics),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "GET is what is answered\n"),
        _ => (StatusCode::NOT_FOUND, "metrics are at /metrics\n"),
    };
    let kind = match status {
        StatusCode::OK => CONTENT_TYPE,
        _ => "text/plain; charset=utf-8",
    };
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// Reads `ADDRESS:PORT`, or `:PORT` for all addresses.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let parsed = match text.strip_prefix(':').map(str::parse) {
        Some(Ok(port)) => Ok((Ipv6Addr::UNSPECIFIED, port).into()),
        _ => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not an address with a port, such as 127.0.0.1:9100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_means_all_addresses() {
        let check = |text: &str, expected: Option<&str>| {
            let read = listen_address(text).ok();
            assert_eq!(
                read.map(|read| read.to_string()).as_deref(),
                expected,
                "{text}"
            );
        };
        check("127.0.0.1:9100", Some("127.0.0.1:9100"));
        check("[::1]:9100", Some("[::1]:9100"));
        check(":9100", Some("[::]:9100"));
        check("localhost:9100", None);
        check(":", None);
        check("9100", None);
    }
}
