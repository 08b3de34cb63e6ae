//! Flags of `simulate`.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;

/// Flags of `simulate`.
#[derive(Clone, Debug, Args)]
pub struct SimulateFlags {
    /// Run only tests whose names contain this text
    #[arg(value_name = "TEST")]
    pub test: Option<String>,
    /// Number of histories of each simulation
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "1000",
        conflicts_with = "seconds"
    )]
    pub histories: NonZeroU64,
    /// Seconds that each simulation takes, in place of a number of histories
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<NonZeroU64>,
    /// HTML page to write, relative to the project directory
    #[arg(short, long, value_name = "FILE", default_value = "target/simulation.html")]
    pub file: String,
    /// Make the page from the report files in this directory, without running tests
    #[arg(long, value_name = "DIR", conflicts_with_all = ["test", "histories", "seconds", "arguments"])]
    pub from: Option<PathBuf>,
    /// Replay declarations on etcd and kube-apiserver instead, and compare the states
    #[arg(long, conflicts_with_all = ["histories", "seconds", "file", "from"])]
    pub on_server: bool,
    /// Arguments of `cargo test`, such as `--release`
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}
