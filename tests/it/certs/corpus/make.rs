//! Makes certificates: with rcgen, and by hand what rcgen refuses to make.

use std::sync::LazyLock;

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, SanType, SignatureAlgorithm, SigningKey, date_time_ymd,
};

pub(crate) type Der = Vec<u8>;

/// An authority that can issue.
pub(crate) struct Ca {
    pub(crate) params: CertificateParams,
    pub(crate) key: KeyPair,
    pub(crate) der: Der,
}

/// The authority of most cases: ECDSA P-256, 2026 to 2036.
pub(crate) static ROOT: LazyLock<Ca> = LazyLock::new(|| Ca::root(authority("root")));
/// The key of all leaves that do not say otherwise.
static KEY: LazyLock<KeyPair> = LazyLock::new(|| key(&PKCS_ECDSA_P256_SHA256));

pub(crate) fn key(algorithm: &'static SignatureAlgorithm) -> KeyPair {
    KeyPair::generate_for(algorithm).unwrap()
}

impl Ca {
    pub(crate) fn root(params: CertificateParams) -> Self {
        Self::root_with(params, key(&PKCS_ECDSA_P256_SHA256))
    }

    pub(crate) fn root_with(params: CertificateParams, key: KeyPair) -> Self {
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { params, key, der }
    }

    /// Makes an authority below this one.
    pub(crate) fn below(&self, params: CertificateParams) -> Self {
        self.cross_sign(params, key(&PKCS_ECDSA_P256_SHA256))
    }

    /// Signs the key of another authority.
    pub(crate) fn cross_sign(&self, params: CertificateParams, key: KeyPair) -> Self {
        let der = params.signed_by(&key, &self.issuer()).unwrap();
        Self {
            der: der.der().to_vec(),
            params,
            key,
        }
    }

    pub(crate) fn issue(&self, params: &CertificateParams) -> Der {
        self.issue_for(params, &*KEY)
    }

    pub(crate) fn issue_for(&self, params: &CertificateParams, key: &impl PublicKeyData) -> Der {
        params
            .signed_by(key, &self.issuer())
            .unwrap()
            .der()
            .to_vec()
    }

    /// Another copy of the key.
    pub(crate) fn same_key(&self) -> KeyPair {
        KeyPair::from_pkcs8_der_and_sign_algo(
            &self.key.serialize_der().as_slice().into(),
            &PKCS_ECDSA_P256_SHA256,
        )
        .unwrap()
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }
}

/// What most authorities say.
pub(crate) fn authority(name: &str) -> CertificateParams {
    let mut params = dated(CertificateParams::default());
    params.distinguished_name = subject(DnType::OrganizationName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// What most leaves say: for a server with these names and addresses.
pub(crate) fn leaf(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = dated(CertificateParams::new(names).unwrap());
    params.distinguished_name = subject(DnType::OrganizationName, "server");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params
}

/// A leaf whose names are DNS names, whatever they look like.
pub(crate) fn dns(names: &[&str]) -> CertificateParams {
    let mut params = leaf(&[]);
    let names = names
        .iter()
        .map(|&name| SanType::DnsName(name.try_into().unwrap()));
    params.subject_alt_names = names.collect();
    params
}

/// A leaf whose subjectAltName somebody else wrote.
pub(crate) fn raw_names(content: &[u8]) -> CertificateParams {
    with(leaf(&[]), |params| {
        params.custom_extensions.push(names_extension(content))
    })
}

pub(crate) fn names_extension(content: &[u8]) -> CustomExtension {
    CustomExtension::from_oid_content(&[2, 5, 29, 17], tlv(0x30, content))
}

pub(crate) fn common_name(name: &str, names: &[&str]) -> CertificateParams {
    with(leaf(names), |params| {
        params.distinguished_name = subject(DnType::CommonName, name);
    })
}

pub(crate) fn with(
    mut params: CertificateParams,
    change: impl FnOnce(&mut CertificateParams),
) -> CertificateParams {
    change(&mut params);
    params
}

pub(crate) fn subject(kind: DnType, name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if !name.is_empty() {
        subject.push(kind, name);
    }
    subject
}

fn dated(params: CertificateParams) -> CertificateParams {
    with(params, |params| {
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2036, 1, 1);
    })
}

/// Writes one value of DER.
pub(crate) fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        length @ 0..0x80 => out.push(length as u8),
        length @ 0x80..0x100 => out.extend([0x81, length as u8]),
        length => out.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend_from_slice(content);
    out
}

/// Writes a certificate by hand, from the serial number to the extensions, signed by the usual root.
pub(crate) fn by_hand(version: Option<u8>, serial: &[u8], extensions: &[u8]) -> Der {
    let algorithm = tlv(0x30, b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02");
    let name = |text: &[u8]| {
        let pair = [tlv(6, &[0x55, 4, 10]), tlv(0x0c, text)].concat();
        tlv(0x30, &tlv(0x31, &tlv(0x30, &pair)))
    };
    let validity = [tlv(0x17, b"260101000000Z"), tlv(0x17, b"360101000000Z")].concat();
    let mut parts = Vec::new();
    parts.extend(version.map(|version| tlv(0xa0, &tlv(2, &[version]))));
    parts.extend([
        tlv(2, serial),
        algorithm.clone(),
        name(b"root"),
        tlv(0x30, &validity),
        name(b"server"),
        KEY.subject_public_key_info(),
    ]);
    if !extensions.is_empty() {
        parts.push(tlv(0xa3, &tlv(0x30, extensions)));
    }
    let signed = tlv(0x30, &parts.concat());
    let signature = [vec![0], ROOT.key.sign(&signed).unwrap()].concat();
    tlv(0x30, &[signed, algorithm, tlv(3, &signature)].concat())
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let begin = format!("-----BEGIN {label}-----");
    let mut lines = vec![begin];
    let text = base64(der);
    lines.extend(
        text.as_bytes()
            .chunks(64)
            .map(|line| String::from_utf8(line.to_vec()).unwrap()),
    );
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() {
                letter.into()
            } else {
                '='
            });
        }
    }
    text
}
