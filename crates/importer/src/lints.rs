//! Lints that a description may violate. Descriptions are written for `kubectl explain`, but
//! rustdoc parses them as Markdown.

type Lint = (&'static str, fn(&str) -> bool);

const LINTS: &[Lint] = &[
    ("clippy::doc_lazy_continuation", is_item),
    ("clippy::doc_overindented_list_items", is_item),
    ("clippy::tabs_in_doc_comments", |line| line.contains('\t')),
    ("rustdoc::bare_urls", |line| line.contains("://")),
    ("rustdoc::broken_intra_doc_links", |line| line.contains('[')),
    ("rustdoc::invalid_html_tags", |line| line.contains('<')),
];

/// Attributes that allow just those lints that the file's documentation may violate.
pub(crate) fn allow_doc_lints(source: &str) -> String {
    let docs = || {
        source
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("/// "))
    };
    let broken = LINTS.iter().filter(|(_, may_break)| docs().any(may_break));
    let attributes: String = broken.map(|(lint, _)| format!("#![allow({lint})]\n")).collect();
    match attributes.as_str() {
        "" => attributes,
        _ => format!("// The documentation is that of the CRD.\n{attributes}\n"),
    }
}

/// Whether a line could be a list item or a quote.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    line.starts_with(['-', '*', '>']) || number.len() < line.len() && number.starts_with(['.', ')'])
}

/// Whether rustdoc would compile a part of the text as an example. It does so with text indented by
/// four columns, and with fenced blocks that don't name another language.
pub(crate) fn has_example(text: &str) -> bool {
    let (mut is_fenced, mut is_after_blank) = (false, true);
    for line in text.split('\n') {
        let start = line.trim_start_matches(' ');
        if let Some(language) = start.strip_prefix("```").or(start.strip_prefix("~~~")) {
            let language = language.trim_matches(['`', '~', ' ']);
            if !is_fenced && ["", "rust"].contains(&language) {
                return true;
            }
            is_fenced = !is_fenced;
        }
        let is_indented = line.len() - start.len() >= 4 || start.starts_with('\t');
        // An indented paragraph in a list item is an exception, but finding the end of an item
        // takes a Markdown parser.
        if !is_fenced && is_after_blank && is_indented {
            return true;
        }
        is_after_blank = line.is_empty();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_violated_lints() {
        let check = |line: &str, expected: &[&str]| {
            let source = format!("/// {line}\npub struct A {{}}\n");
            let attributes = expected.iter().map(|lint| format!("#![allow({lint})]\n"));
            let expected = match expected {
                [] => String::new(),
                _ => format!(
                    "// The documentation is that of the CRD.\n{}\n",
                    attributes.collect::<String>()
                ),
            };
            assert_eq!(allow_doc_lints(&source), expected, "{line}");
        };
        let of_lists = &[
            "clippy::doc_lazy_continuation",
            "clippy::doc_overindented_list_items",
        ];
        check("Plain, 3 at most.", &[]);
        check("- at most 20", of_lists);
        check("  * at most 20", of_lists);
        check("1. at most 20", of_lists);
        check("12) at most 20", of_lists);
        check("> at most 20", of_lists);
        check("a\tb", &["clippy::tabs_in_doc_comments"]);
        check("https://example.com", &["rustdoc::bare_urls"]);
        check("one of [a, b]", &["rustdoc::broken_intra_doc_links"]);
        check("<name>", &["rustdoc::invalid_html_tags"]);
        assert_eq!(allow_doc_lints("pub struct A { a: [u8; 3] }\n"), "");
    }

    #[test]
    fn finds_examples() {
        let check = |text: &str, expected| assert_eq!(has_example(text), expected, "{text}");
        check("A.\n\nB.", false);
        check("A.\n    not code: no blank line before", false);
        check("A:\n\n    let a", true);
        check("A:\n\n\tlet a", true);
        check("    a", true);
        check("```\na\n```", true);
        check("```rust\na\n```", true);
        check("~~~\na\n~~~", true);
        check("```yaml\na:\n\n    b: 1\n```", false);
        check("```yaml\na: 1\n```\n\n```\nb\n```", true);
    }
}
