//! Simulates an operator under faults: finds the histories in which it goes wrong.
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
//! See `docs/simulation.md` for what a simulation finds, and how to read its reports.

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;

pub use rbuilder_simulation::{
    Act, Actor, Behavior, Disturbance, Event, External, Failure, History, ObjectName, Operator, Oracle,
    Outage, Pace, Perturbation, Remote, Report, Simulation, Step, World, new_id,
};

use crate::{Manager, ManagerArgs};

impl Operator for Manager {
    fn run(
        client: Client,
        namespace: Option<&str>,
        register: impl FnOnce(Self) -> Self + Send + 'static,
    ) -> BoxFuture<'static, Result<(), String>> {
        let mut args = ManagerArgs::for_tests();
        args.watch_namespace = namespace.unwrap_or_default().to_owned();
        let manager = register(Self::with_client("simulated", client, args));
        let running = manager.start_until(std::future::pending());
        running
            .map(|ended| ended.map_err(|error| format!("{error:#}")))
            .boxed()
    }
}
