//! CEL as kube-apiserver checks it: the rules of CRDs and the match conditions of webhooks.
//!
//! An expression is parsed, its macros are expanded, every node gets a type, and its cost is estimated; see the modules.
//! The language, the functions and the units of cost are those of kube-apiserver. Rules run on one sort of value only: the
//! constants that a schema has as defaults (`evaluate`).
//!
//! The API server decides, and this crate predicts its decision: what it cannot judge (an expression of uncommon size) is a warning, and every error is one that the API server reports too.
//! It knows schemas, and neither Rust nor files: see [`RulePlace`].

mod admission;
mod ast;
mod bounds;
mod check;
mod cost;
mod defaults;
mod evaluate;
mod field_path;
mod functions;
mod lexer;
mod literals;
mod macros;
mod mismatch;
mod nodes;
mod parser;
mod rules;
mod types;
mod unify;

use std::ops::Range;
use std::sync::Arc;

pub use admission::check_match_condition;
pub use defaults::check_defaults;
pub use rules::{RulePlace, check_rules};

use types::{Decl, Type};

/// A diagnostic about bytes of an expression.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Range<usize>>;

/// The maximum cost of one rule, times the number of its runs for one object.
pub(crate) const RULE_BUDGET: u64 = 10_000_000;
/// The maximum cost of all rules of a CRD together.
pub(crate) const CRD_BUDGET: u64 = 100_000_000;

/// The type that an expression must evaluate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultType {
    Bool,
    String,
}

/// A checked expression.
struct Examined {
    diagnostics: Vec<Diagnostic>,
    /// The upper bound of the cost of one run; `None` where the expression is wrong or not understood.
    cost: Option<u64>,
    /// The variables it uses.
    used: Vec<String>,
}

/// Parses and checks an expression, and estimates its cost for values declared by `decl`.
fn examine_expression(
    text: &str,
    variables: &[(&str, Type)],
    expected: ResultType,
    decl: Option<&Arc<Decl>>,
) -> Examined {
    let mut parsed = match parser::parse_expression(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            return Examined {
                diagnostics: vec![name_place(error, text)],
                cost: None,
                used: Vec::new(),
            };
        }
    };
    let mut checked = check::check_expression(&mut parsed.root, parsed.nodes, variables);
    let mut diagnostics = std::mem::take(&mut checked.diagnostics);
    let expected = match expected {
        ResultType::Bool => Type::Bool,
        ResultType::String => Type::String,
    };
    let is_wrong = checked.result == Type::Error || diagnostics.iter().any(Diagnostic::is_error);
    if !is_wrong && checked.result != expected {
        let message = format!(
            "the expression must evaluate to {}, found {}",
            expected.name(),
            checked.result.name()
        );
        diagnostics.push(Diagnostic::error(parsed.root.at.clone(), message));
    }
    // The cost is estimated with warnings too: a deprecated name of a field changes nothing.
    let is_understood = checked.result != Type::Error && !diagnostics.iter().any(Diagnostic::is_error);
    let cost = match decl {
        Some(decl) if is_understood => Some(cost::estimate_cost(&parsed.root, &checked, decl)),
        _ => None,
    };
    Examined {
        diagnostics,
        cost,
        used: checked.used,
    }
}

/// Adds to a syntax error where it is, as messages are shown at the rule and not at a byte of it.
fn name_place(mut error: Diagnostic, text: &str) -> Diagnostic {
    if error.is_error() {
        let place = match text.get(error.place.clone()).unwrap_or_default() {
            "" => "the end of the expression".to_owned(),
            shown => format!("`{}`", abbreviate(shown)),
        };
        error.message = format!("syntax error at {place}: {}", error.message);
    }
    error
}

/// Shortens an expression to what a message can hold.
fn abbreviate(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
