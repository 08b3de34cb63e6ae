//! The operator started by the tests. It reconciles ConfigMaps in its namespace and does what's in
//! their data.

use std::fmt;
use std::io::{Read, Write};
use std::process::Termination;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube::core::admission::AdmissionResponse;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
use serde_json::json;
use tokio::runtime::Handle;

/// ID of the operator, and hence the name of its lease. Can be overridden with [`ID`].
pub(crate) const LEASE: &str = "process.example.com";
/// Data key that makes reconciles wait until it's removed.
pub(crate) const HOLD: &str = "hold";
/// Data key that makes a reconcile block its thread. The value is the number of seconds to sleep,
/// `write` to keep [writing](WRITTEN) forever, or `pool` to wait forever for a thread of the
/// blocking pool.
pub(crate) const BLOCK: &str = "block";
/// Data key that makes reconciles fail.
pub(crate) const FAIL: &str = "fail";
/// Data key that makes the first reconcile of an object panic. With `thread`, it's another thread
/// named `helper` that panics.
pub(crate) const PANIC: &str = "panic";
/// Annotation that is set at the start of a reconcile. Contains the ID of the process.
pub(crate) const STARTED: &str = "process.example.com/started";
/// Annotation that's set at the end of a reconcile. Contains the process's ID.
pub(crate) const ENDED: &str = "process.example.com/ended";

/// Annotation that is set all the time by a reconcile with `block: write`, unless the data contains
/// [`HOLD`].
pub(crate) const WRITTEN: &str = "process.example.com/written";

/// Data key that contains a counter. A reconcile copies it to [`ROUND_DONE`], and records its steps
/// in the file named by [`RECORD`].
pub(crate) const ROUND: &str = "round";
/// Annotation with the round and the process which has reconciled it.
pub(crate) const ROUND_DONE: &str = "process.example.com/round-done";
/// Environment variable with the path of a file shared by all processes. Each [`Step`] of a
/// reconcile is recorded as a line.
pub(crate) const RECORD: &str = "RBUILDER_TEST_RECORD";

/// Environment variable that overrides the operator's ID.
pub(crate) const ID: &str = "RBUILDER_TEST_ID";
/// Environment variable with the number of worker threads. If it is 0, everything runs on `main`.
pub(crate) const THREADS: &str = "RBUILDER_TEST_THREADS";
/// Environment variable for what to set up before the manager is created: `subscriber` installs a
/// tracing subscriber, `hook` installs a panic hook that prints [`HOOKED`], and `traces` installs a
/// tracer provider.
pub(crate) const BEFORE: &str = "RBUILDER_TEST_BEFORE";
/// Printed by the operator's own panic hook.
pub(crate) const HOOKED: &str = "the crash was reported\n";
/// Environment variable with the flags of the operator, one per line. If it is set, this program is
/// the operator.
pub(crate) const FLAGS: &str = "RBUILDER_TEST_OPERATOR";

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
}

/// A step of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Began,
    /// The API server has accepted the write.
    Wrote,
    Ended,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "Began" => Ok(Self::Began),
            "Wrote" => Ok(Self::Wrote),
            "Ended" => Ok(Self::Ended),
            _ => Err(text.to_owned()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the backup is not reachable")]
struct Unreachable(#[from] std::io::Error);

pub(crate) fn is_this_process() -> bool {
    std::env::var_os(FLAGS).is_some()
}

/// Runs the operator, and exits in the same way as `main` would.
pub(crate) async fn run() {
    end_with_parent();
    let flags = std::env::var(FLAGS).unwrap();
    let args = Args::parse_from(std::iter::once("operator").chain(flags.lines()));
    match std::env::var(BEFORE).as_deref() {
        Ok("subscriber") => tracing_subscriber::fmt().with_writer(std::io::stderr).init(),
        Ok("hook") => std::panic::set_hook(Box::new(|_| {
            std::io::stderr().write_all(HOOKED.as_bytes()).unwrap()
        })),
        Ok("traces") => opentelemetry::global::set_tracer_provider(SdkTracerProvider::builder().build()),
        _ => {}
    }
    let ended = match std::env::var(THREADS) {
        Ok(threads) => {
            let threads = threads.parse().unwrap();
            let main = std::thread::spawn(move || run_on_threads(threads, args.manager));
            main.join().unwrap()
        }
        Err(_) => operate(args.manager).await,
    };
    let status = i32::from(ended.is_err());
    // Print the error like a `main` function that returns it.
    let _ = ended.report();
    std::process::exit(status)
}

/// Runs the operator with its own runtime. Like `#[tokio::main]`, this waits for the runtime's
/// threads.
fn run_on_threads(threads: usize, args: ManagerArgs) -> Result<()> {
    let mut runtime = match threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime
        .worker_threads(threads.max(1))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(operate(args))
}

/// Exits when stdin is closed. This means that the test which has started this process does not
/// exist anymore.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(3)
    });
}

async fn operate(args: ManagerArgs) -> Result<()> {
    let has_webhook = args.webhook_cert_path.is_some();
    let id = std::env::var(ID).unwrap_or_else(|_| LEASE.to_owned());
    let mut manager = Manager::new(id, args).await?;
    if has_webhook {
        manager = manager.raw_webhook("/allow", allow);
    }
    manager.controller(Controller::new(reconcile, ())).start().await
}

async fn allow(request: AdmissionRequest) -> AdmissionResponse {
    AdmissionResponse::from(&request)
}

async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    if has(&map, FAIL) {
        let cause = std::io::Error::other("no route\nto host");
        return Err(Unreachable(cause).into());
    }
    if let Some(place) = map.data.as_ref().and_then(|data| data.get(PANIC))
        && !HAS_PANICKED.swap(true, Ordering::Relaxed)
    {
        panic_in(place);
    }
    if let Some(round) = map.data.as_ref().and_then(|data| data.get(ROUND)) {
        return reconcile_round(&map, round, &ctx).await;
    }
    if map.annotations().contains_key(ENDED) {
        return Ok(Action::await_change());
    }
    mark(&map, &ctx, STARTED).await?;
    if let Some(kind) = map.data.as_ref().and_then(|data| data.get(BLOCK)) {
        block(kind, &map, &ctx).await;
    }
    let maps = ctx.api::<ConfigMap>(&*map);
    while has(&maps.get(&map.name_any()).await?, HOLD) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    mark(&map, &ctx, ENDED).await?;
    Ok(Action::await_change())
}

async fn reconcile_round(map: &ConfigMap, round: &str, ctx: &Ctx<()>) -> Result {
    let done = map.annotations().get(ROUND_DONE);
    if done
        .and_then(|done| done.split_once(' '))
        .is_some_and(|(_, done)| done == round)
    {
        return Ok(Action::await_change());
    }
    record(Step::Began, map, round);
    let done = format!("{} {round}", std::process::id());
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { ROUND_DONE: done } } }));
    let maps = ctx.api::<ConfigMap>(map);
    let written = maps.patch(&map.name_any(), &PatchParams::default(), &patch).await;
    if written.is_ok() {
        record(Step::Wrote, map, round);
    }
    // Take long enough to give other replicas the chance to interfere.
    let is_slow = map.name_any().ends_with('0');
    tokio::time::sleep(Duration::from_millis(if is_slow { 4000 } else { 30 })).await;
    record(Step::Ended, map, round);
    written?;
    Ok(Action::await_change())
}

/// Records a step in the file that's shared by all processes. A short line is written atomically.
fn record(step: Step, map: &ConfigMap, round: &str) {
    let Some(path) = std::env::var_os(RECORD) else {
        return;
    };
    let (name, process) = (map.name_any(), std::process::id());
    let line = format!("{} {step} {process} {name} {round}\n", now());
    let file = std::fs::OpenOptions::new().append(true).open(path);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}

/// Returns the time in microseconds, using a clock that is the same for all processes.
pub(crate) fn now() -> u128 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()
}

fn panic_in(place: &str) {
    let panics = || panic!("a page is missing\nbetween 3 and 5");
    match place {
        "thread" => {
            let helper = std::thread::Builder::new().name("helper".to_owned());
            helper.spawn(panics).unwrap().join().unwrap_err();
        }
        _ => panics(),
    }
}

/// Blocks the thread. See [`BLOCK`] for the values of `kind`.
async fn block(kind: &str, map: &ConfigMap, ctx: &Ctx<()>) {
    const FOR_EVER: Duration = Duration::from_secs(3600);
    match kind {
        "write" => tokio::task::block_in_place(|| Handle::current().block_on(write_for_ever(map, ctx))),
        "pool" => tokio::task::spawn_blocking(|| std::thread::sleep(FOR_EVER))
            .await
            .unwrap(),
        seconds => std::thread::sleep(Duration::from_secs(seconds.parse().unwrap())),
    }
}

async fn write_for_ever(map: &ConfigMap, ctx: &Ctx<()>) {
    let maps = ctx.api::<ConfigMap>(map);
    loop {
        if let Ok(now) = maps.get(&map.name_any()).await
            && !has(&now, HOLD)
        {
            let _ = mark(map, ctx, WRITTEN).await;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn has(map: &ConfigMap, key: &str) -> bool {
    map.data.as_ref().is_some_and(|data| data.contains_key(key))
}

async fn mark(map: &ConfigMap, ctx: &Ctx<()>, annotation: &str) -> Result<()> {
    let id = std::process::id().to_string();
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { annotation: id } } }));
    let maps = ctx.api::<ConfigMap>(map);
    maps.patch(&map.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(())
}
