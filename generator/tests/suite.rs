//! All tests of the generator in one binary; see `xtask/src/tidy/suites.rs` for the reason.

mod support;

mod advice;
mod behind_feature;
mod bombs;
mod cases;
mod constants;
mod container_keys;
mod csv;
mod default_rules;
mod fuzz;
mod keep_going;
mod kube_keys;
mod kubernetes_minor;
mod limits;
mod missing_types;
mod mutations;
mod oracle;
mod ownership;
mod patches;
mod published;
mod rbac;
mod registry;
mod repeated_rules;
mod same_words;
mod schema_functions;
mod serde_agrees;
mod serde_defaults;
mod serde_forms;
mod served_versions;
mod shapes;
mod traps;
mod undecided;
mod values;
mod webhook;
mod yaml;
