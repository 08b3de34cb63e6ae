//! Guarantee 6: panics.

use std::sync::Arc;

use kube::ResourceExt;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, ManagerError, Result};

use crate::support::{Memo, Operator, Place, SOON, Seen, memo};

async fn digest(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    assert!(memo.name_any() != "poison", "cannot digest\n{}", memo.name_any());
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

#[rbuilder::envtest::test]
async fn panic_is_counted_and_others_are_reconciled(env: Environment) {
    let place = Place::new(env).await;
    for name in ["poison", "good"] {
        place.create(memo(name, "")).await;
    }
    let seen = Seen::default();
    let manager = place
        .manager()
        .controller(Controller::new(digest, seen.clone()).concurrency(1));
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    let count = |name: &str| {
        let start = format!("{name}{{controller=\"memo\"}} ");
        let text = metrics.text();
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or("0").parse::<f64>().unwrap()
    };
    eventually(SOON, || async {
        seen.count("good") == 1 && count("controller_runtime_reconcile_panics_total") >= 3.0
    })
    .await;
    assert!(count("controller_runtime_reconcile_errors_total") >= 3.0);
    operator.stop().await.unwrap();
}

/// With `recover_panics(false)`, a panic stops the manager, with an error that names the controller
/// and the object.
#[rbuilder::envtest::test]
async fn panic_stops_the_manager_if_configured(env: Environment) {
    let place = Place::new(env).await;
    for name in ["good", "poison"] {
        place.create(memo(name, "")).await;
    }
    let manager = place
        .manager()
        .controller(Controller::new(digest, Seen::default()).recover_panics(false));
    let ended = tokio::time::timeout(SOON, manager.start_until(std::future::pending())).await;
    let error = ended.expect("it does not go on").unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ManagerError::Part { .. })));
    let expected = format!(
        "controller memo stopped: reconcile of Memo {}/poison panicked: cannot digest poison",
        place.namespace
    );
    assert_eq!(error.to_string(), expected);
}
