//! What the history does before and after a request.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tower::BoxError;

use crate::external::is_external;
use crate::history::{Disturbance, Perturbation};
use crate::network::{Connection, Network};
use crate::timeline::Actor;
use crate::traffic::{Moment, Past};
use crate::world::{self, ObjectName};

/// How long a permission is taken.
const OUTAGE: Duration = Duration::from_secs(30);
/// How long the operator does not see that an object was deleted and declared again.
const UNSEEN: Duration = Duration::from_millis(500);
/// How late events are.
const DELAY: Duration = Duration::from_secs(2);

impl Connection {
    /// Does what the history says before a request. Returns the status code of the answer if the request
    /// does not reach its destination.
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
                Disturbance::DelayEvents(kind) => {
                    let until = Instant::now() + DELAY;
                    self.network.traffic().delayed.insert(kind.clone(), until);
                }
                _ => {}
            }
        }
        if self.network.traffic().is_forbidden(kind) {
            self.network.record(self.actor, moment, 403);
            return Some(403);
        }
        None
    }

    /// Does what the history says after a request.
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
                Disturbance::Remove(object) if is_external(object) => network.remove_external(object),
                Disturbance::Remove(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        network.delete(Actor::Other, &object, &json!({})).await;
                    }
                }
                Disturbance::Edit(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        network.edit(&object).await;
                    }
                }
                Disturbance::Redeclare(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        let kind = object.resource();
                        let until = Instant::now() + UNSEEN;
                        network.traffic().delayed.insert(kind, until);
                        network.undeclare(&object).await;
                        network.traffic().to_redeclare = Some(object);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The process dies now.
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

    /// Deletes an object of an external system, as another actor.
    fn remove_external(&self, object: &str) {
        if self.systems.lock().remove(object) {
            let text = format!("delete {object}");
            self.traffic().timeline.call(Actor::Other, text, 200, true);
        }
    }

    /// Changes a field that the operator has set, as another actor. Does nothing if there is none.
    async fn edit(&self, name: &ObjectName) {
        let Some(object) = world::find(&self.server, name) else {
            return;
        };
        if let Some(patch) = world::foreign_change(&object) {
            self.merge(Actor::Other, name, "", &patch).await;
        }
    }
}
