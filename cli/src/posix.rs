//! Words of a POSIX shell, in commands that are printed to be pasted.

/// Quotes a text as one word.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns a word as a shell reads it, quoted if it has to be.
pub(crate) fn quote_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:\\+@,".contains(letter);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => quote(word),
    }
}

#[cfg(test)]
mod tests {
    use super::quote_word;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("shop", "shop"),
            ("../my-shop_2", "../my-shop_2"),
            ("my shop", "'my shop'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quote_word(word), expected);
        }
    }
}
