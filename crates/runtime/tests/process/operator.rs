//! The operator started by the tests. It reconciles ConfigMaps in its namespace according to their
//! data.

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

/// The ID of the operator, and therefore the name of its lease, unless [`ID`] overrides it.
pub(crate) const LEASE: &str = "process.example.com";
/// While the data contains this key, reconciles wait.
pub(crate) const HOLD: &str = "hold";
/// With this key in the data, a reconcile blocks its thread. The value is the number of seconds to
/// sleep, `write` to keep [writing](WRITTEN) forever, or `pool` to wait forever for a thread of the
/// blocking pool.
pub(crate) const BLOCK: &str = "block";
/// With this key in the data, reconciles fail.
pub(crate) const FAIL: &str = "fail";
/// With this key in the data, the first reconcile of an object panics. If its value is `thread`,
/// another thread named `helper` panics instead.
pub(crate) const PANIC: &str = "panic";
/// A reconcile sets this annotation to the ID of its process when it starts.
pub(crate) const STARTED: &str = "process.example.com/started";
/// A reconcile sets this annotation to the ID of its process when it ends.
pub(crate) const ENDED: &str = "process.example.com/ended";

/// A reconcile with `block: write` keeps setting this annotation, unless the data contains
/// [`HOLD`].
pub(crate) const WRITTEN: &str = "process.example.com/written";

/// A counter in the data. A reconcile copies it to [`ROUND_DONE`], and records its steps in the
/// file named by [`RECORD`].
pub(crate) const ROUND: &str = "round";
/// The round, and the process that reconciled it.
pub(crate) const ROUND_DONE: &str = "process.example.com/round-done";
/// Path of a file that all processes share. Each [`Step`] of a reconcile appends a line to it.
pub(crate) const RECORD: &str = "RBUILDER_TEST_RECORD";

/// Overrides the ID of the operator.
pub(crate) const ID: &str = "RBUILDER_TEST_ID";
/// The number of worker threads. With 0, everything runs on `main`.
pub(crate) const THREADS: &str = "RBUILDER_TEST_THREADS";
/// Set up before creating the manager: `subscriber` installs a tracing subscriber, `hook` installs
/// a panic hook that prints [`HOOKED`], and `traces` installs a tracer provider.
pub(crate) const BEFORE: &str = "RBUILDER_TEST_BEFORE";
/// Printed by the operator's own panic hook.
pub(crate) const HOOKED: &str = "the crash was reported\n";
/// The flags of the operator, one per line. If this variable is set, this program is the operator.
pub(crate) const FLAGS: &str = "RBUILDER_TEST_OPERATOR";

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Began,
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

/// Runs the operator, and exits as `main` would.
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
    // Print the error as if `main` had returned it.
    let _ = ended.report();
    std::process::exit(status)
}

/// Runs the operator with its own runtime, and waits for the runtime's threads like
/// `#[tokio::main]`.
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

/// Exits when stdin is closed, which means that the test that started this process has ended.
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
    let _ended = RecordEnd(map, round);
    let done = format!("{} {round}", std::process::id());
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { ROUND_DONE: done } } }));
    let maps = ctx.api::<ConfigMap>(map);
    let written = maps.patch(&map.name_any(), &PatchParams::default(), &patch).await;
    if written.is_ok() {
        record(Step::Wrote, map, round);
    }
    // Slow enough to give other replicas a chance to interfere.
    let is_slow = map.name_any().ends_with('0');
    tokio::time::sleep(Duration::from_millis(if is_slow { 4000 } else { 30 })).await;
    written?;
    Ok(Action::await_change())
}

/// Also records the end of a reconcile that is cancelled.
struct RecordEnd<'a>(&'a ConfigMap, &'a str);

impl Drop for RecordEnd<'_> {
    fn drop(&mut self) {
        record(Step::Ended, self.0, self.1);
    }
}

/// Appends to the file that all processes share. Appending a short line is atomic.
fn record(step: Step, map: &ConfigMap, round: &str) {
    let Some(path) = std::env::var_os(RECORD) else {
        return;
    };
    let (name, process) = (map.name_any(), std::process::id());
    let line = format!("{} {step} {process} {name} {round}\n", now());
    let file = std::fs::OpenOptions::new().append(true).open(path);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}

/// In microseconds, by a clock that all processes share.
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

/// Blocks the thread, see [`BLOCK`] for the values of `kind`.
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
