//! Mistakes in Cargo.toml and in the text around kinds.

use super::{CARGO_TOML, Case, Sent, fields, harm, rows};

pub(super) fn cases() -> Vec<Case> {
    let library = fields("    pub field: IntOrString,\n");
    let manifests = rows(include_str!("../tables/packages.tsv")).map(|row| {
        let (name, to) = change(&row, CARGO_TOML);
        let case = Case::new(&format!("package/{name}"), &library, library.clone(), Sent::Made);
        let files = vec![("Cargo.toml", to), ("src/lib.rs", library.clone())];
        with_harm(Case { files, ..case }, harm(&row, 3))
    });
    let sources = rows(include_str!("../tables/sources.tsv")).map(|row| {
        let (name, to) = change(&row, &library);
        let case = Case::new(&format!("source/{name}"), &library, to, Sent::Made);
        with_harm(case, harm(&row, 3))
    });
    let odd = [
        ("empty", String::new()),
        ("comments-alone", "// nothing\n".to_owned()),
        ("with-a-shebang", format!("#!/usr/bin/env run\n{library}")),
        ("with-a-byte-order-mark", format!("\u{feff}{library}")),
        ("with-carriage-returns", library.replace('\n', "\r\n")),
        ("without-a-last-line-end", library.trim_end().to_owned()),
    ];
    let odd = odd.into_iter().map(|(name, text)| {
        // If there is no kind, we have nothing to send.
        let sent = if text.contains("kube(") {
            Sent::Made
        } else {
            Sent::Nothing
        };
        Case::new(&format!("source/{name}"), &library, text, sent)
    });
    manifests.chain(sources).chain(odd).collect()
}

/// The mistake can't reach a manifest.
fn with_harm(case: Case, harm: Option<&'static str>) -> Case {
    match harm {
        Some(harm) => Case {
            sent: Sent::Nothing,
            ..case
        }
        .with_harm(harm),
        None => case,
    }
}

/// Returns the name of the row, and the changed text.
fn change(row: &[&'static str], text: &str) -> (&'static str, String) {
    let unescaped = |column: usize| {
        let text = row.get(column).copied().unwrap_or_default();
        text.replace("\\n", "\n").replace("\\u{FEFF}", "\u{feff}")
    };
    (row[0], replaced(text, &unescaped(1), &unescaped(2)))
}

/// `from` must occur exactly once.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
    text.replacen(from, to, 1)
}
