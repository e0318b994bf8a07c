//! What a machine says about its clock, compared with a time server whose clock is right.

use talos_api::time;
use tonic::Status;

use crate::apid::Context;
use crate::machine::services::at;

/// The time server of a machine whose configuration names none.
const DEFAULT_SERVER: &str = "time.cloudflare.com";

/// `Time`: asks the first configured server.
pub(crate) async fn time(context: Context) -> Result<time::TimeResponse, Status> {
    let config = context.node.documents();
    let server = config.and_then(|config| config.time_server());
    Ok(answer(
        &context,
        server.unwrap_or_else(|| DEFAULT_SERVER.to_owned()),
    ))
}

/// `TimeCheck`: asks the server that the request names.
pub(crate) async fn check(
    context: Context,
    request: time::TimeRequest,
) -> Result<time::TimeResponse, Status> {
    if request.server.is_empty() {
        return Err(Status::invalid_argument("server must be specified"));
    }
    Ok(answer(&context, request.server))
}

fn answer(context: &Context, server: String) -> time::TimeResponse {
    let entry = time::Time {
        metadata: None,
        server,
        localtime: Some(at(context.node.now(&context.shared))),
        remotetime: Some(at(context.shared.now())),
    };
    time::TimeResponse {
        messages: vec![entry],
    }
}
