//! Splits Go source into tokens. That's enough to find calls, imports and functions, and unlike a
//! parser, it never fails.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// An identifier, a keyword or a number.
    Word(String),
    /// Content of a string literal, with its escapes.
    String(String),
    Sign(char),
}

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(&self.text, Text::Word(text) if text == word)
    }

    pub(crate) fn is_sign(&self, sign: char) -> bool {
        self.text == Text::Sign(sign)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        match &self.text {
            Text::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn string(&self) -> Option<&str> {
        match &self.text {
            Text::String(text) => Some(text),
            _ => None,
        }
    }
}

/// Prefixes of the markers that matter to us.
const MARKERS: [&str; 2] = ["kubebuilder:", "groupName="];

/// Returns the tokens, and the markers in comments with their lines, without the leading `+`.
pub(crate) fn tokenize(source: &str) -> (Vec<Token>, Vec<(usize, String)>) {
    let (mut tokens, mut markers) = (Vec::new(), Vec::new());
    let mut line = 1;
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let comment = rest[2..end].trim();
            if let Some(marker) = comment
                .strip_prefix('+')
                .filter(|text| MARKERS.iter().any(|begin| text.starts_with(begin)))
            {
                markers.push((line, marker.to_owned()));
            }
            end
        } else if let Some(comment) = rest.strip_prefix("/*") {
            // `comment` excludes the `/*`, so this is two more than for the `*/` alone.
            comment.find("*/").map_or(rest.len(), |end| end + 4)
        } else if first == '`' {
            let end = rest[1..].find('`').map_or(rest.len(), |end| end + 2);
            let content = rest[1..end].trim_end_matches('`').to_owned();
            tokens.push(Token {
                line,
                text: Text::String(content),
            });
            end
        } else if first == '"' || first == '\'' {
            let end = find_end(rest, first);
            let content = rest[1..end].trim_end_matches(first).to_owned();
            tokens.push(Token {
                line,
                text: Text::String(content),
            });
            end
        } else if is_word_part(first) {
            let end = rest.find(|c| !is_word_part(c)).unwrap_or(rest.len());
            tokens.push(Token {
                line,
                text: Text::Word(rest[..end].to_owned()),
            });
            end
        } else {
            if !first.is_whitespace() {
                tokens.push(Token {
                    line,
                    text: Text::Sign(first),
                });
            }
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    (tokens, markers)
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// End of a quoted literal. An unterminated one ends with its line.
fn find_end(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_markers() {
        let shown = |source: &str| -> Vec<String> {
            let (tokens, markers) = tokenize(source);
            let tokens = tokens.into_iter().map(|token| match token.text {
                Text::Word(word) => format!("{}:{word}", token.line),
                Text::String(text) => format!("{}:{text:?}", token.line),
                Text::Sign(sign) => format!("{}:{sign}", token.line),
            });
            tokens
                .chain(markers.into_iter().map(|(line, text)| format!("{line}#{text}")))
                .collect()
        };
        for (source, expected) in [
            (
                "a.B(\"c\\\"d\")",
                vec!["1:a", "1:.", "1:B", "1:(", "1:\"c\\\\\\\"d\"", "1:)"],
            ),
            ("/* a\n b */ c // d\n'e'", vec!["2:c", "3:\"e\""]),
            ("`a\nb` c", vec!["1:\"a\\nb\"", "2:c"]),
            (
                "//+kubebuilder:rbac:a=b\n// +groupName=x\n//+other",
                vec!["1#kubebuilder:rbac:a=b", "2#groupName=x"],
            ),
            ("\"open\nnext \"", vec!["1:\"open\"", "2:next", "2:\"\""]),
            ("/* open", vec![]),
            ("`é", vec!["1:\"é\""]),
        ] {
            assert_eq!(shown(source), expected, "{source:?}");
        }
    }
}
