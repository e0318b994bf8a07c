//! One call to several nodes, with the answers merged the way apid merges them.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, FuturesUnordered};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use prost::Message as _;
use prost::bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use talos_api::common::Metadata;
use talos_api::google::rpc;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::apid::call::{self, Caller};
use crate::apid::router::{cut_when_gone, reach};
use crate::node::NodeState;
use crate::shared::Shared;

/// Methods whose answers are streams, which are interleaved instead of joined.
const STREAMS: [&str; 12] = [
    "/cluster.ClusterService/HealthCheck",
    "/machine.MachineService/Copy",
    "/machine.MachineService/DiskUsage",
    "/machine.MachineService/Dmesg",
    "/machine.MachineService/EtcdSnapshot",
    "/machine.MachineService/Events",
    "/machine.MachineService/ImageList",
    "/machine.MachineService/Kubeconfig",
    "/machine.MachineService/List",
    "/machine.MachineService/Logs",
    "/machine.MachineService/PacketCapture",
    "/machine.MachineService/Read",
];

/// Messages of merged streams that wait for a slow reader.
const QUEUE: usize = 16;

/// Calls all targets and answers with what they said, each part labelled with its target.
pub(crate) async fn many(
    shared: &Arc<Shared>,
    node: &Arc<NodeState>,
    caller: &Caller,
    targets: Vec<String>,
    request: Request<Body>,
) -> Response<Body> {
    let is_stream = STREAMS.contains(&request.uri().path());
    let (mut parts, body) = request.into_parts();
    let message = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(status) => return status.into_http(),
    };
    // Answers are merged as they are, so none of them may come compressed.
    parts.extensions.insert(Uncompressed);
    let calls = targets.into_iter().map(|target| OneOfMany {
        shared: shared.clone(),
        from: node.clone(),
        caller: caller.clone(),
        target,
        parts: parts.clone(),
        message: message.clone(),
    });
    if is_stream {
        interleaved(shared, calls)
    } else {
        joined(calls).await
    }
}

/// Marks a call whose answer is not to be compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncompressed;

struct OneOfMany {
    shared: Arc<Shared>,
    from: Arc<NodeState>,
    caller: Caller,
    target: String,
    parts: http::request::Parts,
    message: Bytes,
}

impl OneOfMany {
    async fn call(&self) -> Result<Body, Status> {
        let node = reach(&self.shared, &self.from, &self.target).await?;
        let body = Body::new(Full::new(self.message.clone()));
        let request = Request::from_parts(self.parts.clone(), body);
        let response = call::local(&self.shared, &node, &self.caller, request).await;
        let response = cut_when_gone(&node, response);
        refusal(response.headers())?;
        Ok(response.into_body())
    }
}

/// Joins the entries of all answers in order of completion.
async fn joined(calls: impl Iterator<Item = OneOfMany>) -> Response<Body> {
    let mut pending: FuturesUnordered<_> = calls.map(unary).collect();
    let mut merged = BytesMut::new();
    while let Some(part) = pending.next().await {
        match part {
            Ok(part) => merged.extend_from_slice(&part),
            Err(status) => return status.into_http(),
        }
    }
    let frames: [Result<_, Status>; 2] = [
        Ok(Frame::data(framed(&merged))),
        Ok(Frame::trailers(ok_trailers())),
    ];
    answer(Body::new(StreamBody::new(stream::iter(frames))))
}

/// One target's part of a joined answer: its entries, or one entry that tells its error.
async fn unary(call: OneOfMany) -> Result<BytesMut, Status> {
    let mut merged = BytesMut::new();
    match whole(&call).await {
        Ok(message) => {
            let entries = entries(&message)?;
            if entries.is_empty() {
                return Err(Status::unknown("response has no messages to be merged"));
            }
            for entry in entries {
                let mut entry = BytesMut::from(entry.as_ref());
                label(&mut entry, &named(&call.target));
                append(&mut merged, &entry);
            }
        }
        Err(status) => {
            let mut entry = BytesMut::new();
            label(&mut entry, &failure(&call.target, &status));
            append(&mut merged, &entry);
        }
    }
    Ok(merged)
}

async fn whole(call: &OneOfMany) -> Result<Bytes, Status> {
    let collected = call.call().await?.collect().await?;
    if let Some(trailers) = collected.trailers() {
        refusal(trailers)?;
    }
    let mut bytes = collected.to_bytes();
    if bytes.len() < 5 {
        return Err(Status::internal("response has no message"));
    }
    bytes.advance(5);
    Ok(bytes)
}

/// Passes on the messages of all answers as they come.
fn interleaved(shared: &Arc<Shared>, calls: impl Iterator<Item = OneOfMany>) -> Response<Body> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    for call in calls {
        let sender = sender.clone();
        shared.spawn(async move {
            if let Err(status) = pass_on(&call, &sender).await {
                let mut message = BytesMut::new();
                label(&mut message, &failure(&call.target, &status));
                let _gone = sender.send(message).await;
            }
        });
    }
    drop(sender);
    let messages = stream::unfold(receiver, |mut receiver| async move {
        let message = receiver.recv().await?;
        Some((Ok::<_, Status>(Frame::data(framed(&message))), receiver))
    });
    let end = stream::once(async { Ok(Frame::trailers(ok_trailers())) });
    answer(Body::new(StreamBody::new(messages.chain(end).boxed())))
}

async fn pass_on(call: &OneOfMany, sender: &mpsc::Sender<BytesMut>) -> Result<(), Status> {
    let mut body = call.call().await?;
    let mut pending = BytesMut::new();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sender.closed() => return Ok(()),
        };
        let Some(frame) = frame else { return Ok(()) };
        match frame?.into_data() {
            Ok(data) => pending.extend_from_slice(&data),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                return refusal(&trailers);
            }
        }
        while let Some(mut message) = take_message(&mut pending) {
            label(&mut message, &named(&call.target));
            if sender.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

fn take_message(pending: &mut BytesMut) -> Option<BytesMut> {
    let length = u32::from_be_bytes(pending.get(1..5)?.try_into().ok()?) as usize;
    if pending.len() < 5 + length {
        return None;
    }
    pending.advance(5);
    Some(pending.split_to(length))
}

/// The values of field 1 of a message: the `messages` of every answer that can be merged.
fn entries(message: &Bytes) -> Result<Vec<Bytes>, Status> {
    let broken = |_| Status::internal("response cannot be read");
    let mut rest = message.clone();
    let mut entries = Vec::new();
    while rest.has_remaining() {
        let (tag, wire_type) = decode_key(&mut rest).map_err(broken)?;
        if (tag, wire_type) != (1, WireType::LengthDelimited) {
            return Err(Status::internal("response is not a list of messages"));
        }
        let length = decode_varint(&mut rest).map_err(broken)? as usize;
        if length > rest.len() {
            return Err(Status::internal("response is cut short"));
        }
        entries.push(rest.split_to(length));
    }
    Ok(entries)
}

/// Adds metadata to a message; what is there already is merged with it by whoever decodes.
fn label(message: &mut BytesMut, metadata: &Metadata) {
    append(message, &metadata.encode_to_vec());
}

fn append(message: &mut BytesMut, value: &[u8]) {
    encode_key(1, WireType::LengthDelimited, message);
    encode_varint(value.len() as u64, message);
    message.put_slice(value);
}

fn named(target: &str) -> Metadata {
    Metadata {
        hostname: target.to_owned(),
        ..Metadata::default()
    }
}

fn failure(target: &str, status: &Status) -> Metadata {
    let name = code_name(status.code());
    Metadata {
        hostname: target.to_owned(),
        error: format!("rpc error: code = {name} desc = {}", status.message()),
        status: Some(rpc::Status {
            code: status.code() as i32,
            message: status.message().to_owned(),
            details: Vec::new(),
        }),
    }
}

/// The name of a code as Go programs print it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

fn refusal(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ => Ok(()),
    }
}

fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

fn ok_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    trailers
}

fn answer(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let value = http::HeaderValue::from_static("application/grpc");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, value);
    response
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talos_api::machine::{Hostname, HostnameResponse};

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_split_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _split_or_refused = entries(&Bytes::from(bytes.clone()));
            let mut pending = BytesMut::from(bytes.as_slice());
            while take_message(&mut pending).is_some() {}
        }

        #[test]
        fn entries_keep_their_content_and_get_a_label(names in proptest::collection::vec("[a-z]{0,9}", 1..5)) {
            let entry = |hostname: &String| Hostname { metadata: None, hostname: hostname.clone() };
            let answer = HostnameResponse { messages: names.iter().map(entry).collect() };
            let mut merged = BytesMut::new();
            for found in entries(&answer.encode_to_vec().into()).unwrap() {
                let mut found = BytesMut::from(found.as_ref());
                label(&mut found, &named("10.5.0.2"));
                append(&mut merged, &found);
            }
            let merged = HostnameResponse::decode(merged.freeze()).unwrap();
            prop_assert_eq!(merged.messages.len(), names.len());
            for (entry, name) in merged.messages.iter().zip(&names) {
                prop_assert_eq!(&entry.hostname, name);
                prop_assert_eq!(&entry.metadata.as_ref().unwrap().hostname, "10.5.0.2");
            }
        }
    }
}
