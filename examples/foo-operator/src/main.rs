// SPDX-License-Identifier: Apache-2.0

//! Entry point of the manager.

use clap::Parser;
use rbuilder::{Manager, ManagerArgs, Result};

use foo_operator::controller;

/// Name of the Lease for leader election.
const LEADER_ELECTION_ID: &str = "3cee393e.k8s.io";

/// Runs the foo-operator manager.
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
    register(manager).start().await
}

/// Adds all controllers and webhooks.
fn register(manager: Manager) -> Manager {
    controller::register(manager)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rbuilder::fake::ApiServer;
    use rbuilder::testing::assert_registered;
    use rbuilder::{Manager, ManagerArgs};

    #[test]
    fn command_line_is_valid() {
        super::Args::command().debug_assert();
    }

    #[tokio::test]
    async fn controllers_and_webhooks_are_registered() {
        let client = ApiServer::new().client();
        let manager = Manager::with_client("test", client, ManagerArgs::for_tests());
        assert_registered(&super::register(manager));
    }
}
