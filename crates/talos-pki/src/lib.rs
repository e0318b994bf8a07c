//! X.509 for Talos clusters: parse, judge and issue certificates.
//!
//! Everything here is a pure function of its arguments: no socket, no file, no clock. Time comes in as a
//! [`jiff::Timestamp`]. Deliberately absent: fetching what a server presents (that is `talos-certs`), trust stores of
//! the operating system, revocation, and certificate policies.
//!
//! Certificates are written here rather than with a builder crate because Talos puts all roles of a client into one
//! set of organizations, gives its authorities random key identifiers and leaves basicConstraints out of leaves.
//!
//! Architecture invariant: nothing in this crate performs input or output, and no error or `Debug` text contains a key.

mod authority;
mod certificate;
mod constraints;
mod der;
mod error;
mod extensions;
mod inspect;
mod issue;
mod judge;
mod key;
mod name;
mod oid;
mod pem;
mod request;
mod sans;
mod verify;

pub use authority::{Authority, AuthorityKind};
pub use certificate::Certificate;
pub use error::Error;
pub use extensions::{KeyUsage, Purpose};
pub use inspect::{
    AlternativeName, Attribute, DistinguishedName, ExtensionDetail, Inspection, KeyDetail,
};
pub use issue::{Issued, LeafRequest, LeafUsage, fill_random};
pub use judge::{Expectation, Finding, FindingCode, KnownAuthority, Role, clock_behind, judge};
pub use key::{Algorithm, PrivateKey};
pub use name::Name;
pub use request::SigningRequest;
pub use sans::{covered_by, covers, unexpected};
pub use verify::{is_issued_by, issuer_of, issuers_of};

#[cfg(test)]
mod corpus;
