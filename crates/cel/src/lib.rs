//! Checks CEL expressions like kube-apiserver: validation rules in CRDs, and match conditions of
//! webhooks.
//!
//! Expressions are parsed, macro-expanded, type-checked, and their cost is estimated. The language,
//! the functions and the cost units are the same as in kube-apiserver. Rules are run on schema
//! defaults (see `defaults`) and on objects ([`RuleSet`]).
//!
//! The checks predict the API server's result: every error is one that the API server reports as
//! well. Expressions that are too large to check only cause a warning. Functions are those of the
//! newest Kubernetes minor version known to rbuilder; all others are errors.
//!
//! | step | module | follows |
//! |---|---|---|
//! | tokens, tree, macros | `lexer`, `parser`, `macros`, `ast` | the language definition |
//! | a schema as types with sizes | `types` | `apiserver/pkg/cel/common/schemas.go` |
//! | functions and their signatures | `functions` | `apiserver/pkg/cel/environment/base.go` |
//! | types of nodes | `check`, `unify`, `literals`, `mismatch` | cel-go's `checker/checker.go` |
//! | cost of one run | `cost` | cel-go's `checker/cost.go`, `apiserver/pkg/cel/library/cost.go` |
//! | all rules of a schema: number of runs, budgets | `rules`, `bounds`, `field_path` | `apiextensions/validation/validation.go` |
//! | the rules of a value in an object: messages, budgets | `rule_set` | `apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go` |
//! | values and functions at run time, with their cost | `evaluate` | cel-go's `interpreter/` and `ext/`, `apiserver/pkg/cel/{common,library}` |
//! | rules on defaults | `defaults` | `apiextensions-apiserver/pkg/apiserver/schema/defaulting` |
//! | what a rule demands and mentions, without running it | `outline` | |
//! | whether a rule follows from others, and from what is known of values | `implied` | |
//! | match conditions of webhooks | `admission` | `apiserver/pkg/admission/plugin/cel` |
//!
//! `tests/recorded.jsonl` contains rules with the results and costs of kube-apiserver's own code,
//! recorded by `cargo xtask cel` and compared in the unit tests. To add a function, add it to
//! `functions` and `cost::price`, and add rules that call it to this file.
//! `tests/evaluated/cases.json` contains tables of expressions, and `recorded.jsonl` next to it
//! contains their values according to a real API server; a new function also belongs in `evaluate`
//! and these tables.
//!
//! Not compiled into release builds of operators.
//!
//! The crate knows about schemas, but neither Rust nor files: see [`RulePlace`].

mod admission;
mod ast;
mod bounds;
mod check;
mod cost;
mod defaults;
mod evaluate;
mod field_path;
mod functions;
mod implied;
mod lexer;
mod literals;
mod macros;
mod mismatch;
mod nodes;
mod outline;
mod parser;
mod rule_set;
mod rules;
mod types;
mod unify;

use std::ops::Range;
use std::sync::Arc;

pub use admission::{MatchCondition, check_match_condition};
pub use defaults::check_defaults;
pub use implied::{Facts, follows_from};
pub use outline::{Demand, demanded_constants, mentioned_fields};
pub use rule_set::{Budget, RuleSet, Violation, ViolationKind};
pub use rules::{RulePlace, check_rules};

use evaluate::Plan;
use types::{Decl, Type};

/// A diagnostic about a range of bytes of an expression.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Range<usize>>;

/// Budget of a single rule: cost of a run times the number of runs per object.
pub(crate) const RULE_BUDGET: u64 = 10_000_000;
/// Budget of all rules of a CRD together.
pub(crate) const CRD_BUDGET: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultType {
    Bool,
    String,
}

impl ResultType {
    fn as_type(self) -> Type {
        match self {
            ResultType::Bool => Type::Bool,
            ResultType::String => Type::String,
        }
    }
}

struct Examined {
    diagnostics: Vec<Diagnostic>,
    /// Upper bound for a single run, or `None` if the expression has errors or can't be checked.
    cost: Option<u64>,
    used: Vec<String>,
}

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
    let mut diagnostics = std::mem::take(&mut parsed.warnings);
    diagnostics.append(&mut checked.diagnostics);
    let expected = expected.as_type();
    let is_wrong = checked.result == Type::Error || diagnostics.iter().any(Diagnostic::is_error);
    if !is_wrong && checked.result != expected {
        let message = format!(
            "the expression must evaluate to {}, found {}",
            expected.name(),
            checked.result.name()
        );
        diagnostics.push(Diagnostic::error(parsed.root.at.clone(), message));
    }
    // Warnings (e.g. about a deprecated field name) don't affect the cost.
    let is_understood = checked.result != Type::Error && !diagnostics.iter().any(Diagnostic::is_error);
    let cost = match decl {
        Some(decl) if is_understood => Some(cost::estimate_cost(&parsed.root, &checked, decl)),
        _ => None,
    };
    let used = checked.used.clone();
    // The API server converts constants at compile time, so a failure makes the rule invalid.
    if is_understood && let Err(error) = Plan::new(parsed.root, checked) {
        diagnostics.push(Diagnostic::error(error.at, error.text));
        return Examined {
            diagnostics,
            cost: None,
            used,
        };
    }
    Examined {
        diagnostics,
        cost,
        used,
    }
}

/// Adds the location to the message of a syntax error, since errors are reported for the rule as a
/// whole.
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
