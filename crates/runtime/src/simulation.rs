//! Simulation testing of operators: injects faults to find histories in which an operator
//! misbehaves.
//!
//! ```
//! # use std::sync::Arc;
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use rbuilder::{Action, Controller, Ctx, Manager, Result};
//! use rbuilder::simulation::Simulation;
//!
//! # async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
//! #     Ok(Action::await_change())
//! # }
//! fn register(manager: Manager) -> Manager {
//!     manager.controller(Controller::new(reconcile, ()))
//! }
//!
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("settings".to_owned());
//! let map = serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } });
//! Simulation::new(register).declare(&map).histories(100).check();
//! ```
//!
//! See `docs/simulation.md` for what it can find, and how to read the reports.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;

pub use rbuilder_simulation::{
    Act, Actor, Behavior, Disturbance, Event, External, Failure, History, ObjectName, OnServer, Operator,
    Oracle, Outage, Pace, Perturbation, ProcessSettings, Remote, Report, Simulation, Step, World, new_id,
    now, random,
};

use crate::{Manager, ManagerArgs};

/// Interval at which replicas renew or request their lease. This is the maximum that the default
/// renew deadline of 10 seconds allows with jitter: each renewal costs as much as any other write,
/// and no history disturbs it.
const RETRY_PERIOD: Duration = Duration::from_secs(8);

impl Operator for Manager {
    fn create(client: Client, settings: &ProcessSettings) -> Self {
        let mut args = ManagerArgs::for_tests();
        args.watch_namespace = settings.namespace.clone().unwrap_or_default();
        args.leader_elect = settings.elects_leader;
        // Otherwise, the manager would use the namespace of the Pod that runs the test.
        args.leader_election_namespace = Some(client.default_namespace().to_owned());
        Self::with_client("simulated", client, args).retry_period(RETRY_PERIOD)
    }

    fn run(self) -> BoxFuture<'static, Result<(), String>> {
        let running = self.start_until(std::future::pending());
        running
            .map(|ended| ended.map_err(|error| format!("{error:#}")))
            .boxed()
    }
}
