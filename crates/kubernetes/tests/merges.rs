//! Compares JSON merge patches with the results of kube-apiserver.
//!
//! `cargo xtask kubernetes` records the results.

// The table is read from disk.
#![allow(clippy::disallowed_methods)]

use rbuilder_kubernetes::patch::merge_json;
use serde_json::Value;

#[test]
fn patches_are_merged_like_in_the_server() {
    let table = include_str!("merges.jsonl");
    assert!(table.lines().count() > 10);
    for line in table.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut value = case["value"].clone();
        merge_json(&mut value, &case["patch"]);
        assert_eq!(value, case["answer"], "{line}");
    }
}
