//! Finds the storage version in calls of kube's `merge_crds`, and of the `merged_crd` that
//! stackable-versioned generates.

use rbuilder_reader::token::lex;
use rbuilder_reader::{Expr, ExprKind};
use serde_json::Value;

use crate::sources::is_in_file;

const CALL: &str = "merge_crds(";
const GENERATED_CALL: &str = "::merged_crd(";

/// Adds the storage version of each kind for which it is a literal.
pub(super) fn find_merges(text: &str, found: &mut Vec<(String, String)>) {
    if !is_in_file(CALL, text) && !is_in_file(GENERATED_CALL, text) {
        return;
    }
    find_generated(text, found);
    for (at, _) in text.match_indices(CALL) {
        let rest = &text[at + CALL.len() - 1..];
        let Some(call) = parenthesized(rest) else {
            continue;
        };
        let call = format!("f{call}");
        let Ok(tokens) = lex(&call) else { continue };
        let Ok(expr) = Expr::read(&mut tokens.cursor()) else {
            continue;
        };
        if let ExprKind::Call(_, args) = &expr.kind
            && let [crds, version] = args.as_slice()
            && let ExprKind::Literal(Value::String(version)) = &version.kind
        {
            let kinds = kinds(crds).into_iter();
            found.extend(kinds.map(|kind| (kind, version.clone())));
        }
    }
}

/// Finds e.g. `Cup::merged_crd(CupVersion::V1Alpha1)`.
fn find_generated(text: &str, found: &mut Vec<(String, String)>) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in text.match_indices(GENERATED_CALL) {
        let kind = text[..at].rsplit(|c| !is_word(c)).next().unwrap_or_default();
        let Some(argument) = parenthesized(&text[at + GENERATED_CALL.len() - 1..]) else {
            continue;
        };
        let path = argument.trim_matches(|c: char| "(),".contains(c) || c.is_whitespace());
        if let Some((_, variant)) = path.rsplit_once("::")
            && !kind.is_empty()
            && variant.starts_with('V')
            && path.chars().all(|c| is_word(c) || c == ':')
        {
            found.push((kind.to_owned(), variant.to_ascii_lowercase()));
        }
    }
}

/// Returns `Cup` for `vec![v1::Cup::crd()]` and so on.
fn kinds(crds: &Expr<'_>) -> Vec<String> {
    let ExprKind::Array(items) = &crds.kind else {
        return Vec::new();
    };
    let kind = |item: &Expr<'_>| match &item.kind {
        ExprKind::Call(function, _) => match &function.kind {
            ExprKind::Path(path) => match path.as_slice() {
                [.., kind, "crd"] => Some((*kind).to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    items.iter().filter_map(kind).collect()
}

/// Returns the text up to the parenthesis that closes the first one.
fn parenthesized(text: &str) -> Option<&str> {
    /// Longer than any real call, so that a match in prose does not make us scan the entire file.
    const MAX_LENGTH: usize = 4096;
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().take(MAX_LENGTH) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return text.get(..=at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let mut found = Vec::new();
        find_merges(text, &mut found);
        let found: Vec<_> = found
            .iter()
            .map(|(kind, version)| (kind.as_str(), version.as_str()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn finds_calls_with_literal_version() {
        check(
            "let crd = merge_crds(vec![v1::Foo::crd(), v2::Foo::crd()], \"v1\")?;",
            &[("Foo", "v1"), ("Foo", "v1")],
        );
        check("merge_crds(vec![Foo::crd()], stored)", &[]);
        check("merge_crds(crds, \"v1\")", &[]);
        check("merge_crds(", &[]);
    }

    #[test]
    fn finds_calls_of_generated_function() {
        check(
            "api::Foo::merged_crd(FooVersion::V1Alpha1)?; Bar::merged_crd(\n    api::BarVersion::V2Beta1,\n)",
            &[("Foo", "v1alpha1"), ("Bar", "v2beta1")],
        );
        check(
            "Foo::merged_crd(stored); Foo::merged_crd(a::b()); Foo::merged_crd(",
            &[],
        );
    }
}
