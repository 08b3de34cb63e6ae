//! Objects that leave a controller's selection while they have its finalizer.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use rbuilder::predicate::Predicate;
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, Result, Selection, Unselected};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, memo, on_both_servers};

on_both_servers!(
    unselected_object_is_cleaned_up,
    unselected_object_is_released,
    object_unselected_during_downtime_is_found,
    object_left_to_another_controller_keeps_its_finalizer,
    finalizer_with_a_selection_needs_when_unselected,
);

const FINALIZER: &str = "controllers.example.com/selected";
const OTHER: &str = "example.com/other";

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&format!("seen {}", memo.name_any()));
    Ok(Action::await_change())
}

async fn clean_up(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let name = format!("cleaned {}", memo.name_any());
    ctx.note(&name);
    // The first cleanup asks to be called again.
    match ctx.count(&name) {
        1 => Ok(Action::requeue(Duration::from_millis(50))),
        _ => Ok(Action::await_change()),
    }
}

async fn forget(memo: rbuilder::ObjectRef<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&format!("forgot {}", memo.name));
    Ok(Action::await_change())
}

fn managed() -> Selection {
    Selection::all().labels("managed=yes")
}

/// Returns a controller that selects memos by label and is notified of deletions.
fn controller(seen: &Seen, unselected: Unselected) -> Controller<Memo, Seen> {
    Controller::new(look, seen.clone())
        .selecting(managed())
        .finalizer(FINALIZER, clean_up)
        .when_unselected(unselected)
        .on_deleted(forget)
}

impl Place {
    /// Creates a memo with the label, and with a finalizer of another controller.
    async fn create_managed(&self, name: &str) {
        let mut memo = memo(name, "1");
        memo.labels_mut().insert("managed".to_owned(), "yes".to_owned());
        memo.finalizers_mut().push(OTHER.to_owned());
        self.create(memo).await;
    }

    async fn set_label(&self, name: &str, value: Option<&str>) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "managed": value } } }));
        let params = PatchParams::default();
        self.api::<Memo>().patch(name, &params, &patch).await.unwrap();
    }

    async fn finalizers(&self, name: &str) -> Vec<String> {
        let memo = self.api::<Memo>().get(name).await.unwrap();
        memo.finalizers().to_vec()
    }

    async fn wait_for_finalizers(&self, name: &str, expected: &[&str]) {
        eventually(SOON, || async {
            let found = self.finalizers(name).await;
            match found == expected {
                true => Ok(()),
                false => Err(format!("{name} has {found:?}")),
            }
        })
        .await;
    }

    /// Deletes a memo whose only remaining finalizer is the other controller's.
    async fn delete_released(&self, name: &str) {
        let memos = self.api::<Memo>();
        memos.delete(name, &DeleteParams::default()).await.unwrap();
        let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let params = PatchParams::default();
        memos.patch(name, &params, &released).await.unwrap();
        eventually(SOON, || async { memos.get_opt(name).await.unwrap().is_none() }).await;
    }
}

async fn unselected_object_is_cleaned_up(server: Server) {
    let place = Place::new(server).await;
    place.create_managed("leaving").await;
    place.create_managed("deleted").await;
    let seen = Seen::default();
    // Predicates affect reconciles, but not cleanups.
    let no_deletions = Predicate::new(|change| !matches!(change, rbuilder::Change::Deleted(_)));
    let controller = controller(&seen, Unselected::CleanUp).filter(no_deletions);
    let operator = Operator::start(place.manager().controller(controller));
    for name in ["leaving", "deleted"] {
        place.wait_for_finalizers(name, &[OTHER, FINALIZER]).await;
    }
    place.set_label("leaving", None).await;
    place.wait_for_finalizers("leaving", &[OTHER]).await;
    assert_eq!(seen.count("cleaned leaving"), 2);
    place.delete_released("leaving").await;

    let memos = place.api::<Memo>();
    memos.delete("deleted", &DeleteParams::default()).await.unwrap();
    place.wait_for_finalizers("deleted", &[OTHER]).await;
    place.set_label("deleted", None).await;
    // A recreated object is a new object.
    place.create_managed("leaving").await;
    place.wait_for_finalizers("leaving", &[OTHER, FINALIZER]).await;
    operator.stop().await.unwrap();
    assert_eq!(
        (seen.count("cleaned leaving"), seen.count("cleaned deleted")),
        (2, 2),
        "each was cleaned up once"
    );
}

async fn unselected_object_is_released(server: Server) {
    let place = Place::new(server).await;
    place.create_managed("leaving").await;
    let seen = Seen::default();
    let controller = controller(&seen, Unselected::Release);
    let operator = Operator::start(place.manager().controller(controller));
    place.wait_for_finalizers("leaving", &[OTHER, FINALIZER]).await;
    place.set_label("leaving", None).await;
    place.wait_for_finalizers("leaving", &[OTHER]).await;
    eventually(SOON, || async { seen.count("forgot leaving") == 1 }).await;
    assert_eq!(seen.count("cleaned leaving"), 0);
    place.delete_released("leaving").await;
    operator.stop().await.unwrap();
}

async fn object_unselected_during_downtime_is_found(server: Server) {
    let place = Place::new(server).await;
    for name in ["leaving", "staying"] {
        place.create_managed(name).await;
    }
    for (label, expected) in [(Some("yes"), &[OTHER, FINALIZER][..]), (None, &[OTHER])] {
        place.set_label("leaving", label).await;
        let seen = Seen::default();
        let controller = controller(&seen, Unselected::CleanUp);
        let operator = Operator::start(place.manager().controller(controller));
        place.wait_for_finalizers("leaving", expected).await;
        place.wait_for_finalizers("staying", &[OTHER, FINALIZER]).await;
        operator.stop().await.unwrap();
        let cleaned = if label.is_some() { 0 } else { 2 };
        assert_eq!(seen.count("cleaned leaving"), cleaned);
        assert_eq!(seen.count("cleaned staying"), 0);
    }
}

async fn object_left_to_another_controller_keeps_its_finalizer(server: Server) {
    let place = Place::new(server).await;
    place.create_managed("moving").await;
    let seen = Seen::default();
    let other_half = Controller::new(look, seen.clone())
        .selecting(Selection::all().labels("managed=no"))
        .finalizer(FINALIZER, clean_up)
        .when_unselected(Unselected::Keep)
        .named("other-half");
    let manager = place.manager().controller(controller(&seen, Unselected::Keep));
    let operator = Operator::start(manager.controller(other_half));
    place.wait_for_finalizers("moving", &[OTHER, FINALIZER]).await;
    place.set_label("moving", Some("no")).await;
    eventually(SOON, || async { seen.count("forgot moving") == 1 }).await;
    assert_eq!(place.finalizers("moving").await, [OTHER, FINALIZER]);
    let memos = place.api::<Memo>();
    memos.delete("moving", &DeleteParams::default()).await.unwrap();
    place.wait_for_finalizers("moving", &[OTHER]).await;
    assert_eq!(seen.count("cleaned moving"), 2, "the other half cleans it up");
    operator.stop().await.unwrap();
}

async fn finalizer_with_a_selection_needs_when_unselected(server: Server) {
    let place = Place::new(server).await;
    let start = async |selection: Selection| {
        let controller = Controller::new(look, Seen::default());
        let controller = controller.selecting(selection).finalizer(FINALIZER, clean_up);
        let manager = place.manager().controller(controller);
        manager.start_until(std::future::ready(())).await
    };
    let refused = start(managed()).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "invalid selection of Memo (controllers.example.com/v1): an object that leaves it keeps the finalizer of the \
         controller and could never be deleted; add `.when_unselected(…)` to the controller"
    );
    // Objects can't leave any of these selections.
    for selection in [
        Selection::all(),
        Selection::all().namespaces([&place.namespace]),
        Selection::all().fields("metadata.name=one"),
    ] {
        start(selection).await.unwrap();
    }
}
