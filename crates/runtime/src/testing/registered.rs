//! Checks that a manager has the controllers and webhooks of its project.

use std::path::Path;

use crate::manager::Manager;

/// Asserts that each controller and each webhook of the project is registered with the manager.
///
/// A controller that is not added to the manager compiles and does nothing, and its own test may add
/// it by itself. Controllers and conversions of the project are those in PROJECT, and admission
/// webhooks those in `config/webhook/manifests.yaml`, which `rbuilder manifests` generates from the
/// markers. So a controller that you have added without `rbuilder create api` is not checked.
///
/// ```no_run
/// # use rbuilder::{Manager, ManagerArgs, fake::ApiServer};
/// # fn register(manager: Manager) -> Manager { manager }
/// #[tokio::test]
/// # async fn test() {}
/// async fn controllers_and_webhooks_are_registered() {
///     let client = ApiServer::new().client();
///     let manager = Manager::with_client("test", client, ManagerArgs::for_tests());
///     rbuilder::testing::assert_registered(&register(manager));
/// }
/// ```
///
/// # Panics
///
/// Panics with the missing parts, or if PROJECT or the manifests can't be read.
#[track_caller]
pub fn assert_registered(manager: &Manager) {
    let missing = manager
        .registered()
        .find_missing(Path::new("."))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
