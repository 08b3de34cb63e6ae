//! Links the command at a fixed address on Linux, as Go links its programs, and without symbols in a
//! release.
//!
//! A position-independent executable of this size has some 120,000 pointers that the loader relocates
//! at each start, in 350 pages that it copies for that. The stack, the heap and shared libraries stay
//! at random addresses.
//!
//! Symbols are a third of the file. `strip = true` in the profile does not remove them: Cargo ignores
//! it for a package that sets its own `opt-level`. A build with debug information keeps them.

#![allow(clippy::disallowed_macros)] // a build script prints

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // Statically linked programs start differently.
    let is_static = target("FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if target("OS") == "linux" && is("PROFILE", "release") && is("DEBUG", "false") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
