//! What a kubeconfig grants: a server, whom to trust and who we are.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use secrecy::ExposeSecret as _;
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
}

impl Access {
    /// Reads the current context of a kubeconfig, or the one named.
    ///
    /// Credentials must be in the text itself: files and plugins it refers to are not opened here.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`] names the field that is missing or unreadable, never its value.
    pub fn from_kubeconfig(text: &str, context: Option<&str>) -> Result<Self, Error> {
        // The parser's own words may quote the text, and the text holds keys.
        let config = Kubeconfig::from_yaml(text)
            .map_err(|_| refuse("document", "this is no kubeconfig in YAML"))?;
        let (cluster_name, cluster, user_name, user) = select(&config, context)?;
        let of_cluster = |field: &str| format!("clusters[{cluster_name}].{field}");
        let url = cluster
            .server
            .as_deref()
            .ok_or_else(|| refuse(&of_cluster("server"), "it is missing"))?;
        if cluster.insecure_skip_tls_verify == Some(true) {
            return Err(refuse(
                &of_cluster("insecure-skip-tls-verify"),
                "a server is never used unverified here",
            ));
        }
        if cluster.certificate_authority.is_some() {
            return Err(refuse(
                &of_cluster("certificate-authority"),
                "files are not opened here; embed the data",
            ));
        }
        let field = of_cluster("certificate-authority-data");
        let data = cluster
            .certificate_authority_data
            .as_deref()
            .ok_or_else(|| refuse(&field, "it is missing"))?;
        Ok(Self {
            servers: Address::from_server(url)?,
            authorities: certificates(&field, data)?,
            identity: identity(user_name, user)?,
            token: user
                .token
                .as_ref()
                .map(|token| token.expose_secret().to_owned()),
            server_name: cluster.tls_server_name.clone(),
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

type Selected<'a> = (&'a str, &'a Cluster, &'a str, &'a AuthInfo);

fn select<'a>(config: &'a Kubeconfig, context: Option<&str>) -> Result<Selected<'a>, Error> {
    let name = context
        .or(config.current_context.as_deref())
        .ok_or_else(|| refuse("current-context", "it is missing"))?;
    let found = config.contexts.iter().find(|context| context.name == name);
    let context = found
        .and_then(|named| named.context.as_ref())
        .ok_or_else(|| refuse(&format!("contexts[{name}]"), "there is no such context"))?;
    let cluster = config
        .clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster)
        .and_then(|named| named.cluster.as_ref())
        .ok_or_else(|| {
            let field = format!("clusters[{}]", context.cluster);
            refuse(&field, "there is no such cluster")
        })?;
    let user_name = context.user.as_deref().unwrap_or_default();
    let user = config
        .auth_infos
        .iter()
        .find(|user| user.name == user_name)
        .and_then(|named| named.auth_info.as_ref())
        .ok_or_else(|| refuse(&format!("users[{user_name}]"), "there is no such user"))?;
    Ok((&context.cluster, cluster, user_name, user))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(name: &str, user: &AuthInfo) -> Result<Option<Identity>, Error> {
    let of_user = |field: &str| format!("users[{name}].{field}");
    for (set, field) in [
        (user.exec.is_some(), "exec"),
        (user.auth_provider.is_some(), "auth-provider"),
        (user.username.is_some(), "username"),
    ] {
        if set {
            return Err(refuse(
                &of_user(field),
                "this kind of login is not supported",
            ));
        }
    }
    for (set, field) in [
        (user.client_certificate.is_some(), "client-certificate"),
        (user.client_key.is_some(), "client-key"),
        (user.token_file.is_some(), "tokenFile"),
    ] {
        if set {
            return Err(refuse(
                &of_user(field),
                "files are not opened here; embed the data",
            ));
        }
    }
    let (certificate, key) = (
        of_user("client-certificate-data"),
        of_user("client-key-data"),
    );
    match (&user.client_certificate_data, &user.client_key_data) {
        (None, None) if user.token.is_some() => Ok(None),
        (None, _) => Err(refuse(&certificate, "it is missing")),
        (_, None) => Err(refuse(&key, "it is missing")),
        (Some(chain), Some(secret)) => {
            let chain = certificates(&certificate, chain)?;
            let pem = decode(&key, secret.expose_secret())?;
            let secret = PrivateKey::from_pem(&pem)
                .map_err(|_| refuse(&key, "this is no private key in PEM"))?;
            let der = PrivatePkcs8KeyDer::from(secret.pkcs8_der().to_vec());
            Ok(Some((chain, der.into())))
        }
    }
}

fn certificates(field: &str, data: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let pem = decode(field, data)?;
    let chain = Certificate::many_from_pem(&pem)
        .map_err(|error| refuse(field, &format!("this is no certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(refuse(field, "it holds no certificate"));
    }
    let der = |certificate: &Certificate| CertificateDer::from(certificate.der().to_vec());
    Ok(chain.iter().map(der).collect())
}

fn decode(field: &str, data: &str) -> Result<Vec<u8>, Error> {
    let compact: String = data.split_whitespace().collect();
    STANDARD
        .decode(compact)
        .map_err(|_| refuse(field, "this is not base64"))
}

fn refuse(field: &str, problem: &str) -> Error {
    Error::Kubeconfig {
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}
