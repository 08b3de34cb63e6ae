//! Guarantees 12 and 13: the startup order.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, ResourceExt};
use rbuilder::envtest::{Environment, ReservedPort, eventually};
use rbuilder::fake::ApiServer;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result, Selection, Watch, Webhook};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Operator, Place, SOON, Seen};

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "guarantees.example.com",
    version = "v1",
    kind = "Parcel",
    namespaced,
    schema = "disabled"
)]
struct ParcelSpec {
    grams: Option<i64>,
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "guarantees.example.com",
        version = "v2",
        kind = "Parcel",
        namespaced,
        schema = "disabled"
    )]
    pub(super) struct ParcelSpec {
        pub(super) milligrams: Option<i64>,
    }
}

impl From<v2::Parcel> for Parcel {
    fn from(parcel: v2::Parcel) -> Self {
        Self {
            metadata: parcel.metadata,
            spec: ParcelSpec {
                grams: parcel.spec.milligrams.map(|weight| weight / 1000),
            },
        }
    }
}

impl From<Parcel> for v2::Parcel {
    fn from(parcel: Parcel) -> Self {
        Self {
            metadata: parcel.metadata,
            spec: v2::ParcelSpec {
                milligrams: parcel.spec.grams.map(|weight| weight * 1000),
            },
        }
    }
}

fn crd() -> CustomResourceDefinition {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "parcels.guarantees.example.com" },
        "spec": {
            "group": "guarantees.example.com", "scope": "Namespaced",
            "names": { "plural": "parcels", "singular": "parcel", "kind": "Parcel" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": schema },
                { "name": "v2", "served": true, "storage": false, "schema": schema },
            ],
        },
    });
    serde_json::from_value(crd).unwrap()
}

/// Includes the head of the response. Empty without a response.
async fn get(address: &str, path: &str) -> String {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    answer.await.unwrap_or_default()
}

/// Objects are stored in both versions, both versions are watched, and the manager itself converts
/// them. So webhooks must be served before the caches can sync, and the caches must sync before the
/// manager becomes ready.
#[rbuilder::envtest::test]
async fn manager_that_converts_its_own_kind_starts(env: Environment) {
    let place = Place::new(env).await;
    let crds: Api<CustomResourceDefinition> = Api::all(place.env.client());
    let name = "parcels.guarantees.example.com";
    crds.create(&PostParams::default(), &crd()).await.unwrap();
    let created = |made: Result<bool, kube::Error>| match made {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => status.is_already_exists(),
        Err(_) => false,
    };
    let first = Parcel::new("first", ParcelSpec { grams: Some(7) });
    let firsts = place.api::<Parcel>();
    eventually(SOON, || async {
        let made = firsts.create(&PostParams::default(), &first).await;
        created(made.map(|_| true))
    })
    .await;
    let switch = serde_json::from_value(json!([
        { "op": "replace", "path": "/spec/versions/0/storage", "value": false },
        { "op": "replace", "path": "/spec/versions/1/storage", "value": true },
    ]));
    let switch = Patch::Json::<()>(switch.unwrap());
    let switched = crds.patch(name, &PatchParams::default(), &switch).await.unwrap();
    let stored = switched.status.and_then(|status| status.stored_versions);
    assert_eq!(stored, Some(vec!["v1".to_owned(), "v2".to_owned()]));
    // It takes a moment until the server stores objects in the other version.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let second = v2::Parcel::new(
        "second",
        v2::ParcelSpec {
            milligrams: Some(9000),
        },
    );
    let seconds = place.api::<v2::Parcel>();
    seconds.create(&PostParams::default(), &second).await.unwrap();
    let server = place.env.real().webhook_server().unwrap();
    server.convert(name).await.unwrap();
    eventually(SOON, || async { firsts.get("second").await.is_err() }).await;

    async fn weigh_v1(parcel: Arc<Parcel>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&format!("{} {:?} g", parcel.name_any(), parcel.spec.grams));
        Ok(Action::await_change())
    }
    async fn weigh_v2(parcel: Arc<v2::Parcel>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&format!("{} {:?} mg", parcel.name_any(), parcel.spec.milligrams));
        Ok(Action::await_change())
    }
    let reserved = ReservedPort::reserve().unwrap();
    let probes = format!("127.0.0.1:{}", reserved.number());
    let args = server.args(ManagerArgs {
        watch_namespace: place.namespace.clone(),
        health_probe_bind_address: probes.clone(),
        ..ManagerArgs::for_tests()
    });
    let seen = Seen::default();
    let manager = Manager::with_client("parcels.example.com", place.env.client(), args)
        .webhook(Webhook::<Parcel>::new().spoke::<v2::Parcel>())
        .controller(Controller::new(weigh_v1, seen.clone()))
        .controller(Controller::new(weigh_v2, seen.clone()).named("parcel-v2"));
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        let all = [
            "first Some(7) g",
            "first Some(7000) mg",
            "second Some(9) g",
            "second Some(9000) mg",
        ];
        all.iter().all(|name| seen.count(name) > 0)
    })
    .await;
    assert!(get(&probes, "/readyz").await.contains(" 200 "));
    operator.stop().await.unwrap();
}

/// While a cache can't sync, the process isn't ready, but still live.
#[rbuilder::envtest::test]
async fn manager_with_unsynced_caches_is_live_but_not_ready(env: Environment) {
    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "nowhere.example.com",
        version = "v1",
        kind = "Ghost",
        namespaced,
        schema = "disabled"
    )]
    struct GhostSpec {}
    async fn never(_: Arc<Ghost>, ctx: Ctx<Seen>) -> Result {
        ctx.note("reconciled");
        Ok(Action::await_change())
    }
    let place = Place::new(env).await;
    let reserved = ReservedPort::reserve().unwrap();
    let probes = format!("127.0.0.1:{}", reserved.number());
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        health_probe_bind_address: probes.clone(),
        ..ManagerArgs::for_tests()
    };
    let seen = Seen::default();
    let manager = Manager::with_client("ghosts.example.com", place.env.client(), args)
        .controller(Controller::new(never, seen.clone()));
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        get(&probes, "/healthz").await.contains(" 200 ")
    })
    .await;
    let ready = get(&probes, "/readyz?verbose").await;
    assert!(
        ready.contains(" 500 ") && ready.contains("[-]caches failed"),
        "{ready}"
    );
    assert_eq!(seen.count("reconciled"), 0);
    operator.stop().await.unwrap();
}

/// An empty list of namespaces is probably due to a bug in the code that creates it. It must not
/// result in watching the entire cluster.
#[tokio::test]
async fn empty_list_of_namespaces_is_an_error() {
    async fn reconcile(_: Arc<Parcel>, _: Ctx<()>) -> Result {
        Ok(Action::await_change())
    }
    let nowhere = Selection::all().namespaces(Vec::<String>::new());
    let unnamed = Selection::all().namespaces(["a", ""]);
    for (selection, reason) in [
        (nowhere, "no namespace is selected"),
        (unnamed, "the name of a namespace is empty"),
    ] {
        let own = Controller::new(reconcile, ()).selecting(selection.clone());
        let owned = Watch::<ConfigMap>::owned().selecting(selection);
        let watching = Controller::new(reconcile, ()).watch(owned);
        for (controller, kind) in [
            (own, "Parcel (guarantees.example.com/v1)"),
            (watching, "ConfigMap (v1)"),
        ] {
            let client = ApiServer::new().client();
            let manager = Manager::with_client("starting.example.com", client, ManagerArgs::for_tests());
            let started = manager.controller(controller).start_until(std::future::pending());
            let ended = tokio::time::timeout(SOON, started).await;
            let error = ended.expect("it does not start").unwrap_err().to_string();
            let start = format!("invalid selection of {kind}: {reason}");
            assert!(error.starts_with(&start), "{error}");
        }
    }
}
