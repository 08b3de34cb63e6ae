//! The operator that the tests start: it reconciles the ConfigMaps of its namespace as their data instruct it.

use std::io::Read;
use std::process::Termination;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube::core::admission::AdmissionResponse;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
use serde_json::json;

/// Name of the lease.
pub(crate) const LEASE: &str = "process.example.com";
/// A reconcile waits while this key is in the data.
pub(crate) const HOLD: &str = "hold";
/// A reconcile fails when this key is in the data.
pub(crate) const FAIL: &str = "fail";
/// The first reconcile of an object panics when this key is in the data.
pub(crate) const PANIC: &str = "panic";
/// Annotation that a reconcile sets first, to the id of its process.
pub(crate) const STARTED: &str = "process.example.com/started";
/// Annotation that a reconcile sets last, to the id of its process.
pub(crate) const ENDED: &str = "process.example.com/ended";

/// Environment variable with the operator's flags, one per line, if this program is to run as the operator.
pub(crate) const FLAGS: &str = "RBUILDER_TEST_OPERATOR";

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
}

#[derive(Debug, thiserror::Error)]
#[error("the backup is not reachable")]
struct Unreachable(#[from] std::io::Error);

pub(crate) fn is_this_process() -> bool {
    std::env::var_os(FLAGS).is_some()
}

/// Runs the operator and exits like its `main` would.
pub(crate) async fn run() {
    end_with_parent();
    let flags = std::env::var(FLAGS).unwrap();
    let args = Args::parse_from(std::iter::once("operator").chain(flags.lines()));
    let ended = operate(args.manager).await;
    let status = i32::from(ended.is_err());
    // Prints what a `main` that returns this error prints.
    let _ = ended.report();
    std::process::exit(status)
}

/// Resolves when standard input is closed, which happens only when the test that started this process has ended.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(3)
    });
}

async fn operate(args: ManagerArgs) -> Result<()> {
    let has_webhook = args.webhook_cert_path.is_some();
    let mut manager = Manager::new(LEASE, args).await?;
    if has_webhook {
        manager = manager.raw_webhook("/allow", allow);
    }
    manager.controller(Controller::new(reconcile, ())).start().await
}

async fn allow(request: AdmissionRequest) -> AdmissionResponse {
    AdmissionResponse::from(&request)
}

async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    let has = |map: &ConfigMap, key: &str| map.data.as_ref().is_some_and(|data| data.contains_key(key));
    if has(&map, FAIL) {
        let cause = std::io::Error::other("no route\nto host");
        return Err(Unreachable(cause).into());
    }
    if has(&map, PANIC) && !HAS_PANICKED.swap(true, Ordering::Relaxed) {
        panic!("a page is missing");
    }
    if map.annotations().contains_key(ENDED) {
        return Ok(Action::await_change());
    }
    mark(&map, &ctx, STARTED).await?;
    let maps = ctx.api::<ConfigMap>(&*map);
    while has(&maps.get(&map.name_any()).await?, HOLD) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    mark(&map, &ctx, ENDED).await?;
    Ok(Action::await_change())
}

async fn mark(map: &ConfigMap, ctx: &Ctx<()>, annotation: &str) -> Result<()> {
    let id = std::process::id().to_string();
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { annotation: id } } }));
    let maps = ctx.api::<ConfigMap>(map);
    maps.patch(&map.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(())
}
