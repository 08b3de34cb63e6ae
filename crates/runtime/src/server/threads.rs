//! Threads for servers.
//!
//! A reconcile that blocks its thread must not stop the webhooks, or nobody could write objects of
//! their kinds. It must not fail the probes either, or the Service would lead to no webhook, and the
//! kubelet would restart the container. So servers don't share the threads of reconciles.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use super::Server;

/// Maximum number of threads. They are idle most of the time.
const MAX: usize = 8;

/// Clones use the same threads.
#[derive(Clone, Default)]
pub(crate) struct ServerThreads(Option<Arc<Own>>);

struct Own(Option<Runtime>);

thread_local! {
    static OPERATOR: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Returns the runtime of the reconciles, also on the threads of servers. `None` outside of both.
pub(crate) fn operator_runtime() -> Option<Handle> {
    let operator = OPERATOR.with_borrow(Clone::clone);
    operator.or_else(|| Handle::try_current().ok())
}

impl ServerThreads {
    /// Starts as many threads as the current runtime has. With the default value, servers run in
    /// the runtime of the caller.
    pub(crate) fn start() -> io::Result<Self> {
        let operator = Handle::current();
        let runtime = Builder::new_multi_thread()
            .worker_threads(operator.metrics().num_workers().clamp(1, MAX))
            .on_thread_start(move || OPERATOR.set(Some(operator.clone())))
            .thread_name("rbuilder-servers")
            .enable_all()
            .build()?;
        Ok(Self(Some(Arc::new(Own(Some(runtime))))))
    }

    /// Makes a server accept its connections on these threads. It must be passed to
    /// [`run`](Self::run) then.
    pub(crate) fn adopt(&self, server: Server) -> io::Result<Server> {
        match self.handle() {
            Some(handle) => {
                let _entered = handle.enter();
                server.rebind()
            }
            None => Ok(server),
        }
    }

    /// Dropping the returned future stops the server.
    pub(crate) fn run(&self, serving: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        let Some(handle) = self.handle() else {
            return serving.boxed();
        };
        let mut task = AbortOnDrop(handle.spawn(serving));
        async move {
            if let Err(error) = (&mut task.0).await
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        .boxed()
    }

    fn handle(&self) -> Option<&Handle> {
        self.0.as_ref()?.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Waiting for the threads isn't possible within another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
