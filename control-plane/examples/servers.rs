//! Runs etcd and kube-apiserver until standard input is closed. Prints the path of a kubeconfig.
//!
//! ```sh
//! KUBEBUILDER_ASSETS=$(cargo xtask assets) cargo run --package rbuilder-control-plane --example servers
//! ```

// The output of an example is for the person who runs it.
#![allow(clippy::disallowed_macros)]

use std::error::Error;

use rbuilder_control_plane::{Assets, Cancel, ControlPlane, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let control_plane =
        ControlPlane::start(&Assets::find(None)?, &Settings::from_env()?, &Cancel::default())?;
    println!("{}", control_plane.kubeconfig_path().display());
    // Block until standard input is closed; any input is ignored.
    let _ = std::io::stdin().lines().count();
    Ok(control_plane.stop()?)
}
