//! Parses Rust source into a model of types and markers.
//!
//! The derive and the static generator both call this crate, with one item at a time, so that they
//! accept the same items and report the same errors. Nothing in here resolves a path to another
//! item or opens a file. Checks that need a second item are in `rbuilder-generator`.

mod allow;
mod args;
mod client_config;
mod conditions;
mod csv;
mod custom_resource;
mod diagnostic;
mod docs;
mod item;
mod json_path;
mod kubebuilder;
pub mod kubernetes;
mod mark;
pub mod marker;
mod model;
pub mod names;
mod nested_args;
mod printer_column;
mod rbac;
mod serde_attrs;
mod session;
mod table;
mod versioned;
mod webhook;
mod words;

use rbuilder_diagnostic::suggest;
use rbuilder_reader::Attribute;

use crate::json_path::{Step, parse_json_path};

pub use allow::{Allow, check_code, codes};
pub use conditions::check_conditions;
pub use csv::{CSV_FIELD_ARGS, CSV_KIND_ARGS};
pub use custom_resource::{CRD_KEYS, ContainerKey, KUBE_KEYS};
pub use diagnostic::{Diagnostic, Diagnostics, describe_malformed};
pub use item::parse_type;
pub use kubebuilder::{Commented, SchemaSource, warn_of_go_marker};
pub use kubernetes::resources;
pub use mark::{MarkKind, lex_file};
pub use marker::pattern_problem;
pub use model::{
    AbsentField, AbsentValue, Conversion, CustomResource, DefaultSource, FieldValue, MarkerSpan, OneWay,
    PrintColumn, RbacRule, Scale, SchemaFunction, SchemaMode, SelectableField, TrackedStatus, Type,
};
pub use nested_args::{NestedArgs, nested_key_args, nested_marker_args, nested_webhook_args};
pub use printer_column::check_printer_columns;
pub use rbac::{
    RBAC, RBAC_ARGS, RBAC_URL_VERBS, RBAC_VERBS, RbacArg, parse_rbac, parse_rbac_attribute, rbac_attributes,
};
pub use session::{Session, SlotType};
pub use table::{ArgDoc, ArgRow};
pub use versioned::{ModuleVersion, VersionedModule, read_versioned_item, read_versioned_module};
pub use webhook::{
    LabelSelector, MatchCondition, Requirement, WEBHOOK, WEBHOOK_ARGS, Webhook, WebhookArg, WebhookKind,
    misplaced_webhook, parse_webhook, parse_webhook_attribute, webhook_attributes,
};

/// Returns the path in `#[crd(crate = "…")]`, which the emitted code uses for rbuilder instead of
/// `::rbuilder`.
///
/// Must be called before the markers of the item are parsed, because that skips `crate`.
pub fn crate_path(attrs: &[Attribute<'_>], session: &mut Session) -> Option<String> {
    for attr in attrs.iter().filter(|attr| attr.is("crd")) {
        let Some(arg) = attr.args().list.iter().find(|arg| arg.name == "crate") else {
            continue;
        };
        let text = arg.literal().and_then(|literal| literal.value.as_str());
        let path = text
            .filter(|path| rbuilder_reader::is_path(path))
            .map(str::to_owned);
        if path.is_none() {
            session.error_help(
                attr.span(),
                "expected a path for `crate`",
                "write `#[crd(crate = \"my_crate::rbuilder\")]`",
            );
        }
        return path;
    }
    None
}
