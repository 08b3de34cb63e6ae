// SPDX-License-Identifier: Apache-2.0

//! The manager: runs the controllers of this operator, and answers its webhooks.

use clap::Parser;
use rbuilder::{Manager, ManagerArgs, Result};

use deploy_image_operator::{controller, webhook};

/// Name of the Lease through which replicas agree on the one that acts.
const LEADER_ELECTION_ID: &str = "96cd7c61.example.com";

/// The manager of deploy-image-operator.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    manager: ManagerArgs,

    /// The image that every memcached instance runs, such as `memcached:1.6.26-alpine3.19`.
    #[arg(long, env, value_name = "IMAGE")]
    memcached_image: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let manager = Manager::new(LEADER_ELECTION_ID, args.manager).await?;
    let manager = controller::register(manager, args.memcached_image);
    webhook::register(manager).start().await
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Args::command().debug_assert();
    }
}
