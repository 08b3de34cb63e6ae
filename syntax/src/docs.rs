//! Doc comments to descriptions, by controller-gen's rules.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The description that doc comments make, and a `Deprecated:` paragraph from `#[deprecated]`.
///
/// Lines that start with `TODO` are dropped, a line that starts with `---` ends the text, and neither counts
/// inside a code fence. Line breaks and blank lines are kept, blank ends are not. The `#` of a heading on the
/// first line is dropped, since no reader of a CRD renders Markdown.
pub(crate) fn description(attrs: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attrs
        .iter()
        .filter_map(doc_text)
        .flat_map(|text| text_lines(&text))
        .collect();
    let mut text = kept(&lines).join("\n").trim().to_owned();
    if text.starts_with("# ") {
        text = text.trim_start_matches('#').trim_start().to_owned();
    }
    if let Some(note) = deprecation(attrs) {
        text = if text.is_empty() {
            note
        } else {
            format!("{text}\n\n{note}")
        };
    }
    (!text.is_empty()).then_some(text)
}

fn doc_text(attr: &Attribute) -> Option<String> {
    match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => text(&pair.value),
        _ => None,
    }
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.value()),
        Expr::Group(group) => text(&group.expr),
        _ => None,
    }
}

/// The lines of one doc attribute: one `///` line, or a whole block, whose margin of stars is not text.
fn text_lines(text: &str) -> Vec<String> {
    if !text.contains('\n') {
        return vec![text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned()];
    }
    text.lines()
        .map(|line| {
            let line = line.trim();
            line.strip_prefix("* ")
                .or_else(|| line.strip_prefix('*'))
                .unwrap_or(line)
                .trim_end()
                .to_owned()
        })
        .collect()
}

fn kept(lines: &[String]) -> Vec<&str> {
    let mut kept = Vec::with_capacity(lines.len());
    let mut fenced = false;
    for line in lines {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && start.starts_with("---") {
            break;
        } else if !fenced && start.starts_with("TODO") {
            continue;
        }
        kept.push(line.as_str());
    }
    kept
}

fn deprecation(attrs: &[Attribute]) -> Option<String> {
    let attr = attrs.iter().find(|attr| attr.path().is_ident("deprecated"))?;
    let mut note = None;
    match &attr.meta {
        Meta::NameValue(pair) => note = text(&pair.value),
        Meta::List(list) => {
            // What is wrong with the attribute itself, rustc says.
            let _ = list.parse_nested_meta(|meta| {
                let value: Lit = meta.value()?.parse()?;
                if let (true, Lit::Str(text)) = (meta.path.is_ident("note"), value) {
                    note = Some(text.value());
                }
                Ok(())
            });
        }
        Meta::Path(_) => {}
    }
    Some(note.map_or_else(|| "Deprecated.".to_owned(), |note| format!("Deprecated: {note}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: Option<&str>) {
        let item: syn::ItemStruct = syn::parse_str(&format!("{source}\nstruct S;")).expect("a struct");
        assert_eq!(description(&item.attrs).as_deref(), expected, "{source}");
    }

    #[test]
    fn rules() {
        check("", None);
        check("/// One line.", Some("One line."));
        check("/// Two\n/// lines.", Some("Two\nlines."));
        check("/// Two\n///\n/// parts.\n///", Some("Two\n\nparts."));
        check("///   - indented", Some("- indented"));
        check("/// a\n///   - indented", Some("a\n  - indented"));
        check(
            "/// Kept.\n/// TODO: dropped\n/// Kept too.",
            Some("Kept.\nKept too."),
        );
        check("/// Kept.\n/// ---\n/// Internal.", Some("Kept."));
        check("/// ```\n/// ---\n/// TODO\n/// ```", Some("```\n---\nTODO\n```"));
        check("/** One.\n * Two.\n */", Some("One.\nTwo."));
        check("/// # Title\n/// Text.", Some("Title\nText."));
        check("#[doc = \"Written out.\"]", Some("Written out."));
        check("#[doc(hidden)]", None);
        check(
            "/// Old.\n#[deprecated(note = \"use x\")]",
            Some("Old.\n\nDeprecated: use x"),
        );
        check("#[deprecated]", Some("Deprecated."));
    }
}
