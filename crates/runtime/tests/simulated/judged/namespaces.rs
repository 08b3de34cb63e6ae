//! Objects of the same name in two namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use rbuilder::simulation::{External, Remote};
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::{Value, json};

use super::{assert_found, assert_silent, simulate};
use crate::children::{OWNER, cluster_role, config_map, labelled_owner, labels, service};
use crate::kinds::{App, declared, namespace};

fn sized() -> [Value; 1] {
    [declared::<App>(json!({ "size": 1 }))]
}

/// A ConfigMap in the namespace `default`, wherever the object is.
async fn in_default(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let mut map = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
    map.metadata.labels = Some(labels(&*app));
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), "default");
    let params = PatchParams::apply("app").force();
    maps.patch(&app.name_any(), &params, &Patch::Apply(&map)).await?;
    Ok(Action::await_change())
}

async fn leave_default(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let map = config_map(app.name_any(), []);
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), "default");
    if maps.get_opt(&app.name_any()).await?.is_some() {
        maps.delete(&map.name_any(), &Default::default()).await?;
    }
    Ok(Action::await_change())
}

#[test]
fn namespace_that_is_built_in_is_found() {
    let register = |manager: Manager| {
        let controller =
            Controller::new(in_default, ()).finalizer("simulated.example.com/map", leave_default);
        manager.controller(controller.watches(|map: &ConfigMap, _| {
            let owner = map.labels().get(OWNER);
            let owner = owner.map(|name| rbuilder::ObjectRef::new(name).within("default"));
            owner.into_iter().collect::<Vec<_>>()
        }))
    };
    let words = "configmaps elsewhere/sample is missing";
    let report = assert_found(simulate(register, &sized()), "end-state", words);
    assert!(report.to_string().contains("add `.without_copies()`"), "{report}");
    // The objects of such an operator must be in this namespace.
    let single = simulate(register, &sized()).watch_namespace("default");
    assert_silent(single);
    assert_silent(simulate(register, &sized()).without_copies());
}

/// A ClusterRole for each object, whose name has the namespace or not.
fn role<const REPAIRED: bool>(app: &App) -> ClusterRole {
    let mut role = cluster_role(app);
    let size: BTreeMap<String, String> = [("size".to_owned(), app.spec.size.to_string())].into();
    role.annotations_mut().extend(size);
    if !REPAIRED {
        role.metadata.name = Some(app.name_any());
    }
    role
}

async fn applies_role<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let roles: Api<ClusterRole> = Api::all(ctx.client());
    let role = role::<REPAIRED>(&app);
    let params = PatchParams::apply("app").force();
    if roles
        .get_opt(&role.name_any())
        .await?
        .is_none_or(|found| found.annotations() != role.annotations())
    {
        roles
            .patch(&role.name_any(), &params, &Patch::Apply(&role))
            .await?;
    }
    let size = [
        ("size", app.spec.size.to_string()),
        ("namespace", namespace(&*app)),
    ];
    ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    Ok(Action::await_change())
}

async fn removes_role<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let roles: Api<ClusterRole> = Api::all(ctx.client());
    let name = role::<REPAIRED>(&app).name_any();
    if roles.get_opt(&name).await?.is_some() {
        roles.delete(&name, &Default::default()).await?;
    }
    Ok(Action::await_change())
}

fn with_role<const REPAIRED: bool>(manager: Manager) -> Manager {
    let controller = Controller::new(applies_role::<REPAIRED>, ());
    let controller = controller.finalizer("simulated.example.com/role", removes_role::<REPAIRED>);
    manager.controller(
        controller
            .owns::<ConfigMap>()
            .watches(|role: &ClusterRole, _| labelled_owner(role)),
    )
}

#[test]
fn cluster_scoped_children_that_collide_are_found() {
    // Without the watch that repairs it, deleting one object removes the other's role.
    let register = |manager: Manager| {
        let controller = Controller::new(applies_role::<false>, ());
        let controller = controller.finalizer("simulated.example.com/role", removes_role::<false>);
        manager.controller(controller.owns::<ConfigMap>())
    };
    let words = "clusterroles.rbac.authorization.k8s.io sample is missing";
    assert_found(simulate(register, &sized()), "end-state", words);
    assert_silent(simulate(with_role::<true>, &sized()));
}

/// Its finalizer writes a ConfigMap, which is impossible in a namespace that ends.
async fn says_goodbye(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let map = config_map(format!("{}-goodbye", app.name_any()), []);
    let api = ctx.api::<ConfigMap>(&*app);
    let params = PatchParams::apply("app").force();
    api.patch(&map.name_any(), &params, &Patch::Apply(&map)).await?;
    api.delete(&map.name_any(), &Default::default()).await?;
    Ok(Action::await_change())
}

async fn applies_map(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let size = [("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    Ok(Action::await_change())
}

#[test]
fn namespace_that_cannot_end_is_found() {
    let register = |manager: Manager| {
        let controller = Controller::new(applies_map, ()).owns::<ConfigMap>();
        manager.controller(controller.finalizer("simulated.example.com/goodbye", says_goodbye))
    };
    assert_found(
        simulate(register, &sized()),
        "deletion",
        "the namespace elsewhere does not end",
    );
}

/// Machines by the uid of their object. The system shows them by names, which need not be unique.
#[derive(Default)]
struct Machines(BTreeMap<String, (String, i32)>);

impl External for Machines {
    const NAME: &'static str = "machines";

    fn objects(&self) -> Vec<(String, Value)> {
        let machines = self.0.values();
        machines
            .map(|(name, size)| (name.clone(), json!({ "size": size })))
            .collect()
    }
}

async fn places(app: Arc<App>, ctx: Ctx<Remote<Machines>>) -> Result {
    let (uid, machine) = (app.uid().unwrap_or_default(), (app.name_any(), app.spec.size));
    let place = move |machines: &mut Machines| drop(machines.0.insert(uid, machine));
    ctx.call(format!("place {}", app.name_any()), place).await?;
    Ok(Action::await_change())
}

async fn removes_machine(app: Arc<App>, ctx: Ctx<Remote<Machines>>) -> Result {
    let uid = app.uid().unwrap_or_default();
    let remove = move |machines: &mut Machines| drop(machines.0.remove(&uid));
    ctx.call(format!("remove {}", app.name_any()), remove).await?;
    Ok(Action::await_change())
}

#[test]
fn equal_names_outside_of_the_cluster_do_not_collide() {
    let register = |manager: Manager| {
        let controller = Controller::new(places, Remote::<Machines>::new());
        manager.controller(controller.finalizer("simulated.example.com/machine", removes_machine))
    };
    assert_silent(simulate(register, &sized()));
}

/// The first port that no other object has.
const FIRST_PORT: u16 = 8000;
const SUMMARY: &str = "summary";

fn port_of(map: &ConfigMap) -> Option<u16> {
    map.data.as_ref()?.get("port")?.parse().ok()
}

async fn names_of_apps(ctx: &Ctx<()>) -> Result<String> {
    let apps = Api::<App>::all(ctx.client()).list(&Default::default()).await?;
    let left = apps
        .iter()
        .filter(|app| app.metadata.deletion_timestamp.is_none());
    let names: Vec<String> = left
        .map(|app| format!("{}/{}", namespace(app), app.name_any()))
        .collect();
    Ok(names.join(","))
}

/// Updates the list of all objects, which disappears with the last one.
async fn summarize(ctx: &Ctx<()>, names: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), "default");
    let exists = maps.get_opt(SUMMARY).await?.is_some();
    if !names.is_empty() {
        let map = config_map(SUMMARY, [("names", names.to_owned())]);
        maps.patch(SUMMARY, &PatchParams::apply("app").force(), &Patch::Apply(&map))
            .await?;
    } else if exists {
        maps.delete(SUMMARY, &Default::default()).await?;
    }
    Ok(())
}

/// Gives each object a port of its own, and the list of all objects.
async fn considers_all(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let names = names_of_apps(&ctx).await?;
    summarize(&ctx, &names).await?;
    let maps = Api::<ConfigMap>::all(ctx.client())
        .list(&Default::default())
        .await?;
    let is_own = |map: &&ConfigMap| namespace(*map) == namespace(&*app) && map.name_any() == app.name_any();
    let own = maps.iter().find(is_own).and_then(port_of);
    let used: Vec<u16> = maps.iter().filter_map(port_of).collect();
    let free = (FIRST_PORT..)
        .find(|port| !used.contains(port))
        .unwrap_or(FIRST_PORT);
    let data = [
        ("size", app.spec.size.to_string()),
        ("peers", names),
        ("port", own.unwrap_or(free).to_string()),
    ];
    ctx.apply_owned(&*app, config_map(app.name_any(), data)).await?;
    Ok(Action::requeue(Duration::from_secs(20)))
}

async fn leaves_the_list(_app: Arc<App>, ctx: Ctx<()>) -> Result {
    let names = names_of_apps(&ctx).await?;
    summarize(&ctx, &names).await?;
    Ok(Action::await_change())
}

#[test]
fn objects_of_all_namespaces_may_be_taken_into_account() {
    let register = |manager: Manager| {
        let controller = Controller::new(considers_all, ()).owns::<ConfigMap>();
        manager.controller(controller.finalizer("simulated.example.com/list", leaves_the_list))
    };
    assert_silent(simulate(register, &sized()));
}

/// A Service with a node port of the user's choice, which only one object can have.
async fn exposes(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let mut service: Service = service(app.name_any());
    if let Some(spec) = &mut service.spec {
        spec.type_ = Some("NodePort".to_owned());
        for port in spec.ports.iter_mut().flatten() {
            port.node_port = Some(30_000 + app.spec.size);
        }
    }
    ctx.apply_owned(&*app, service).await?;
    Ok(Action::await_change())
}

#[test]
fn copies_may_be_refused() {
    let register = |manager: Manager| manager.controller(Controller::new(exposes, ()).owns::<Service>());
    assert_silent(simulate(register, &sized()));
}

/// A ConfigMap for each ClusterRole.
async fn describes_role(role: Arc<ClusterRole>, ctx: Ctx<()>) -> Result {
    let mut map = config_map(format!("{}-role", role.name_any()), []);
    map.metadata.namespace = Some("default".to_owned());
    ctx.apply_owned(&*role, map).await?;
    Ok(Action::await_change())
}

#[test]
fn children_of_cluster_scoped_objects_have_no_counterparts() {
    let register = |manager: Manager| {
        let roles = Controller::new(describes_role, ()).owns::<ConfigMap>();
        manager
            .controller(Controller::new(applies_map, ()).owns::<ConfigMap>())
            .controller(roles)
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "sample" },
    });
    let [app] = sized();
    assert_silent(simulate(register, &[role, app]));
}
