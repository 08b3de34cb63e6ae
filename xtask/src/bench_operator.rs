//! `cargo xtask bench-operator`: compares an operator with the same operator in Go (which uses
//! controller-runtime) by what they cost.
//!
//! Both of the operators are in testdata/bench, next to a driver that starts etcd and
//! kube-apiserver, creates the objects, runs one operator after the other and prints a table. All
//! that this task does is build the three programs and a current etcd, and run the driver. Note
//! that this is not a test, so it never fails because of a result.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::sh::Cmd;
use crate::{assets, bench, repo};

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

    /// Measure several replicas that share the objects instead, with and without shards of the API server, beside
    /// single leaders. Takes numbers of replicas, such as `1,2,4`
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["instructions", "json"])]
    replicas: Vec<usize>,

    /// Operators to measure, of `rust`, `rust-tuned`, `go` and `go-tuned`, or with `--replicas`, of `leader`, `shards`,
    /// `labelled` and `go-leader`; all by default
    #[arg(long, value_delimiter = ',')]
    operators: Vec<String>,

    /// Use the etcd of `cargo xtask assets` in place of a present one built with Go
    #[arg(long)]
    packaged_etcd: bool,

    /// Count the instructions of cold starts of the Rust operator instead: they do not depend on the load of the
    /// machine. Needs valgrind
    #[arg(long, conflicts_with_all = ["operators", "json"])]
    instructions: bool,

    /// Folder in which the data of etcd with created and with reconciled objects is kept for further measurements
    #[arg(long)]
    snapshots: Option<PathBuf>,

    /// File that gets a line of JSON for each run
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn measure_operators(args: &Args) -> Result<()> {
    let assets = assets::ensure_assets()?;
    let etcd = match args.packaged_etcd {
        true => assets.join("etcd"),
        false => {
            assets::require_go("; --packaged-etcd takes the machine's etcd")?;
            assets::current_etcd()?
        }
    };
    // The operators are not part of our workspace.
    let target = repo::target_folder().join("bench");
    cargo_build(&target, "bench-operator")?;
    cargo_build(&target, "bench-driver")?;
    let manager = target.join("release/manager");
    let driver = || {
        Cmd::program(target.join("release/bench-driver"))
            .env("KUBEBUILDER_ASSETS", &assets)
            .env("TEST_ASSET_ETCD", &etcd)
    };
    if args.instructions {
        return count_instructions(&args.objects, &manager, driver);
    }
    let go = match args.no_go {
        true => None,
        false => Some(go_build(&target)?),
    };
    let is_fleet = !args.replicas.is_empty();
    let operators = select_operators(&args.operators, is_fleet, &manager, go.as_deref())?;
    let mut driver = driver()
        .args(["--objects", &args.objects, "--rates", &args.rates])
        .args(["--cold", &args.cold.to_string(), "--warm", &args.warm.to_string()])
        .args(["--seconds", &args.seconds.to_string()])
        .args(["--settle", &args.settle.to_string()]);
    for operator in operators {
        driver = driver.args(["--operator", &operator]);
    }
    for replicas in &args.replicas {
        driver = driver.args(["--replicas", &replicas.to_string()]);
    }
    if let Some(folder) = &args.snapshots {
        fs_err::create_dir_all(folder)?;
        driver = driver.arg("--snapshots").arg(std::path::absolute(folder)?);
    }
    if let Some(json) = &args.json {
        driver = driver.arg("--json").arg(std::path::absolute(json)?);
    }
    driver.run()
}

/// Operators: the name, whether we run several replicas of it at once (or a single leader to compare
/// them with), and the command line.
const OPERATORS: [(&str, bool, &str); 8] = [
    ("rust", false, "RUST"),
    // Less freed memory is wasted if all threads share one malloc arena.
    ("rust-tuned", false, "MALLOC_ARENA_MAX=1 RUST"),
    ("go", false, "GO"),
    // Allows the heap to grow by half between two collections, the default is to double.
    ("go-tuned", false, "GOGC=50 GO --tuned"),
    ("leader", true, "RUST --leader-elect NAMESPACE"),
    ("shards", true, "RUST --shards=auto NAMESPACE"),
    ("labelled", true, "RUST --shards=auto --label-owned NAMESPACE"),
    ("go-leader", true, "GOGC=50 GO --tuned --leader-elect NAMESPACE"),
];

/// Returns operators in the format `<name>=<command line>`. All of them are selected if there are no
/// names.
fn select_operators(names: &[String], is_fleet: bool, rust: &Path, go: Option<&Path>) -> Result<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let is_possible = |line: &str| go.is_some() || !words(line).contains(&"GO".to_owned());
    let mut operators = OPERATORS.to_vec();
    operators.retain(|(_, fleet, line)| *fleet == is_fleet && is_possible(line));
    let known: Vec<&str> = operators.iter().map(|(name, ..)| *name).collect();
    for name in names {
        ensure!(
            known.contains(&name.as_str()),
            "no operator `{name}` is measured: write some of `{}`",
            known.join("`, `")
        );
    }
    operators.retain(|(name, ..)| names.is_empty() || names.iter().any(|asked| asked == name));
    let word = |word: String| match word.as_str() {
        "RUST" => rust.display().to_string(),
        "GO" => go.map(|go| go.display().to_string()).unwrap_or_default(),
        "NAMESPACE" => "--leader-election-namespace=default".to_owned(),
        _ => word,
    };
    let line = |line| words(line).into_iter().map(word).collect::<Vec<_>>().join(" ");
    Ok(operators
        .iter()
        .map(|(name, _, command)| format!("{name}={}", line(command)))
        .collect())
}

/// Counts the instructions of a cold start for each number of objects. Also prints the instructions
/// for each additional object, which do not include the cost of starting without any objects.
fn count_instructions(numbers: &str, manager: &Path, driver: impl Fn() -> Cmd) -> Result<()> {
    ensure!(
        Cmd::new("valgrind --version").succeeds(),
        "`valgrind` is not on the path: install it; without `--instructions`, CPU time is measured"
    );
    let folder = tempfile::tempdir()?;
    let mut before: Option<(u64, u64)> = None;
    let mut table = String::from("| objects | instructions | of each further object |\n|---:|---:|---:|\n");
    for number in numbers.split(',') {
        let objects: u64 = number
            .parse()
            .with_context(|| format!("`{number}` is no number of objects"))?;
        let counts = folder.path().join(number);
        let (out, program) = (counts.display(), manager.display());
        let operator = format!("rust={}{out} {program}", bench::CALLGRIND);
        // Ignore the other results. The operator is about fifty times slower under callgrind, so
        // they don't mean anything.
        driver()
            .args(["--cold", "1", "--warm", "0", "--settle", "0"])
            .args(["--objects", number, "--operator", &operator])
            .run()?;
        let total = bench::read_total(&counts)?;
        let further = before.and_then(|(fewer, less)| {
            let objects = objects.checked_sub(fewer).filter(|more| *more > 0)?;
            Some((total.saturating_sub(less) / objects).to_string())
        });
        writeln!(table, "| {objects} | {total} | {} |", further.unwrap_or_default())?;
        before = Some((objects, total));
    }
    print!("{table}");
    Ok(())
}

fn folder() -> PathBuf {
    repo::root().join("testdata/bench")
}

fn cargo_build(target: &Path, package: &str) -> Result<()> {
    // Don't build both packages at once. If we did, the operator would be compiled with features
    // that only the driver needs.
    Cmd::new("cargo build --release --package")
        .arg(package)
        .dir(&folder().join("rust"))
        .env("CARGO_TARGET_DIR", target)
        // The version should be determined by the operator's Cargo.toml, and not by
        // .cargo/config.toml of this workspace.
        .env(repo::KUBERNETES, "")
        .echo()
        .run()
}

fn go_build(target: &Path) -> Result<PathBuf> {
    assets::require_go("; --no-go measures the Rust operator alone")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_operators_by_name() {
        let select = |names: &[&str], is_fleet| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            select_operators(&names, is_fleet, Path::new("a"), Some(Path::new("b")))
        };
        assert_eq!(select(&[], true).unwrap().len(), 4);
        assert_eq!(
            select(&["go-tuned", "rust"], false).unwrap(),
            ["rust=a", "go-tuned=GOGC=50 b --tuned"]
        );
        let error = select(&["leader"], false).unwrap_err().to_string();
        assert!(error.starts_with("no operator `leader` is measured"), "{error}");
    }
}
