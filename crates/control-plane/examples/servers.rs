//! Runs etcd and kube-apiserver until standard input is closed. Prints the path of a kubeconfig.
//!
//! With the argument `nodes`, runs the controllers of Kubernetes and simulated nodes as well. All other
//! arguments are passed to kube-apiserver.
//!
//! ```sh
//! KUBEBUILDER_ASSETS=$(cargo xtask assets) cargo run --package rbuilder-control-plane --example servers
//! ```

// The output of an example is for the person who runs it.
#![allow(clippy::disallowed_macros)]

use std::error::Error;

use rbuilder_control_plane::{Assets, Cancel, ControlPlane, Settings};

/// The number of nodes, if there are any.
const NODES: usize = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let (words, flags): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "nodes");
    let settings = Settings {
        apiserver_args: flags,
        nodes: if words.is_empty() { 0 } else { NODES },
        ..Settings::from_env()?
    };
    let control_plane = ControlPlane::start(&Assets::find(None)?, &settings, &Cancel::default())?;
    println!("{}", control_plane.kubeconfig_path().display());
    // Block until standard input is closed; any input is ignored.
    let _ = std::io::stdin().lines().count();
    Ok(control_plane.stop()?)
}
