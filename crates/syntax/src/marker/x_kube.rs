//! Translates `#[x_kube(…)]` of kube's `KubeSchema` to markers. It contains rules and merge
//! strategies.

use rbuilder_reader::{Expr, ExprKind, Span};
use serde_json::Value;

use super::Reading;
use crate::args::{Arg, ArgValue, Literal};
use crate::{Session, suggest};

const KEYS: &[&str] = &["validation", "merge_strategy"];

pub(super) fn read_x_kube(args: &[Arg<'_>], reading: &mut Reading, session: &mut Session) {
    for arg in args {
        match arg.name {
            "validation" => reading.read([arg], session),
            // From `#[cel_validate(…)]` in kube 0.98.
            "rule" => {
                let name = "validation";
                reading.read(&[Arg { name, ..arg.clone() }], session);
            }
            "merge_strategy" => {
                let markers = merge_strategy(arg, session);
                reading.read(&markers, session);
            }
            // Only used by kube's derive, which ignores `cel`.
            "crates" | "cel" => {}
            name => {
                let help = suggest::describe_candidates(name, KEYS.iter().copied());
                session.error_help(arg.span, format!("unknown argument `{name}` of `x_kube`"), help);
            }
        }
    }
}

/// Parses `ListMerge::Atomic`, `ListMerge::Map(vec!["name".into()])`, `MapMerge::Granular` or
/// `StructMerge::Atomic`.
fn merge_strategy<'a>(arg: &Arg<'a>, session: &mut Session) -> Vec<Arg<'a>> {
    let strategy = match &arg.value {
        ArgValue::Expr(expr) => strategy(expr),
        _ => None,
    };
    let Some((marker, value, keys)) = strategy else {
        session.error_help(
            arg.value_span(),
            "expected a literal merge strategy: rbuilder does not run the program",
            "write `ListMerge::Atomic`, `ListMerge::Set`, `ListMerge::Map(vec![\"…\"])`, or `MapMerge` or `StructMerge` \
             with `Atomic` or `Granular`",
        );
        return Vec::new();
    };
    let span = arg.value_span();
    let mut markers = vec![valued(marker, Value::from(value), span)];
    if let Some(keys) = keys {
        markers.push(valued("list_map_keys", Value::from(keys), span));
    }
    markers
}

type Strategy = (&'static str, &'static str, Option<Vec<String>>);

fn strategy(expr: &Expr<'_>) -> Option<Strategy> {
    let (path, args) = match &expr.kind {
        ExprKind::Path(path) => (path, None),
        ExprKind::Call(function, args) => match &function.kind {
            ExprKind::Path(path) => (path, Some(args)),
            _ => return None,
        },
        _ => return None,
    };
    let [.., merge, variant] = path.as_slice() else {
        return None;
    };
    let marker = match *merge {
        "ListMerge" => "list_type",
        "MapMerge" => "map_type",
        "StructMerge" => "struct_type",
        _ => return None,
    };
    match (marker, *variant, args) {
        ("list_type", "Map", Some(args)) => {
            let keys = args.first()?;
            let keys = match &keys.kind {
                ExprKind::Array(keys) => keys.iter().map(text).collect::<Option<Vec<_>>>()?,
                ExprKind::Method(inner, _, _) => match &inner.kind {
                    ExprKind::Array(keys) => keys.iter().map(text).collect::<Option<Vec<_>>>()?,
                    _ => return None,
                },
                _ => return None,
            };
            Some((marker, "map", Some(keys)))
        }
        ("list_type", "Set", None) => Some((marker, "set", None)),
        (_, "Atomic", None) => Some((marker, "atomic", None)),
        ("map_type" | "struct_type", "Granular", None) => Some((marker, "granular", None)),
        _ => None,
    }
}

/// Reads a string literal, optionally followed by `.into()`, `.to_string()` or `.to_owned()`.
fn text(expr: &Expr<'_>) -> Option<String> {
    match &expr.kind {
        ExprKind::Literal(Value::String(text)) => Some(text.clone()),
        ExprKind::Method(inner, _, args) if args.is_empty() => text(inner),
        ExprKind::Call(_, args) => text(args.first()?),
        _ => None,
    }
}

fn valued<'a>(name: &'static str, value: Value, span: Span) -> Arg<'a> {
    Arg {
        name,
        span,
        value: ArgValue::Literal(Literal { value, span }),
    }
}
