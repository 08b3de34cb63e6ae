//! What happened in a run, in order.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The user who declares objects.
    User,
    /// The operator under test.
    Operator,
    /// The second replica of the operator.
    Replica,
    /// What the operator depends on, such as the controller of Deployments.
    Environment,
    /// Someone else who changes objects.
    Other,
    /// The simulation, which breaks something.
    Fault,
}

impl Actor {
    /// Returns the name in reports.
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

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time since the start of the run.
    pub at: Duration,
    /// Who acted.
    pub actor: Actor,
    /// What was done.
    pub text: String,
    /// The status code of a request; 0 for other events.
    pub code: u16,
    /// Whether the request changed something.
    pub changed: bool,
    /// Whether the request went to an external system, not to the API server.
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

/// The events of a run.
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

    /// Adds a call of an external system.
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
