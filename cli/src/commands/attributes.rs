//! Rust attributes as text.

/// Returns a Rust string literal.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

/// Formats an attribute like rustfmt.
pub(super) fn print_attribute(name: &str, arguments: &[String]) -> String {
    /// The maximum width of arguments that rustfmt keeps on one line.
    const WIDTH: usize = 70;
    let line = arguments.join(", ");
    match line.len() <= WIDTH && !line.contains('\n') {
        true => format!("#[{name}({line})]"),
        false => format!("#[{name}(\n    {}\n)]", arguments.join(",\n    ")),
    }
}
