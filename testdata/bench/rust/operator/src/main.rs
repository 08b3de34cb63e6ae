// SPDX-License-Identifier: Apache-2.0

//! The manager, which runs the measured controller.

use std::path::PathBuf;
use std::sync::Arc;

use bench_operator::controller;
use bench_operator::latencies::Latencies;
use clap::Parser;
use rbuilder::{Manager, ManagerArgs, Result};

/// The operator that is measured.
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
    /// Label owned objects with the shard of their owner.
    #[arg(long)]
    label_owned: bool,
    /// File to write latencies to at the end.
    #[arg(long)]
    latencies: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let latencies = Arc::new(Latencies::default());
    let controller = controller::controller(Arc::clone(&latencies));
    let controller = match args.label_owned {
        true => controller.label_owned(),
        false => controller,
    };
    Manager::new("5d3f1a2b.bench.example.com", args.manager)
        .await?
        .controller(controller)
        .start()
        .await?;
    if let Some(path) = args.latencies {
        latencies.write(&path)?;
    }
    Ok(())
}
