//! Adds method calls on the manager to a `register` function.

use std::collections::BTreeSet;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::{Expr, FnArg, ItemFn, Pat, PatIdent, Stmt};

use super::calls::{
    Call, Imports, find_calls, find_functions, find_variables, has_ident, reachable_code, strip_raw_prefix,
};
use super::source::{Addition, Source, byte_range, line_starts};
use super::{CHAIN_WIDTH, MAX_WIDTH};
use crate::edit::Obstacle;

/// Adds `.controller(call)` (or another method) to the return value of `register`. No-op if
/// `register`, or a function it calls in the same file, already contains the call. The file must be
/// the module named like the method.
///
/// # Errors
/// Fails if the file does not parse, does not have exactly one `register` function, or if the
/// function does not end in method calls on the manager.
pub fn add_registration(text: &str, method: &str, call: &str) -> Result<String, Obstacle> {
    add_registrations(text, method, &[call])
}

/// Adds several calls like [`add_registration`], but parses the file only once.
///
/// # Errors
/// Fails like [`add_registration`].
pub fn add_registrations(text: &str, method: &str, calls: &[&str]) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let registers = find_functions(&source.file, "register");
    let of_function = |register: &&ItemFn| find_registered(&source.file, register, method);
    let mut known: BTreeSet<Vec<String>> = registers.iter().flat_map(of_function).collect();
    let new = calls
        .iter()
        .filter(|call| known.insert(absolute_call(method, call)));
    let new: Vec<String> = new.map(|call| format!(".{method}({call})")).collect();
    if new.is_empty() {
        return Ok(text.to_owned());
    }
    let added = new.concat();
    let register = match registers.as_slice() {
        [] => {
            let lines = format!(
                "pub fn register(manager: rbuilder::Manager) -> rbuilder::Manager {{\n    manager{added}\n}}"
            );
            return Err(Obstacle::new("it has no function `register`").with_lines("add these lines", lines));
        }
        [register] => register,
        several => {
            let (count, line) = (several.len(), by_hand(several[0], &added));
            return Err(Obstacle::new(format!("it has {count} functions `register`"))
                .with_lines("add this line at the start of the right one", line));
        }
    };
    let stop = |reason: &str| {
        Obstacle::new(reason).with_lines(
            "add this line at the start of `register`",
            by_hand(register, &added),
        )
    };
    let Some(Stmt::Expr(tail, None)) = register.block.stmts.last() else {
        return Err(stop("`register` does not end in an expression"));
    };
    let chain =
        Chain::of(tail).ok_or_else(|| stop("`register` does not end in method calls on the manager"))?;
    if !chain.starts_with_variable_of(register) {
        return Err(stop("`register` does not end in method calls on the manager"));
    }
    let close = byte_range(register.block.brace_token.span.close()).start;
    Ok(source.with(chain.extended(&source, &new, close)))
}

/// The lines to add at the start of `register` by hand.
fn by_hand(register: &ItemFn, added: &str) -> String {
    match parameter(register) {
        Some(pattern) => {
            let mutable = if pattern.mutability.is_some() { "mut " } else { "" };
            format!("let {mutable}{0} = {0}{added};", pattern.ident)
        }
        None => format!("let manager = manager{added};"),
    }
}

fn parameter(function: &ItemFn) -> Option<&PatIdent> {
    match function.sig.inputs.first()? {
        FnArg::Typed(parameter) => match &*parameter.pat {
            Pat::Ident(name) => Some(name),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// The absolute path of the function in a call such as `v1::cup::webhook()`, which is written in the
/// module named like the method.
fn absolute_call(method: &str, call: &str) -> Vec<String> {
    let path = call.split_once('(').map_or(call, |(path, _)| path);
    std::iter::once(method)
        .chain(path.split("::"))
        .map(strip_raw_prefix)
        .collect()
}

/// Returns the absolute paths of the functions whose results are passed to the method.
fn find_registered(file: &syn::File, register: &ItemFn, method: &str) -> BTreeSet<Vec<String>> {
    let imports = Imports::of(file);
    let path_of = |call: &Call| (!call.is_method).then(|| imports.absolute(&call.path, &[method]));
    let bodies = reachable_code(file, register);
    // The controller may be bound to a variable first.
    let variables = find_variables(&bodies);
    let mut found = BTreeSet::new();
    for call in find_calls(&bodies).iter().filter(|call| call.name() == method) {
        let arguments = call.arguments.stream();
        found.extend(find_calls(&arguments).iter().filter_map(path_of));
        let passed = variables.iter().filter(|(name, _)| has_ident(&arguments, name));
        found.extend(passed.flat_map(|(_, calls)| calls.iter().filter_map(path_of)));
    }
    found
}

pub(super) struct Chain<'e> {
    pub(super) root: &'e Expr,
    dots: Vec<usize>,
    whole: Range<usize>,
}

impl<'e> Chain<'e> {
    /// Parses a method chain. Returns `None` if its root is neither a path nor a function call,
    /// since we can't tell what such a chain is called on.
    pub(super) fn of(expr: &'e Expr) -> Option<Chain<'e>> {
        let mut dots = Vec::new();
        let mut root = expr;
        while let Expr::MethodCall(call) = root {
            dots.push(byte_range(call.dot_token.span()).start);
            root = &call.receiver;
        }
        dots.reverse();
        let is_path = |expr: &Expr| matches!(expr, Expr::Path(_));
        let is_known = is_path(root) || matches!(root, Expr::Call(call) if is_path(&call.func));
        is_known.then(|| Chain {
            root,
            dots,
            whole: byte_range(expr.span()),
        })
    }

    pub(super) fn calls(&self) -> usize {
        self.dots.len()
    }

    /// Whether the root is a parameter or a local variable of `function`.
    pub(super) fn starts_with_variable_of(&self, function: &ItemFn) -> bool {
        let Expr::Path(path) = self.root else { return false };
        let Some(name) = path.path.get_ident() else {
            return false;
        };
        let is_bound = |statement: &Stmt| match statement {
            Stmt::Local(local) => {
                let pattern = match &local.pat {
                    Pat::Type(typed) => &*typed.pat,
                    pattern => pattern,
                };
                matches!(pattern, Pat::Ident(bound) if bound.ident == *name)
            }
            _ => false,
        };
        let is_parameter = parameter(function).is_some_and(|parameter| parameter.ident == *name);
        is_parameter || function.block.stmts.iter().any(is_bound)
    }

    /// Appends calls to the chain. `close` is the end of the enclosing block.
    pub(super) fn extended(&self, source: &Source<'_>, calls: &[String], close: usize) -> Vec<Addition> {
        let current = &source.text[self.whole.clone()];
        let indent = source.indent_at(self.whole.start);
        let is_broken = current.contains('\n');
        let added = calls.concat();
        // rustfmt keeps a single call on the receiver's line if it fits.
        let limit = match self.dots.len() + calls.len() {
            1 => MAX_WIDTH.saturating_sub(indent.len()),
            _ => CHAIN_WIDTH,
        };
        if !is_broken && current.len() + added.len() <= limit {
            return vec![Addition::new(self.whole.end, added)];
        }
        let step = if indent.starts_with('\t') { "\t" } else { "    " };
        let mut inner = format!("{indent}{step}");
        let mut additions = Vec::new();
        if !is_broken {
            // rustfmt breaks a chain before every call or not at all, so break the existing calls
            // too.
            let broken = self
                .dots
                .iter()
                .map(|dot| Addition::new(*dot, format!("\n{inner}")));
            additions.extend(broken);
        } else if let Some(dot) = self.dots.last() {
            let line = source.text[..*dot].rfind('\n').map_or(0, |end| end + 1);
            if source.text[line..*dot].trim().is_empty() && line > self.whole.start {
                source.text[line..*dot].clone_into(&mut inner);
            }
        }
        let next = line_starts(source.text, self.whole.end..close).first().copied();
        // Keep a trailing comment with its call.
        let comment = next.filter(|next| !source.text[self.whole.end..*next].trim().is_empty());
        match comment {
            Some(next) => {
                let lines: String = calls.iter().map(|call| format!("{inner}{call}\n")).collect();
                additions.push(Addition::new(next, lines));
            }
            None => {
                let lines: String = calls.iter().map(|call| format!("\n{inner}{call}")).collect();
                additions.push(Addition::new(self.whole.end, lines));
            }
        }
        additions
    }
}
