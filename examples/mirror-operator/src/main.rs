// SPDX-License-Identifier: Apache-2.0

//! Entry point of the manager.

use clap::Parser;
use rbuilder::{Manager, ManagerArgs, Result};

use mirror_operator::controller;

/// Name of the Lease for leader election.
const LEADER_ELECTION_ID: &str = "c8bd7795.example.com";

/// Runs the mirror-operator manager.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let manager = Manager::new(LEADER_ELECTION_ID, args.manager)
        .await?
        .user_agent(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    controller::register(manager).start().await
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_is_valid() {
        super::Args::command().debug_assert();
    }
}
