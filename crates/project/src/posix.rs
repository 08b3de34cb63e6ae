//! Quoting for POSIX shells, for commands to copy and paste.

/// Quotes `text` as a single word.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes a word only if necessary.
pub fn quote_word(word: &str) -> String {
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
    fn quotes_words_for_a_shell() {
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
