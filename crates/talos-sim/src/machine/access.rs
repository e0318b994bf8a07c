//! Credentials that a control plane hands out.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use jiff::SignedDuration;
use talos_api::machine::{
    GenerateClientConfiguration, GenerateClientConfigurationRequest,
    GenerateClientConfigurationResponse,
};
use tonic::Status;

use crate::apid::Context;
use crate::clients;
use crate::machine::logs::{DataStream, data};
use crate::options::TalosVersion;
use crate::pki;

/// `Kubeconfig`: a gzipped tar with one file, whose tar is not terminated.
pub(crate) async fn kubeconfig(context: Context) -> Result<DataStream, Status> {
    control_plane_only(&context, "kubeconfig is")?;
    let text =
        clients::kubeconfig(&context.shared, &context.node).map_err(|error| failed(&error))?;
    let archive = archive(&text).map_err(|error| failed(&error))?;
    Ok(Box::pin(stream::iter([Ok(data(archive))])))
}

/// `GenerateClientConfiguration`: a talosconfig without endpoints.
pub(crate) async fn client_configuration(
    context: Context,
    request: GenerateClientConfigurationRequest,
) -> Result<GenerateClientConfigurationResponse, Status> {
    if !context.node.is_control_plane()
        && context.shared.options.talos_version < TalosVersion::V1_13_9
    {
        return Err(Status::failed_precondition(
            "client configuration (talosconfig) can't be generated on worker nodes",
        ));
    }
    control_plane_only(&context, "client configuration (talosconfig) is")?;
    let shared = &context.shared;
    let lifetime = request.crt_ttl.map_or(0, |ttl| ttl.seconds);
    if lifetime <= 0 {
        return Err(Status::invalid_argument("crt_ttl should be positive"));
    }
    let roles: Vec<&str> = request.roles.iter().map(String::as_str).collect();
    let lifetime = SignedDuration::from_secs(lifetime);
    let trust = context.node.trust();
    let signer = trust.talos.signer.as_ref();
    let signer = signer.ok_or_else(|| Status::unknown("no issuing CA"))?;
    let now = context.node.now(shared);
    let issued = pki::talos_client(signer, None, &roles, lifetime, now);
    let issued = issued.map_err(|error| failed(&error))?;
    let name = &shared.options.name;
    let name = match roles.as_slice() {
        [role] => format!("{}@{name}", role.trim_start_matches("os:")),
        _ => name.clone(),
    };
    let entry = GenerateClientConfiguration {
        metadata: None,
        ca: trust.talos.all_pem().into_bytes(),
        crt: issued.certificate.pem().into_bytes(),
        key: issued.key.pem().as_bytes().to_vec(),
        talosconfig: clients::talosconfig(&trust, &name, &[], &issued).into_bytes(),
    };
    Ok(GenerateClientConfigurationResponse {
        messages: vec![entry],
    })
}

/// Refuses what only control planes do; `what` is the start of the sentence.
pub(crate) fn control_plane_only(context: &Context, what: &str) -> Result<(), Status> {
    if context.node.is_control_plane() {
        return Ok(());
    }
    Err(Status::unimplemented(format!(
        "{what} only available on control plane nodes"
    )))
}

fn archive(text: &str) -> std::io::Result<Vec<u8>> {
    let mut header = tar::Header::new_ustar();
    header.set_path("kubeconfig")?;
    header.set_size(text.len() as u64);
    header.set_mode(0o600);
    header.set_cksum();
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(header.as_bytes())?;
    zipped.write_all(text.as_bytes())?;
    zipped.finish()
}

fn failed(error: &dyn std::error::Error) -> Status {
    Status::unknown(error.to_string())
}
