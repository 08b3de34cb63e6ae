//! Requests that are repeated while the API server, or a webhook that it calls, is not available.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::cluster::{Answer, Body, Interrupt, Proxy, Refusal};

/// The media type of objects.
pub(super) const JSON: &str = "application/json";
/// Pauses before the repetitions of a request.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// The longest pause that the server can ask for.
const LONGEST: Duration = Duration::from_secs(30);
/// Interval at which to check whether the user asked to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The connection to the API server.
pub(super) struct Requests<'a> {
    pub(super) server: &'a Proxy,
    pub(super) interrupt: &'a Interrupt,
}

impl Requests<'_> {
    /// Sends a request, up to four times if the server is not available.
    ///
    /// # Errors
    /// Fails if kubectl does not answer, or if the user asks to stop during a pause.
    pub(super) fn send(&self, method: &str, path: &str, accept: &str, body: Body<'_>) -> Result<Answer> {
        for pause in PAUSES {
            let answer = self.server.send(method, path, accept, body)?;
            match answer.check() {
                Err(refusal) if is_unavailable(&refusal) => {
                    self.wait(answer.retry_after.map_or(pause, |asked| asked.min(LONGEST)))?;
                }
                _ => return Ok(answer),
            }
        }
        self.server.send(method, path, accept, body)
    }

    /// Waits, unless the user asks to stop.
    ///
    /// # Errors
    /// Fails if the user asks to stop.
    pub(super) fn wait(&self, pause: Duration) -> Result<()> {
        let mut left = pause;
        while !left.is_zero() {
            if self.interrupt.is_asked() {
                bail!("interrupted");
            }
            let part = left.min(POLL_INTERVAL);
            std::thread::sleep(part);
            left -= part;
        }
        Ok(())
    }
}

/// Returns whether a request may succeed later: the server, a webhook, or the way there is not
/// available, or too many requests were sent.
pub(super) fn is_unavailable(refusal: &Refusal) -> bool {
    refusal.status == 429 || refusal.status >= 500
}
