//! What a machine says about itself.

use talos_api::machine;
use tonic::Status;

use crate::apid::Context;
use crate::machine::access::control_plane_only;
use crate::options::{Platform, TalosVersion};

/// `Version`: tag, platform and features.
pub(crate) async fn version(context: Context) -> Result<machine::VersionResponse, Status> {
    let in_maintenance = context.node.configs.in_maintenance();
    let (name, mode) = match context.shared.options.platform {
        Platform::Metal => ("metal", "metal"),
        Platform::Container => ("container", "container"),
    };
    let entry = machine::Version {
        metadata: None,
        version: Some(machine::VersionInfo {
            tag: context.shared.options.talos_version.tag().to_owned(),
            sha: "undefined".to_owned(),
            built: String::new(),
            go_version: "go1.26.8".to_owned(),
            os: "linux".to_owned(),
            arch: "amd64".to_owned(),
        }),
        platform: Some(machine::PlatformInfo {
            name: name.to_owned(),
            mode: mode.to_owned(),
        }),
        features: (!in_maintenance).then_some(machine::FeaturesInfo { rbac: true }),
    };
    Ok(machine::VersionResponse {
        messages: vec![entry],
    })
}

/// `Hostname`: the kernel's host name.
pub(crate) async fn hostname(context: Context) -> Result<machine::HostnameResponse, Status> {
    let entry = machine::Hostname {
        metadata: None,
        hostname: context.node.name.clone(),
    };
    Ok(machine::HostnameResponse {
        messages: vec![entry],
    })
}

/// `Bootstrap`: starts etcd on its first member.
pub(crate) async fn bootstrap(
    context: Context,
    _request: machine::BootstrapRequest,
) -> Result<machine::BootstrapResponse, Status> {
    let is_old = context.shared.options.talos_version < TalosVersion::V1_13_9;
    if is_old && !context.node.is_control_plane() {
        return Err(Status::failed_precondition(
            "bootstrap can only be performed on a control plane node",
        ));
    }
    control_plane_only(&context, "bootstrap is")?;
    if !context.node.machine.bootstrap() {
        return Err(Status::already_exists("etcd data directory is not empty"));
    }
    Ok(machine::BootstrapResponse {
        messages: vec![machine::Bootstrap::default()],
    })
}
