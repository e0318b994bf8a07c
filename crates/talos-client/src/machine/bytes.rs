//! Streams of bytes: logs and files.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use talos_api::common::{ContainerDriver, Data};
use talos_api::machine::{LogsRequest, ReadRequest};
use tonic::{Response, Status, Streaming};

use super::machine;
use crate::error::from_metadata;
use crate::wire::Wire;
use crate::{Error, Node, Result};

/// Pieces of a file or log; they do not end at lines. Dropping it cancels the request.
pub struct ByteStream {
    inner: Pin<Box<dyn Stream<Item = Result<Vec<u8>>> + Send>>,
}

impl ByteStream {
    /// Reads everything.
    ///
    /// # Errors
    /// The first error of the stream.
    pub async fn collect(self) -> Result<Vec<u8>> {
        self.inner
            .try_fold(Vec::new(), |mut all, piece| async move {
                all.extend(piece);
                Ok(all)
            })
            .await
    }
}

impl Stream for ByteStream {
    type Item = Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.poll_next_unpin(cx)
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteStream")
    }
}

/// Which log to read, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRequest {
    /// Whose log.
    pub source: LogSource,
    /// Name of the service or container.
    pub id: String,
    /// Whether to wait for more at the end.
    pub follow: bool,
    /// How many old lines to send first; none is all of them.
    pub tail: Option<u32>,
}

/// Whose log is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogSource {
    /// A service of Talos.
    #[default]
    System,
    /// A container of Kubernetes.
    Kubernetes,
}

impl Node {
    /// Reads a log. What can go wrong comes as the first and only item.
    pub fn logs(&self, request: LogRequest) -> ByteStream {
        let (namespace, driver) = match request.source {
            LogSource::System => ("system", ContainerDriver::Containerd),
            LogSource::Kubernetes => ("k8s.io", ContainerDriver::Cri),
        };
        let message = LogsRequest {
            namespace: namespace.to_string(),
            id: request.id,
            driver: driver.into(),
            follow: request.follow,
            // On the wire 0 is no line at all.
            tail_lines: request
                .tail
                .map_or(-1, |lines| i32::try_from(lines).unwrap_or(i32::MAX)),
        };
        self.bytes(!request.follow, async move |wire| {
            machine(wire).logs(message).await
        })
    }

    /// Reads a regular file. What can go wrong comes as the first and only item.
    pub fn read(&self, path: &str) -> ByteStream {
        let message = ReadRequest {
            path: path.to_string(),
        };
        self.bytes(true, async move |wire| machine(wire).read(message).await)
    }

    /// Opens a stream of bytes when it is first polled: a node may send nothing at all before there are data.
    pub(super) fn bytes<F, Fut>(&self, ends: bool, call: F) -> ByteStream
    where
        F: FnOnce(Wire) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Response<Streaming<Data>>, Status>> + Send + 'static,
    {
        let node = self.clone();
        let patience = ends.then(|| self.request_timeout());
        let opened = async move {
            let messages = node
                .stream(None, patience, async move |wire| call(wire).await)
                .await?;
            let pieces = messages.into_stream(|data, context| {
                match from_metadata(data.metadata.as_ref(), context) {
                    Some(error) => Err(error),
                    None => Ok(data.bytes),
                }
            });
            Ok::<_, Error>(pieces)
        };
        ByteStream {
            inner: Box::pin(stream::once(opened).try_flatten()),
        }
    }
}
