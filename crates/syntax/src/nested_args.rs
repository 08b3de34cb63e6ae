//! Nested argument lists, for the reference.

use crate::custom_resource::{describe_column_args, describe_conversion_args, describe_scale_args};
use crate::marker::{describe_cel_args, describe_external_docs_args};
use crate::table::ArgDoc;
use crate::webhook::{describe_condition_args, describe_requirement_args, describe_selector_args};

/// An argument with nested arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedArgs {
    /// The form in source, e.g. `scale(…)`.
    pub form: &'static str,
    /// The arguments in the parentheses.
    pub args: Vec<ArgDoc>,
}

/// Returns the nested lists of markers on fields and types.
pub fn nested_marker_args() -> Vec<NestedArgs> {
    vec![
        nested("cel(…)", describe_cel_args()),
        nested("external_docs(…)", describe_external_docs_args()),
    ]
}

/// Returns the nested lists of container keys.
pub fn nested_key_args() -> Vec<NestedArgs> {
    vec![
        nested("printcolumn(…)", describe_column_args()),
        nested("scale(…)", describe_scale_args()),
        nested("conversion(…)", describe_conversion_args()),
    ]
}

/// Returns the nested lists of `#[webhook(…)]`.
pub fn nested_webhook_args() -> Vec<NestedArgs> {
    vec![
        nested("match_condition(…)", describe_condition_args()),
        nested("namespace_selector(…)", describe_selector_args()),
        nested("match_expression(…)", describe_requirement_args()),
    ]
}

fn nested(form: &'static str, args: Vec<ArgDoc>) -> NestedArgs {
    NestedArgs { form, args }
}
