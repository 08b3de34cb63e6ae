//! CEL as kube-apiserver checks it: the rules of CRDs and the match conditions of webhooks.
//!
//! An expression is parsed, its macros are expanded, every node gets a type, and its cost is estimated; see the modules.
//! The language, the functions and the units of cost are those of kube-apiserver. Nothing is run.
//!
//! The API server decides, and this crate predicts its decision: what it cannot judge (a function that a newer server
//! may have, an expression of uncommon size) is a warning, and every error is one that the API server reports too.
//! It knows schemas, and neither Rust nor files: see [`RulePlace`].

mod admission;
mod ast;
mod check;
mod cost;
mod functions;
mod lexer;
mod macros;
mod parser;
mod rules;
mod types;
mod unify;
mod words;

use std::ops::Range;
use std::sync::Arc;

pub use admission::check_match_condition;
pub use rules::{RulePlace, check_rules};

use types::{Decl, Type};

/// A diagnostic about bytes of an expression.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Range<usize>>;

/// The most that one rule may cost, times how often it can run in one object.
pub(crate) const RULE_BUDGET: u64 = 10_000_000;
/// The most that all rules of a CRD may cost together.
pub(crate) const CRD_BUDGET: u64 = 100_000_000;

/// What an expression must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Bool,
    String,
}

/// An expression that has been looked at.
struct Examined {
    diagnostics: Vec<Diagnostic>,
    /// The most it can cost when run once; nothing where the expression is wrong or not understood.
    cost: Option<u64>,
    /// The variables it names.
    used: Vec<String>,
}

fn examine(text: &str, variables: &[(&str, Type)], wanted: Wanted, decl: Option<&Arc<Decl>>) -> Examined {
    let mut parsed = match parser::parse(text) {
        Ok(parsed) => parsed,
        Err(mut error) => {
            let shown = text.get(error.place.clone()).unwrap_or_default();
            let place = match shown {
                "" => "at its end".to_owned(),
                shown => format!("at `{}`", first_words(shown)),
            };
            if error.is_error() {
                error.message = format!("the expression cannot be read {place}: {}", error.message);
            }
            return Examined {
                diagnostics: vec![error],
                cost: None,
                used: Vec::new(),
            };
        }
    };
    let mut checked = check::check(&mut parsed.root, parsed.nodes, variables);
    let mut diagnostics = std::mem::take(&mut checked.diagnostics);
    let name = match wanted {
        Wanted::Bool => "true or false",
        Wanted::String => "a text",
    };
    let fits = match wanted {
        Wanted::Bool => checked.result == Type::Bool,
        Wanted::String => checked.result == Type::String,
    };
    if !diagnostics.iter().any(Diagnostic::is_error) && !fits && checked.result != Type::Error {
        let message = format!(
            "the expression must give {name}, and it gives {}",
            checked.result.name()
        );
        diagnostics.push(Diagnostic::error(parsed.root.at.clone(), message));
    }
    // Where something is not understood, its cost is not either; a field's other name changes nothing.
    let understood = checked.result != Type::Error && !diagnostics.iter().any(Diagnostic::is_error);
    let cost = match decl {
        Some(decl) if understood => Some(cost::estimate(&parsed.root, &checked, decl)),
        _ => None,
    };
    Examined {
        diagnostics,
        cost,
        used: checked.used,
    }
}

/// As much of a text as a message can hold.
fn first_words(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
