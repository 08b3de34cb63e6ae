//! Guarantee 15: maps changes of watched objects to requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::PostParams;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, ObjectRef, Result};

use crate::support::{Memo, Operator, Place, SOON, config_map, memo};

/// A change that's mapped to the same object several times reconciles it once, however fast the
/// workers are.
#[rbuilder::envtest::test]
async fn repeatedly_mapped_object_is_reconciled_once(env: Environment) {
    let place = Place::new(env).await;
    async fn count(_: Arc<Memo>, ctx: Ctx<Arc<AtomicUsize>>) -> Result {
        ctx.fetch_add(1, SeqCst);
        Ok(Action::await_change())
    }
    fn often(secret: &Secret, _: &Ctx<Arc<AtomicUsize>>) -> Vec<ObjectRef<Memo>> {
        let namespace = secret.namespace().unwrap_or_default();
        (0..1000)
            .map(|_| ObjectRef::new("note").within(&namespace))
            .collect()
    }
    place.create(memo("note", "")).await;
    let reconciles = Arc::new(AtomicUsize::new(0));
    let controller = Controller::new(count, reconciles.clone()).watches(often);
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { reconciles.load(SeqCst) == 1 }).await;
    let secrets = place.api::<Secret>();
    for number in 2..=5 {
        let secret = Secret {
            metadata: config_map(&format!("secret-{number}"), "").metadata,
            ..Secret::default()
        };
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        eventually(SOON, || async { reconciles.load(SeqCst) >= number }).await;
    }
    operator.stop().await.unwrap();
    assert_eq!(reconciles.load(SeqCst), 5);
}
