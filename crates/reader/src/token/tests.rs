//! Edge cases of the lexer.

use super::*;

fn shown(tokens: &Tokens<'_>) -> String {
    let text = |token: &Token| &tokens.text[token.span().range()];
    let shown = tokens.list.iter().map(|token| match token.kind {
        Kind::Ident => text(token).to_owned(),
        Kind::RawIdent => format!("raw:{}", text(token)),
        Kind::Lifetime => format!("life:{}", text(token)),
        Kind::Literal(kind) => format!("{kind:?}:{}", text(token)),
        Kind::Punct(_) | Kind::Open(_) | Kind::Close(_) => text(token).to_owned(),
        Kind::OuterDoc => format!("outer:{}", text(token)),
        Kind::InnerDoc => format!("inner:{}", text(token)),
        Kind::End => "end".to_owned(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn check(text: &str, expected: &str) {
    let tokens = lex(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
    assert_eq!(shown(&tokens), format!("{expected} end").trim_start(), "{text}");
    for (index, token) in tokens.list.iter().enumerate() {
        if let Kind::Open(delimiter) = token.kind {
            let partner = tokens.list[token.partner as usize];
            assert_eq!(partner.kind, Kind::Close(delimiter), "{text}");
            assert_eq!(partner.partner as usize, index, "{text}");
        }
    }
}

#[test]
fn lexes_words() {
    check("", "");
    check("a _b é9 r#fn", "a _b é9 raw:r#fn");
    check("a\u{2028}b\u{85}c", "a b c");
    check("ab\u{200e}", "ab");
}

#[test]
fn lexes_literals() {
    check(r#""a\"b" "\\" c"#, r#"Text:"a\"b" Text:"\\" c"#);
    check(
        r###"r"\" r#"a"b"# r##""#"## r"###,
        r###"Text:r"\" Text:r#"a"b"# Text:r##""#"## r"###,
    );
    check(
        r##"b"x" br#"""# c"x" cr"x" b'x' b'\''"##,
        r##"Bytes:b"x" Bytes:br#"""# Bytes:c"x" Bytes:cr"x" Bytes:b'x' Bytes:b'\''"##,
    );
    check(
        r"'a' '\'' '\\' '\u{1F600}' '\x7f' '😀' ' '",
        r"Char:'a' Char:'\'' Char:'\\' Char:'\u{1F600}' Char:'\x7f' Char:'😀' Char:' '",
    );
    check(
        "&'a T<'static, '_> 'r#fn: 'l",
        "& life:'a T < life:'static , life:'_ > life:'r#fn : life:'l",
    );
}

#[test]
fn lexes_numbers() {
    check(
        "1 1_000u32 0xFFe 0b1 0o7",
        "Integer:1 Integer:1_000u32 Integer:0xFFe Integer:0b1 Integer:0o7",
    );
    check(
        "1.5 1. 1e5 1E-5 1.5e+3f64 1f32",
        "Float:1.5 Float:1. Float:1e5 Float:1E-5 Float:1.5e+3f64 Float:1f32",
    );
    check("0..5", "Integer:0 . . Integer:5");
    check("1.max(2)", "Integer:1 . max ( Integer:2 )");
    check("1usize 1else", "Integer:1usize Integer:1else");
    check("0xe+1 1-1", "Integer:0xe + Integer:1 Integer:1 - Integer:1");
}

#[test]
fn lexes_comments() {
    check("a // b\nc /* d /* e */ f */ g", "a c g");
    check("/// a\n//// b\n//! c\n// d", "outer:/// a inner://! c");
    check(
        "/** a */ /*** b */ /**/ /*! c */",
        "outer:/** a */ inner:/*! c */",
    );
    check("a///", "a outer:///");
}

#[test]
fn skips_preamble() {
    check("\u{feff}a", "a");
    check("#!/usr/bin/env x\na", "a");
    check("\u{feff}#!/usr/bin/env x", "");
    check("#![a]", "# ! [ a ]");
    check("#! // x\n [a]", "# ! [ a ]");
}

#[test]
fn skips_function_bodies() {
    for (text, expected) in [
        ("fn f() { a } b", "fn f ( ) { } b"),
        (
            "fn f() -> [u8; { 2 }] where T: Fn() { { } } b",
            "fn f ( ) - > [ u8 ; { Integer:2 } ] where T : Fn ( ) { } b",
        ),
        (
            "fn f() -> A<{ 1 }> { a } b",
            "fn f ( ) - > A < { Integer:1 } > { } b",
        ),
        (
            "fn f<T: Fn() -> A<B>>() { a } b",
            "fn f < T : Fn ( ) - > A < B > > ( ) { } b",
        ),
        (
            "fn f() { \"}\" '}' '{' r#\"}\"# b'}' /* } */ // }\n } b",
            "fn f ( ) { } b",
        ),
        (
            "trait T { fn f(); fn g() { x } }",
            "trait T { fn f ( ) ; fn g ( ) { } }",
        ),
        ("const F: fn() = { a };", "const F : fn ( ) = { a } ;"),
        ("m! { fn $name() { a } }", "m ! { fn $ name ( ) { a } }"),
        ("fn r#fn() { a }", "fn raw:r#fn ( ) { }"),
    ] {
        check(text, expected);
    }
}

#[test]
fn reports_unbalanced_and_unterminated_tokens() {
    for (text, message, place) in [
        ("a { ( }", "mismatched closing delimiter `}` for `(`", "}"),
        ("a ) b", "unexpected closing delimiter `)`", ")"),
        ("a { b", "unclosed delimiter `{`", "{"),
        ("fn f() { ( }", "mismatched closing delimiter `}` for `(`", "}"),
        ("fn f() { ", "unclosed delimiter `{`", "{"),
        ("\"a", "unterminated string literal", "\""),
        ("\"a\\", "unterminated string literal", "\""),
        ("br#\"a\"", "unterminated string literal", "#\""),
        ("'\\", "unterminated character literal", "'"),
        ("'a", "", ""),
        ("'1", "unterminated character literal", "'"),
        ("a /* /* */", "unterminated comment", "/*"),
        ("a “b”", "unexpected character `“`", "“"),
        ("a \\ b", "unexpected character `\\\\`", "\\"),
        ("a ` b", "unexpected character ``", "`"),
        ("a \0 b", "unexpected character `\\0`", "\0"),
    ] {
        match lex(text) {
            Ok(_) => assert_eq!(message, "", "{text}"),
            Err(error) => {
                assert_eq!(error.message.replace("```", "``"), message, "{text}");
                assert_eq!(&text[error.place.range()], place, "{text}");
            }
        }
    }
}

#[test]
fn limits_depth_outside_of_bodies() {
    let nest = |times: usize| format!("{}{}", "(".repeat(times), ")".repeat(times));
    assert!(lex(&nest(MAX_DEPTH)).is_ok());
    assert!(lex(&nest(MAX_DEPTH + 1)).is_err_and(|error| !error.is_error()));
    assert!(lex(&format!("fn f() {{ {} }}", nest(100_000))).is_ok());
}

const WORDS: MarkWords = MarkWords {
    derives: &["CustomResource"],
    attributes: &["rbac", "webhook"],
    comments: Some(b'+'),
};

fn check_marks(text: &str, expected: &[(&str, bool)]) {
    let tokens = lex_marked(text, &WORDS).unwrap_or_else(|error| panic!("{text}: {}", error.message));
    let marks: Vec<_> = tokens
        .marks()
        .iter()
        .map(|mark| (mark.word, mark.in_body))
        .collect();
    assert_eq!(marks, expected, "{text}");
    for mark in tokens.marks() {
        assert!(text[mark.at as usize..].starts_with(mark.word), "{text}");
    }
}

#[test]
fn finds_marks_only_in_code() {
    let kind = |in_body| ("CustomResource", in_body);
    let rbac = |in_body| ("rbac", in_body);
    check_marks("#[derive(Clone, CustomResource)] struct S;", &[kind(false)]);
    check_marks(
        "# /* x */ [ derive (kube::CustomResource)] struct S;",
        &[kind(false)],
    );
    check_marks("use kube::CustomResource;", &[]);
    check_marks("#[doc(CustomResource)] struct S;", &[]);
    check_marks("#[rbac(groups = \"a\")] fn f() {}", &[rbac(false)]);
    check_marks(
        "#[rbuilder::rbac (x)] #![cfg_attr(x, rbac(y))] fn f() {}",
        &[rbac(false), rbac(false)],
    );
    check_marks("mod rbac; use rbuilder::rbac; fn rbac() {} #[a] rbac(1)", &[]);
    check_marks(
        "// #[rbac(x)]\n/* #[rbac(x)] */ const S: &str = \"#[rbac(x)]\";",
        &[],
    );
    check_marks(
        "fn f() { #[derive(CustomResource)] struct S; #[rbac(x)] g() }",
        &[kind(true), rbac(true)],
    );
    check_marks("m! { #[derive(CustomResource)] struct S; }", &[kind(false)]);
    check_marks(
        "#[webhook(mutating)] fn f() {} #[rbuilder::webhook(validating)] fn webhook() {}",
        &[("webhook", false), ("webhook", false)],
    );
}

#[test]
fn records_comments_outside_of_bodies() {
    let text = "// +a\n/// +b\n//  +c\n// d\nfn f() { // +e\n }";
    let tokens = lex_marked(text, &WORDS).expect("tokens");
    let noted: Vec<_> = tokens
        .marked_comments()
        .iter()
        .map(|span| &text[span.range()])
        .collect();
    assert_eq!(noted, [" +a", "  +c"]);
}
