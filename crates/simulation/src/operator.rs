//! Libraries that run operators.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use rbuilder_testing::fake::{WebhookHandler, Webhooks};

/// How a process of an operator runs in a simulation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProcessSettings {
    /// The namespace that the operator watches; `None` for all.
    pub namespace: Option<String>,
    /// Whether the process is one of several, of which the holder of a lease acts.
    pub elects_leader: bool,
}

/// A library that runs operators. Implemented by `rbuilder::Manager`.
pub trait Operator: Webhooks + Sized + 'static {
    /// Creates an operator without controllers. It must not start anything yet.
    fn create(client: Client, settings: &ProcessSettings) -> Self;

    /// Runs the operator until the future is dropped.
    fn run(self) -> BoxFuture<'static, Result<(), String>>;
}

/// A process.
pub(crate) struct Started {
    /// Runs until it is dropped.
    pub(crate) running: BoxFuture<'static, Result<(), String>>,
    /// The webhooks of the process, if the library knows them.
    pub(crate) webhooks: Option<WebhookHandler>,
}

/// Starts a process of an operator with a client.
pub(crate) type Program = Arc<dyn Fn(Client, &ProcessSettings) -> Started + Send + Sync>;

/// Returns the program that runs the controllers that a function adds.
pub(crate) fn program<O: Operator>(register: impl Fn(O) -> O + Send + Sync + 'static) -> Program {
    Arc::new(move |client, settings| {
        let mut operator = register(O::create(client, settings));
        Started {
            webhooks: Some(operator.take_webhooks()),
            running: operator.run(),
        }
    })
}
