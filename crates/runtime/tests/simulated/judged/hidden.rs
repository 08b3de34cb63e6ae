//! Bugs that the undisturbed run has as well, or that a comparison with it hides.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use rbuilder::simulation::{Simulation, World};
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::{Value, json};

use super::clocks::job;
use super::{assert_found, assert_silent, simulate};
use crate::children::{config_map, deployment, metadata};
use crate::kinds::{App, declared, report};

fn sized(size: i32) -> [Value; 1] {
    [declared::<App>(json!({ "size": size }))]
}

/// Starts a Job, and makes a Deployment once it has succeeded. Only the correct operator watches the
/// Job.
async fn after_job(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let job = json!({
        "metadata": { "name": app.name_any() },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "prepare" }],
        } } },
    });
    let job = ctx
        .apply_owned(&*app, serde_json::from_value::<Job>(job)?)
        .await?;
    if job.status.and_then(|status| status.succeeded) >= Some(1) {
        ctx.apply_owned(&*app, deployment(app.name_any(), "app", app.spec.size))
            .await?;
    }
    Ok(Action::await_change())
}

#[test]
fn reference_that_lacks_an_object_is_named() {
    let register = |manager: Manager| manager.controller(Controller::new(after_job, ()));
    let words = "deployments.apps default/sample is made only here: the run without perturbations lacks it";
    let report = assert_found(simulate(register, &sized(1)), "end-state", words);
    assert!(
        !report.to_string().contains("sample should not exist"),
        "{report}"
    );
    let watching =
        |manager: Manager| manager.controller(Controller::new(after_job, ()).watch(Watch::<Job, _>::owned()));
    let report = simulate(watching, &sized(1)).run();
    assert!(
        !report
            .to_string()
            .contains("the run without perturbations lacks it"),
        "{report}"
    );
}

/// The number of registered members, in a ConfigMap.
const MEMBERS: &str = "members";

async fn register_members(ctx: &Ctx<()>, app: &App, count: i32) -> Result<()> {
    let map = config_map(app.name_any(), [(MEMBERS, count.to_string())]);
    ctx.apply_owned(app, map).await?;
    Ok(())
}

/// Removes members from the cluster of the application before their Pods, or afterwards.
async fn scales<const DRAINS_FIRST: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let sets = ctx.api::<StatefulSet>(&*app);
    let found = sets.get_opt(&app.name_any()).await?;
    let before = found.and_then(|found| found.spec.replicas).unwrap_or_default();
    let labels = json!({ "app": app.name_any() });
    let set = json!({
        "metadata": { "name": app.name_any() },
        "spec": {
            "replicas": app.spec.size, "serviceName": "members", "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "member" }] },
            },
        },
    });
    let set: StatefulSet = serde_json::from_value(set)?;
    let drains_first = DRAINS_FIRST && app.spec.size < before;
    if drains_first {
        register_members(&ctx, &app, app.spec.size).await?;
    }
    ctx.apply_owned(&*app, set).await?;
    if !drains_first {
        register_members(&ctx, &app, app.spec.size).await?;
    }
    Ok(Action::await_change())
}

fn no_member_is_registered_above_the_replicas(world: &World) -> Result<(), String> {
    let mut sets = world.of("apps", "statefulsets");
    let replicas = sets
        .next()
        .and_then(|set| set.value()["spec"]["replicas"].as_i64());
    let mut maps = world.of("", "configmaps");
    let members = maps.find_map(|map| map.value()["data"][MEMBERS].as_str()?.parse::<i64>().ok());
    match replicas.zip(members) {
        Some((replicas, members)) if members > replicas => Err(format!(
            "{members} members are registered for {replicas} replicas"
        )),
        _ => Ok(()),
    }
}

#[test]
fn invariant_holds_after_each_write() {
    let late = |manager: Manager| {
        let controller = Controller::new(scales::<false>, ()).owns::<ConfigMap>();
        manager.controller(controller.owns::<StatefulSet>())
    };
    let early = |manager: Manager| {
        let controller = Controller::new(scales::<true>, ()).owns::<ConfigMap>();
        manager.controller(controller.owns::<StatefulSet>())
    };
    let with_rule = |simulation: Simulation| simulation.invariant(no_member_is_registered_above_the_replicas);
    let words = "2 members are registered for 1 replicas";
    assert_found(with_rule(simulate(late, &sized(2))), "invariant", words);
    assert_silent(with_rule(simulate(early, &sized(2))));
}

/// Owner references that don't work across namespaces.
async fn owns_elsewhere<const CLUSTER: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let owner = app.controller_owner_ref(&());
    if CLUSTER {
        let mut role = ClusterRole {
            metadata: metadata(app.name_any()),
            ..ClusterRole::default()
        };
        role.metadata.owner_references = owner.map(|owner| vec![owner]);
        let roles: Api<ClusterRole> = Api::all(ctx.client());
        let params = PatchParams::apply("app").force();
        roles
            .patch(&app.name_any(), &params, &Patch::Apply(&role))
            .await?;
        return Ok(Action::await_change());
    }
    let mut map = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
    map.metadata.owner_references = owner.map(|owner| vec![owner]);
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), "kube-public");
    let params = PatchParams::apply("app").force();
    maps.patch(&app.name_any(), &params, &Patch::Apply(&map)).await?;
    Ok(Action::await_change())
}

#[test]
fn owner_in_another_namespace_is_found() {
    let namespaced = |manager: Manager| manager.controller(Controller::new(owns_elsewhere::<false>, ()));
    let words = "configmaps kube-public/sample has an owner in another namespace";
    assert_found(simulate(namespaced, &sized(1)), "deletion", words);
    let cluster = |manager: Manager| manager.controller(Controller::new(owns_elsewhere::<true>, ()));
    let words = "clusterroles.rbac.authorization.k8s.io sample is cluster-scoped and has a namespaced owner";
    assert_found(simulate(cluster, &sized(1)), "deletion", words);
}

const HASH: &str = "simulated.example.com/password-hash";

/// A password, and its hash in a Deployment. Only the correct operator updates the hash.
async fn hashes<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let name = app.name_any();
    let secrets = ctx.api::<Secret>(&*app);
    let secret = match secrets.get_opt(&name).await? {
        Some(secret) => secret,
        None => {
            let password = ByteString(format!("{:x}", ctx.random()).into_bytes());
            let secret = Secret {
                metadata: metadata(&name),
                data: Some([("password".to_owned(), password)].into()),
                ..Secret::default()
            };
            ctx.apply_owned(&*app, secret).await?
        }
    };
    let password = secret
        .data
        .unwrap_or_default()
        .remove("password")
        .unwrap_or_default();
    let sum = password
        .0
        .iter()
        .fold(7_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(*byte));
    let found = ctx.api::<Deployment>(&*app).get_opt(&name).await?;
    let known = found.and_then(|found| found.annotations().get(HASH).cloned());
    let hash = known.filter(|_| !REPAIRED).unwrap_or_else(|| format!("{sum:x}"));
    let mut wanted = deployment(&name, "app", app.spec.size);
    wanted.annotations_mut().insert(HASH.to_owned(), hash);
    ctx.apply_owned(&*app, wanted).await?;
    Ok(Action::await_change())
}

#[test]
fn hash_must_follow_the_password() {
    let stale = |manager: Manager| {
        let controller = Controller::new(hashes::<false>, ()).owns::<Secret>();
        manager.controller(controller.owns::<Deployment>())
    };
    let words = "password-hash is as before, although secrets default/sample has been made again";
    assert_found(simulate(stale, &sized(1)), "end-state", words);
    let current = |manager: Manager| {
        let controller = Controller::new(hashes::<true>, ()).owns::<Secret>();
        manager.controller(controller.owns::<Deployment>())
    };
    assert_silent(simulate(current, &sized(1)));
}

/// Copies a Secret of the user. Only the correct operator watches it.
async fn copies(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let Some(original) = ctx.api::<Secret>(&*app).get_opt("password").await? else {
        return Ok(Action::requeue(Duration::from_secs(10)));
    };
    let copy = Secret {
        metadata: metadata(format!("{}-copy", app.name_any())),
        data: original.data,
        ..Secret::default()
    };
    ctx.apply_owned(&*app, copy).await?;
    report(&ctx, &*app, |status| status.count = Some(app.spec.size)).await?;
    Ok(Action::await_change())
}

#[test]
fn data_of_declared_objects_is_varied() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "password", "namespace": "default" },
        "data": { "password": "c2VzYW1l" },
    });
    let declared = [secret, declared::<App>(json!({ "size": 1 }))];
    let once = |manager: Manager| manager.controller(Controller::new(copies, ()).owns::<Secret>());
    assert_found(
        simulate(once, &declared),
        "path",
        "secrets default/sample-copy: .data.password",
    );
    let watching = |manager: Manager| {
        let controller = Controller::new(copies, ()).owns::<Secret>();
        manager.controller(controller.watches(|secret: &Secret, _| {
            let is_original = secret.name_any() == "password";
            let app = rbuilder::ObjectRef::new("sample").within("default");
            is_original.then_some(app).into_iter().collect::<Vec<_>>()
        }))
    };
    assert_silent(simulate(watching, &declared));
}

/// Copies the labels of the object to its child, but only reconciles new generations.
async fn copies_labels(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let mut map = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
    map.labels_mut().extend(app.labels().clone());
    ctx.apply_owned(&*app, map).await?;
    Ok(Action::await_change())
}

#[test]
fn labels_of_declared_objects_are_varied() {
    let deaf = |manager: Manager| {
        let controller = Controller::new(copies_labels, ()).owns::<ConfigMap>();
        manager.controller(controller.filter(rbuilder::predicate::generation_changed()))
    };
    assert_found(
        simulate(deaf, &sized(1)),
        "path",
        "configmaps default/sample: .metadata.labels",
    );
    let attentive =
        |manager: Manager| manager.controller(Controller::new(copies_labels, ()).owns::<ConfigMap>());
    assert_silent(simulate(attentive, &sized(1)));
}

/// A Deployment with an autoscaler. Only the correct operator leaves its replicas alone.
async fn autoscales<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let name = app.name_any();
    let mut wanted = deployment(&name, "app", 1);
    if REPAIRED {
        wanted.spec.replicas = None;
    }
    ctx.apply_owned(&*app, wanted).await?;
    let scaler = json!({
        "metadata": { "name": name },
        "spec": {
            "minReplicas": 1, "maxReplicas": 3 + app.spec.size,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
        },
    });
    ctx.apply_owned(&*app, serde_json::from_value::<HorizontalPodAutoscaler>(scaler)?)
        .await?;
    Ok(Action::await_change())
}

#[test]
fn fight_with_an_autoscaler_is_found() {
    let fights = |manager: Manager| {
        let controller = Controller::new(autoscales::<false>, ()).owns::<Deployment>();
        manager.controller(controller.owns::<HorizontalPodAutoscaler>())
    };
    assert_found(simulate(fights, &sized(1)), "quiet", "deployments.apps");
    let yields = |manager: Manager| {
        let controller = Controller::new(autoscales::<true>, ()).owns::<Deployment>();
        manager.controller(controller.owns::<HorizontalPodAutoscaler>())
    };
    assert_silent(simulate(yields, &sized(1)));
}

/// Says that it is ready before the Deployment is, and returns early if the ConfigMap exists: two
/// bugs.
async fn has_two_bugs(app: Arc<App>, ctx: Ctx<()>) -> Result {
    ctx.apply_owned(&*app, deployment(app.name_any(), "app", 1))
        .await?;
    report(&ctx, &*app, |status| {
        let ready = rbuilder::conditions::new("Ready", true, "Running").observed(&*app);
        rbuilder::conditions::set(&mut status.conditions, ready);
    })
    .await?;
    let exists = ctx
        .api::<ConfigMap>(&*app)
        .get_opt(&app.name_any())
        .await?
        .is_some();
    if !exists {
        let size = [("size", app.spec.size.to_string())];
        ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    }
    Ok(Action::await_change())
}

#[test]
fn one_finding_does_not_hide_another() {
    let register = |manager: Manager| {
        let controller = Controller::new(has_two_bugs, ()).owns::<ConfigMap>();
        manager.controller(controller.owns::<Deployment>())
    };
    let report = assert_found(
        simulate(register, &sized(1)),
        "truth",
        "deployments.apps default/sample",
    );
    let mut failures = report.failures.iter();
    assert!(
        failures.any(|failure| failure.oracle.as_str() == "path"),
        "{report}"
    );
    let text = report.to_string();
    assert!(
        text.contains("in step 2: apply apps.simulated.example.com default/sample with /spec/size"),
        "{text}"
    );
    // The timeline marks when the status became wrong.
    assert!(text.contains("operator     says that it is ready"), "{text}");
}

/// Replaces the Job when the size changes. Without a propagation policy, the Pod of the old one stays.
async fn replaces_job<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let jobs = ctx.api::<Job>(&*app);
    let name = |size: i32| format!("{}-{size}", app.name_any());
    let params = match REPAIRED {
        true => DeleteParams::background(),
        false => DeleteParams::default(),
    };
    for size in (1..=5).filter(|size| *size != app.spec.size) {
        if jobs.get_opt(&name(size)).await?.is_some() {
            jobs.delete(&name(size), &params).await?;
        }
    }
    ctx.apply_owned(&*app, job(name(app.spec.size), app.spec.size))
        .await?;
    Ok(Action::await_change())
}

#[test]
fn pod_of_a_deleted_job_is_found() {
    let leaks = |manager: Manager| {
        let controller = Controller::new(replaces_job::<false>, ());
        manager.controller(controller.watch(Watch::<Job, _>::owned()))
    };
    assert_found(simulate(leaks, &sized(2)), "path", "pods default/sample-2-");
    let clean = |manager: Manager| {
        let controller = Controller::new(replaces_job::<true>, ());
        manager.controller(controller.watch(Watch::<Job, _>::owned()))
    };
    assert_silent(simulate(clean, &sized(2)));
}

/// Two children, of which the first leads to another reconcile when it becomes ready.
async fn two_children(app: Arc<App>, ctx: Ctx<()>) -> Result {
    ctx.apply_owned(&*app, deployment(app.name_any(), "app", app.spec.size))
        .await?;
    let size = [("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    Ok(Action::await_change())
}

/// Only a deletion while the operator is idle shows that nothing watches the second child:
/// stacklok/toolhive#6343.
#[test]
fn child_that_nothing_watches_is_found() {
    let half = |manager: Manager| manager.controller(Controller::new(two_children, ()).owns::<Deployment>());
    let words = "configmaps default/sample is missing";
    let report = assert_found(simulate(half, &sized(2)), "end-state", words);
    let text = report.to_string();
    let circumstance = "when another actor deletes configmaps default/sample 10 seconds after";
    assert!(text.contains(circumstance), "{text}");
    let whole = |manager: Manager| {
        let controller = Controller::new(two_children, ()).owns::<Deployment>();
        manager.controller(controller.owns::<ConfigMap>())
    };
    assert_silent(simulate(whole, &sized(2)));
}
