//! Abstracts over the library that an operator is built with.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use rbuilder_testing::fake::{WebhookHandler, Webhooks};

/// Settings of an operator process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProcessSettings {
    /// Namespace to watch, or `None` for all namespaces.
    pub namespace: Option<String>,
    /// Whether the process takes part in leader election.
    pub elects_leader: bool,
}

/// A library that can run operators. Implemented by `rbuilder::Manager`.
pub trait Operator: Webhooks + Sized + 'static {
    /// Creates an operator without any controllers. Must not spawn tasks.
    fn create(client: Client, settings: &ProcessSettings) -> Self;

    /// Runs the operator until the future is dropped, which is how the simulation kills it.
    fn run(self) -> BoxFuture<'static, Result<(), String>>;
}

pub(crate) struct Started {
    /// Drop to kill the process.
    pub(crate) running: BoxFuture<'static, Result<(), String>>,
    /// `None` if the library doesn't expose webhooks.
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
