//! Operators that write what the clock shows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use super::{assert_found, assert_silent, simulate};
use crate::children::{config_map, delete_named, deployment, is_available, metadata};
use crate::kinds::{App, declared, namespace, report, report_phase};

const DAY: i64 = 24 * 60 * 60;

/// Every ten minutes, writes the seconds of the epoch to the status.
async fn reports_seconds(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let size = [("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    let seconds = ctx.now().as_second();
    let last = app.status.as_ref().and_then(|status| status.id.clone());
    let last: i64 = last.and_then(|last| last.parse().ok()).unwrap_or_default();
    if seconds >= last + 600 {
        report(&ctx, &*app, |status| status.id = Some(seconds.to_string())).await?;
    }
    Ok(Action::requeue(Duration::from_secs(600)))
}

#[test]
fn seconds_of_the_epoch_are_times() {
    let register =
        |manager: Manager| manager.controller(Controller::new(reports_seconds, ()).owns::<ConfigMap>());
    assert_silent(simulate(register, &[declared::<App>(json!({ "size": 1 }))]));
}

const END: &str = "simulated.example.com/end";

/// Issues a certificate of 90 days, with its end as an annotation, and renews it when a third of its
/// life is left.
async fn issues(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let secrets = ctx.cached::<Secret>()?;
    let found = secrets.named(&namespace(&*app), &app.name_any());
    let end = found.and_then(|found| found.annotations().get(END)?.parse::<i64>().ok());
    let now = ctx.now().as_second();
    let left = end.map_or(0, |end| end - now);
    if left <= 30 * DAY {
        let certificate = format!("{:x}-{:x}", ctx.random(), app.spec.size);
        let mut secret = Secret {
            metadata: metadata(app.name_any()),
            data: Some([("tls.crt".to_owned(), ByteString(certificate.into_bytes()))].into()),
            ..Secret::default()
        };
        secret
            .annotations_mut()
            .insert(END.to_owned(), (now + 90 * DAY).to_string());
        ctx.apply_owned(&*app, secret).await?;
        return Ok(Action::requeue(Duration::from_secs(60 * 60)));
    }
    report_phase(&ctx, &*app, &format!("{} parts are valid", app.spec.size)).await?;
    let wait = u64::try_from(left - 30 * DAY).unwrap_or_default();
    Ok(Action::requeue(Duration::from_secs(wait + 1)))
}

#[test]
fn renewal_of_a_certificate_is_no_loss() {
    let register =
        |manager: Manager| manager.controller(Controller::new(issues, ()).watch(Watch::<Secret, _>::owned()));
    assert_silent(simulate(register, &[declared::<App>(json!({ "size": 1 }))]));
}

/// Each minute, writes to the status that it is alive.
async fn beats(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let size = [("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    let (now, last) = (
        ctx.now(),
        app.status.as_ref().and_then(|status| status.id.clone()),
    );
    let last: Option<Timestamp> = last.and_then(|last| last.parse().ok());
    let passed = last.map_or(60, |last| now.duration_since(last).as_secs());
    if passed >= 60 {
        report(&ctx, &*app, |status| status.id = Some(now.to_string())).await?;
    }
    Ok(Action::requeue(Duration::from_secs(60)))
}

#[test]
fn heartbeat_with_an_interval_is_quiet() {
    let register = |manager: Manager| manager.controller(Controller::new(beats, ()).owns::<ConfigMap>());
    let sized = [declared::<App>(json!({ "size": 1 }))];
    let field = "apps.simulated.example.com .status.id";
    assert_silent(simulate(register, &sized).every(field, Duration::from_secs(60)));
    // It is found without the interval, and with one that is longer.
    assert_found(
        simulate(register, &sized).histories(1),
        "quiet",
        "does not become quiet",
    );
    let hourly = simulate(register, &sized).every(field, Duration::from_secs(3600));
    assert_found(hourly.histories(1), "quiet", "does not become quiet");
}

/// Writes the time of each reconcile to the status.
async fn reports_each(app: Arc<App>, ctx: Ctx<()>) -> Result {
    report(&ctx, &*app, |status| {
        status.id = Some(ctx.now().to_string());
        status.count = Some(app.spec.size);
    })
    .await?;
    Ok(Action::await_change())
}

#[test]
fn time_of_each_reconcile_is_found() {
    let register = |manager: Manager| manager.controller(Controller::new(reports_each, ()));
    let sized = [declared::<App>(json!({ "size": 1 }))];
    let report = assert_found(simulate(register, &sized), "quiet", "does not become quiet");
    // The first history proves it with a fraction of the requests that a step may have.
    assert!(report.histories <= 2, "{report}");
    let events = report.failures[0].events.len();
    assert!(events < 1000, "{events} events");
}

pub(super) fn job(name: String, size: i32) -> Job {
    let job = json!({
        "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "work", "args": [size.to_string()] }],
        } } },
    });
    serde_json::from_value(job).unwrap()
}

/// A Job for each generation. Old ones stay.
async fn starts(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let generation = app.metadata.generation.unwrap_or_default();
    let name = format!("{}-{generation}", app.name_any());
    if ctx.api::<Job>(&*app).get_opt(&name).await?.is_none() {
        ctx.apply_owned(&*app, job(name, app.spec.size)).await?;
    }
    Ok(Action::await_change())
}

#[test]
fn jobs_of_each_generation_may_be_kept() {
    let sized = [declared::<App>(json!({ "size": 1 }))];
    let register =
        |manager: Manager| manager.controller(Controller::new(starts, ()).watch(Watch::<Job, _>::owned()));
    assert_silent(simulate(register, &sized).keeps::<Job>());
}

/// A ConfigMap whose name has the hour of its creation, which the status names.
async fn names_hour(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let known = app.status.as_ref().and_then(|status| status.id.clone());
    let name = known.unwrap_or_else(|| format!("{}-{}", app.name_any(), ctx.now().strftime("%H")));
    report(&ctx, &*app, |status| status.id = Some(name.clone())).await?;
    let size = [("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(name, size)).await?;
    Ok(Action::await_change())
}

#[test]
fn names_may_have_the_hour() {
    let register = |manager: Manager| manager.controller(Controller::new(names_hour, ()).owns::<ConfigMap>());
    assert_silent(simulate(register, &[declared::<App>(json!({ "size": 1 }))]));
}

/// Sets the time of a transition although the condition stays the same: multigres/multigres-operator#185.
async fn restless(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let deployment = deployment(app.name_any(), "app", app.spec.size);
    let deployment = ctx.apply_owned(&*app, deployment).await?;
    let ready = Condition {
        type_: "Ready".to_owned(),
        status: if is_available(&deployment) {
            "True"
        } else {
            "False"
        }
        .to_owned(),
        reason: "Observed".to_owned(),
        message: String::new(),
        last_transition_time: Time(ctx.now()),
        observed_generation: app.metadata.generation,
    };
    report(&ctx, &*app, |status| status.conditions = vec![ready]).await?;
    Ok(Action::await_change())
}

/// Such a time has no fractions of a second, so that a fast server hides the loop.
#[test]
fn time_of_each_transition_is_found() {
    let register = |manager: Manager| manager.controller(Controller::new(restless, ()).owns::<Deployment>());
    let words =
        "the operator does not become quiet: it has changed apps.simulated.example.com default/sample";
    let report = assert_found(
        simulate(register, &[declared::<App>(json!({ "size": 1 }))]),
        "quiet",
        words,
    );
    assert!(report.to_string().contains("in a slow environment"), "{report}");
}

/// Deletes the Job half a minute after its end: kubeflow/trainer#1533.
async fn lives_for_a_time(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let phase = app.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Over") {
        return Ok(Action::await_change());
    }
    let job = ctx.apply_owned(&*app, job(app.name_any(), app.spec.size)).await?;
    let Some(end) = job.status.and_then(|status| status.completion_time) else {
        return Ok(Action::await_change());
    };
    let passed = ctx.now().as_second() - end.0.as_second();
    if passed < 30 {
        return Ok(Action::requeue(Duration::from_secs(30)));
    }
    report_phase(&ctx, &*app, "Over").await?;
    delete_named::<Job, _>(&ctx, &*app, &app.name_any()).await?;
    Ok(Action::await_change())
}

#[test]
fn jobs_do_not_end_in_the_future() {
    let register = |manager: Manager| {
        let controller = Controller::new(lives_for_a_time, ());
        manager.controller(controller.watch(Watch::<Job, _>::owned()))
    };
    let simulation = simulate(register, &[declared::<App>(json!({ "size": 1 }))]);
    let report = simulation.histories(3).run();
    assert!(report.failures.is_empty() && report.masked.is_empty(), "{report}");
    assert!(report.requests > 5, "{report}");
}

/// Makes the Job again for each generation, which it notes in an annotation, like hardbyte/netchecks.
async fn once_for_each_generation(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let generation = app.metadata.generation.unwrap_or_default().to_string();
    let mut wanted = job(app.name_any(), app.spec.size);
    wanted
        .annotations_mut()
        .insert("example.com/generation".to_owned(), generation.clone());
    let found = ctx.api::<Job>(&*app).get_opt(&app.name_any()).await?;
    let is_outdated = |job: &Job| job.annotations().get("example.com/generation") != Some(&generation);
    match found {
        Some(job) if is_outdated(&job) => {
            ctx.delete(&job).await?;
        }
        Some(_) => {}
        None => {
            ctx.create_owned(&*app, wanted).await?;
        }
    }
    Ok(Action::await_change())
}

#[test]
fn generation_of_the_owner_is_no_difference() {
    let register =
        |manager: Manager| manager.controller(Controller::new(once_for_each_generation, ()).owns::<Job>());
    assert_silent(simulate(register, &[declared::<App>(json!({ "size": 1 }))]));
}
