//! Request body that notifies its connection's timer while a handler is waiting for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

#[cfg(feature = "fake")]
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::client_timer::{AwaitedBody, ClientTimer, Connection};

pub(crate) struct RequestBody {
    source: Source,
    timer: Arc<ClientTimer>,
    /// Set while the handler is waiting for the client, i.e. never if the handler doesn't read the
    /// body.
    awaited: Option<AwaitedBody>,
}

enum Source {
    Connection(Incoming),
    /// A request made by this process.
    #[cfg(feature = "fake")]
    Process(Full<Bytes>),
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, timer: Arc<ClientTimer>) -> Self {
        Self {
            source: Source::Connection(incoming),
            timer,
            awaited: None,
        }
    }

    #[cfg(feature = "fake")]
    pub(crate) fn in_process(body: Vec<u8>) -> Self {
        Self {
            source: Source::Process(Full::from(body)),
            timer: Arc::new(ClientTimer::new(Arc::default())),
            awaited: None,
        }
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::new(&self.timer)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let polled = match &mut this.source {
            Source::Connection(incoming) => Pin::new(incoming).poll_frame(cx),
            #[cfg(feature = "fake")]
            Source::Process(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
        };
        match polled {
            Poll::Pending => {
                this.awaited.get_or_insert_with(|| this.timer.await_body());
            }
            Poll::Ready(_) => this.awaited = None,
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Connection(incoming) => incoming.is_end_stream(),
            #[cfg(feature = "fake")]
            Source::Process(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Connection(incoming) => incoming.size_hint(),
            #[cfg(feature = "fake")]
            Source::Process(body) => body.size_hint(),
        }
    }
}
