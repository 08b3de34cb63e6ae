//! Rust attributes as text.

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

pub(super) fn print_attribute(name: &str, arguments: &[String]) -> String {
    /// rustfmt keeps arguments up to this width on one line.
    const WIDTH: usize = 70;
    let line = arguments.join(", ");
    match line.len() <= WIDTH && !line.contains('\n') {
        true => format!("#[{name}({line})]"),
        false => format!("#[{name}(\n    {}\n)]", arguments.join(",\n    ")),
    }
}
