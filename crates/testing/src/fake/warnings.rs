//! The `Warning` headers of a response.

use std::cell::RefCell;

/// The code of warnings without a more specific one, as in RFC 7234.
const CODE: u16 = 299;

/// The warnings about a request, in order and without duplicates.
#[derive(Debug, Default)]
pub(super) struct Warnings(RefCell<Vec<String>>);

impl Warnings {
    pub(super) fn add(&self, texts: impl IntoIterator<Item = String>) {
        let mut warnings = self.0.borrow_mut();
        for text in texts {
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns the header values.
    pub(super) fn to_headers(&self) -> Vec<String> {
        let quote = |text: &String| {
            // Control characters would end or corrupt a header.
            let text: String = text
                .chars()
                .map(|character| if character.is_control() { ' ' } else { character })
                .collect();
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{CODE} - \"{text}\"")
        };
        self.0.borrow().iter().map(quote).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_quote_each_warning_once() {
        let warnings = Warnings::default();
        warnings.add(["unknown field \"a\"".to_owned(), "line\nbreak".to_owned()]);
        warnings.add(["unknown field \"a\"".to_owned()]);
        let expected = [r#"299 - "unknown field \"a\"""#, r#"299 - "line break""#];
        assert_eq!(warnings.to_headers(), expected);
    }
}
