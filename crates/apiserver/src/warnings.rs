//! The `Warning` headers of a response.

use std::cell::RefCell;

/// "Miscellaneous persistent warning" in RFC 7234. Kubernetes uses no other code.
const CODE: u16 = 299;

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

    pub(super) fn to_headers(&self) -> Vec<String> {
        let quote = |text: &String| {
            // Drop control characters, which would terminate or corrupt the header.
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
