//! One call on the node that it concerns: roles, faults, records, and then the service itself.

use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use prost::Message as _;
use prost::bytes::Bytes;
use talos_api::cosi::resource::state_server::StateServer;
use talos_api::machine::ApplyConfigurationRequest;
use tonic::Status;
use tonic::body::Body;
use tower::ServiceExt as _;

use crate::apid::fanout::Uncompressed;
use crate::apid::roles;
use crate::calls::Call;
use crate::cosi;
use crate::machine;
use crate::node::NodeState;
use crate::shared::Shared;

/// Largest message in either direction, in bytes.
pub(crate) const MESSAGE_LIMIT: usize = 32 << 20;

/// Methods whose requests are streams and therefore cannot be looked at beforehand.
const STREAMING_REQUESTS: [&str; 3] = [
    "/machine.DebugService/ContainerRun",
    "/machine.ImageService/Import",
    "/machine.MachineService/EtcdRecover",
];

/// Methods that change a machine.
const MUTATING: [&str; 37] = [
    "/cosi.resource.State/Create",
    "/cosi.resource.State/Destroy",
    "/cosi.resource.State/Teardown",
    "/cosi.resource.State/TeardownAndDestroy",
    "/cosi.resource.State/Update",
    "/machine.DebugService/ContainerRun",
    "/machine.ImageService/Import",
    "/machine.ImageService/Pull",
    "/machine.ImageService/Remove",
    "/machine.LVMService/LogicalVolumeRemove",
    "/machine.LVMService/PhysicalVolumeRemove",
    "/machine.LVMService/VolumeGroupRemove",
    "/machine.LifecycleService/Install",
    "/machine.LifecycleService/Upgrade",
    "/machine.MDService/Destroy",
    "/machine.MachineService/ApplyConfiguration",
    "/machine.MachineService/Bootstrap",
    "/machine.MachineService/EtcdAlarmDisarm",
    "/machine.MachineService/EtcdDefragment",
    "/machine.MachineService/EtcdDowngradeCancel",
    "/machine.MachineService/EtcdDowngradeEnable",
    "/machine.MachineService/EtcdForfeitLeadership",
    "/machine.MachineService/EtcdLeaveCluster",
    "/machine.MachineService/EtcdRecover",
    "/machine.MachineService/EtcdRemoveMemberByID",
    "/machine.MachineService/ImagePull",
    "/machine.MachineService/MetaDelete",
    "/machine.MachineService/MetaWrite",
    "/machine.MachineService/Reboot",
    "/machine.MachineService/Reset",
    "/machine.MachineService/Restart",
    "/machine.MachineService/Rollback",
    "/machine.MachineService/ServiceRestart",
    "/machine.MachineService/ServiceStart",
    "/machine.MachineService/ServiceStop",
    "/machine.MachineService/Shutdown",
    "/machine.MachineService/Upgrade",
];

/// Who calls, as far as the connection tells.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Organizations of the client certificate; those of a stranger in maintenance mode.
    pub(crate) organizations: Arc<[String]>,
    /// Index of the node whose apid was dialled.
    pub(crate) via: usize,
}

/// What a service gets to know about the call it serves.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) node: Arc<NodeState>,
    pub(crate) roles: Arc<[String]>,
    /// Whether the answer is compressed, because the request was.
    pub(crate) compress: bool,
}

/// Serves a call on the node itself.
pub(crate) async fn local(
    shared: &Arc<Shared>,
    node: &Arc<NodeState>,
    caller: &Caller,
    request: Request<Body>,
) -> Response<Body> {
    match serve(shared, node, caller, request).await {
        Ok(response) => response,
        Err(status) => status.into_http(),
    }
}

async fn serve(
    shared: &Arc<Shared>,
    node: &Arc<NodeState>,
    caller: &Caller,
    request: Request<Body>,
) -> Result<Response<Body>, Status> {
    let method = request.uri().path().to_owned();
    let roles: Arc<[String]> = roles::effective(
        &caller.organizations,
        &values(request.headers(), "talos-role"),
    )
    .into();
    let request = buffered(&method, request).await?;
    shared.calls.record(Call {
        node: node.name.clone(),
        via: shared.nodes[caller.via].name.clone(),
        method: method.clone(),
        metadata: metadata(request.headers()),
        roles: roles.to_vec(),
        mutating: is_mutating(&method, request.extensions().get()),
    });

    let fault = node.faults.method(&method);
    if !fault.delay.is_zero() {
        tokio::time::sleep(fault.delay).await;
    }
    if let Some((code, message)) = fault.error {
        return Err(Status::new(code, message));
    }
    authorize(shared, node, &method, &roles)?;
    let compress = request.extensions().get::<Uncompressed>().is_none()
        && request
            .headers()
            .get("grpc-encoding")
            .is_some_and(|value| value == "gzip");
    let context = Context {
        shared: shared.clone(),
        node: node.clone(),
        roles,
        compress,
    };
    Ok(dispatch(context, &method, request).await)
}

/// Refuses methods that the version lacks, then callers without a fitting role.
fn authorize(
    shared: &Shared,
    node: &NodeState,
    method: &str,
    roles: &[String],
) -> Result<(), Status> {
    let version = shared.options.talos_version;
    let Some(accepted) = roles::accepted(version, method) else {
        return Err(unknown(shared, method));
    };
    let in_maintenance = node.configs.in_maintenance();
    if in_maintenance && !machine::exists_in_maintenance(version, method) {
        return Err(unknown(shared, method));
    }
    let opens_in_maintenance = machine::opens_in_maintenance(method);
    let admin_only = opens_in_maintenance && !in_maintenance;
    let fits = |role: &String| match (admin_only, in_maintenance && opens_in_maintenance) {
        (true, _) => role == "os:admin",
        (_, true) => role == "os:admin" || role == "os:reader",
        _ => accepted.contains(role),
    };
    if roles.iter().any(fits) {
        Ok(())
    } else {
        Err(Status::permission_denied("not authorized"))
    }
}

fn unknown(shared: &Shared, method: &str) -> Status {
    let mut parts = method.split('/').skip(1);
    let (service, name) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    if roles::has_service(shared.options.talos_version, service) {
        return Status::unimplemented(format!("unknown method {name} for service {service}"));
    }
    Status::unimplemented(format!("unknown service {service}"))
}

async fn dispatch(context: Context, method: &str, mut request: Request<Body>) -> Response<Body> {
    if !method.starts_with("/cosi.resource.State/") {
        return machine::serve(context, method, request).await;
    }
    let roles = cosi::Roles(context.roles.to_vec());
    request.extensions_mut().insert(roles);
    let service = cosi::StateService::new(context.node.store.clone());
    let mut server = StateServer::new(service)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
    if context.compress {
        server = server.send_compressed(tonic::codec::CompressionEncoding::Gzip);
    }
    match server.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Reads a request's single message, so that it can be recorded for what it is.
async fn buffered(method: &str, request: Request<Body>) -> Result<Request<Body>, Status> {
    if STREAMING_REQUESTS.contains(&method) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let message = body.collect().await?.to_bytes();
    let mut request = Request::from_parts(parts, Body::new(Full::new(message.clone())));
    request.extensions_mut().insert(RawMessage(message));
    Ok(request)
}

/// The request's message with its five bytes of framing.
#[derive(Clone)]
struct RawMessage(Bytes);

fn is_mutating(method: &str, raw: Option<&RawMessage>) -> bool {
    if method == "/machine.MachineService/ApplyConfiguration" {
        let message = raw.and_then(|raw| raw.0.get(5..));
        let apply = message.and_then(|bytes| ApplyConfigurationRequest::decode(bytes).ok());
        return !apply.is_some_and(|apply| apply.dry_run);
    }
    MUTATING.contains(&method)
}

/// The values of a metadata key.
pub(crate) fn values(headers: &HeaderMap, key: &str) -> Vec<String> {
    let found = headers.get_all(key).into_iter();
    found
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

fn metadata(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
        .collect()
}
