//! All tests of the command in one program: see `xtask/src/tidy/suites.rs`. `cost`,
//! `crash`, `envtest` and `migrate_storage` are separate programs.

#[path = "support/hand_edit.rs"]
mod hand_edit;
#[path = "support/older.rs"]
mod older;
#[path = "../../crates/generator/tests/fuzz/random.rs"]
#[allow(dead_code)] // the generator's own tests use the rest
mod random;
mod support;

mod adopt;
mod adopt_road;
mod adopt_roles;
mod adopted;
mod agents;
mod bad_input;
mod bundle;
mod bundle_base;
mod cluster;
mod codes;
mod commands;
mod delete;
mod diff;
mod docs;
mod doctor;
mod edit;
mod edits;
mod existing;
mod explain;
mod foreign_kinds;
mod former;
mod from_crd;
mod from_kubebuilder;
mod fuzz_trees;
mod grafana;
mod hand_edits;
mod helm;
mod hostile;
mod hostile_names;
mod image;
mod import;
mod import_published;
mod import_rendered;
mod import_rows;
mod keep_going;
mod kustomize;
mod library;
mod line_ends;
mod member;
mod mutations;
mod object_names;
mod paths;
mod projects;
mod prune;
mod readme;
mod registry;
mod rename;
mod selection;
mod sequences;
mod simulate;
mod stored;
mod types;
mod update;
mod validate;
mod validate_fix;
mod versions;
