// SPDX-License-Identifier: Apache-2.0

//! Tests of the ConfigMirror API and its controller, with a fake API server for the edge.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rbuilder::envtest::Environment;
use rbuilder::fake::{ApiServer, Fault};
use rbuilder::testing::{Running, assert_generated_crd_matches, eventually, run};
use rbuilder::{ClusterConfig, Manager, ManagerArgs, conditions};
use serde_json::json;

use mirror_operator::api::v1alpha1::{ConfigMirror, ConfigMirrorSpec};
use mirror_operator::controller;

/// Longer than a reconcile takes on a busy machine, and longer than a watch waits before a retry.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn the_crd_matches_the_types() {
    assert_generated_crd_matches::<ConfigMirror>();
}

/// Both clusters, with a running operator in the own one.
struct Scene {
    own: Client,
    edge: ApiServer,
    namespace: String,
    operator: Running,
}

impl Scene {
    fn start(own: Client, namespace: String) -> Self {
        let mut there = Namespace::default();
        there.metadata.name = Some(namespace.clone());
        let edge = ApiServer::new().object(&there);
        let args = ManagerArgs {
            watch_namespace: namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        let mut manager = Manager::with_client("test", own.clone(), args);
        let cluster = manager.cluster(ClusterConfig::from_client("edge", edge.client()));
        let controller = controller::config_mirror::controller(cluster);
        Self {
            own,
            edge,
            namespace,
            operator: run(manager.controller(controller)),
        }
    }

    fn on_fake_servers() -> Self {
        let own = ApiServer::new();
        own.install_crds("config/crd/bases").unwrap();
        let namespace = own.namespace("mirror");
        Self::start(own.client(), namespace)
    }

    fn mirrors(&self) -> Api<ConfigMirror> {
        Api::namespaced(self.own.clone(), &self.namespace)
    }

    fn originals(&self) -> Api<ConfigMap> {
        Api::namespaced(self.own.clone(), &self.namespace)
    }

    fn copies(&self) -> Api<ConfigMap> {
        Api::namespaced(self.edge.client(), &self.namespace)
    }

    /// Creates the ConfigMap `settings` and its ConfigMirror `web`.
    async fn create(&self, color: &str) {
        let mut original = ConfigMap::default();
        original.metadata.name = Some("settings".to_owned());
        original.data = Some(BTreeMap::from([("color".to_owned(), color.to_owned())]));
        let new = PostParams::default();
        self.originals().create(&new, &original).await.unwrap();
        let spec = ConfigMirrorSpec {
            config_map: "settings".to_owned(),
        };
        let mirror = ConfigMirror::new("web", spec);
        self.mirrors().create(&new, &mirror).await.unwrap();
    }

    async fn await_copy(&self, color: Option<&str>) {
        eventually(LONG, || async {
            let copy = self.copies().get_opt("web").await.ok().flatten();
            let found = copy.and_then(|copy| copy.data?.remove("color"));
            match found.as_deref() == color {
                true => Ok(()),
                false => Err(format!("{found:?}, not {color:?}")),
            }
        })
        .await;
    }

    async fn await_reason(&self, reason: &str) {
        eventually(LONG, || async {
            let status = self.mirrors().get("web").await.unwrap().status;
            let conditions = status.unwrap_or_default().conditions;
            conditions::find(&conditions, "Mirrored").is_some_and(|found| found.reason == reason)
        })
        .await;
    }
}

async fn paint(maps: &Api<ConfigMap>, name: &str, color: &str) {
    let patch = Patch::Merge(json!({"data": {"color": color}}));
    maps.patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn mirrors_as_long_as_both_are_there(scene: Scene) {
    let now = DeleteParams::default();
    scene.create("blue").await;
    scene.await_copy(Some("blue")).await;
    scene.await_reason("Copied").await;
    paint(&scene.originals(), "settings", "green").await;
    scene.await_copy(Some("green")).await;
    // Changes and deletions at the edge are reverted.
    paint(&scene.copies(), "web", "red").await;
    scene.await_copy(Some("green")).await;
    scene.copies().delete("web", &now).await.unwrap();
    scene.await_copy(Some("green")).await;

    scene.originals().delete("settings", &now).await.unwrap();
    scene.await_copy(None).await;
    scene.await_reason("NotFound").await;
    scene.mirrors().delete("web", &now).await.unwrap();
    eventually(LONG, || async {
        scene.mirrors().get_opt("web").await.unwrap().is_none()
    })
    .await;

    scene.create("blue").await;
    scene.await_copy(Some("blue")).await;
    scene.mirrors().delete("web", &now).await.unwrap();
    scene.await_copy(None).await;
    scene.operator.stop().await;
}

#[tokio::test]
async fn config_map_is_mirrored_on_fake_servers() {
    mirrors_as_long_as_both_are_there(Scene::on_fake_servers()).await;
}

#[rbuilder::envtest::test]
async fn config_map_is_mirrored_from_a_real_server(env: Environment) {
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace("mirror").await.unwrap();
    mirrors_as_long_as_both_are_there(Scene::start(env.client(), namespace)).await;
}

#[tokio::test]
async fn missed_changes_are_mirrored_when_the_edge_is_reachable_again() {
    let scene = Scene::on_fake_servers();
    scene.create("blue").await;
    scene.await_copy(Some("blue")).await;
    scene.edge.inject(Fault::disconnect().always());
    scene.edge.drop_watches();
    paint(&scene.originals(), "settings", "green").await;
    scene.await_reason("Failed").await;
    scene.edge.heal();
    scene.await_copy(Some("green")).await;
    scene.await_reason("Copied").await;
    scene.operator.stop().await;
}

#[tokio::test]
async fn foreign_config_map_is_left_alone() {
    let scene = Scene::on_fake_servers();
    let mut theirs = ConfigMap::default();
    theirs.metadata.name = Some("web".to_owned());
    theirs.data = Some(BTreeMap::from([("color".to_owned(), "red".to_owned())]));
    let new = PostParams::default();
    scene.copies().create(&new, &theirs).await.unwrap();
    scene.create("blue").await;
    scene.await_reason("Failed").await;
    scene.await_copy(Some("red")).await;
    scene.operator.stop().await;
}
