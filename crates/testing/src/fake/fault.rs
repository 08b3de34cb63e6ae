//! Injects faults into requests.

use std::time::Duration;

use kube::Resource;

use super::Verb;

/// A fault to inject into requests: an error, a broken connection or a delay. See
/// [`ApiServer::inject`](super::ApiServer::inject).
///
/// By default, a fault affects the next request for objects, whatever it is. Restrict it with these
/// methods. `Fault::disconnect().always()` also affects requests for other paths, such as `/version`.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use rbuilder::fake::{Fault, Verb};
///
/// let busy = Fault::status(503).verb(Verb::Patch).kind::<ConfigMap>().times(3);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault has no effect until `ApiServer::inject`"]
pub struct Fault(pub(super) rbuilder_apiserver::Fault);

impl Fault {
    /// Rejects the request with this status code and the corresponding reason.
    pub fn status(code: u16) -> Self {
        Self(rbuilder_apiserver::Fault::status(code))
    }

    /// Drops the connection before the server handles the request.
    pub fn disconnect() -> Self {
        Self(rbuilder_apiserver::Fault::disconnect())
    }

    /// Delays the request on tokio's clock, which tests can pause.
    pub fn delay(time: Duration) -> Self {
        Self(rbuilder_apiserver::Fault::delay(time))
    }

    /// Only affects requests with this verb.
    pub fn verb(self, verb: Verb) -> Self {
        Self(self.0.verb(verb))
    }

    /// Only affects requests for this kind.
    pub fn kind<K: Resource<DynamicType = ()>>(self) -> Self {
        Self(self.0.resource(K::group(&()), K::plural(&())))
    }

    /// Only affects requests for this subresource, such as `status`.
    pub fn subresource(self, name: impl Into<String>) -> Self {
        Self(self.0.subresource(name))
    }

    /// Only affects requests for the object with this name. For creates, the name is taken from the
    /// body.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self(self.0.named(name))
    }

    /// Affects this many requests. Defaults to 1.
    pub fn times(self, count: usize) -> Self {
        Self(self.0.times(count))
    }

    /// Affects all requests until [`heal`](rbuilder_apiserver::ApiServer::heal) is called.
    pub fn always(self) -> Self {
        Self(self.0.always())
    }
}
