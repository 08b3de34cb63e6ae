//! What goes wrong on purpose.

use std::time::Duration;

use kube::Resource;

use super::failure::Failure;
use super::kinds::ResourceId;
use super::request::{Request, Verb};

/// What the server does to requests instead of answering them, or before: see
/// [`ApiServer::inject`](super::ApiServer::inject).
///
/// Without narrowing it strikes the next request, whatever it is.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use rbuilder::fake::{Fault, Verb};
///
/// let busy = Fault::status(503).verb(Verb::Patch).kind::<ConfigMap>().times(3);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault strikes once it is given to a server"]
pub struct Fault {
    effect: Effect,
    verb: Option<Verb>,
    id: Option<ResourceId>,
    subresource: Option<String>,
    name: Option<String>,
    /// How many requests it still strikes; for ever, when nothing is said.
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

    /// The request is refused with this status code, and the reason that Kubernetes has for it.
    pub fn status(code: u16) -> Self {
        let message = format!("the test asked for a failure with status {code}");
        Self::new(Effect::Refuse(Failure::of_code(code, message)))
    }

    /// There is no answer, as when the connection breaks before the request arrives.
    pub fn disconnect() -> Self {
        Self::new(Effect::Disconnect)
    }

    /// The request is looked at later, by tokio's clock, which may be paused.
    pub fn delay(time: Duration) -> Self {
        Self::new(Effect::Delay(time))
    }

    /// Only requests that do this.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Only requests about this kind.
    pub fn kind<K: Resource<DynamicType = ()>>(mut self) -> Self {
        self.id = Some(ResourceId::new(K::group(&()), K::plural(&())));
        self
    }

    /// Only requests about this subresource, such as `status`.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// Only requests about the object of this name; a creation has it in its body.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// As many requests. The default is one.
    pub fn times(mut self, count: usize) -> Self {
        self.left = Some(count);
        self
    }

    /// All requests, until [`ApiServer::heal`](super::ApiServer::heal).
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

    fn strike(&mut self) -> Effect {
        self.left = self.left.map(|left| left - 1);
        self.effect.clone()
    }
}

/// What strikes a request: of each kind of effect, the one injected first. A struck request uses them up.
pub(super) fn strike(faults: &mut Vec<Fault>, request: &Request) -> (Duration, Option<Effect>) {
    let mut delay = Duration::ZERO;
    let mut found = None;
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
