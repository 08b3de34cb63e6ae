//! Simulation testing for operators: searches for histories in which an operator misbehaves.
//!
//! The operator, the Kubernetes API server of `rbuilder::fake` and everything else that the
//! operator depends on run on a single thread with a paused clock. Runs are repeated with crashes
//! between two writes, lost responses, errors, delayed or missing watch events, edits by other
//! actors, and modified declarations. Each of these histories must end in the same state as the
//! undisturbed run.
//!
//! Runs are deterministic and a [`History`] is plain data, so failures can be reproduced byte for
//! byte.
//!
//! Operators usually access this crate as `rbuilder::simulation`. For operators which don't use
//! rbuilder, see [`Simulation::of_client`]:
//!
//! ```
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::api::PostParams;
//! use kube::{Api, Client};
//! use rbuilder_simulation::Simulation;
//!
//! /// Creates a ConfigMap once there is a Secret.
//! async fn operate(client: Client) {
//!     let secrets: Api<Secret> = Api::default_namespaced(client.clone());
//!     while !secrets.get_opt("a").await.is_ok_and(|found| found.is_some()) {
//!         tokio::time::sleep(Duration::from_secs(1)).await;
//!     }
//!     let maps: Api<ConfigMap> = Api::default_namespaced(client);
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some("settings".to_owned());
//!     while maps.get_opt("settings").await.is_ok_and(|found| found.is_none()) {
//!         let _ = maps.create(&PostParams::default(), &map).await;
//!     }
//!     std::future::pending::<()>().await
//! }
//!
//! let secret = serde_json::json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
//! let report = Simulation::of_client(operate).declare(&secret).histories(50).run();
//! // Nothing deletes the ConfigMap with the Secret.
//! assert!(report.to_string().contains("configmaps default/settings should not exist"));
//! ```

mod addresses;
mod answers;
#[cfg(feature = "envtest")]
mod compared;
mod context;
mod coverage;
mod declaration;
mod disturb;
mod environment;
mod external;
mod history;
mod identity;
mod kept;
mod later;
mod leases;
mod mishaps;
mod names;
mod network;
#[cfg(feature = "envtest")]
mod on_server;
#[cfg(not(feature = "envtest"))]
#[path = "no_server.rs"]
mod on_server;
mod operator;
mod oracle;
mod placement;
mod process;
mod progress;
mod record;
mod report;
mod run;
mod search;
mod setting;
mod settings;
mod simpler;
mod simulation;
mod timeline;
mod tolerance;
mod traffic;
mod world;

pub use answers::LONGEST_WATCH;
pub use context::{now, random, record_reconcile};
pub use environment::{Act, Behavior, World};
pub use external::{External, Outage, Remote, new_id};
pub use history::{Disturbance, History, Pace, Perturbation, Step};
pub use operator::{Operator, ProcessSettings};
pub use oracle::Oracle;
pub use report::{OnServer, Report};
pub use search::Failure;
pub use simulation::Simulation;
pub use timeline::{Actor, Event};
pub use world::ObjectName;
