//! Calls of kube's `merge_crds`, which name the storage version.

use rbuilder_reader::token::lex;
use rbuilder_reader::{Expr, ExprKind};
use serde_json::Value;

const CALL: &str = "merge_crds(";

/// Finds calls anywhere in a text whose version is a literal, and adds their kinds and version.
pub(super) fn find_merges(text: &str, found: &mut Vec<(String, String)>) {
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

/// Returns the kinds for which a list expression calls `crd()`.
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
    /// Longer than any real call. The limit avoids scanning a whole file for a match in prose.
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
}
