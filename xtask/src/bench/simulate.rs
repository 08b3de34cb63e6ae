//! Measures the simulation of the Memcached example. We count how many instructions each history
//! takes, and also run the test like every project does, in comparison with the time it takes to
//! start etcd and kube-apiserver.
//!
//! The test is a debug build as in `cargo test`. A test with a real API server can't be faster than
//! the start of the servers.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cost::Cost;
use super::{count_instructions, grouped};
use crate::control_plane::ControlPlane;
use crate::sh::Cmd;
use crate::{assets, repo};

const EXAMPLE: &str = "examples/memcached-operator";
/// The file that contains the test, and the test's name.
const TEST: [&str; 2] = ["memcached", "the_sample_is_reconciled_under_faults"];
/// We run the test with two different numbers of histories and compare the instructions. This
/// eliminates the instructions needed for the start.
const FEW: u64 = 20;
const MANY: u64 = 60;

/// Measures both the simulation and the servers, and prints the results.
pub(super) fn measure(runs: usize) -> Result<()> {
    let folder = repo::root().join(EXAMPLE);
    let [file, name] = TEST;
    let program = repo::build_project_test(&folder, file)?;
    let test = |command: Cmd| command.args([name, "--exact"]).dir(&folder);
    match Cmd::new("valgrind --version").succeeds() {
        true => {
            let [few, many] = [FEW, MANY].map(|histories| {
                let limit = histories.to_string();
                let run = |valgrind: Cmd| test(valgrind.arg(&program));
                count_instructions(|it| run(it).env("RBUILDER_SIMULATION_HISTORIES", limit))
            });
            let each = many?.saturating_sub(few?) / (MANY - FEW);
            println!("a history              {:>16} instructions", grouped(each));
        }
        false => println!("valgrind is not on the path: instructions are not counted"),
    }
    let mut cost = Cost::default();
    for _ in 0..runs {
        cost.add(test(Cmd::program(&program)))?;
    }
    let servers = measure_start(runs)?.as_secs_f64() * 1000.0;
    let ours = cost.milliseconds();
    println!("the test               {ours:>16.0} ms of CPU time");
    println!(
        "a start of the servers {servers:>16.0} ms of CPU time {:.1} x",
        servers / ours
    );
    Ok(())
}

/// Returns the CPU time that etcd and kube-apiserver need for getting ready (lowest value).
fn measure_start(runs: usize) -> Result<Duration> {
    let assets = assets::ensure_assets()?;
    let starts = (0..runs).map(|_| ControlPlane::start_servers(&assets)?.cpu_time());
    let times: Vec<Duration> = starts.collect::<Result<_>>()?;
    times.into_iter().min().context("`--runs` is 0")
}
