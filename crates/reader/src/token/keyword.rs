//! Keywords.

/// Returns true if a word is a keyword in all editions. Words that are reserved only in some
/// (`async`, `dyn`, `try`, `gen`) are accepted; rustc rejects them where necessary.
pub(super) fn is_reserved(word: &str) -> bool {
    match word.len() {
        2 => matches!(word, "as" | "fn" | "if" | "in"),
        3 => matches!(word, "for" | "let" | "mod" | "mut" | "pub" | "ref" | "use"),
        4 => matches!(
            word,
            "else" | "enum" | "impl" | "loop" | "move" | "self" | "Self" | "true" | "type"
        ),
        5 => matches!(
            word,
            "break" | "const" | "crate" | "false" | "match" | "super" | "trait" | "where" | "while"
        ),
        6 => matches!(word, "extern" | "return" | "static" | "struct" | "unsafe"),
        8 => word == "continue",
        _ => false,
    }
}
