//! Expressions as text, by which equal ones are recognized.

use super::Place;
use crate::ast::{Expr, Kind};

/// The text of an expression, which is the same for the same expression. The variable of a quantifier
/// has the name of the item that it stands for.
pub(super) fn text(expr: &Expr, place: &Place<'_>) -> String {
    let list = |exprs: &mut dyn Iterator<Item = &Expr>| {
        let texts: Vec<String> = exprs.map(|expr| text(expr, place)).collect();
        texts.join(", ")
    };
    match &expr.kind {
        Kind::Literal(literal) => format!("{literal:?}"),
        Kind::Ident(name) => match place {
            Place::Item { variable, item } if name == variable => (*item).to_owned(),
            _ => name.clone(),
        },
        Kind::Select { operand, field, test } => {
            let has = if *test { "has " } else { "" };
            format!("{has}{}.{field}", text(operand, place))
        }
        Kind::Call {
            function,
            target,
            args,
        } => {
            let target = target.as_deref().map(|target| text(target, place));
            format!(
                "{}.{function}({})",
                target.unwrap_or_default(),
                list(&mut args.iter())
            )
        }
        Kind::List(items) => {
            let flags: Vec<bool> = items.iter().map(|(_, flag)| *flag).collect();
            format!("[{} {flags:?}]", list(&mut items.iter().map(|(item, _)| item)))
        }
        Kind::Map(entries) => {
            let flags: Vec<bool> = entries.iter().map(|(.., flag)| *flag).collect();
            let parts = entries.iter().flat_map(|(key, value, _)| [key, value]);
            format!("{{{} {flags:?}}}", list(&mut { parts }))
        }
        Kind::Message(name) => format!("{name}{{}}"),
        Kind::Fold(fold) => {
            let names = [Some(&fold.variable), fold.second.as_ref()];
            let inner = within(place, names.into_iter().flatten());
            let parts = [&fold.init, &fold.condition, &fold.step, &fold.result];
            let parts: Vec<String> = parts.into_iter().map(|part| text(part, &inner)).collect();
            format!(
                "fold({names:?}, {}, {})",
                text(&fold.range, place),
                parts.join(", ")
            )
        }
        Kind::Bind { name, value, body } => {
            let inner = within(place, [name].into_iter());
            format!("let({name}, {}, {})", text(value, place), text(body, &inner))
        }
    }
}

/// Where the names are bound, the variable of a quantifier with such a name is another one.
fn within<'p>(place: &Place<'p>, mut names: impl Iterator<Item = &'p String>) -> Place<'p> {
    match *place {
        Place::Item { variable, item } if !names.any(|name| name == variable) => {
            Place::Item { variable, item }
        }
        _ => Place::Whole { goal: false },
    }
}
