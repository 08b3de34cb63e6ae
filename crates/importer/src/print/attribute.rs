//! Prints attributes as rustfmt formats them.
//!
//! rustfmt only formats attributes whose arguments are names, literals, and lists of these. With an
//! array, a map or a negative number, it keeps any layout, so we use the same one there.

use super::WIDTH;

/// Maximum width of several arguments on a line (rustfmt's `attr_fn_like_width`).
const ARGUMENTS: usize = 70;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meta {
    /// `name`, `name = value` or just a value, as source text.
    Text(String),
    /// `name(…)`.
    List(String, Vec<Meta>),
}

impl Meta {
    pub(crate) fn word(name: &str) -> Meta {
        Meta::Text(name.to_owned())
    }

    /// `name = value`, with the value as source text.
    pub(crate) fn assign(name: &str, value: impl std::fmt::Display) -> Meta {
        Meta::Text(format!("{name} = {value}"))
    }

    pub(crate) fn list(name: &str, items: Vec<Meta>) -> Meta {
        Meta::List(name.to_owned(), items)
    }

    fn one_line(&self) -> String {
        match self {
            Meta::Text(text) => text.clone(),
            Meta::List(name, items) => format!("{name}({})", joined(items)),
        }
    }
}

fn joined(items: &[Meta]) -> String {
    let items: Vec<_> = items.iter().map(Meta::one_line).collect();
    items.join(", ")
}

pub(crate) fn print_attribute(name: &str, items: Vec<Meta>, indent: usize) -> String {
    let margin = " ".repeat(indent);
    // rustfmt reserves one column for an attribute on a field, and one for each nested list.
    let end = WIDTH - usize::from(indent > 0);
    let whole = Meta::List(name.to_owned(), items);
    format!("{margin}#[{}]\n", print(&whole, indent, indent + 2, end - 1))
}

/// Prints an argument at `column` of a line with this indentation. A one-line result must end
/// before the column `end`.
fn print(meta: &Meta, indent: usize, column: usize, end: usize) -> String {
    let Meta::List(name, items) = meta else {
        return meta.one_line();
    };
    let line = meta.one_line();
    let width = line.chars().count();
    let fits = column + width + nesting(items) <= end || items.is_empty();
    match items.as_slice() {
        _ if fits && (items.len() < 2 || joined(items).chars().count() <= ARGUMENTS) && all_fit(items) => {
            line
        }
        // A list that is the only argument continues on its parent's line.
        [only @ Meta::List(..)] => {
            let start = column + name.chars().count() + 1;
            format!("{name}({})", print(only, indent, start, end - 2))
        }
        _ => {
            let inner = indent + 4;
            let margin = " ".repeat(inner);
            let lines: Vec<_> = items
                .iter()
                .map(|item| format!("{margin}{}", print(item, inner, inner, WIDTH - 2)))
                .collect();
            format!("{name}(\n{}\n{})", lines.join(",\n"), " ".repeat(indent))
        }
    }
}

fn nesting(items: &[Meta]) -> usize {
    let depths = items.iter().map(|item| match item {
        Meta::Text(_) => 0,
        Meta::List(_, inner) => 1 + nesting(inner),
    });
    depths.max().unwrap_or(0)
}

fn all_fit(items: &[Meta]) -> bool {
    items.iter().all(|item| match item {
        Meta::Text(_) => true,
        Meta::List(_, inner) => {
            (inner.len() < 2 || joined(inner).chars().count() <= ARGUMENTS) && all_fit(inner)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_layout_of_rustfmt() {
        let text = |length: usize| Meta::assign("pattern", format!("{:?}", "a".repeat(length - 12)));
        let validation = |length: usize| vec![Meta::list("validation", vec![text(length)])];
        let check = |items: Vec<Meta>, expected: &str| {
            assert_eq!(print_attribute("crd", items, 0), expected);
        };
        let long = |length: usize| "a".repeat(length - 12);
        check(
            validation(75),
            &format!("#[crd(validation(pattern = \"{}\"))]\n", long(75)),
        );
        check(
            validation(79),
            &format!("#[crd(validation(pattern = \"{}\"))]\n", long(79)),
        );
        check(
            validation(80),
            &format!("#[crd(validation(\n    pattern = \"{}\"\n))]\n", long(80)),
        );
        let at_field = |length| print_attribute("crd", validation(length), 4);
        assert_eq!(
            at_field(74),
            format!("    #[crd(validation(pattern = \"{}\"))]\n", long(74))
        );
        assert!(at_field(75).contains("validation(\n"));
        let several = vec![Meta::list("items", validation(56)), Meta::word("nullable")];
        check(
            several,
            &format!(
                "#[crd(\n    items(validation(pattern = \"{}\")),\n    nullable\n)]\n",
                long(56)
            ),
        );
    }
}
