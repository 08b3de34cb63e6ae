//! `cargo xtask bench`: what `rbuilder manifests` costs, and how the cost grows with the number of kinds.
//!
//! The whole command is measured, on projects made here: reading, parsing, generating, printing, comparing with what is
//! on disk. Instructions are counted with valgrind, for they do not depend on what else the machine does; times are the
//! best of several runs and serve to see the order of magnitude.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::repo;
use crate::sh::Cmd;

const FIELDS: usize = 100;
const RUNS: usize = 10;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of kinds
    #[arg(long, value_delimiter = ',', default_value = "1,10,200")]
    kinds: Vec<usize>,
}

/// Measures and prints a table.
pub(crate) fn run(args: &Args) -> Result<()> {
    let bin = repo::build_rbuilder_release()?;
    let counts = Cmd::new("valgrind").arg("--version").succeeds();
    if !counts {
        println!("valgrind is not on the path: instructions are not counted");
    }
    println!(
        "{:>6} {:>12} {:>12} {:>16} {:>18}",
        "kinds", "source", "best time", "instructions", "per kind"
    );
    for &kinds in &args.kinds {
        let folder = tempfile::Builder::new().prefix("rbuilder-bench-").tempdir()?;
        let bytes = write_project(folder.path(), kinds)?;
        manifests(&bin, folder.path()).read()?;
        let best = best_time(&bin, folder.path())?;
        let instructions = if counts {
            Some(count_instructions(&bin, folder.path())?)
        } else {
            None
        };
        let shown = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
        let per_kind = instructions.map(|count| count / kinds.max(1) as u64);
        println!(
            "{kinds:>6} {:>9} kB {:>9.1} ms {:>16} {:>18}",
            bytes / 1000,
            best.as_secs_f64() * 1000.0,
            shown(instructions),
            shown(per_kind)
        );
    }
    Ok(())
}

fn manifests(bin: &Path, folder: &Path) -> Cmd {
    Cmd::new(&bin.join("rbuilder").to_string_lossy())
        .arg("manifests")
        .dir(folder)
}

fn best_time(bin: &Path, folder: &Path) -> Result<Duration> {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        manifests(bin, folder).read()?;
        Ok(start.elapsed())
    });
    times
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .min()
        .context("nothing was measured")
}

fn count_instructions(bin: &Path, folder: &Path) -> Result<u64> {
    let out = folder.join("counts");
    Cmd::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(bin.join("rbuilder"))
        .arg("manifests")
        .dir(folder)
        .read()?;
    total(&fs_err::read_to_string(&out)?).context("callgrind printed no totals")
}

/// The sum in a file that callgrind wrote.
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

/// Writes a package with `kinds` kinds of [`FIELDS`] fields each; returns the size of its source.
fn write_project(folder: &Path, kinds: usize) -> Result<usize> {
    fs_err::create_dir_all(folder.join("src"))?;
    fs_err::write(
        folder.join("Cargo.toml"),
        "[package]\nname = \"bench\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    )?;
    let mut bytes = 0;
    let mut modules = String::from("//! A project of the size that was asked for.\n");
    for kind in 0..kinds {
        writeln!(modules, "pub mod kind{kind};")?;
        let source = kind_source(kind)?;
        bytes += source.len();
        fs_err::write(folder.join(format!("src/kind{kind}.rs")), source)?;
    }
    fs_err::write(folder.join("src/lib.rs"), &modules)?;
    Ok(bytes + modules.len())
}

/// Fields of the kinds that APIs have: scalars with bounds, lists, maps, enums, nested structs, optional ones.
const SHAPES: &[(&str, &str)] = &[
    ("validation(min_length = 1, max_length = 253)", "String"),
    ("validation(minimum = 0, maximum = 100)", "i32"),
    ("optional", "Option<bool>"),
    ("validation(max_items = 16)", "Vec<String>"),
    ("optional", "Option<BTreeMap<String, String>>"),
    ("validation(pattern = \"^[a-z]+$\")", "String"),
    ("required", "Mode"),
    ("optional", "Option<Part>"),
    ("list_type = \"map\", list_map_keys = [\"name\"]", "Vec<Part>"),
    ("optional", "Option<i64>"),
];

fn kind_source(kind: usize) -> Result<String> {
    let mut text = format!(
        r#"//! Kind {kind}.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::{{CrdSchema, rbac}};
use serde::{{Deserialize, Serialize}};

/// A mode.
#[derive(CrdSchema, Clone, Debug, Serialize, Deserialize)]
pub enum Mode {{
    /// Nothing is deleted.
    Keep,
    /// Everything is deleted.
    Delete,
}}

/// A part of a kind.
#[derive(CrdSchema, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {{
    /// The part's name.
    pub name: String,
    /// How many of them.
    #[crd(validation(minimum = 1))]
    pub how_many: i32,
}}

/// What kind {kind} should be.
#[derive(CustomResource, CrdSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "bench.example.com", version = "v1", kind = "Kind{kind}", plural = "kind{kind}s", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct Kind{kind}Spec {{
"#
    );
    for field in 0..FIELDS {
        let (marker, type_) = SHAPES[field % SHAPES.len()];
        writeln!(
            text,
            "    /// Field {field} says one more thing about the object, in a sentence of usual length.\n    \
             #[crd({marker})]\n    pub field_number_{field}: {type_},"
        )?;
    }
    text.push_str("}\n\n");
    writeln!(
        text,
        "/// Brings the cluster to what the object asks for.\n\
         #[rbac(groups = \"bench.example.com\", resources = \"kind{kind}s\", verbs = \"get;list;watch;patch\")]\n\
         pub async fn reconcile() {{}}"
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_total_that_callgrind_writes() {
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
    fn a_project_has_as_many_modules_as_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = write_project(folder.path(), 3).unwrap();
        assert!(bytes > 3 * FIELDS * 50, "{bytes}");
        let lib = fs_err::read_to_string(folder.path().join("src/lib.rs")).unwrap();
        assert_eq!(lib.matches("pub mod").count(), 3);
    }
}
