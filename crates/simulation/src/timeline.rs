//! The timeline of a run.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Originator of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The user who declares objects.
    User,
    /// The operator under test.
    Operator,
    /// The operator's second replica.
    Replica,
    /// Other components of the cluster, e.g. the Deployment controller.
    Environment,
    /// Another client that modifies objects.
    Other,
    /// The simulation itself, injecting a fault.
    Fault,
}

impl Actor {
    /// Name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Operator => "operator",
            Self::Replica => "operator 2",
            Self::Environment => "environment",
            Self::Other => "other actor",
            Self::Fault => "fault",
        }
    }
}

/// An event on the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the start of the run.
    pub at: Duration,
    /// Originator of the event.
    pub actor: Actor,
    /// Description of the event.
    pub text: String,
    /// HTTP status code if this is a request, 0 otherwise.
    pub code: u16,
    /// Whether the request had an effect.
    pub changed: bool,
    /// Whether the request went to an external system instead of the API server.
    pub is_external: bool,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.at.as_secs(), self.at.subsec_millis());
        write!(
            f,
            "{seconds:>6}.{millis:03}  {:<11}  {}",
            self.actor.as_str(),
            self.text
        )?;
        match (self.code, self.changed) {
            (0, _) => Ok(()),
            (code, true) => write!(f, " → {code}"),
            (code @ 400.., false) => write!(f, " → {code}"),
            (code, false) => write!(f, " → {code}, nothing changed"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    start: Instant,
    pub(crate) events: Vec<Event>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            events: Vec::new(),
        }
    }
}

impl Timeline {
    pub(crate) fn request(&mut self, actor: Actor, text: String, code: u16, changed: bool) {
        self.events.push(Event {
            at: self.start.elapsed(),
            actor,
            text,
            code,
            changed,
            is_external: false,
        });
    }

    pub(crate) fn call(&mut self, actor: Actor, text: String, code: u16, changed: bool) {
        self.request(actor, text, code, changed);
        if let Some(event) = self.events.last_mut() {
            event.is_external = true;
        }
    }

    pub(crate) fn note(&mut self, actor: Actor, text: String) {
        self.request(actor, text, 0, false);
    }
}
