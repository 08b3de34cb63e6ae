//! Formats numbers in messages.

/// Formats a count with its noun, e.g. `1 kind` or `2 kinds`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
