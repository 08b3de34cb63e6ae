//! Abstraction over the library that an operator is built with.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use rbuilder_testing::fake::{WebhookHandler, Webhooks};

/// Settings for a process of the operator.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProcessSettings {
    /// Namespace to watch, or `None` for all namespaces.
    pub namespace: Option<String>,
    /// Whether the process competes for a lease with other replicas.
    pub elects_leader: bool,
}

/// A library that can run operators. `rbuilder::Manager` implements it.
pub trait Operator: Webhooks + Sized + 'static {
    /// Creates an operator that doesn't have controllers yet. Implementations must not start any
    /// tasks.
    fn create(client: Client, settings: &ProcessSettings) -> Self;

    /// Runs the operator. The simulation kills it by dropping the future.
    fn run(self) -> BoxFuture<'static, Result<(), String>>;
}

pub(crate) struct Started {
    /// Dropping it kills the process.
    pub(crate) running: BoxFuture<'static, Result<(), String>>,
    /// `None` if the library doesn't expose them.
    pub(crate) webhooks: Option<WebhookHandler>,
}

pub(crate) type Program = Arc<dyn Fn(Client, &ProcessSettings) -> Started + Send + Sync>;

pub(crate) fn program<O: Operator>(register: impl Fn(O) -> O + Send + Sync + 'static) -> Program {
    Arc::new(move |client, settings| {
        let mut operator = register(O::create(client, settings));
        Started {
            webhooks: Some(operator.take_webhooks()),
            running: operator.run(),
        }
    })
}
