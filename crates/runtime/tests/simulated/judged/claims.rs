//! PersistentVolumeClaims, which hold data and cannot shrink.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use super::{assert_found, assert_silent, simulate};
use crate::children::{claim, delete_cached, requested};
use crate::kinds::{App, declared, namespace, report};

fn cached(ctx: &Ctx<()>, app: &App, name: &str) -> Result<Option<Arc<PersistentVolumeClaim>>> {
    Ok(ctx
        .cached::<PersistentVolumeClaim>()?
        .named(&namespace(app), name))
}

fn gigabytes(claim: &PersistentVolumeClaim) -> i32 {
    let requested = requested(claim).and_then(|requested| requested.strip_suffix("Gi"));
    requested.and_then(|size| size.parse().ok()).unwrap_or_default()
}

fn owns_claims(controller: Controller<App, ()>) -> Controller<App, ()> {
    controller.watch(Watch::<PersistentVolumeClaim, _>::owned())
}

/// Applies a claim of the declared size. With `NEVER_SHRINKS`, the operator leaves larger claims as
/// they are; otherwise, the server refuses to shrink them.
async fn grow<const NEVER_SHRINKS: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let found = cached(&ctx, &app, &app.name_any())?;
    let least = found
        .filter(|_| NEVER_SHRINKS)
        .map_or(0, |found| gigabytes(&found));
    let size = app.spec.size.max(least);
    ctx.apply_owned(&*app, claim(app.name_any(), size)).await?;
    Ok(Action::await_change())
}

#[test]
fn claim_that_cannot_shrink_is_no_finding() {
    let sized = [declared::<App>(json!({ "size": 2 }))];
    let grows = |manager: Manager| manager.controller(owns_claims(Controller::new(grow::<true>, ())));
    assert_silent(simulate(grows, &sized));
    let refused = |manager: Manager| manager.controller(owns_claims(Controller::new(grow::<false>, ())));
    assert_silent(simulate(refused, &sized));
}

/// Records the size before the claim has it, and trusts the record.
async fn record_first(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let found = cached(&ctx, &app, &app.name_any())?;
    let recorded = app.status.as_ref().and_then(|status| status.count);
    if found.is_some() && recorded == Some(app.spec.size) {
        return Ok(Action::await_change());
    }
    report(&ctx, &*app, |status| status.count = Some(app.spec.size)).await?;
    let size = app.spec.size.max(found.map_or(0, |found| gigabytes(&found)));
    ctx.apply_owned(&*app, claim(app.name_any(), size)).await?;
    Ok(Action::await_change())
}

#[test]
fn crash_on_the_way_to_a_larger_claim_is_found() {
    let register = |manager: Manager| manager.controller(owns_claims(Controller::new(record_first, ())));
    let sized = [declared::<App>(json!({ "size": 2 }))];
    let simulation = simulate(register, &sized).histories(120);
    assert_found(
        simulation,
        "end-state",
        "requests.storage is \"2Gi\", expected \"3Gi\"",
    );
}

/// A claim for each member. Claims of removed members are deleted unless they are kept.
async fn members<const KEEPS: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let name = |number| format!("{}-{number}", app.name_any());
    for number in 0..app.spec.size {
        ctx.apply_owned(&*app, claim(name(number), 1)).await?;
    }
    for number in app.spec.size..=5 {
        if !KEEPS {
            delete_cached::<PersistentVolumeClaim, _>(&ctx, &namespace(&*app), &name(number)).await?;
        }
    }
    Ok(Action::await_change())
}

#[test]
fn claim_of_a_removed_member_may_go_or_stay() {
    let sized = [declared::<App>(json!({ "size": 2 }))];
    let deletes = |manager: Manager| manager.controller(owns_claims(Controller::new(members::<false>, ())));
    assert_silent(simulate(deletes, &sized));
    let keeps = |manager: Manager| manager.controller(owns_claims(Controller::new(members::<true>, ())));
    assert_silent(simulate(keeps, &sized).keeps::<PersistentVolumeClaim>());
    // Whether this is on purpose, only the author knows.
    let help = "`.keeps::<PersistentVolumeClaim>()`";
    assert_found(simulate(keeps, &sized), "path", help);
}

/// Deletes a claim and creates it again in the same reconcile.
async fn made_again(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let wanted = claim(app.name_any(), app.spec.size);
    if let Some(found) = cached(&ctx, &app, &app.name_any())?
        && requested(&found) != requested(&wanted)
    {
        ctx.delete(&*found).await?;
    }
    ctx.apply_owned(&*app, wanted).await?;
    Ok(Action::await_change())
}

#[test]
fn claim_that_is_made_again_is_found() {
    let register = |manager: Manager| manager.controller(owns_claims(Controller::new(made_again, ())));
    let sized = [declared::<App>(json!({ "size": 2 }))];
    assert_found(
        simulate(register, &sized),
        "data",
        "persistentvolumeclaims default/sample",
    );
}
