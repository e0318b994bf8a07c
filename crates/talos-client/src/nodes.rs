//! A handle for one node, and the two shapes of calls.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::stream;
use tonic::{Response, Status, Streaming};

use crate::error::{Context, from_status};
use crate::wire::{Trace, Wire};
use crate::{Client, Error, Result};

/// Largest message in either direction, as Talos itself limits them.
pub(crate) const MESSAGE_LIMIT: usize = 32 * 1024 * 1024;

/// A handle for one node; its methods are the calls.
#[derive(Clone, Debug)]
pub struct Node {
    client: Client,
    name: Option<String>,
}

impl Node {
    pub(crate) fn new(client: Client, name: Option<String>) -> Self {
        Self { client, name }
    }

    /// Returns the node as the caller named it; none is the endpoint itself.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the client this handle belongs to.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.client.inner.request_timeout
    }

    fn wire(&self) -> Wire {
        Wire {
            pool: self.client.inner.pool.clone(),
            metadata: self.client.inner.metadata.clone(),
            node: self.name.clone(),
            trace: Arc::default(),
        }
    }

    pub(crate) fn context(&self, trace: Arc<Trace>, resource_type: Option<&str>) -> Context {
        Context {
            trace,
            node: self.name.clone(),
            roles: self.client.inner.roles.clone(),
            resource_type: resource_type.map(str::to_string),
        }
    }

    /// Runs a call that has one answer, within the request timeout.
    pub(crate) async fn unary<T>(
        &self,
        resource_type: Option<&str>,
        call: impl AsyncFnOnce(Wire) -> Result<Response<T>, Status>,
    ) -> Result<(T, Context)> {
        let wire = self.wire();
        let context = self.context(wire.trace.clone(), resource_type);
        let after = self.request_timeout();
        match tokio::time::timeout(after, call(wire)).await {
            Err(_) => Err(context.timed_out(after)),
            Ok(Err(status)) => Err(from_status(status, &context)),
            Ok(Ok(answer)) => Ok((answer.into_inner(), context)),
        }
    }

    /// Runs a call that has one answer and takes as long as it takes.
    pub(crate) async fn patient_unary<T>(
        &self,
        call: impl AsyncFnOnce(Wire) -> Result<Response<T>, Status>,
    ) -> Result<(T, Context)> {
        let wire = self.wire();
        let context = self.context(wire.trace.clone(), None);
        match call(wire).await {
            Err(status) => Err(from_status(status, &context)),
            Ok(answer) => Ok((answer.into_inner(), context)),
        }
    }

    /// Opens a stream of answers. With `patience`, the opening and then each message may take so long.
    pub(crate) async fn stream<T>(
        &self,
        resource_type: Option<&str>,
        patience: Option<Duration>,
        call: impl AsyncFnOnce(Wire) -> Result<Response<Streaming<T>>, Status>,
    ) -> Result<Messages<T>> {
        let wire = self.wire();
        let context = self.context(wire.trace.clone(), resource_type);
        let opened = match patience {
            None => call(wire).await,
            Some(after) => match tokio::time::timeout(after, call(wire)).await {
                Err(_) => return Err(context.timed_out(after)),
                Ok(opened) => opened,
            },
        };
        match opened {
            Err(status) => Err(from_status(status, &context)),
            Ok(answer) => Ok(Messages {
                stream: answer.into_inner(),
                context,
                patience,
            }),
        }
    }
}

/// A stream of answers to one request; dropping it cancels the request.
pub(crate) struct Messages<T> {
    stream: Streaming<T>,
    pub(crate) context: Context,
    pub(crate) patience: Option<Duration>,
}

impl<T> std::fmt::Debug for Messages<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Messages")
    }
}

impl<T> Messages<T> {
    /// Returns the next answer, or nothing at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<T>> {
        let next = self.stream.message();
        let next = match self.patience {
            None => next.await,
            Some(after) => match tokio::time::timeout(after, next).await {
                Err(_) => return Err(self.context.timed_out(after)),
                Ok(next) => next,
            },
        };
        next.map_err(|status| from_status(status, &self.context))
    }

    /// Turns the answers into a stream of something else; it ends after the first error.
    pub(crate) fn into_stream<U: Send + 'static>(
        self,
        read: impl FnMut(T, &Context) -> Result<U> + Send + 'static,
    ) -> impl Stream<Item = Result<U>> + Send + 'static
    where
        T: Send + 'static,
    {
        stream::unfold(Some((self, read)), |state| async move {
            let (mut messages, mut read) = state?;
            let item = match messages.next().await {
                Ok(None) => return None,
                Ok(Some(message)) => read(message, &messages.context),
                Err(error) => Err(error),
            };
            match item {
                Ok(item) => Some((Ok(item), Some((messages, read)))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

/// Takes the one answer out of a list that has one entry for each node that was asked.
pub(crate) fn only<T>(messages: Vec<T>, context: &Context) -> Result<T, Error> {
    messages
        .into_iter()
        .next()
        .ok_or_else(|| context.answer("holds no message"))
}
