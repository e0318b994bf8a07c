//! What a client needs to know before its first call.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use talos_config::talosconfig::{self, Auth, Credentials, Hidden, TalosConfig};

use crate::{Error, ProxyRules};

/// What a client needs to know before its first call.
#[derive(Clone, Debug)]
pub struct Options {
    /// Endpoints as users write them; in maintenance mode, the nodes themselves.
    pub endpoints: Vec<String>,
    /// Whom to trust, and how to prove who calls.
    pub security: Security,
    /// What calls send as `context` metadata; proxies in front of many clusters need it.
    pub cluster: Option<String>,
    /// A user name and password that each call sends.
    pub basic: Option<BasicAuth>,
    /// Which proxy to dial which endpoint through.
    pub proxy: ProxyRules,
    /// How long dialling one endpoint may take: TCP, proxy, TLS and the server's first words together.
    pub connect_timeout: Duration,
    /// How long a call may take until its answer, and a stream that ends by itself until its next message.
    pub request_timeout: Duration,
    /// The time that certificates are judged at; it goes on from here.
    pub now: Timestamp,
    /// Whom a context without authorities trusts, and who vouches for proxies that are spoken to over TLS.
    pub system_roots: SystemRoots,
}

/// Reads the certificates of the authorities that the system trusts; it is called only where they are needed, so that
/// where they are found is the program's decision.
pub type SystemRoots = fn() -> Vec<CertificateDer<'static>>;

/// Whom to trust, and how to prove who calls.
#[derive(Clone, Debug)]
pub enum Security {
    /// Certificates on both sides, as configured nodes want it.
    Mutual(Credentials),
    /// No client certificate, and a server that cannot be verified by an authority, as a node without a configuration
    /// shows.
    Maintenance {
        /// Keys of which the server must have one; none accepts any server.
        fingerprints: Vec<Fingerprint>,
    },
}

/// A user name and password that each call sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Hidden,
}

/// The SHA-256 of a certificate's public key, which users write in base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Takes the SHA-256 of a DER `SubjectPublicKeyInfo`.
    pub fn new(sha256: [u8; 32]) -> Self {
        Self(sha256)
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes = STANDARD.decode(text).ok();
        match bytes.and_then(|bytes| bytes.try_into().ok()) {
            Some(sha256) => Ok(Self(sha256)),
            None => Err(Error::Fingerprint {
                text: text.to_string(),
            }),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Options {
    /// How long dialling one endpoint may take, unless said otherwise.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long a call may take, unless said otherwise.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

    /// Makes options with the usual timeouts and nothing else; the system's authorities are not trusted.
    pub fn new(endpoints: Vec<String>, security: Security, now: Timestamp) -> Self {
        Self {
            endpoints,
            security,
            cluster: None,
            basic: None,
            proxy: ProxyRules::default(),
            connect_timeout: Self::CONNECT_TIMEOUT,
            request_timeout: Self::REQUEST_TIMEOUT,
            now,
            system_roots: Vec::new,
        }
    }

    /// Takes everything from a context of a talosconfig, the current one unless named.
    ///
    /// A `proxy-url` of the context becomes the proxy; otherwise the caller may set one from the environment.
    ///
    /// # Errors
    /// The context does not exist, its credentials are broken, it signs its requests (`auth.siderov1`), or its
    /// `proxy-url` is not one.
    pub fn from_context(
        config: &TalosConfig,
        context: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let (name, context) = config.select(context).map_err(Error::from_talosconfig)?;
        let credentials = config.credentials(name).map_err(Error::from_talosconfig)?;
        let mut options = Self::new(
            context.endpoints.clone(),
            Security::Mutual(credentials),
            now,
        );
        options.cluster = context.cluster.clone();
        options.basic = basic_auth(name, context)?;
        if let Some(url) = &context.proxy_url {
            options.proxy = ProxyRules::always(url).map_err(|source| Error::Proxy { source })?;
        }
        Ok(options)
    }
}

fn basic_auth(name: &str, context: &talosconfig::Context) -> Result<Option<BasicAuth>, Error> {
    match &context.auth {
        Auth::None => Ok(None),
        Auth::Basic { username, password } => Ok(Some(BasicAuth {
            username: username.clone(),
            password: password.clone(),
        })),
        Auth::SideroV1 { identity } => Err(Error::SideroV1 {
            context: name.to_string(),
            identity: identity.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_context(fields: &str) -> Result<Options, Error> {
        let text = format!("context: lab\ncontexts:\n  lab: {fields}\n");
        let config = TalosConfig::parse("config", &text).unwrap();
        Options::from_context(&config, None, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_context_says_everything() {
        let options = from_context(
            "{endpoints: [a], cluster: c, proxy-url: \"http://p\", auth: {basic: {username: u, password: p}}}",
        )
        .unwrap();
        assert_eq!(
            (options.endpoints, options.cluster.as_deref()),
            (vec!["a".to_string()], Some("c"))
        );
        assert_eq!(options.basic.unwrap().password.reveal(), "p");
        let proxy = options.proxy.for_endpoint(&"127.0.0.1".parse().unwrap());
        assert_eq!(proxy.unwrap().to_string(), "http://p:80");
    }

    #[test]
    fn a_context_that_signs_requests_is_refused() {
        let error = from_context("{auth: {siderov1: {identity: me}}}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "context \"lab\" signs its requests as \"me\" (auth.siderov1), which is not supported"
        );
        let error = from_context("{proxy-url: nothing}").unwrap_err();
        assert_eq!(error.to_string(), "the proxy setting cannot be used");
    }

    #[test]
    fn a_fingerprint_is_base64_of_32_bytes() {
        let text = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let fingerprint: Fingerprint = text.parse().unwrap();
        assert_eq!(fingerprint, Fingerprint::new([0; 32]));
        assert_eq!(fingerprint.to_string(), text);
        for wrong in ["", "AAAA", "not base64", &text[1..]] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
