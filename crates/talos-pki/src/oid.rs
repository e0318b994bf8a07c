//! Names for the object identifiers that certificates have.

/// Names a way to sign.
pub(crate) fn signature(identifier: &str) -> Option<&'static str> {
    Some(match identifier {
        "1.2.840.113549.1.1.2" => "RSA with MD2",
        "1.2.840.113549.1.1.4" => "RSA with MD5",
        "1.2.840.113549.1.1.5" | "1.3.14.3.2.29" => "RSA with SHA-1",
        "1.2.840.113549.1.1.14" => "RSA with SHA-224",
        "1.2.840.113549.1.1.11" => "RSA with SHA-256",
        "1.2.840.113549.1.1.12" => "RSA with SHA-384",
        "1.2.840.113549.1.1.13" => "RSA with SHA-512",
        "1.2.840.113549.1.1.10" => "RSASSA-PSS",
        "1.2.840.10040.4.3" => "DSA with SHA-1",
        "2.16.840.1.101.3.4.3.2" => "DSA with SHA-256",
        "1.2.840.10045.4.1" => "ECDSA with SHA-1",
        "1.2.840.10045.4.3.1" => "ECDSA with SHA-224",
        "1.2.840.10045.4.3.2" => "ECDSA with SHA-256",
        "1.2.840.10045.4.3.3" => "ECDSA with SHA-384",
        "1.2.840.10045.4.3.4" => "ECDSA with SHA-512",
        "1.3.101.112" => "Ed25519",
        "1.3.101.113" => "Ed448",
        _ => return None,
    })
}

/// Names a kind of key, by its algorithm and, for elliptic curves, its curve.
pub(crate) fn key(identifier: &str, curve: Option<&str>) -> String {
    let name = match (identifier, curve) {
        ("1.2.840.10045.2.1", Some(curve)) => match curve {
            "1.2.840.10045.3.1.1" => "ECDSA P-192",
            "1.3.132.0.33" => "ECDSA P-224",
            "1.2.840.10045.3.1.7" => "ECDSA P-256",
            "1.3.132.0.34" => "ECDSA P-384",
            "1.3.132.0.35" => "ECDSA P-521",
            "1.3.132.0.10" => "ECDSA secp256k1",
            other => return format!("ECDSA on curve {other}"),
        },
        ("1.2.840.10045.2.1", None) => "ECDSA without a named curve",
        ("1.2.840.113549.1.1.1", _) => "RSA",
        ("1.2.840.113549.1.1.10", _) => "RSASSA-PSS",
        ("1.2.840.10040.4.1", _) => "DSA",
        ("1.3.101.110", _) => "X25519",
        ("1.3.101.111", _) => "X448",
        ("1.3.101.112", _) => "Ed25519",
        ("1.3.101.113", _) => "Ed448",
        (other, _) => return other.to_owned(),
    };
    name.to_owned()
}

/// Names an extension.
pub(crate) fn extension(identifier: &str) -> Option<&'static str> {
    Some(match identifier {
        "2.5.29.9" => "subjectDirectoryAttributes",
        "2.5.29.14" => "subjectKeyIdentifier",
        "2.5.29.15" => "keyUsage",
        "2.5.29.16" => "privateKeyUsagePeriod",
        "2.5.29.17" => "subjectAltName",
        "2.5.29.18" => "issuerAltName",
        "2.5.29.19" => "basicConstraints",
        "2.5.29.30" => "nameConstraints",
        "2.5.29.31" => "cRLDistributionPoints",
        "2.5.29.32" => "certificatePolicies",
        "2.5.29.33" => "policyMappings",
        "2.5.29.35" => "authorityKeyIdentifier",
        "2.5.29.36" => "policyConstraints",
        "2.5.29.37" => "extendedKeyUsage",
        "2.5.29.46" => "freshestCRL",
        "2.5.29.54" => "inhibitAnyPolicy",
        "1.3.6.1.5.5.7.1.1" => "authorityInfoAccess",
        "1.3.6.1.5.5.7.1.11" => "subjectInfoAccess",
        "1.3.6.1.5.5.7.1.24" => "tlsFeature",
        "1.3.6.1.4.1.11129.2.4.2" => "signedCertificateTimestamps",
        "1.3.6.1.4.1.11129.2.4.3" => "precertificatePoison",
        "2.16.840.1.113730.1.1" => "netscapeCertType",
        "2.16.840.1.113730.1.13" => "netscapeComment",
        _ => return None,
    })
}

/// Names an attribute of a subject or issuer as RFC 4514 does, else by its long name.
pub(crate) fn attribute(identifier: &str) -> Option<&'static str> {
    Some(match identifier {
        "2.5.4.3" => "CN",
        "2.5.4.4" => "SN",
        "2.5.4.5" => "serialNumber",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "street",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.12" => "title",
        "2.5.4.17" => "postalCode",
        "2.5.4.42" => "GN",
        "2.5.4.46" => "dnQualifier",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "emailAddress",
        _ => return None,
    })
}

/// Names one entry of extendedKeyUsage.
pub(crate) fn purpose(identifier: &str) -> Option<&'static str> {
    Some(match identifier {
        "2.5.29.37.0" => "any",
        "1.3.6.1.5.5.7.3.1" => "serverAuth",
        "1.3.6.1.5.5.7.3.2" => "clientAuth",
        "1.3.6.1.5.5.7.3.3" => "codeSigning",
        "1.3.6.1.5.5.7.3.4" => "emailProtection",
        "1.3.6.1.5.5.7.3.8" => "timeStamping",
        "1.3.6.1.5.5.7.3.9" => "OCSPSigning",
        _ => return None,
    })
}
