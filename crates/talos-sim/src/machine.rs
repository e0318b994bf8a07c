//! The services of a machine.

mod basics;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;

use crate::apid::Context;
use crate::grpc;

/// Answers one call whose method exists and whose caller may make it.
pub(crate) async fn serve(context: Context, method: &str, request: Request<Body>) -> Response<Body> {
    let zip = context.compress;
    match method {
        "/machine.MachineService/Version" => {
            grpc::unary(zip, request, |()| basics::version(context)).await
        }
        "/machine.MachineService/Hostname" => {
            grpc::unary(zip, request, |()| basics::hostname(context)).await
        }
        _ => Status::unimplemented(format!("{method} is not simulated")).into_http(),
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
