//! CEL rules, held against the schema they are written on as the API server will hold them when the CRD is applied.
//!
//! A rule is parsed, its macros are written out, every node gets a type, and its cost is estimated; see the modules.
//! The language, the functions and the units are those of kube-apiserver. What cannot be judged here (a function that
//! a newer server may have, an expression of uncommon size) is never refused: a [`Finding`] says whether it is
//! certain. Nothing is run.

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

use std::sync::Arc;

pub(crate) use admission::check_match_condition;
pub(crate) use check::Finding;
pub(crate) use rules::{RuleFinding, check_rules};

use types::{Decl, Type};

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
    findings: Vec<Finding>,
    /// The most it can cost when run once; nothing where the expression is wrong or not understood.
    cost: Option<u64>,
    /// The variables it names.
    used: Vec<String>,
}

fn examine(text: &str, variables: &[(&str, Type)], wanted: Wanted, decl: Option<&Arc<Decl>>) -> Examined {
    let mut parsed = match parser::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let shown = text.get(error.at.clone()).unwrap_or_default();
            let place = match shown {
                "" => "at its end".to_owned(),
                shown => format!("at `{}`", first_words(shown)),
            };
            let message = match error.beyond_us {
                true => error.message,
                false => format!("the expression cannot be read {place}: {}", error.message),
            };
            let finding = Finding {
                at: error.at,
                message,
                help: None,
                certain: !error.beyond_us,
            };
            return Examined {
                findings: vec![finding],
                cost: None,
                used: Vec::new(),
            };
        }
    };
    let mut checked = check::check(&mut parsed.root, parsed.nodes, variables);
    let mut findings = std::mem::take(&mut checked.findings);
    let name = match wanted {
        Wanted::Bool => "true or false",
        Wanted::String => "a text",
    };
    let fits = match wanted {
        Wanted::Bool => checked.result == Type::Bool,
        Wanted::String => checked.result == Type::String,
    };
    if findings.iter().all(|finding| !finding.certain) && !fits && checked.result != Type::Error {
        findings.push(Finding {
            at: parsed.root.at.clone(),
            message: format!(
                "the expression must give {name}, and it gives {}",
                checked.result.name()
            ),
            help: None,
            certain: true,
        });
    }
    // Where something is not understood, its cost is not either; a field's other name changes nothing.
    let understood = checked.result != Type::Error && findings.iter().all(|finding| !finding.certain);
    let cost = match decl {
        Some(decl) if understood => Some(cost::estimate(&parsed.root, &checked, decl)),
        _ => None,
    };
    Examined {
        findings,
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
