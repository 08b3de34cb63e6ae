//! A request body that tells the connection's timer while the handler waits for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::client_timer::{AwaitedBody, ClientTimer, Connection};

/// The body of a request to a [`Server`](super::Server).
pub(crate) struct RequestBody {
    incoming: Incoming,
    timer: Arc<ClientTimer>,
    /// Set while the handler waits for the client. A handler that does not read the body never
    /// waits.
    awaited: Option<AwaitedBody>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, timer: Arc<ClientTimer>) -> Self {
        Self {
            incoming,
            timer,
            awaited: None,
        }
    }

    /// Returns the connection of the request.
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
        let polled = Pin::new(&mut this.incoming).poll_frame(cx);
        match polled {
            Poll::Pending => {
                this.awaited.get_or_insert_with(|| this.timer.await_body());
            }
            Poll::Ready(_) => this.awaited = None,
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
