//! Injects faults into requests.

use std::time::Duration;

use super::failure::Failure;
use super::kinds::ResourceId;
use super::request::{Request, Verb};

/// A fault to inject into requests: an error, a broken connection or a delay. See
/// [`ApiServer::inject`](super::ApiServer::inject).
///
/// By default, a fault affects the next request for objects, whatever it is. Restrict it with these
/// methods. `Fault::disconnect().always()` also affects requests for other paths, such as `/version`.
///
/// ```
/// use rbuilder_apiserver::{Fault, Verb};
///
/// let busy = Fault::status(503).verb(Verb::Patch).resource("", "configmaps").times(3);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault has no effect until `ApiServer::inject`"]
pub struct Fault {
    effect: Effect,
    verb: Option<Verb>,
    id: Option<ResourceId>,
    subresource: Option<String>,
    name: Option<String>,
    /// Number of remaining requests to affect. `None` means unlimited.
    left: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Effect {
    Refuse(Failure),
    Disconnect,
    Delay(Duration),
}

impl Fault {
    fn new(effect: Effect) -> Self {
        Self {
            effect,
            verb: None,
            id: None,
            subresource: None,
            name: None,
            left: Some(1),
        }
    }

    /// Rejects the request with this status code and the corresponding reason.
    pub fn status(code: u16) -> Self {
        let message = format!("the test asked for a failure with status {code}");
        Self::new(Effect::Refuse(Failure::of_code(code, message)))
    }

    /// Drops the connection before the server handles the request.
    pub fn disconnect() -> Self {
        Self::new(Effect::Disconnect)
    }

    /// Delays the request on tokio's clock, which tests can pause.
    pub fn delay(time: Duration) -> Self {
        Self::new(Effect::Delay(time))
    }

    /// Only affects requests with this verb.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Only affects requests for the kind with this group and plural name.
    pub fn resource(mut self, group: impl Into<String>, plural: impl Into<String>) -> Self {
        self.id = Some(ResourceId::new(group, plural));
        self
    }

    /// Only affects requests for this subresource, such as `status`.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// Only affects requests for the object with this name. For creates, the name is taken from the
    /// body.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Affects this many requests. Defaults to 1.
    pub fn times(mut self, count: usize) -> Self {
        self.left = Some(count);
        self
    }

    /// Affects all requests until [`ApiServer::heal`](super::ApiServer::heal) is called.
    pub fn always(mut self) -> Self {
        self.left = None;
        self
    }

    fn concerns(&self, request: &Request) -> bool {
        let name = || {
            request
                .name
                .as_deref()
                .or_else(|| request.body["metadata"]["name"].as_str())
        };
        self.left != Some(0)
            && self.verb.is_none_or(|verb| verb == request.verb)
            && self.id.as_ref().is_none_or(|id| *id == request.id())
            && (self.subresource.is_none() || self.subresource == request.subresource)
            && self.name.as_deref().is_none_or(|wanted| name() == Some(wanted))
    }

    /// Whether the fault breaks all connections until it is healed, also those for `/version` and
    /// discovery.
    pub(super) fn is_outage(&self) -> bool {
        let is_restricted =
            self.verb.is_some() || self.id.is_some() || self.subresource.is_some() || self.name.is_some();
        matches!(self.effect, Effect::Disconnect) && self.left.is_none() && !is_restricted
    }

    fn strike(&mut self) -> Effect {
        self.left = self.left.map(|left| left - 1);
        self.effect.clone()
    }
}

/// Takes the first delay and the first failure that apply to a request.
pub(super) fn strike_request(faults: &mut Vec<Fault>, request: &Request) -> (Duration, Option<Effect>) {
    let mut delay = Duration::ZERO;
    let mut found = None;
    // A request may be both delayed and rejected, but never delayed twice.
    for fault in faults.iter_mut().filter(|fault| fault.concerns(request)) {
        match &fault.effect {
            Effect::Delay(time) if delay.is_zero() => {
                delay = *time;
                fault.strike();
            }
            Effect::Refuse(_) | Effect::Disconnect if found.is_none() => found = Some(fault.strike()),
            _ => {}
        }
    }
    faults.retain(|fault| fault.left != Some(0));
    (delay, found)
}
