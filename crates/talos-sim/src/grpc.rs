//! Serves single gRPC methods, without a generated server around them.

use futures::Stream;
use http::{Request, Response};
use prost::Message;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::server::Grpc;
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::apid::MESSAGE_LIMIT;

/// Answers a request message with one message.
pub(crate) async fn unary<I, O, F>(
    compress: bool,
    request: Request<Body>,
    handler: impl FnOnce(I) -> F,
) -> Response<Body>
where
    I: Message + Default + 'static,
    O: Message + Default + 'static,
    F: Future<Output = Result<O, Status>>,
{
    let mut handler = Some(handler);
    let service = service_fn(|request: tonic::Request<I>| {
        let answer = handler.take().map(|handler| handler(request.into_inner()));
        async { Ok(tonic::Response::new(once(answer)?.await?)) }
    });
    codec(compress).unary(service, request).await
}

/// Answers a request message with a stream of messages.
pub(crate) async fn streaming<I, O, F, S>(
    compress: bool,
    request: Request<Body>,
    handler: impl FnOnce(I) -> F,
) -> Response<Body>
where
    I: Message + Default + 'static,
    O: Message + Default + 'static,
    F: Future<Output = Result<S, Status>>,
    S: Stream<Item = Result<O, Status>> + Send + 'static,
{
    let mut handler = Some(handler);
    let service = service_fn(|request: tonic::Request<I>| {
        let answer = handler.take().map(|handler| handler(request.into_inner()));
        async { Ok(tonic::Response::new(once(answer)?.await?)) }
    });
    codec(compress).server_streaming(service, request).await
}

fn codec<I, O>(compress: bool) -> Grpc<ProstCodec<O, I>>
where
    I: Message + Default + 'static,
    O: Message + Default + 'static,
{
    let grpc = Grpc::new(ProstCodec::default())
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
        .accept_compressed(Gzip);
    if compress {
        grpc.send_compressed(Gzip)
    } else {
        grpc
    }
}

/// A request has one message, so its handler is taken once.
fn once<T>(answer: Option<T>) -> Result<T, Status> {
    answer.ok_or_else(|| Status::internal("request was served already"))
}
