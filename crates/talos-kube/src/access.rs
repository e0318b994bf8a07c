//! What a kubeconfig grants: a server, whom to trust and who we are.

use std::fmt;

use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use talos_client::ProxyRules;
use talos_config::kubeconfig::{Kubeconfig, Material, User};
use talos_pki::{Certificate, PrivateKey};

use crate::{Address, Error};

/// The way into one cluster, read from one context of a kubeconfig.
pub struct Access {
    /// The candidates for the server's address: one, or two where its URL names no port.
    pub servers: Vec<Address>,
    /// The certificate authorities to trust; nothing else is.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The client certificate chain and its key.
    pub identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    /// A bearer token.
    pub token: Option<String>,
    /// The name the kubeconfig wants the server's certificate verified for.
    pub server_name: Option<String>,
    /// The proxy the kubeconfig wants the server to be dialed through.
    pub proxy: Option<ProxyRules>,
}

impl Access {
    /// Reads the current context of a kubeconfig, or the one named.
    ///
    /// Credentials must be in the text itself: files it refers to are not opened here.
    ///
    /// # Errors
    /// [`Error::Context`] and [`Error::Kubeconfig`] name what is missing or unreadable, never a value.
    pub fn from_kubeconfig(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Self, Error> {
        let granted = kubeconfig
            .access(context)
            .map_err(|source| Error::Context {
                source: Box::new(source),
            })?;
        let (cluster, name) = (granted.cluster, granted.cluster_name);
        let of_cluster = |field: &str| format!("clusters[{name}].{field}");
        if cluster.insecure {
            return Err(refuse(
                &of_cluster("insecure-skip-tls-verify"),
                "a server is never used unverified here",
            ));
        }
        let field = of_cluster("certificate-authority-data");
        let authority = cluster.authority.as_ref();
        let authority = authority.ok_or_else(|| refuse(&field, "it is missing"))?;
        Ok(Self {
            servers: Address::from_server(&cluster.server)?,
            authorities: certificates(&field, authority)?,
            identity: identity(granted.user_name, granted.user)?,
            token: granted
                .user
                .token
                .as_ref()
                .map(|token| token.reveal().to_owned()),
            server_name: cluster.tls_server_name.clone(),
            proxy: proxy(&of_cluster("proxy-url"), cluster.proxy_url.as_deref())?,
        })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Access")
            .field("servers", &self.servers)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

fn proxy(field: &str, url: Option<&str>) -> Result<Option<ProxyRules>, Error> {
    let rules = url.map(ProxyRules::always).transpose();
    rules.map_err(|error| refuse(field, &error.to_string()))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(name: &str, user: &User) -> Result<Option<Identity>, Error> {
    let certificate = format!("users[{name}].client-certificate-data");
    let key = format!("users[{name}].client-key-data");
    match (&user.certificate, &user.key) {
        (None, None) if user.token.is_some() => Ok(None),
        (None, _) => Err(refuse(&certificate, "it is missing")),
        (_, None) => Err(refuse(&key, "it is missing")),
        (Some(chain), Some(secret)) => {
            let chain = certificates(&certificate, chain)?;
            let secret = PrivateKey::from_pem(inline(&key, secret)?)
                .map_err(|_| refuse(&key, "this is no private key in PEM"))?;
            let der = PrivatePkcs8KeyDer::from(secret.pkcs8_der().to_vec());
            Ok(Some((chain, der.into())))
        }
    }
}

fn certificates(field: &str, material: &Material) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = Certificate::many_from_pem(inline(field, material)?)
        .map_err(|error| refuse(field, &format!("this is no certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(refuse(field, "it holds no certificate"));
    }
    let der = |certificate: &Certificate| CertificateDer::from(certificate.der().to_vec());
    Ok(chain.iter().map(der).collect())
}

fn inline<'a>(field: &str, material: &'a Material) -> Result<&'a [u8], Error> {
    match material {
        Material::Inline(pem) => Ok(pem),
        Material::File(_) => Err(refuse(field, "files are not opened here; embed the data")),
    }
}

fn refuse(field: &str, problem: &str) -> Error {
    Error::Kubeconfig {
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}
