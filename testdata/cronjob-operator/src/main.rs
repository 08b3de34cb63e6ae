// SPDX-License-Identifier: Apache-2.0

//! The manager: runs the controllers of this operator, and serves its webhooks.

use clap::{ArgAction, Parser};
use rbuilder::{Manager, ManagerArgs, Result};

use cronjob_operator::{controller, webhook};

/// Name of the Lease through which replicas agree on the one that acts.
const LEADER_ELECTION_ID: &str = "33948157.tutorial.kubebuilder.io";

/// The manager of cronjob-operator.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,

    /// Serve webhooks; without, the manager runs on a machine that the API server does not reach.
    #[arg(long, env, default_value = "true", action = ArgAction::Set)]
    enable_webhooks: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut manager = Manager::new(LEADER_ELECTION_ID, args.manager).await?;
    if args.enable_webhooks {
        manager = webhook::register(manager);
    }
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
