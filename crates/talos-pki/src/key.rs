//! Private keys under the PEM labels that Talos writes.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA512,
};
use pkcs8::PrivateKeyInfoRef;
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use crate::der::{self, tag};
use crate::{Certificate, Error, pem};

/// Kind of a public or private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Ed25519, what Talos uses for its own API.
    Ed25519,
    /// ECDSA on P-256, what Talos uses for Kubernetes and etcd.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// ECDSA on P-521.
    EcdsaP521,
    /// RSA with a modulus of this many bits.
    Rsa(usize),
    /// A kind this library cannot use.
    Other,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ed25519 => out.write_str("Ed25519"),
            Self::EcdsaP256 => out.write_str("ECDSA P-256"),
            Self::EcdsaP384 => out.write_str("ECDSA P-384"),
            Self::EcdsaP521 => out.write_str("ECDSA P-521"),
            Self::Rsa(bits) => write!(out, "RSA {bits}"),
            Self::Other => out.write_str("other"),
        }
    }
}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A private key; its memory is cleared when it is dropped, and `Debug` shows the algorithm only.
#[derive(Clone)]
pub struct PrivateKey {
    inner: Arc<Inner>,
}

struct Inner {
    pair: Pair,
    algorithm: Algorithm,
    pkcs8: Zeroizing<Vec<u8>>,
    public_key_info: Vec<u8>,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(rsa::KeyPair),
}

impl PrivateKey {
    /// Makes a fresh key.
    ///
    /// # Errors
    /// [`Error::Crypto`] when the algorithm cannot be generated: RSA is made with 2048, 3072, 4096 or 8192 bits.
    pub fn generate(algorithm: Algorithm) -> Result<Self, Error> {
        let failed = Error::Crypto {
            what: "generate a key",
        };
        let pair = match algorithm {
            Algorithm::Ed25519 => Ed25519KeyPair::generate().map(Pair::Ed25519),
            Algorithm::EcdsaP256 => {
                EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map(Pair::Ecdsa)
            }
            Algorithm::EcdsaP384 => {
                EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING).map(Pair::Ecdsa)
            }
            Algorithm::EcdsaP521 => {
                EcdsaKeyPair::generate(&ECDSA_P521_SHA512_ASN1_SIGNING).map(Pair::Ecdsa)
            }
            Algorithm::Rsa(2048) => rsa::KeyPair::generate(rsa::KeySize::Rsa2048).map(Pair::Rsa),
            Algorithm::Rsa(3072) => rsa::KeyPair::generate(rsa::KeySize::Rsa3072).map(Pair::Rsa),
            Algorithm::Rsa(4096) => rsa::KeyPair::generate(rsa::KeySize::Rsa4096).map(Pair::Rsa),
            Algorithm::Rsa(8192) => rsa::KeyPair::generate(rsa::KeySize::Rsa8192).map(Pair::Rsa),
            Algorithm::Rsa(_) | Algorithm::Other => return Err(failed),
        };
        pair.ok().and_then(Self::from_pair).ok_or(failed)
    }

    /// Reads the first private key of a PEM text: PKCS#8, SEC1 or PKCS#1, under the labels `PRIVATE KEY`,
    /// `ED25519 PRIVATE KEY`, `EC PRIVATE KEY` and `RSA PRIVATE KEY`; other blocks are passed over.
    ///
    /// # Errors
    /// [`Error::NoKey`], [`Error::EncryptedKey`], [`Error::Key`], or what is wrong with the PEM text.
    pub fn from_pem(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let blocks = pem::blocks(text.as_ref())?;
        let block = blocks
            .iter()
            .find(|block| block.label.ends_with("PRIVATE KEY"))
            .ok_or(Error::NoKey)?;
        if block.encrypted {
            return Err(Error::EncryptedKey);
        }
        Self::read(&block.der).ok_or_else(|| Error::Key {
            label: block.label.clone(),
        })
    }

    /// Reads a key from DER: PKCS#8 (version 1 or 2), SEC1 or PKCS#1.
    ///
    /// # Errors
    /// [`Error::Key`] when it is none of these or of an unsupported kind.
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        Self::read(der).ok_or_else(|| Error::Key {
            label: "DER".to_owned(),
        })
    }

    /// Names the kind of key.
    pub fn algorithm(&self) -> Algorithm {
        self.inner.algorithm
    }

    /// Returns the key as PKCS#8 version 1 DER, the form every TLS library reads.
    pub fn pkcs8_der(&self) -> &[u8] {
        &self.inner.pkcs8
    }

    /// Returns the public half as SubjectPublicKeyInfo DER.
    pub fn public_key_info(&self) -> &[u8] {
        &self.inner.public_key_info
    }

    /// Writes the key as Talos does: Ed25519 as PKCS#8 under `ED25519 PRIVATE KEY`, ECDSA as SEC1 under
    /// `EC PRIVATE KEY`, RSA as PKCS#1 under `RSA PRIVATE KEY`.
    pub fn pem(&self) -> Zeroizing<String> {
        let text = match &self.inner.pair {
            Pair::Ed25519(_) => pem::encode("ED25519 PRIVATE KEY", self.pkcs8_der()),
            Pair::Ecdsa(pair) => match self.sec1(pair) {
                Some(sec1) => pem::encode("EC PRIVATE KEY", &sec1),
                None => self.plain_pem(),
            },
            Pair::Rsa(_) => match PrivateKeyInfoRef::try_from(self.pkcs8_der()) {
                Ok(info) => pem::encode("RSA PRIVATE KEY", info.private_key.as_bytes()),
                Err(_) => self.plain_pem(),
            },
        };
        Zeroizing::new(text)
    }

    /// Writes the key as PKCS#8 under the standard label `PRIVATE KEY`.
    pub fn pkcs8_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.plain_pem())
    }

    /// Tells whether the certificate carries this key's public half.
    pub fn matches(&self, certificate: &Certificate) -> bool {
        self.inner.pair.public_key() == certificate.public_key()
    }

    /// Derives an Ed25519 key and a serial number for a leaf from this key and what the leaf will say.
    pub(crate) fn derive_leaf(&self, context: &[u8]) -> Result<(Self, [u8; 16]), Error> {
        let failed = |_| Error::Crypto {
            what: "derive a key",
        };
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"leaf of a Talos authority");
        let material = salt.extract(self.pkcs8_der());
        let mut seed = Zeroizing::new([0; 32]);
        let mut serial = [0; 16];
        for (purpose, out) in [
            (b"key".as_slice(), seed.as_mut_slice()),
            (b"serial", &mut serial),
        ] {
            material
                .expand(&[purpose, context], Length(out.len()))
                .and_then(|output| output.fill(out))
                .map_err(failed)?;
        }
        // A serial number has its full length and is positive.
        serial[0] = serial[0] & 0x7f | 0x40;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice())
            .map_err(|_| failed(Unspecified))?;
        let key = Self::from_pair(Pair::Ed25519(pair)).ok_or(failed(Unspecified))?;
        Ok((key, serial))
    }

    /// Signs a message; ECDSA uses the hash of the curve's size, RSA PKCS#1 1.5 with SHA-512, as Talos does.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        let signature = match &self.inner.pair {
            Pair::Ed25519(pair) => pair.try_sign(message).map(|made| made.as_ref().to_vec()),
            Pair::Ecdsa(pair) => pair
                .sign(&random, message)
                .map(|made| made.as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA512, &random, message, &mut signature)
                    .map(|()| signature)
            }
        };
        signature.map_err(|_| Error::Crypto {
            what: "sign a certificate",
        })
    }

    fn read(der: &[u8]) -> Option<Self> {
        let ecdsa = |algorithm: &'static EcdsaSigningAlgorithm| {
            EcdsaKeyPair::from_private_key_der(algorithm, der).map(Pair::Ecdsa)
        };
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
            .map(Pair::Ed25519)
            .or_else(|_| ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING))
            .or_else(|_| ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING))
            .or_else(|_| ecdsa(&ECDSA_P521_SHA512_ASN1_SIGNING))
            .or_else(|_| rsa::KeyPair::from_pkcs8(der).map(Pair::Rsa))
            .or_else(|_| rsa::KeyPair::from_der(der).map(Pair::Rsa))
            .ok()?;
        Self::from_pair(pair)
    }

    fn from_pair(pair: Pair) -> Option<Self> {
        let (algorithm, pkcs8, public_key_info) = match &pair {
            Pair::Ed25519(pair) => {
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
                let document = pair.to_pkcs8v1().ok()?;
                (
                    Algorithm::Ed25519,
                    document.as_ref().to_vec(),
                    public.as_ref().to_vec(),
                )
            }
            Pair::Ecdsa(pair) => {
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
                let document = pair.to_pkcs8v1().ok()?;
                let algorithm = curve(pair)?.0;
                (
                    algorithm,
                    document.as_ref().to_vec(),
                    public.as_ref().to_vec(),
                )
            }
            Pair::Rsa(pair) => {
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
                let document: Pkcs8V1Der<'_> = pair.as_der().ok()?;
                let bits = pair.public_modulus_len() * 8;
                (
                    Algorithm::Rsa(bits),
                    document.as_ref().to_vec(),
                    public.as_ref().to_vec(),
                )
            }
        };
        Some(Self {
            inner: Arc::new(Inner {
                pair,
                algorithm,
                pkcs8: Zeroizing::new(pkcs8),
                public_key_info,
            }),
        })
    }

    fn plain_pem(&self) -> String {
        pem::encode("PRIVATE KEY", self.pkcs8_der())
    }

    /// Writes RFC 5915 with the curve and the public key named, which every reader wants.
    fn sec1(&self, pair: &EcdsaKeyPair) -> Option<Zeroizing<Vec<u8>>> {
        let scalar: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes().ok()?;
        let (_, curve) = curve(pair)?;
        let secret = Zeroizing::new(der::value(tag::OCTET_STRING, scalar.as_ref()));
        let parameters = der::value(tag::context_constructed(0), &der::object_identifier(curve));
        let point = der::bit_string(pair.public_key().as_ref());
        Some(Zeroizing::new(der::sequence(&[
            &der::integer(&[1]),
            &secret,
            &parameters,
            &der::value(tag::context_constructed(1), &point),
        ])))
    }
}

/// How many bytes to derive.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PrivateKey({})", self.algorithm())
    }
}

impl Pair {
    fn public_key(&self) -> &[u8] {
        match self {
            Self::Ed25519(pair) => pair.public_key().as_ref(),
            Self::Ecdsa(pair) => pair.public_key().as_ref(),
            Self::Rsa(pair) => pair.public_key().as_ref(),
        }
    }
}

/// Tells the curve of an ECDSA key by the length of its point, with the curve's object identifier.
fn curve(pair: &EcdsaKeyPair) -> Option<(Algorithm, &'static [u32])> {
    match pair.public_key().as_ref().len() {
        65 => Some((Algorithm::EcdsaP256, &[1, 2, 840, 10045, 3, 1, 7])),
        97 => Some((Algorithm::EcdsaP384, &[1, 3, 132, 0, 34])),
        133 => Some((Algorithm::EcdsaP521, &[1, 3, 132, 0, 35])),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
