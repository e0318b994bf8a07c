//! Where metrics go: a file for a collector that reads files, and a port for one that asks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use talos_certs::{Change, LastErrors, Snapshot, metrics};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::gather::{GatherArgs, Gatherer, Judged};
use crate::error::{Code, Error, Outcome};
use crate::files::{self, Access};
use crate::output::Output;
use crate::session::Session;

/// Content type of the text format, of which OpenMetrics is the standard.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Collectors that are answered at one time; further ones wait.
const CONNECTIONS: usize = 64;
/// Time for one request to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Life of a connection, after which a collector connects again.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);

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
        if let Some(file) = &args.textfile {
            files::regular(file, "--textfile")?;
        }
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

    /// Hands out the metrics of a look, and tells what changed since the last one.
    pub(super) fn publish(&mut self, judged: &Judged) -> Published {
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
        let file = self.textfile.as_ref();
        let written = file.map(|file| files::write(file, text.as_bytes(), Access::Everyone));
        Published {
            text,
            changes,
            written: written.unwrap_or(Ok(())),
        }
    }
}

/// What came of a look.
pub(super) struct Published {
    /// The metrics.
    pub(super) text: String,
    /// What changed since the last look.
    pub(super) changes: Vec<Change>,
    /// Whether the text file could be written; changes and what is served are right all the same.
    pub(super) written: Result<(), Error>,
}

/// Looks again and again, each time with the credentials and files as they are then, and shows what changed.
pub(super) async fn follow(
    session: &mut Session,
    export: &ExportArgs,
    gather: &GatherArgs,
    interval: Duration,
    mut show: impl FnMut(&mut Output, Timestamp, &[Change]) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let mut gatherer = Gatherer::new(gather, session)?;
    let mut exporter = Exporter::start(export, &mut session.output).await?;
    loop {
        let judged = gatherer.judge().await;
        let published = exporter.publish(&judged);
        show(&mut session.output, judged.at, &published.changes)?;
        session.output.flush()?;
        if let Err(error) = published.written {
            session.output.error(&error);
        }
        tokio::time::sleep(interval).await;
        // A file that is just being written is read again before the next look.
        match Gatherer::new(gather, session) {
            Ok(new) => gatherer = new,
            Err(error) => session.output.error(&error),
        }
    }
}

/// Serves the newest metrics for as long as the sender lives.
async fn listen(address: SocketAddr, output: &mut Output) -> Result<watch::Sender<String>, Error> {
    let refused = |error: std::io::Error| {
        Error::new(Code::Failed, format!("cannot listen on {address}")).caused_by(&error)
    };
    let bound = match TcpListener::bind(address).await {
        // All addresses are those of IPv4 where there is no IPv6.
        Err(_) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    };
    let listener = bound.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    output.note(&format!("metrics are served at http://{bound}/metrics"));
    let (sender, receiver) = watch::channel(String::new());
    tokio::spawn(serve(listener, receiver));
    Ok(sender)
}

async fn serve(listener: TcpListener, metrics: watch::Receiver<String>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(permit) = Arc::clone(&free).acquire_owned().await {
        // What cannot be accepted now, for want of file handles, may be accepted later.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let metrics = metrics.clone();
        tokio::spawn(async move {
            let answering = service_fn(move |request| {
                let answer = answer(&request, &metrics.borrow());
                async move { Ok::<_, std::convert::Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answering);
            // A client that goes away, or says nothing, ends its own connection and nothing else.
            let _ended = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await;
            drop(permit);
        });
    }
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
