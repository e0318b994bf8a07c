//! The services of a machine: one module per matter, and the table of methods that leads to them.

mod access;
mod apply;
mod basics;
mod events;
mod files;
mod images;
mod logs;
mod reboot;
mod services;
mod state;
mod status;
mod time;

use http::{Request, Response};
use talos_api::machine;
use tonic::Status;
use tonic::body::Body;

#[cfg(test)]
pub(crate) use apply::apply;
pub(crate) use apply::roll_back;
pub(crate) use reboot::tell_boot;
pub(crate) use services::restart_kubelet;
pub(crate) use state::MachineState;
pub(crate) use status::publish as publish_status;

use crate::apid::Context;
use crate::grpc;
use crate::options::TalosVersion;
use services::Operation;

/// Answers one call whose method exists and whose caller may make it.
pub(crate) async fn serve(
    context: Context,
    method: &str,
    request: Request<Body>,
) -> Response<Body> {
    let Some((service, method)) = method.trim_start_matches('/').split_once('/') else {
        return not_simulated(method);
    };
    match service {
        "machine.MachineService" => machine_service(context, method, request).await,
        "machine.ImageService" => image_service(context, method, request).await,
        "time.TimeService" => time_service(context, method, request).await,
        _ => not_simulated(method),
    }
}

/// Whether a method accepts everybody on a machine that waits for its configuration.
pub(crate) fn opens_in_maintenance(method: &str) -> bool {
    matches!(
        method,
        "/machine.MachineService/ApplyConfiguration"
            | "/storage.StorageService/BlockDeviceWipe"
            | "/machine.LVMService/LogicalVolumeRemove"
            | "/machine.LVMService/PhysicalVolumeRemove"
            | "/machine.LVMService/VolumeGroupRemove"
            | "/machine.MDService/Destroy"
    )
}

/// Whether a machine that waits for its configuration has a method at all.
pub(crate) fn exists_in_maintenance(version: TalosVersion, method: &str) -> bool {
    version >= TalosVersion::V1_13_9
        || method.starts_with("/cosi.resource.State/")
        || method.starts_with("/storage.StorageService/")
        || matches!(
            method,
            "/machine.MachineService/ApplyConfiguration"
                | "/machine.MachineService/GenerateConfiguration"
        )
}

async fn machine_service(context: Context, method: &str, request: Request<Body>) -> Response<Body> {
    let zip = context.compress;
    match method {
        "ApplyConfiguration" => grpc::unary(zip, request, |m| apply::apply(context, m)).await,
        "Bootstrap" => grpc::unary(zip, request, |m| basics::bootstrap(context, m)).await,
        "Events" => grpc::streaming(zip, request, |m| events::events(context, m)).await,
        "GenerateClientConfiguration" => {
            grpc::unary(zip, request, |m| access::client_configuration(context, m)).await
        }
        "Hostname" => grpc::unary(zip, request, |()| basics::hostname(context)).await,
        "ImageList" => grpc::streaming(zip, request, |m| images::list_old(context, m)).await,
        "ImagePull" => grpc::unary(zip, request, |m| images::pull_old(context, m)).await,
        "Kubeconfig" => grpc::streaming(zip, request, |()| access::kubeconfig(context)).await,
        "Logs" => grpc::streaming(zip, request, |m| logs::logs(context, m)).await,
        "LogsContainers" => grpc::unary(zip, request, |()| logs::containers(context)).await,
        "Read" => grpc::streaming(zip, request, |m| files::read(context, m)).await,
        "Reboot" => grpc::unary(zip, request, |m| reboot::reboot(context, m)).await,
        "ServiceList" => grpc::unary(zip, request, |()| services::list(context)).await,
        "ServiceRestart" => {
            let answer = |m: machine::ServiceRestartRequest| async move {
                let resp = services::operate(&context, &m.id, Operation::Restart)?;
                let entry = machine::ServiceRestart {
                    metadata: None,
                    resp,
                };
                Ok(machine::ServiceRestartResponse {
                    messages: vec![entry],
                })
            };
            grpc::unary(zip, request, answer).await
        }
        "ServiceStart" => {
            let answer = |m: machine::ServiceStartRequest| async move {
                let resp = services::operate(&context, &m.id, Operation::Start)?;
                let entry = machine::ServiceStart {
                    metadata: None,
                    resp,
                };
                Ok(machine::ServiceStartResponse {
                    messages: vec![entry],
                })
            };
            grpc::unary(zip, request, answer).await
        }
        "ServiceStop" => {
            let answer = |m: machine::ServiceStopRequest| async move {
                let resp = services::operate(&context, &m.id, Operation::Stop)?;
                let entry = machine::ServiceStop {
                    metadata: None,
                    resp,
                };
                Ok(machine::ServiceStopResponse {
                    messages: vec![entry],
                })
            };
            grpc::unary(zip, request, answer).await
        }
        "Version" => grpc::unary(zip, request, |()| basics::version(context)).await,
        _ => not_simulated(method),
    }
}

async fn image_service(context: Context, method: &str, request: Request<Body>) -> Response<Body> {
    let zip = context.compress;
    match method {
        "List" => grpc::streaming(zip, request, |m| images::list(context, m)).await,
        "Pull" => grpc::streaming(zip, request, |m| images::pull_new(context, m)).await,
        "Remove" => grpc::unary(zip, request, |m| images::remove(context, m)).await,
        _ => not_simulated(method),
    }
}

async fn time_service(context: Context, method: &str, request: Request<Body>) -> Response<Body> {
    let zip = context.compress;
    match method {
        "Time" => grpc::unary(zip, request, |()| time::time(context)).await,
        "TimeCheck" => grpc::unary(zip, request, |m| time::check(context, m)).await,
        _ => not_simulated(method),
    }
}

fn not_simulated(method: &str) -> Response<Body> {
    Status::unimplemented(format!("{method} is not simulated")).into_http()
}
