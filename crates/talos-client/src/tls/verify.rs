//! Judging the certificate that a server presents.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, IpAddr, ServerName, UnixTime};
use talos_pki::{Certificate, Name};

use crate::Fingerprint;

/// How far a node's clock may be ahead: it issues itself new certificates from the very moment they are needed.
const SKEW: Duration = Duration::from_secs(30);

/// Verifies servers for one of several names, with the authorities and the clock it is given, and remembers what the
/// last server presented.
///
/// A certificate that starts up to 30 seconds from now is valid: nodes issue them at the moment they are needed, and
/// their clocks may be ahead. The names are the caller's; one read out of the certificate would make the check worthless.
#[derive(Debug)]
pub struct ServerVerifier {
    trust: Trust,
    clock: Clock,
    seen: Mutex<Presented>,
}

/// What a server presented to a [`ServerVerifier`], and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Presented {
    /// The server's own certificate; absent when the handshake did not come so far.
    pub leaf: Option<CertificateDer<'static>>,
    /// The name it was verified for.
    pub verified: Option<Name>,
    /// Why it was refused.
    pub refused: Option<rustls::Error>,
}

/// Tells why a [`ServerVerifier`] cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierError {
    /// TLS cannot verify a certificate for such a name.
    #[error("TLS cannot verify a certificate for the name {name}")]
    Name {
        /// The name.
        name: Name,
    },
    /// There is no authority to trust.
    #[error("there is no authority to trust")]
    NoAuthority,
}

/// Whom to believe.
#[derive(Clone, Debug)]
enum Trust {
    /// Those whom an authority believes, under one of these names.
    Authorities {
        chain: Arc<WebPkiServerVerifier>,
        names: Vec<(Name, ServerName<'static>)>,
    },
    /// Those who have one of these keys, or everybody when there are none: maintenance mode.
    Keys {
        fingerprints: Vec<Fingerprint>,
        algorithms: WebPkiSupportedAlgorithms,
    },
}

/// The caller's time, going on at the pace of this machine's clock.
#[derive(Clone, Debug)]
struct Clock {
    now: Timestamp,
    started: Instant,
}

impl ServerVerifier {
    /// Makes a verifier that trusts `roots` for any of `names`, the first that fits; it is `now`, and time goes on from
    /// there.
    ///
    /// # Errors
    /// One of the names cannot stand in a certificate, or there are no roots.
    pub fn new(
        roots: RootCertStore,
        names: &[Name],
        now: Timestamp,
    ) -> Result<Self, VerifierError> {
        let name = |name: &Name| match server_name(name) {
            Some(server) => Ok((name.clone(), server)),
            None => Err(VerifierError::Name { name: name.clone() }),
        };
        let names = names.iter().map(name).collect::<Result<_, _>>()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|_| VerifierError::NoAuthority)?;
        Ok(Self::with(Trust::Authorities { chain, names }, now))
    }

    /// Makes a verifier that accepts any server, or only those whose key has one of the fingerprints.
    pub(super) fn of_keys(fingerprints: Vec<Fingerprint>, now: Timestamp) -> Self {
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        let trust = Trust::Keys {
            fingerprints,
            algorithms,
        };
        Self::with(trust, now)
    }

    fn with(trust: Trust, now: Timestamp) -> Self {
        let started = Instant::now();
        Self {
            trust,
            clock: Clock { now, started },
            seen: Mutex::default(),
        }
    }

    /// Makes one that believes the same, remembers nothing, and verifies for one other name.
    pub(super) fn for_name(&self, name: Name, server: ServerName<'static>) -> Self {
        let mut trust = self.trust.clone();
        if let Trust::Authorities { names, .. } = &mut trust {
            *names = vec![(name, server)];
        }
        Self {
            trust,
            clock: self.clock.clone(),
            seen: Mutex::default(),
        }
    }

    /// Returns what the last server presented.
    pub fn presented(&self) -> Presented {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the name that was verified; none where names do not matter.
    fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        ocsp: &[u8],
    ) -> Result<Option<Name>, rustls::Error> {
        let (chain, names) = match &self.trust {
            Trust::Authorities { chain, names } => (chain, names),
            Trust::Keys { fingerprints, .. } => return has_key(leaf, fingerprints).map(|()| None),
        };
        let now = self.clock.time()?;
        let later = UnixTime::since_unix_epoch(now + SKEW);
        let now = UnixTime::since_unix_epoch(now);
        let mut refused = None;
        for (name, server) in names {
            let at = |time| chain.verify_server_cert(leaf, intermediates, server, ocsp, time);
            let verdict = match at(now) {
                Err(error) if is_too_early(&error) => at(later),
                verdict => verdict,
            };
            match verdict {
                Ok(_) => return Ok(Some(name.clone())),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| CertificateError::NotValidForName.into()))
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _dialed: &ServerName<'_>,
        ocsp: &[u8],
        _system_time: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict = self.judge(leaf, intermediates, ocsp);
        let presented = Presented {
            leaf: Some(leaf.clone().into_owned()),
            verified: verdict.as_ref().ok().cloned().flatten(),
            refused: verdict.as_ref().err().cloned(),
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = presented;
        verdict.map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.trust {
            Trust::Authorities { chain, .. } => {
                chain.verify_tls12_signature(message, leaf, signature)
            }
            Trust::Keys { algorithms, .. } => {
                verify_tls12_signature(message, leaf, signature, algorithms)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.trust {
            Trust::Authorities { chain, .. } => {
                chain.verify_tls13_signature(message, leaf, signature)
            }
            Trust::Keys { algorithms, .. } => {
                verify_tls13_signature(message, leaf, signature, algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match &self.trust {
            Trust::Authorities { chain, .. } => chain.supported_verify_schemes(),
            Trust::Keys { algorithms, .. } => algorithms.supported_schemes(),
        }
    }
}

impl Clock {
    fn time(&self) -> Result<Duration, rustls::Error> {
        let start = self.now.duration_since(Timestamp::UNIX_EPOCH);
        match Duration::try_from(start) {
            Ok(start) => Ok(start + self.started.elapsed()),
            Err(_) => Err(rustls::Error::FailedToGetCurrentTime),
        }
    }
}

/// Returns a name as TLS wants it; none when no certificate can be verified for it, as for a wildcard.
pub fn server_name(name: &Name) -> Option<ServerName<'static>> {
    match name {
        Name::Ip(address) => Some(ServerName::IpAddress(IpAddr::from(*address))),
        Name::Dns(name) => ServerName::try_from(name.clone()).ok(),
    }
}

fn is_too_early(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }
        )
    )
}

fn has_key(leaf: &CertificateDer<'_>, known: &[Fingerprint]) -> Result<(), rustls::Error> {
    let has_one = || {
        Certificate::from_der(leaf)
            .is_ok_and(|leaf| known.contains(&Fingerprint::new(leaf.spki_sha256())))
    };
    if known.is_empty() || has_one() {
        Ok(())
    } else {
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use talos_pki::{Authority, AuthorityKind, LeafRequest, LeafUsage};

    use super::*;

    fn now() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn roots(authority: &Authority) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let der = CertificateDer::from(authority.certificate().der().to_vec());
        roots.add(der).unwrap();
        roots
    }

    /// Issues a certificate for `cp.example` from `seconds` after now, and judges it for these names.
    fn judge(seconds: i64, names: &[&str]) -> Presented {
        let early = now() - SignedDuration::from_hours(1);
        let authority = Authority::generate(AuthorityKind::Kubernetes, early).unwrap();
        let request = LeafRequest {
            names: vec![name("cp.example")],
            usage: LeafUsage {
                server: true,
                ..LeafUsage::default()
            },
            lifetime: SignedDuration::from_hours(24),
            ..LeafRequest::default()
        };
        let from = now() + SignedDuration::from_secs(seconds);
        let leaf = authority.issue(&request, from).unwrap();
        let names: Vec<Name> = names.iter().map(|text| name(text)).collect();
        let verifier = ServerVerifier::new(roots(&authority), &names, now()).unwrap();
        let der = CertificateDer::from(leaf.certificate.der().to_vec());
        let dialed = server_name(&name("127.0.0.1")).unwrap();
        let system_time = UnixTime::since_unix_epoch(Duration::ZERO);
        let verdict = verifier.verify_server_cert(&der, &[], &dialed, &[], system_time);
        let presented = verifier.presented();
        assert_eq!(presented.refused, verdict.err());
        assert_eq!(presented.leaf, Some(der));
        presented
    }

    #[test]
    fn the_first_name_that_fits_counts_whatever_was_dialed() {
        let names = ["10.5.0.2", "cp.example", "other.example"];
        assert_eq!(judge(0, &names).verified, Some(name("cp.example")));
        let refused = judge(0, &["10.5.0.2"]).refused.unwrap();
        assert!(matches!(
            refused,
            rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
        ));
        assert_eq!(judge(0, &[]).verified, None);
    }

    #[test]
    fn a_clock_that_is_ahead_by_seconds_is_forgiven_and_by_more_is_not() {
        assert!(judge(20, &["cp.example"]).verified.is_some());
        assert!(is_too_early(&judge(60, &["cp.example"]).refused.unwrap()));
    }

    #[test]
    fn a_name_that_cannot_be_verified_and_no_authority_are_refused() {
        let authority = Authority::generate(AuthorityKind::Kubernetes, now()).unwrap();
        let wildcard = [name("cp.example"), name("*.example")];
        let error = ServerVerifier::new(roots(&authority), &wildcard, now()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "TLS cannot verify a certificate for the name *.example"
        );
        let error = ServerVerifier::new(RootCertStore::empty(), &[], now()).unwrap_err();
        assert!(matches!(error, VerifierError::NoAuthority), "{error:?}");
    }
}
