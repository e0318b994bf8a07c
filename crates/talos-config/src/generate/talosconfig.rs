//! The talosconfig of a new cluster's administrator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use talos_pki::{Authority, LeafRequest, LeafUsage};

use super::{Error, Params, Secrets};
use crate::yaml;

/// How long the administrator's certificate lives.
const YEAR: SignedDuration = SignedDuration::from_hours(8760);

/// Writes a talosconfig with the certificate of an administrator; who uses it fills in the endpoints.
///
/// The certificate's key follows from the Talos authority's and the time, see [`Authority::issue_reproducibly`]: with
/// the same secrets and the same second the text is the same.
///
/// # Errors
///
/// [`Error::Params`], or [`Error::Make`] if the Talos authority of the secrets cannot sign.
pub fn talosconfig(params: &Params, secrets: &Secrets, now: Timestamp) -> Result<String, Error> {
    params.check()?;
    let failed = |source| Error::Make {
        what: "the administrator's certificate",
        source,
    };
    let authority = Authority::from_pem(&secrets.os.crt, &secrets.os.key).map_err(failed)?;
    let request = LeafRequest {
        organizations: vec!["os:admin".to_owned()],
        usage: LeafUsage {
            client: true,
            ..LeafUsage::default()
        },
        lifetime: YEAR,
        ..LeafRequest::default()
    };
    let issued = authority
        .issue_reproducibly(&request, now)
        .map_err(failed)?;
    let name = params.cluster_name.as_str();
    Ok(yaml::write(&json!({
        "context": name,
        "contexts": {
            name: {
                "endpoints": [],
                "ca": STANDARD.encode(&secrets.os.crt),
                "crt": STANDARD.encode(issued.certificate.pem()),
                "key": STANDARD.encode(issued.key.pem().as_bytes()),
            },
        },
    })))
}
