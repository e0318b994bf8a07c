//! Certificate authorities as Talos generates them.

use jiff::{SignedDuration, Timestamp};

use crate::issue::{self, Extension, Template};
use crate::{Algorithm, Certificate, Error, Issued, LeafRequest, Name, PrivateKey, SigningRequest};

/// The authorities of a Talos cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthorityKind {
    /// Signs for apid, trustd and Talos clients: Ed25519, `O=talos`.
    Talos,
    /// Signs for the Kubernetes API server and its clients: ECDSA P-256, `O=kubernetes`.
    Kubernetes,
    /// Signs the front proxy client: ECDSA P-256, empty subject.
    Aggregator,
    /// Signs for etcd: ECDSA P-256, `O=etcd`.
    Etcd,
}

/// A certificate authority with its private key.
#[derive(Clone, Debug)]
pub struct Authority {
    certificate: Certificate,
    key: PrivateKey,
}

impl AuthorityKind {
    /// Names the kind of key that Talos gives this authority.
    pub fn algorithm(self) -> Algorithm {
        match self {
            Self::Talos => Algorithm::Ed25519,
            Self::Kubernetes | Self::Aggregator | Self::Etcd => Algorithm::EcdsaP256,
        }
    }

    /// Names the authority among people, such as `etcd CA`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Talos => "Talos CA",
            Self::Kubernetes => "Kubernetes CA",
            Self::Aggregator => "aggregator CA",
            Self::Etcd => "etcd CA",
        }
    }

    /// Returns the organization in the subject; the aggregator authority has an empty subject.
    pub fn organization(self) -> Option<&'static str> {
        match self {
            Self::Talos => Some("talos"),
            Self::Kubernetes => Some("kubernetes"),
            Self::Aggregator => None,
            Self::Etcd => Some("etcd"),
        }
    }
}

impl Authority {
    /// How long Talos makes an authority live: ten years of 365 days.
    pub const LIFETIME: SignedDuration = SignedDuration::from_hours(87_600);

    /// Makes a fresh authority with the parameters of Talos.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn generate(kind: AuthorityKind, now: Timestamp) -> Result<Self, Error> {
        Self::generate_with(kind.algorithm(), kind.organization(), Self::LIFETIME, now)
    }

    /// Makes a fresh self-signed authority of another kind of key, subject or lifetime.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn generate_with(
        algorithm: Algorithm,
        organization: Option<&str>,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Self, Error> {
        Self::generate_named(algorithm, organization, &[], lifetime, now)
    }

    /// Makes a fresh self-signed authority that is also valid for names and addresses.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn generate_named(
        algorithm: Algorithm,
        organization: Option<&str>,
        names: &[Name],
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let key = PrivateKey::generate(algorithm)?;
        let subject = issue::subject(None, organization.as_slice());
        let mut extensions = vec![
            Extension::key_usage_of_authority(),
            Extension::extended_key_usage(true, true),
            Extension::basic_constraints_of_authority(),
            Extension::subject_key_id(&issue::random::<20>()?),
        ];
        if !names.is_empty() {
            extensions.push(Extension::names(names, subject == issue::EMPTY_SUBJECT));
        }
        let certificate = issue::sign(
            &Template {
                subject: &subject,
                issuer: &subject,
                public_key_info: key.public_key_info(),
                not_before: now,
                lifetime,
                extensions: &extensions,
            },
            &key,
        )?;
        Ok(Self { certificate, key })
    }

    /// Makes a self-signed authority of a key that exists already, whose subject is a common name, as the kubelet does
    /// for its own serving certificate.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn self_signed(
        key: PrivateKey,
        common_name: &str,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let subject = issue::subject::<&str>(Some(common_name), &[]);
        let certificate = issue::sign(
            &Template {
                subject: &subject,
                issuer: &subject,
                public_key_info: key.public_key_info(),
                not_before: now,
                lifetime,
                extensions: &[
                    Extension::key_usage_of_authority(),
                    Extension::basic_constraints_of_authority(),
                    Extension::subject_key_id(&issue::random::<20>()?),
                ],
            },
            &key,
        )?;
        Ok(Self { certificate, key })
    }

    /// Takes an authority from the PEM texts of its certificate and key.
    ///
    /// # Errors
    /// [`Error::NotAnAuthority`], [`Error::KeyMismatch`], or what is wrong with either text.
    pub fn from_pem(certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Result<Self, Error> {
        let certificate = Certificate::many_from_pem(certificate)?.swap_remove(0);
        Self::new(certificate, PrivateKey::from_pem(key)?)
    }

    /// Puts a certificate and its key together.
    ///
    /// # Errors
    /// [`Error::NotAnAuthority`] or [`Error::KeyMismatch`].
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self, Error> {
        let subject = || certificate.subject().to_owned();
        if !certificate.is_ca() {
            return Err(Error::NotAnAuthority { subject: subject() });
        }
        if !key.matches(&certificate) {
            return Err(Error::KeyMismatch { subject: subject() });
        }
        Ok(Self { certificate, key })
    }

    /// Returns the authority's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Returns the authority's private key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Issues a leaf with a fresh key of the authority's own kind, as Talos does.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn issue(&self, request: &LeafRequest, now: Timestamp) -> Result<Issued, Error> {
        let key = PrivateKey::generate(self.leaf_algorithm())?;
        let certificate = self.sign_leaf(request, key.public_key_info(), now)?;
        Ok(Issued { certificate, key })
    }

    /// Issues a leaf whose key and serial number follow from the authority's key, the request and the time, so that
    /// the same call in the same second gives the same leaf.
    ///
    /// The leaf's key is the output of HKDF-SHA256 over the authority's private key, with all that the certificate
    /// will say as context. It tells nothing about the authority's key, and only who holds that key can repeat it.
    /// Only Ed25519 signs without randomness of its own: other authorities issue as [`Self::issue`] does.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn issue_reproducibly(
        &self,
        request: &LeafRequest,
        now: Timestamp,
    ) -> Result<Issued, Error> {
        if self.key.algorithm() != Algorithm::Ed25519 {
            return self.issue(request, now);
        }
        let nameless = self.on_template(request, &[], now, |template| {
            issue::to_be_signed(template, &[0; 16], Algorithm::Ed25519)
        })?;
        let (key, serial) = self.key.derive_leaf(&nameless)?;
        let certificate = self.on_template(request, key.public_key_info(), now, |template| {
            issue::sign_numbered(template, &serial, &self.key)
        })?;
        Ok(Issued { certificate, key })
    }

    /// Issues a leaf for a public key that somebody else holds the private half of, given as SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn sign_leaf(
        &self,
        request: &LeafRequest,
        public_key_info: &[u8],
        now: Timestamp,
    ) -> Result<Certificate, Error> {
        self.on_template(request, public_key_info, now, |template| {
            issue::sign(template, &self.key)
        })
    }

    /// Does something with what a leaf will say.
    fn on_template<T>(
        &self,
        request: &LeafRequest,
        public_key_info: &[u8],
        now: Timestamp,
        work: impl FnOnce(&Template<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let not_before = now
            .checked_sub(request.backdate)
            .map_err(|_| Error::Validity)?;
        let lifetime = request
            .lifetime
            .checked_add(request.backdate)
            .ok_or(Error::Validity)?;
        let subject = issue::subject(request.common_name.as_deref(), &request.organizations);
        let mut extensions = vec![
            Extension::key_usage_of_leaf(request.usage.key_encipherment),
            Extension::extended_key_usage(request.usage.server, request.usage.client),
        ];
        if let Some(id) = self.certificate.subject_key_id() {
            extensions.push(Extension::authority_key_id(id));
        }
        if !request.names.is_empty() {
            extensions.push(Extension::names(
                &request.names,
                subject == issue::EMPTY_SUBJECT,
            ));
        }
        work(&Template {
            subject: &subject,
            issuer: self.certificate.raw_subject(),
            public_key_info,
            not_before,
            lifetime,
            extensions: &extensions,
        })
    }

    /// Signs a request as trustd does: a server certificate with the requested common name and names, no organization.
    ///
    /// # Errors
    /// [`Error::Crypto`] or [`Error::Validity`].
    pub fn sign_server_request(
        &self,
        request: &SigningRequest,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> Result<Certificate, Error> {
        let leaf = LeafRequest {
            common_name: request.common_name().map(str::to_owned),
            names: request.names().to_vec(),
            usage: crate::LeafUsage {
                server: true,
                ..Default::default()
            },
            lifetime,
            ..Default::default()
        };
        self.sign_leaf(&leaf, request.public_key_info(), now)
    }

    fn leaf_algorithm(&self) -> Algorithm {
        match self.key.algorithm() {
            Algorithm::Rsa(_) => Algorithm::Rsa(4096),
            Algorithm::EcdsaP384 | Algorithm::EcdsaP521 => Algorithm::EcdsaP256,
            algorithm => algorithm,
        }
    }
}

#[cfg(test)]
mod tests;
