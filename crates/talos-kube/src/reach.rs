//! Finding the address at which a cluster's Kubernetes API answers, and the name to trust there.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Uri};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use kube::client::Body;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use talos_client::{ProxyRules, ServerVerifier, SystemRoots, VerifierError, server_name};
use talos_pki::{Certificate, Name};

use crate::connect::{self, Connector};
use crate::kubernetes::Outages;
use crate::patience::innermost;
use crate::verify;
use crate::{Access, Address, Attempt, Cause, Error, Kubernetes, Patience, Progress, Watcher};
use crate::{DEFAULT_PORT, is_transient};

/// The name every kube-apiserver certificate of a Talos cluster has.
const SERVICE_NAME: &str = "kubernetes.default.svc";

/// Where to look and how long.
pub struct Options {
    /// The only address to dial, as [`Address::parse`] reads it; without it the kubeconfig's server and then the nodes.
    pub endpoint: Option<String>,
    /// Addresses and names of control plane nodes known from elsewhere; they are dialed at 6443 and count as names.
    pub nodes: Vec<String>,
    /// Which proxy to dial through; a kubeconfig's own `proxy-url` goes first.
    pub proxy: ProxyRules,
    /// Time limits.
    pub patience: Patience,
    /// How long to look before giving up; an API server that restarts refuses connections for a while.
    pub search: Duration,
    /// Told when the API is away and when it is back.
    pub watcher: Watcher,
    /// The time that certificates are judged at; it goes on from here.
    pub now: Timestamp,
    /// Who vouches for a proxy that is spoken to over TLS; servers are trusted for the kubeconfig's authorities alone.
    pub system_roots: SystemRoots,
}

impl Options {
    /// Makes options with the usual time limits and nothing else.
    pub fn new(now: Timestamp) -> Self {
        Self {
            endpoint: None,
            nodes: Vec::new(),
            proxy: ProxyRules::default(),
            patience: Patience::default(),
            search: Duration::from_secs(20),
            watcher: Arc::new(|_| {}),
            now,
            system_roots: Vec::new,
        }
    }
}

/// Finds the Kubernetes API that `access` leads to.
///
/// Addresses are tried in order: only `endpoint` if given, else the kubeconfig's server, then each node at port 6443.
/// A certificate is trusted for the first that fits of: the endpoint's host, the kubeconfig's `tls-server-name`, the
/// nodes, the host of the kubeconfig's server, and `kubernetes.default.svc`.
///
/// # Errors
/// [`Error::Unreachable`] with every address tried, [`Error::Certificate`], [`Error::Refused`], or [`Error::Address`]. What
/// answers wrongly at one address is an error only once no other address can be hoped for.
pub async fn reach(access: &Access, options: Options) -> Result<Kubernetes, Error> {
    let endpoint = options
        .endpoint
        .as_deref()
        .map(Address::parse)
        .transpose()?;
    let candidates = candidates(access, endpoint.as_ref(), &options.nodes);
    let names = names(access, endpoint.as_ref(), &options.nodes);
    let start = Instant::now();
    let mut round = 0;
    loop {
        let mut attempts = Vec::new();
        let mut refusal = None;
        for address in &candidates {
            match attempt(access, address, &names, &options).await {
                Ok(kubernetes) => return Ok(kubernetes),
                Err(Failure::Final(error)) => refusal = refusal.or(Some(error)),
                Err(Failure::Silent(cause)) => attempts.push(Attempt {
                    address: address.clone(),
                    cause,
                }),
            }
        }
        let may_pass = attempts.iter().any(|attempt| may_pass(&attempt.cause));
        let pause = options.patience.pause_after(round);
        round += 1;
        if !may_pass || start.elapsed() + pause > options.search {
            // A server that answered, if wrongly, says more than those that did not.
            return Err(refusal.unwrap_or(Error::Unreachable { attempts }));
        }
        if let Some(attempt) = attempts.first() {
            (options.watcher)(Progress::Away {
                address: attempt.address.to_string(),
                cause: attempt.cause.to_string(),
                attempts: round,
                away_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
        }
        tokio::time::sleep(pause).await;
    }
}

fn candidates(access: &Access, endpoint: Option<&Address>, nodes: &[String]) -> Vec<Address> {
    if let Some(endpoint) = endpoint {
        return vec![endpoint.clone()];
    }
    let mut candidates = access.servers.clone();
    for host in nodes.iter().filter_map(|node| Name::parse(node).ok()) {
        let address = Address {
            host,
            port: DEFAULT_PORT,
        };
        if !candidates.contains(&address) {
            candidates.push(address);
        }
    }
    candidates
}

fn names(access: &Access, endpoint: Option<&Address>, nodes: &[String]) -> Vec<Name> {
    let endpoint = endpoint.map(|address| address.host.clone());
    let parsed = |text: &String| Name::parse(text).ok();
    let servers = access.servers.iter().map(|address| address.host.clone());
    let all = endpoint
        .into_iter()
        .chain(access.server_name.iter().filter_map(parsed))
        .chain(nodes.iter().filter_map(parsed))
        .chain(servers)
        .chain(Some(Name::Dns(SERVICE_NAME.to_owned())));
    let mut names = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

enum Failure {
    /// No Kubernetes API answered here.
    Silent(Cause),
    /// Something answered, and trying again will not help.
    Final(Error),
}

async fn attempt(
    access: &Access,
    address: &Address,
    names: &[Name],
    options: &Options,
) -> Result<Kubernetes, Failure> {
    let verifier = verifier(access, names, options.now).map_err(Failure::Final)?;
    let verifier = Arc::new(verifier);
    let name = server_name(&address.host).ok_or_else(|| Failure::Final(nameless(&address.host)));
    let connector = Connector {
        address: address.clone(),
        name: name?,
        tls: tls(access, Arc::clone(&verifier)).map_err(Failure::Final)?,
        proxy: Arc::new(access.proxy.as_ref().unwrap_or(&options.proxy).clone()),
        system_roots: options.system_roots,
        limit: options.patience.connect,
    };
    if let Err(error) = connector.open().await {
        let presented = verifier.presented();
        return Err(match &presented.refused {
            Some(refused) if verify::may_pass(refused) => Failure::Silent(Cause::NotYetValid),
            Some(refused) => Failure::Final(untrusted(address, refused, names, presented.leaf)),
            None => Failure::Silent(connect::cause(&error)),
        });
    }
    let Some(verified) = verifier.presented().verified else {
        let nothing = "no certificate was presented".to_owned();
        return Err(Failure::Silent(Cause::Tls(nothing)));
    };
    let client = client(connector, access.token.as_deref(), options.patience);
    let limit = options.patience.request;
    let version = match tokio::time::timeout(limit, client.apiserver_version()).await {
        Ok(Ok(info)) => info.git_version,
        Ok(Err(error)) => return Err(refused(address, error)),
        Err(_) => return Err(Failure::Silent(Cause::TimedOut)),
    };
    Ok(Kubernetes {
        client,
        address: address.clone(),
        verified,
        version,
        patience: options.patience,
        watcher: Arc::clone(&options.watcher),
        outages: Mutex::new(Outages::default()),
    })
}

fn refused(address: &Address, error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
            Failure::Final(Error::Refused {
                address: address.clone(),
                status: status.code,
            })
        }
        kube::Error::Api(status) => Failure::Silent(Cause::Http(status.code)),
        error if is_transient(&error) => Failure::Silent(Cause::Connection(innermost(&error))),
        error => Failure::Final(Error::Request {
            action: "read the version of the API server".to_owned(),
            source: Box::new(error),
        }),
    }
}

fn verifier(access: &Access, names: &[Name], now: Timestamp) -> Result<ServerVerifier, Error> {
    let refuse = |problem: String| Error::Kubeconfig {
        field: "certificate-authority-data".to_owned(),
        problem,
    };
    let mut roots = RootCertStore::empty();
    for authority in &access.authorities {
        roots
            .add(authority.clone())
            .map_err(|error| refuse(error.to_string()))?;
    }
    ServerVerifier::new(roots, names, now).map_err(|error| match error {
        VerifierError::Name { name } => nameless(&name),
        other => refuse(other.to_string()),
    })
}

fn nameless(name: &Name) -> Error {
    Error::Address {
        text: name.to_string(),
        problem: "no certificate can be verified for such a name",
    }
}

fn tls(access: &Access, verifier: Arc<ServerVerifier>) -> Result<Arc<ClientConfig>, Error> {
    let refuse = |error: rustls::Error| Error::Kubeconfig {
        field: "client-certificate-data".to_owned(),
        problem: error.to_string(),
    };
    let provider = aws_lc_rs::default_provider();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(refuse)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &access.identity {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(refuse)?,
        None => builder.with_no_client_auth(),
    };
    // One request per connection at a time: an API server that restarts then breaks one request, not all of them.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn client(connector: Connector, token: Option<&str>, patience: Patience) -> kube::Client {
    let authority = connector.address.to_string();
    let token = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
    let http: HttpClient<Connector, Body> = HttpClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(30))
        .build(connector);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let http = http.clone();
        let uri = absolute(request.uri(), &authority);
        let token = token.clone();
        async move {
            *request.uri_mut() = uri?;
            if let Some(mut token) = token {
                token.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            let answer = tokio::time::timeout(patience.request, http.request(request));
            let answer = answer.await.map_err(|_| {
                tower::BoxError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))
            })?;
            answer.map_err(tower::BoxError::from)
        }
    });
    kube::Client::new(service, "default")
}

fn absolute(uri: &Uri, authority: &str) -> Result<Uri, tower::BoxError> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(Uri::builder()
        .scheme("https")
        .authority(authority)
        .path_and_query(path)
        .build()?)
}

fn untrusted(
    address: &Address,
    refused: &rustls::Error,
    names: &[Name],
    leaf: Option<CertificateDer<'static>>,
) -> Error {
    let parsed = leaf.and_then(|leaf| Certificate::from_der(&leaf).ok());
    let shown = |names: &[Name]| names.iter().map(ToString::to_string).collect();
    Error::Certificate {
        address: address.clone(),
        problem: verify::in_words(refused),
        expected: shown(names),
        presented: parsed.map_or_else(Vec::new, |leaf| shown(leaf.names())),
        name_only: verify::is_name_only(refused),
    }
}

/// A name that does not exist stays so; everything else may be a server that restarts.
fn may_pass(cause: &Cause) -> bool {
    !matches!(cause, Cause::NameNotFound | Cause::Tls(_))
}
