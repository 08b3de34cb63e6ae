//! Tracks when a watch last received data.
//!
//! An idle connection doesn't tell us whether the connection is broken or the cluster is quiet. But
//! kube-apiserver sends a bookmark about once a minute even without changes, so each watch gets its
//! own client, which records every response and every chunk of a response body.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Bytes, Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;

use crate::client::wrap_client;

/// Time of the last contact with the API server. Clones share the same state.
#[derive(Clone, Debug)]
pub(super) struct Contact(Arc<Times>);

#[derive(Debug)]
struct Times {
    created: Instant,
    /// Milliseconds since `created`.
    last: AtomicU64,
}

impl Contact {
    /// Counts the age from now until the first response arrives.
    pub(super) fn new() -> Self {
        Self(Arc::new(Times {
            created: Instant::now(),
            last: AtomicU64::new(0),
        }))
    }

    pub(super) fn age(&self) -> Duration {
        let last = Duration::from_millis(self.0.last.load(Ordering::Relaxed));
        self.0.created.elapsed().saturating_sub(last)
    }

    pub(super) fn note(&self) {
        // Truncation isn't a concern: a `u64` of milliseconds lasts half a billion years.
        let now = self.0.created.elapsed().as_millis() as u64;
        self.0.last.store(now, Ordering::Relaxed);
    }

    pub(super) fn observe(&self, client: Client) -> Client {
        let contact = self.clone();
        wrap_client(client, move |client, request| {
            let contact = contact.clone();
            async move {
                let response = client.send(request).await?;
                let contact = response.status().is_success().then_some(contact);
                contact.iter().for_each(Contact::note);
                Ok(response.map(|body| ObservedBody { body, contact }))
            }
        })
    }
}

struct ObservedBody {
    body: Body,
    /// `None` for error responses, which say nothing about the objects.
    contact: Option<Contact>,
}

impl hyper::body::Body for ObservedBody {
    type Data = Bytes;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Ok(_))), Some(contact)) = (&polled, &self.contact) {
            contact.note();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
