//! Go expressions in a list of tokens.

use super::lexer::{Text, Token};

/// A reference to a type, e.g. `&appsv1.Deployment{}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeRef {
    /// Line of the expression.
    pub line: usize,
    /// Package name in the file; empty for the file's own package.
    pub package: String,
    /// Name of the type.
    pub name: String,
}

/// Maximum length of an expression in characters. Longer ones are truncated.
const LONGEST_EXPRESSION: usize = 80;

/// The tokens of an expression, up to a comma, a closing bracket, or the end of the line.
pub(crate) fn expression_of(tokens: &[Token], line: usize) -> impl Iterator<Item = &Token> {
    let mut depth = 0_usize;
    tokens.iter().take_while(move |token| {
        let is_end = token.line > line || token.is_sign(',') || token.is_sign('}') || token.is_sign(')');
        if depth == 0 && is_end {
            return false;
        }
        match token.text {
            Text::Sign('(' | '{' | '[') => depth += 1,
            Text::Sign(')' | '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        true
    })
}

pub(crate) fn print_tokens<'t>(tokens: impl Iterator<Item = &'t Token>) -> String {
    let mut text = String::new();
    let mut is_after_word = false;
    for token in tokens {
        match &token.text {
            Text::Word(word) => {
                if is_after_word {
                    text.push(' ');
                }
                text.push_str(word);
            }
            Text::String(string) => text.push_str(&format!("{string:?}")),
            Text::Sign(sign) => text.push(*sign),
        }
        if token.is_sign(',') || token.is_sign(':') {
            text.push(' ');
        }
        is_after_word = token.word().is_some();
        if text.chars().count() > LONGEST_EXPRESSION {
            text = text.chars().take(LONGEST_EXPRESSION).chain(['…']).collect();
            break;
        }
    }
    text
}

pub(crate) fn find_type(tokens: &[&Token]) -> Option<TypeRef> {
    let at = tokens.iter().enumerate().position(|(at, token)| {
        token.is_sign('&')
            || token.is_word("new") && tokens.get(at + 1).is_some_and(|token| token.is_sign('('))
    })?;
    let start = at + if tokens[at].is_sign('&') { 1 } else { 2 };
    let first = tokens.get(start)?.word()?.to_owned();
    let line = tokens[start].line;
    if tokens.get(start + 1).is_some_and(|token| token.is_sign('.')) {
        let name = tokens.get(start + 2)?.word()?.to_owned();
        return Some(TypeRef {
            line,
            package: first,
            name,
        });
    }
    Some(TypeRef {
        line,
        package: String::new(),
        name: first,
    })
}
