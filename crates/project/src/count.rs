//! Formats numbers in messages.

/// Returns a number with its noun, such as `1 kind` or `2 kinds`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
