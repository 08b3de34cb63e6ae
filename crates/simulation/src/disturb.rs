//! Injects a history's perturbations before and after requests.

use std::time::Duration;

use rbuilder_testing::fake::Verb;
use serde_json::Value;
use tokio::time::Instant;
use tower::BoxError;

use crate::external::is_external;
use crate::history::{Disturbance, Perturbation};
use crate::network::{Connection, DELAY, Network};
use crate::timeline::Actor;
use crate::traffic::{Moment, Past};
use crate::world::{self, ObjectName};

/// Duration of an outage that a later request survives.
pub(crate) const OUTAGE: Duration = Duration::from_secs(30);
/// How long to hold back watch events, so that an object can be deleted and recreated unseen.
const UNSEEN: Duration = Duration::from_millis(500);

impl Connection {
    /// Applies perturbations that happen before a request.
    ///
    /// If this returns a status code, respond with it instead of forwarding the request.
    pub(crate) async fn disturb_before(
        &self,
        actions: &[Perturbation],
        kind: &str,
        moment: &Moment,
    ) -> Option<u16> {
        for perturbation in actions {
            self.network.note(perturbation);
            match &perturbation.action {
                Disturbance::CrashBefore => {
                    self.crash();
                    // Never returns: the process is dead by now.
                    self.check_alive().await;
                }
                Disturbance::Refuse(code) => {
                    self.network.record(self.actor, moment, *code);
                    return Some(*code);
                }
                Disturbance::Forbid => {
                    let until = Instant::now() + OUTAGE;
                    self.network.traffic().forbidden.push((kind.to_owned(), until));
                }
                Disturbance::CutOff => {
                    self.cut_off();
                    self.check_alive().await;
                }
                Disturbance::FillQuota(resource) => self.network.fill_quota(moment.namespace(), resource),
                Disturbance::DelayEvents(kind) => {
                    let until = Instant::now() + DELAY;
                    self.network.traffic().delayed.insert(kind.clone(), until);
                }
                // Everything else happens after the request.
                _ => {}
            }
        }
        if self.network.traffic().is_forbidden(kind) {
            self.network.record(self.actor, moment, 403);
            return Some(403);
        }
        None
    }

    /// Applies perturbations that happen after a request. `before` is the cluster version prior to
    /// the request.
    pub(crate) async fn disturb_after(&self, actions: &[Perturbation], before: u64) -> Result<(), BoxError> {
        let network = &self.network;
        for perturbation in actions {
            match &perturbation.action {
                Disturbance::CrashAfter => self.crash(),
                Disturbance::CrashIntoPast => {
                    network.traffic().past = Some(Past {
                        version: before,
                        kind: None,
                    });
                    self.crash();
                }
                Disturbance::CrashBehind(kind) => {
                    let mut traffic = network.traffic();
                    let version = traffic.step_version;
                    traffic.past = Some(Past {
                        version,
                        kind: Some(kind.clone()),
                    });
                    drop(traffic);
                    self.crash();
                }
                Disturbance::LoseAnswer => return Err("the simulation lost the answer".into()),
                Disturbance::EndWatches => network.server.drop_watches(),
                Disturbance::ExpireWatches => network.server.expire_watches(),
                Disturbance::Remove(object) => network.remove(object).await,
                Disturbance::RemoveLater(object) => network.remove_later(object),
                Disturbance::Edit(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        network.edit(&object).await;
                    }
                }
                Disturbance::Evict(pod) => network.evict_later(pod),
                Disturbance::Redeclare(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        let kind = object.resource();
                        let until = Instant::now() + UNSEEN;
                        network.traffic().delayed.insert(kind, until);
                        // Finalizers may delay the deletion; `Run` redeclares the object once it's
                        // gone.
                        network.undeclare(&object).await;
                        network.traffic().to_redeclare = Some(object);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn crash(&self) {
        self.kill();
        self.network.crashed.notify_one();
    }
}

impl Network {
    fn note(&self, perturbation: &Perturbation) {
        let mut traffic = self.traffic();
        traffic.timeline.note(Actor::Fault, perturbation.to_string());
    }

    fn record(&self, actor: Actor, moment: &Moment, code: u16) {
        let mut traffic = self.traffic();
        let name = moment.name.clone();
        match moment.is_external {
            true => traffic.timeline.call(actor, name, code, false),
            false => traffic.timeline.request(actor, name, code, false),
        }
        traffic.moments.push(moment.clone());
    }

    /// Another actor deletes an object, in the cluster or in an external system.
    pub(crate) async fn remove(&self, object: &str) {
        if is_external(object) {
            self.remove_external(object);
        } else if let Some(object) = ObjectName::parse(object) {
            self.delete(Actor::Other, &object).await;
        }
    }

    fn remove_external(&self, object: &str) {
        if self.systems.lock().remove(object) {
            let text = format!("delete {object}");
            self.traffic().timeline.call(Actor::Other, text, 200, true);
        }
    }

    /// Modifies a field owned by the operator, if there's a suitable one.
    async fn edit(&self, name: &ObjectName) {
        let Some(object) = world::find(&self.server, name) else {
            return;
        };
        let requests = self.server.requests();
        let writes = requests
            .iter()
            .filter(|request| {
                matches!(request.verb, Verb::Create | Verb::Update) && request.subresource.is_none()
            })
            .filter(|request| ObjectName::of_request(request) == *name);
        let written: Vec<&Value> = writes.map(|request| &request.body).collect();
        if let Some(patch) = world::foreign_change(&object, &written) {
            self.merge(Actor::Other, name, "", &patch).await;
        }
    }
}
