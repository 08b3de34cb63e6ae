// SPDX-License-Identifier: Apache-2.0

//! The manager: runs the controllers of this operator.

use clap::Parser;
use rbuilder::{Manager, ManagerArgs, Result};

use foo_operator::controller;

/// Name of the Lease through which replicas agree on the one that acts.
const LEADER_ELECTION_ID: &str = "3cee393e.k8s.io";

/// The manager of foo-operator.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let manager = Manager::new(LEADER_ELECTION_ID, args.manager).await?;
    controller::register(manager).start().await
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Args::command().debug_assert();
    }
}
