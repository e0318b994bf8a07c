//! Decoding the certificates and the key of a context.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use talos_pki::{Certificate, PrivateKey};

use super::{Context, Error};

/// What a context trusts and what it proves itself with.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Authorities that may sign a server's certificate; none means the system's roots.
    pub authorities: Vec<Certificate>,
    /// The client's certificate and key; none means that the client does not prove itself by TLS.
    pub identity: Option<Identity>,
}

/// A client certificate with its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The client's certificate, followed by intermediates if there are any.
    pub chain: Vec<Certificate>,
    /// The key of the first certificate.
    pub key: PrivateKey,
}

pub(super) fn decode(file: &str, name: &str, context: &Context) -> Result<Credentials, Error> {
    let field = Field {
        file,
        context: name,
    };
    let authorities = match &context.ca {
        None => Vec::new(),
        Some(ca) => field.certificates("ca", ca)?,
    };
    let half = |present, missing| Error::HalfIdentity {
        file: file.to_string(),
        context: name.to_string(),
        present,
        missing,
    };
    let identity = match (&context.crt, &context.key) {
        (None, None) => None,
        (Some(_), None) => return Err(half("crt", "key")),
        (None, Some(_)) => return Err(half("key", "crt")),
        (Some(crt), Some(key)) => {
            let chain = field.certificates("crt", crt)?;
            let key = field.key(key.reveal())?;
            if !chain.first().is_some_and(|leaf| key.matches(leaf)) {
                return Err(Error::KeyMismatch {
                    file: file.to_string(),
                    context: name.to_string(),
                });
            }
            Some(Identity { chain, key })
        }
    };
    Ok(Credentials {
        authorities,
        identity,
    })
}

struct Field<'a> {
    file: &'a str,
    context: &'a str,
}

impl Field<'_> {
    fn certificates(&self, field: &'static str, text: &str) -> Result<Vec<Certificate>, Error> {
        let pem = self.base64(field, text)?;
        Certificate::many_from_pem(&pem).map_err(|source| self.broken(field, source))
    }

    fn key(&self, text: &str) -> Result<PrivateKey, Error> {
        let pem = self.base64("key", text)?;
        PrivateKey::from_pem(&pem).map_err(|source| self.broken("key", source))
    }

    /// Line breaks may stand between the letters, as YAML's block texts leave them.
    fn base64(&self, field: &'static str, text: &str) -> Result<Vec<u8>, Error> {
        let letters: String = text.split_ascii_whitespace().collect();
        STANDARD.decode(letters).map_err(|_| Error::Base64 {
            file: self.file.to_string(),
            context: self.context.to_string(),
            field,
        })
    }

    fn broken(&self, field: &'static str, source: talos_pki::Error) -> Error {
        Error::Credential {
            file: self.file.to_string(),
            context: self.context.to_string(),
            field,
            source,
        }
    }
}
