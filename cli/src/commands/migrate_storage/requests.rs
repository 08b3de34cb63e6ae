//! Sends requests, with retries while the API server or a webhook is temporarily unavailable.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::cluster::{Answer, Body, Interrupt, Proxy, Refusal};

pub(super) const JSON: &str = "application/json";
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// Maximum delay that the server may request.
const LONGEST: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Requests<'a> {
    pub(super) server: &'a Proxy,
    pub(super) interrupt: &'a Interrupt,
}

impl Requests<'_> {
    /// Sends a request, with up to three retries if the server is unavailable. Fails if interrupted
    /// during a delay.
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

/// Whether to retry a request, because the server, a webhook or something in between is
/// unavailable, or because there were too many requests.
pub(super) fn is_unavailable(refusal: &Refusal) -> bool {
    refusal.status == 429 || refusal.status >= 500
}
