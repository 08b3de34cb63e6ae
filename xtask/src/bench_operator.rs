//! `cargo xtask bench-operator`: the cost of an operator, beside the same operator in Go on controller-runtime.
//!
//! Both operators are in testdata/bench, with the program that measures them: it starts etcd and kube-apiserver, makes
//! the objects, runs the operators by turns and prints the table. This task builds the three, and an etcd as clusters
//! run it, and starts it. Nothing here is a test: a figure never fails.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::sh::Cmd;
use crate::{assets, repo};

/// The environment of the tuned Go operator: the heap may grow by half between collections rather than double.
const GO_TUNED: &str = "GOGC=50";

/// That of the tuned Rust operator: one arena for all threads, which wastes less of what is freed.
const RUST_TUNED: &str = "MALLOC_ARENA_MAX=1";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of objects
    #[arg(long, default_value = "1000")]
    objects: String,

    /// Starts of each operator on a new cluster, where nothing is reconciled
    #[arg(long, default_value_t = 2)]
    cold: usize,

    /// Starts of each operator where everything is reconciled
    #[arg(long, default_value_t = 3)]
    warm: usize,

    /// Changes per second at which latency is measured
    #[arg(long, default_value = "50,200")]
    rates: String,

    /// Seconds for which each rate is kept
    #[arg(long, default_value_t = 10)]
    seconds: u32,

    /// Seconds to wait for memory to settle
    #[arg(long, default_value_t = 15)]
    settle: u64,

    /// Measure the Rust operator alone
    #[arg(long)]
    no_go: bool,

    /// Use the etcd of `cargo xtask assets` in place of a present one built with Go
    #[arg(long)]
    packaged_etcd: bool,

    /// File that gets a line of JSON for each run
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Builds, measures and prints a table.
pub(crate) fn measure_operators(args: &Args) -> Result<()> {
    let assets = assets::ensure_assets()?;
    let etcd = match args.packaged_etcd {
        true => assets.join("etcd"),
        false => {
            needs_go("--packaged-etcd takes the machine's etcd")?;
            assets::current_etcd()?
        }
    };
    let target = target();
    cargo_build(&target, "bench-operator")?;
    cargo_build(&target, "bench-driver")?;
    let manager = target.join("release/manager");
    let mut operators = vec![
        format!("rust={}", manager.display()),
        format!("rust-tuned={RUST_TUNED} {}", manager.display()),
    ];
    if !args.no_go {
        let manager = go_build(&target)?;
        operators.push(format!("go={}", manager.display()));
        operators.push(format!("go-tuned={GO_TUNED} {} --tuned", manager.display()));
    }
    let mut driver = Cmd::program(target.join("release/bench-driver"))
        .env("KUBEBUILDER_ASSETS", assets)
        .env("TEST_ASSET_ETCD", etcd)
        .args(["--objects", &args.objects, "--rates", &args.rates])
        .args(["--cold", &args.cold.to_string(), "--warm", &args.warm.to_string()])
        .args(["--seconds", &args.seconds.to_string()])
        .args(["--settle", &args.settle.to_string()]);
    for operator in &operators {
        driver = driver.args(["--operator", operator]);
    }
    if let Some(json) = &args.json {
        driver = driver.arg("--json").arg(std::path::absolute(json)?);
    }
    driver.run()
}

fn folder() -> PathBuf {
    repo::root().join("testdata/bench")
}

/// Returns the target folder of the operators, which belong to no workspace of this repository.
fn target() -> PathBuf {
    let ours = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    ours.unwrap_or_else(|| repo::root().join("target")).join("bench")
}

fn cargo_build(target: &Path, package: &str) -> Result<()> {
    // One package at a time: built together, the operator would get the features that only the driver needs.
    Cmd::new("cargo build --release --package")
        .arg(package)
        .dir(&folder().join("rust"))
        .env("CARGO_TARGET_DIR", target)
        // The project's own Cargo.toml says which, not this workspace's .cargo/config.toml.
        .env("K8S_OPENAPI_ENABLED_VERSION", "")
        .echo()
        .run()
}

/// Fails where there is no Go, with what to do then.
fn needs_go(otherwise: &str) -> Result<()> {
    if !assets::has_go() {
        bail!("`go` is not on the path: install Go 1.26 or newer; {otherwise}");
    }
    Ok(())
}

fn go_build(target: &Path) -> Result<PathBuf> {
    needs_go("--no-go measures the Rust operator alone")?;
    let binary = target.join("go-manager");
    Cmd::new("go build -trimpath -ldflags '-s -w' -o")
        .arg(&binary)
        .arg(".")
        .dir(&folder().join("go"))
        .env("CGO_ENABLED", "0")
        .echo()
        .run()?;
    Ok(binary)
}
