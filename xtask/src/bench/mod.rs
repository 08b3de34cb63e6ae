//! `cargo xtask bench`: measures how expensive `rbuilder manifests` is for different numbers of
//! kinds, and compares it with controller-gen on the same API.
//!
//! We generate projects and run the complete command, so this includes reading, parsing,
//! generating, printing, comparing with the files on disk, and writing files that are missing.
//! Instructions are counted with valgrind since they do not depend on how busy the machine is. The
//! CPU time and memory come from the kernel and include child processes. There are several runs, of
//! which we use the lowest value. Note that this is not a test, so it never fails because of a
//! result.

mod compare;
mod cost;
mod go;
mod rust;
mod simulate;
mod validate;

use std::path::Path;

use anyhow::{Context, Result};

use crate::repo;
use crate::sh::Cmd;
use cost::{Cost, run_measured};

const FIELDS: usize = 100;

/// A row of shapes.yaml: the type and the marker of a field in Rust, its type and markers in Go.
type Shape = (String, String, String, Vec<String>);

fn shapes() -> impl Iterator<Item = Shape> {
    let rows: Vec<Shape> =
        serde_saphyr::from_str(include_str!("shapes.yaml")).expect("shapes.yaml has rows of four columns");
    rows.into_iter().cycle().take(FIELDS)
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of kinds
    #[arg(long, value_delimiter = ',', default_value = "1,10,50,200")]
    kinds: Vec<usize>,

    /// Runs of each command; the lowest figures count
    #[arg(long, default_value_t = 7)]
    runs: usize,

    /// Run controller-gen on the same API in Go, alternately; needs `go`
    #[arg(long)]
    compare: bool,

    /// Measure `rbuilder validate` of this many objects instead, beside kubectl-validate and a dry
    /// run on kube-apiserver; needs `go`
    #[arg(long, value_name = "COUNT")]
    validate: Option<usize>,

    /// Measure the simulation of the Memcached example instead, beside a start of etcd and kube-apiserver
    #[arg(long, conflicts_with_all = ["compare", "validate", "bin", "keep"])]
    simulate: bool,

    /// Measure the `rbuilder` in this folder instead of building one
    #[arg(long)]
    bin: Option<std::path::PathBuf>,

    /// Leave the projects in this folder
    #[arg(long)]
    keep: Option<std::path::PathBuf>,
}

pub(crate) fn measure_manifests(args: &Args) -> Result<()> {
    if args.simulate {
        return simulate::measure(args.runs);
    }
    let bin = match &args.bin {
        Some(folder) => std::path::absolute(folder)?,
        None => repo::build_rbuilder_dist()?,
    }
    .join("rbuilder");
    let temporary = tempfile::Builder::new().prefix("rbuilder-bench-").tempdir()?;
    let folder = match &args.keep {
        Some(folder) => std::path::absolute(folder)?,
        None => temporary.path().to_owned(),
    };
    if let Some(count) = args.validate {
        return validate::measure(&bin, &folder, count, args);
    }
    if args.compare {
        return compare::measure_both(&bin, &folder, args);
    }
    alone(&bin, &folder, args)
}

pub(crate) fn check_projects() -> Result<()> {
    let bin = repo::build_rbuilder()?.join("rbuilder");
    let folder = tempfile::Builder::new().prefix("rbuilder-bench-").tempdir()?;
    let (kinds, cron_job) = (folder.path().join("kinds"), folder.path().join("cronjob"));
    rust::write_kinds(&kinds, 1)?;
    rust::write_cron_job(&cron_job)?;
    for project in [&kinds, &cron_job] {
        manifests(&bin, project).run()?;
    }
    Ok(())
}

/// Measures the command for manifests that are up to date on disk.
fn alone(bin: &Path, folder: &Path, args: &Args) -> Result<()> {
    let counts = Cmd::new("valgrind --version").succeeds();
    if !counts {
        println!("valgrind is not on the path: instructions are not counted");
    }
    println!(
        "{:>6} {:>12} {:>12} {:>12} {:>16} {:>16}",
        "kinds", "source", "CPU", "peak memory", "instructions", "per kind"
    );
    for &kinds in &args.kinds {
        let project = folder.join(format!("rust-{kinds}"));
        let bytes = rust::write_kinds(&project, kinds)?;
        run_measured(manifests(bin, &project))?;
        let mut cost = Cost::default();
        for _ in 0..args.runs {
            cost.add(manifests(bin, &project))?;
        }
        let instructions = match counts {
            true => Some(count_instructions(|valgrind| {
                valgrind.arg(bin).arg("manifests").dir(&project)
            })?),
            false => None,
        };
        let shown = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
        let per_kind = instructions.map(|count| count / kinds.max(1) as u64);
        println!(
            "{kinds:>6} {:>9} kB {:>9.1} ms {:>9.1} MB {:>16} {:>16}",
            bytes / 1000,
            cost.milliseconds(),
            cost.megabytes(),
            shown(instructions),
            shown(per_kind)
        );
    }
    Ok(())
}

fn manifests(bin: &Path, folder: &Path) -> Cmd {
    Cmd::program(bin).arg("manifests").dir(folder)
}

/// Runs a program with callgrind. `run` adds the program to a command.
fn count_instructions(run: impl FnOnce(Cmd) -> Cmd) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("counts");
    run(Cmd::new(&format!("{CALLGRIND}{}", out.display()))).read()?;
    read_total(&out)
}

/// The path of the output comes after this.
pub(crate) const CALLGRIND: &str = "valgrind --quiet --tool=callgrind --callgrind-out-file=";

/// Reads the output of callgrind and returns the total number of instructions.
pub(crate) fn read_total(out: &Path) -> Result<u64> {
    total(&fs_err::read_to_string(out)?).context("callgrind printed no totals")
}

fn total(counts: &str) -> Option<u64> {
    let line = counts
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")))?;
    line.split_whitespace().next()?.parse().ok()
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let parts = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|part| String::from_utf8_lossy(part).into_owned());
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_callgrind_totals() {
        assert_eq!(total("events: Ir\nfn=x\n1 2\ntotals: 123456\n"), Some(123_456));
        assert_eq!(total("events: Ir\nsummary: 77\n"), Some(77));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn groups_digits() {
        let check = |count: u64, expected: &str| assert_eq!(grouped(count), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1 000");
        check(12_345_678, "12 345 678");
    }

    #[test]
    fn projects_have_requested_number_of_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = rust::write_kinds(&folder.path().join("rust"), 3).unwrap();
        assert!(bytes > 3 * FIELDS * 50, "{bytes}");
        let lib = fs_err::read_to_string(folder.path().join("rust/src/lib.rs")).unwrap();
        assert_eq!(lib.matches("pub mod").count(), 3);
        go::write_kinds(&folder.path().join("go"), 3).unwrap();
        for kind in 0..3 {
            let types =
                fs_err::read_to_string(folder.path().join(format!("go/api/v1/kind{kind}_types.go"))).unwrap();
            assert_eq!(types.matches("json:\"fieldNumber").count(), FIELDS);
        }
    }
}
