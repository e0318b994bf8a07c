//! What a machine says about itself.

use talos_api::machine;
use tonic::Status;

use crate::apid::Context;
use crate::options::Platform;

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
        platform: Some(machine::PlatformInfo { name: name.to_owned(), mode: mode.to_owned() }),
        features: (!in_maintenance).then_some(machine::FeaturesInfo { rbac: true }),
    };
    Ok(machine::VersionResponse { messages: vec![entry] })
}

/// `Hostname`: the kernel's host name.
pub(crate) async fn hostname(context: Context) -> Result<machine::HostnameResponse, Status> {
    let entry = machine::Hostname { metadata: None, hostname: context.node.name.clone() };
    Ok(machine::HostnameResponse { messages: vec![entry] })
}
