//! The certificates of other software that tests judge, see vendor-certs/README.md.

use jiff::Timestamp;

use crate::Certificate;

/// Reads all certificates of one file of vendor-certs.
pub(crate) fn chain(file: &str) -> Vec<Certificate> {
    Certificate::many_from_pem(text(file)).unwrap()
}

/// Reads the first certificate of one file of vendor-certs.
pub(crate) fn certificate(file: &str) -> Certificate {
    chain(file).swap_remove(0)
}

/// Reads one file of vendor-certs.
pub(crate) fn text(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vendor-certs");
    std::fs::read_to_string(format!("{folder}/{file}.pem")).unwrap()
}

/// A moment at which every certificate of vendor-certs is valid.
pub(crate) fn noon() -> Timestamp {
    "2026-11-30T16:00:00Z".parse().unwrap()
}
