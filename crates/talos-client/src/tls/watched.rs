//! A TLS stream that remembers what matters when the connection breaks.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio_rustls::client::TlsStream;

use super::{Alert, TlsRefusal};
use crate::dial::Io;

/// What a connection experienced below HTTP/2.
#[derive(Default)]
pub(crate) struct Record {
    alert: OnceLock<Alert>,
    spoken: OnceLock<()>,
    first_words: Notify,
}

impl Record {
    /// Waits until the server has sent data, which it does only after it has accepted our certificate.
    pub(crate) async fn spoken(&self) {
        let notified = self.first_words.notified();
        if self.spoken.get().is_none() {
            notified.await;
        }
    }

    /// Returns the refusal that an alert of the server amounts to.
    pub(crate) fn refusal(&self) -> Option<TlsRefusal> {
        let alert = *self.alert.get()?;
        Some(match self.spoken.get() {
            None => TlsRefusal::ClientRefused { alert },
            Some(()) => TlsRefusal::ServerAlert { alert },
        })
    }

    fn note_data(&self) {
        if self.spoken.set(()).is_ok() {
            self.first_words.notify_waiters();
        }
    }

    fn note_error(&self, error: &io::Error) {
        let tls = error.get_ref().and_then(|error| error.downcast_ref());
        if let Some(rustls::Error::AlertReceived(description)) = tls {
            // The first alert is the one that tells; later errors only repeat it.
            let _ = self.alert.set(Alert::new(*description));
        }
    }
}

/// A TLS stream with its record.
pub(crate) struct Watched {
    stream: TlsStream<Box<dyn Io>>,
    record: Arc<Record>,
}

impl Watched {
    pub(super) fn new(stream: TlsStream<Box<dyn Io>>) -> Self {
        Self {
            stream,
            record: Arc::default(),
        }
    }

    pub(crate) fn record(&self) -> Arc<Record> {
        self.record.clone()
    }

    /// A server that refuses may close before it has read all we sent, so that writing fails first: its alert may
    /// still wait to be read.
    fn look_for_alert(&mut self, cx: &mut Context<'_>, error: &io::Error) {
        self.record.note_error(error);
        let mut scratch = [0; 1024];
        let mut buffer = ReadBuf::new(&mut scratch);
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            self.record.note_error(&error);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &outcome {
            Ok(()) if buffer.filled().len() > before => self.record.note_data(),
            Ok(()) => {}
            Err(error) => self.record.note_error(error),
        }
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        if let Err(error) = &outcome {
            self.look_for_alert(cx, error);
        }
        Poll::Ready(outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        if let Err(error) = &outcome {
            self.look_for_alert(cx, error);
        }
        Poll::Ready(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
