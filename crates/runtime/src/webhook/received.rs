//! Bodies of reviews and their responses, along with the memory reserved for them.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use tokio::time::timeout;

use super::memory::{Memory, Reservation};
use super::routes::Rejection;
use crate::server::{Connection, RequestBody};

/// Timeout for the body of a review. The API server doesn't wait any longer for the response.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Received {
    pub(super) body: Vec<u8>,
    /// Released once the response was sent.
    _held: Reservation,
    connection: Connection,
    memory: Arc<Memory>,
}

/// A response that holds on to its memory until it was sent.
pub(super) struct Answer {
    body: Vec<u8>,
    _held: Reservation,
}

impl Received {
    /// Reads a review from the request body, limited to `max` bytes, after checking the method and
    /// the content type.
    pub(super) async fn receive(
        request: Request<RequestBody>,
        max: usize,
        memory: &Arc<Memory>,
    ) -> Result<Self, Rejection> {
        check_head(&request)?;
        let connection = request.body().connection();
        let mut held = memory.bodies.enter(connection.clone());
        let receiving = receive_body(request.into_body(), max, memory, &mut held);
        let received = timeout(BODY_TIMEOUT, receiving).await.map_err(|_| {
            let reason = format!("request body not received within {BODY_TIMEOUT:?}\n");
            Rejection::new(StatusCode::REQUEST_TIMEOUT, reason)
        });
        let body = received??;
        if body.is_empty() {
            return Err(Rejection::new(StatusCode::BAD_REQUEST, "request body is empty\n"));
        }
        Ok(Self {
            body,
            _held: held,
            connection,
            memory: Arc::clone(memory),
        })
    }

    /// Waits for the memory to decode and process the review. Fails if it exceeds the total for all
    /// reviews, or if the memory doesn't become available in time.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<Reservation, Rejection> {
        let work = &self.memory.work;
        if bytes > work.size() {
            return Err(self.too_large(bytes));
        }
        let mut reservation = work.enter(self.connection.clone());
        reservation.grow(bytes).await?;
        Ok(reservation)
    }

    pub(super) fn too_large(&self, bytes: usize) -> Rejection {
        const MEBIBYTE: usize = 1024 * 1024;
        let needed = bytes.div_ceil(MEBIBYTE);
        let length = self.body.len();
        self.memory.too_large(&format!(
            "the review of {length} bytes needs about {needed} MiB to be decoded"
        ))
    }
}

impl Answer {
    /// Releases all memory that the response doesn't need.
    pub(super) fn new(body: Vec<u8>, mut held: Reservation) -> Self {
        held.shrink_to(body.capacity());
        Self { body, _held: held }
    }

    /// The memory is released along with the last reference to the bytes.
    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

fn check_head<B>(request: &Request<B>) -> Result<(), Rejection> {
    if request.method() != Method::POST {
        return Err(Rejection::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "expected method POST\n",
        ));
    }
    let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|content_type| {
        let content_type = content_type.to_str().unwrap_or_default();
        content_type.split(';').next().map(str::trim) == Some("application/json")
    });
    if !is_json {
        return Err(Rejection::new(
            StatusCode::BAD_REQUEST,
            "expected content type application/json\n",
        ));
    }
    Ok(())
}

async fn receive_body(
    mut body: RequestBody,
    max: usize,
    memory: &Memory,
    held: &mut Reservation,
) -> Result<Vec<u8>, Rejection> {
    let limit = max.min(memory.bodies.size());
    // Assume the worst if the length is unknown.
    let declared = body.size_hint().exact().map(usize::try_from);
    let declared = declared.map_or(limit, |length| length.unwrap_or(usize::MAX));
    let too_large = || match limit == max {
        true => Rejection::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("request body is larger than {max} bytes\n"),
        ),
        false => memory.too_large(&format!("request body is larger than {limit} bytes")),
    };
    if declared > limit {
        return Err(too_large());
    }
    let mut received = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("failed to read request body: {error}\n");
            Rejection::new(StatusCode::BAD_REQUEST, reason)
        })?;
        let Ok(bytes) = frame.into_data() else { continue };
        let length = received.len() + bytes.len();
        if length > limit {
            return Err(too_large());
        }
        reserve_room(&mut received, length, declared, held).await?;
        received.extend_from_slice(&bytes);
    }
    Ok(received)
}

async fn reserve_room(
    received: &mut Vec<u8>,
    length: usize,
    declared: usize,
    held: &mut Reservation,
) -> Result<(), Rejection> {
    let capacity = received.capacity();
    if length <= capacity {
        return Ok(());
    }
    // At most double the buffer, so that clients must send data to use memory; announcing a length
    // isn't enough.
    let doubled = (2 * capacity).min(declared).max(length);
    let missing = doubled.saturating_sub(held.size());
    if missing > 0 {
        held.grow(missing).await?;
    }
    received.reserve_exact(doubled - received.len());
    Ok(())
}
