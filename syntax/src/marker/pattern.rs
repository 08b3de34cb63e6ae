//! Regular expressions: what Go's RE2 can run, which is what the API server has.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, Flag, FlagsItemKind, Visitor};

/// RE2 refuses to repeat anything more often.
const MAX_REPEAT: u32 = 1000;

/// Says why a pattern cannot be used.
///
/// The grammars of Rust's `regex` and of RE2 agree but for a few constructs, which are refused here by name.
/// `\Q…\E` and `\C` are RE2's alone; they are refused too, since they would have to be parsed by hand.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    let ast = Parser::new().parse(pattern).map_err(|error| reason(&error))?;
    ast::visit(&ast, Re2)
}

fn reason(error: &ast::Error) -> String {
    match error.kind() {
        ast::ErrorKind::UnsupportedLookAround => "look-around is not supported".to_owned(),
        ast::ErrorKind::UnsupportedBackreference => "back-references are not supported".to_owned(),
        kind => kind.to_string(),
    }
}

/// Finds the constructs of Rust's grammar that RE2 does not have.
struct Re2;

impl Visitor for Re2 {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            Ast::Flags(set) => flags(&set.flags),
            Ast::Group(group) => group.flags().map_or(Ok(()), flags),
            Ast::Assertion(assertion) => match assertion.kind {
                ast::AssertionKind::StartLine
                | ast::AssertionKind::EndLine
                | ast::AssertionKind::StartText
                | ast::AssertionKind::EndText
                | ast::AssertionKind::WordBoundary
                | ast::AssertionKind::NotWordBoundary => Ok(()),
                _ => Err("RE2 has no `\\b{…}`, `\\<` or `\\>`; write `\\b`".to_owned()),
            },
            Ast::Repetition(repetition) => match &repetition.op.kind {
                ast::RepetitionKind::Range(range) => repeat(range),
                _ => Ok(()),
            },
            Ast::Literal(literal) => escape(literal),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), String> {
        match item {
            ast::ClassSetItem::Bracketed(_) => Err("RE2 has no class inside a class".to_owned()),
            ast::ClassSetItem::Literal(literal) => escape(literal),
            _ => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ast::ClassSetBinaryOp) -> Result<(), String> {
        Err("RE2 has no `&&`, `--` or `~~` in a class".to_owned())
    }
}

fn flags(flags: &ast::Flags) -> Result<(), String> {
    for item in &flags.items {
        if let FlagsItemKind::Flag(Flag::IgnoreWhitespace | Flag::Unicode | Flag::CRLF) = item.kind {
            return Err("RE2 has no flags but `i`, `m`, `s` and `U`".to_owned());
        }
    }
    Ok(())
}

fn repeat(range: &ast::RepetitionRange) -> Result<(), String> {
    let most = match range {
        ast::RepetitionRange::Exactly(most) | ast::RepetitionRange::AtLeast(most) => most,
        ast::RepetitionRange::Bounded(_, most) => most,
    };
    if *most > MAX_REPEAT {
        Err(format!("nothing can be repeated more than {MAX_REPEAT} times"))
    } else {
        Ok(())
    }
}

fn escape(literal: &ast::Literal) -> Result<(), String> {
    match literal.kind {
        ast::LiteralKind::HexFixed(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong)
        | ast::LiteralKind::HexBrace(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong) => {
            Err("RE2 has no `\\u`; write `\\x{…}`".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn re2_or_not() {
        for (pattern, runs) in [
            ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", true),
            (r"^\d{1,3}(\.\d{1,3}){3}$", true),
            (r"(?i)^(?P<name>\p{Greek}+)\z", true),
            (r"[[:alpha:]_]+", true),
            ("(?=x)", false),
            (r"(a)\1", false),
            ("[a-z", false),
            ("a{1001}", false),
            ("[a-z&&[^b]]", false),
            (r"(?x) a", false),
            (r"\u0041", false),
            (r"\b{start}a", false),
        ] {
            assert_eq!(super::check(pattern).is_ok(), runs, "{pattern}");
        }
    }
}
