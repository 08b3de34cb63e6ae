//! A type-checked expression with per-node information for the evaluator.
//!
//! cel-go evaluates constants once at compile time: literals, lists and maps of literals, and
//! conversions such as `duration('1h')`. They are free at run time, and a failing conversion makes
//! the rule invalid.

use std::ops::Range;

use rbuilder_re2::Pattern;

use super::{Evaluator, STEPS, Slot, Stop};
use crate::ast::{Expr, Kind, Literal};
use crate::check::{Checked, path, type_name};
use crate::functions::Overload;
use crate::types::Type;

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Expr,
    types: Vec<Type>,
    overloads: Vec<Vec<&'static Overload>>,
    /// Indexed by node id.
    constants: Vec<bool>,
    /// Compiled patterns of nodes with a literal pattern, indexed by node id.
    patterns: Vec<Option<Pattern>>,
}

#[derive(Debug)]
pub(crate) struct PlanError {
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
}

impl Plan {
    /// Compiles an error-free tree. Fails if the conversion of a constant does, e.g.
    /// `duration('x')`.
    pub(crate) fn new(root: Expr, checked: Checked) -> Result<Plan, PlanError> {
        let nodes = checked.types.len();
        let mut plan = Plan {
            root,
            types: checked.types,
            overloads: checked.overloads,
            constants: vec![false; nodes],
            patterns: vec![None; nodes],
        };
        let mut found = Found {
            constants: vec![false; nodes],
            patterns: vec![None; nodes],
            conversions: Vec::new(),
        };
        plan.visit(&plan.root, &mut found);
        plan.constants = found.constants;
        plan.patterns = found.patterns;
        let failed = found.conversions.iter().find_map(|id| plan.failure(*id));
        match failed {
            Some(error) => Err(error),
            None => Ok(plan),
        }
    }

    pub(super) fn is_constant(&self, expr: &Expr) -> bool {
        self.constants[expr.id]
    }

    pub(super) fn pattern(&self, expr: &Expr) -> Option<&Pattern> {
        self.patterns[expr.id].as_ref()
    }

    pub(super) fn overload(&self, expr: &Expr) -> Option<&'static Overload> {
        match self.overloads[expr.id].as_slice() {
            [overload] => Some(overload),
            _ => None,
        }
    }

    pub(super) fn type_name(&self, expr: &Expr) -> Option<&'static str> {
        let is_name = matches!(expr.kind, Kind::Ident(_) | Kind::Select { test: false, .. });
        if !is_name || self.types[expr.id] != Type::Kind {
            return None;
        }
        let path = path(expr)?;
        type_name(&path)
    }

    /// Returns true if cel-go evaluates an expression as an attribute, i.e. a variable or something
    /// with fields or indices.
    pub(super) fn is_attribute(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Ident(_) | Kind::Select { .. } => self.type_name(expr).is_none(),
            Kind::Call { function, .. } => {
                matches!(function.as_str(), "_[_]" | "_[?_]" | "_?._" | "_?_:_")
            }
            _ => false,
        }
    }

    /// Marks the constants of a subtree. Children first, since nodes depend on them.
    fn visit(&self, expr: &Expr, found: &mut Found) {
        for child in expr.children() {
            self.visit(child, found);
        }
        let is_constant = |expr: &Expr| found.constants[expr.id];
        let constant = match &expr.kind {
            Kind::Literal(_) => true,
            Kind::Ident(_) | Kind::Select { .. } => self.type_name(expr).is_some(),
            Kind::List(items) => items.iter().all(|(item, _)| is_constant(item)),
            Kind::Map(entries) => entries
                .iter()
                .all(|(key, value, _)| is_constant(key) && is_constant(value)),
            Kind::Call { function, args, .. } => match (function.as_str(), args.as_slice()) {
                (function, [arg]) if CONVERSIONS.contains(&function) && is_constant(arg) => {
                    found.conversions.push(expr.id);
                    true
                }
                // cel-go replaces `x in []` with `false` at compile time.
                ("@in", [_, list]) => self.overload(expr).is_some() && is_empty_list(list),
                ("matches" | "find" | "findAll", args) => {
                    let pattern = match function.as_str() {
                        "matches" => args.last(),
                        _ => args.first(),
                    };
                    if let Some(Kind::Literal(Literal::String(text))) = pattern.map(|expr| &expr.kind) {
                        found.patterns[expr.id] = Pattern::parse(text).ok();
                    }
                    false
                }
                _ => false,
            },
            _ => false,
        };
        found.constants[expr.id] = constant;
    }

    fn failure(&self, id: usize) -> Option<PlanError> {
        let expr = find(&self.root, id)?;
        let mut evaluator = Evaluator {
            plan: self,
            scopes: Vec::<(&str, Slot<'_, '_>)>::new(),
            cost: 0,
            steps: STEPS,
            // Constants are free.
            free: 1,
        };
        match evaluator.evaluate(expr) {
            Err(Stop::Error(text)) => Some(PlanError {
                at: expr.at.clone(),
                text,
            }),
            _ => None,
        }
    }
}

struct Found {
    constants: Vec<bool>,
    patterns: Vec<Option<Pattern>>,
    conversions: Vec<usize>,
}

/// Conversions that cel-go applies to constants at compile time.
const CONVERSIONS: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

fn is_empty_list(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::List(items) if items.is_empty())
}

fn find(expr: &Expr, id: usize) -> Option<&Expr> {
    if expr.id == id {
        return Some(expr);
    }
    expr.children().into_iter().find_map(|child| find(child, id))
}
