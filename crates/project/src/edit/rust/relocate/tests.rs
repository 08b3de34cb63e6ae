use super::*;

fn project() -> (BTreeMap<String, String>, ModuleMoves) {
    let files = [
        (
            "src/lib.rs",
            "pub mod api;\npub mod controller;\npub mod settings;\n",
        ),
        ("src/settings.rs", "pub struct Settings;\npub mod inner {}\n"),
        ("src/api/mod.rs", "pub mod common;\npub mod v1;\npub mod v2;\n"),
        ("src/api/common.rs", "pub struct Common;\n"),
        ("src/api/v1/mod.rs", "mod cup;\npub mod codec;\npub use cup::*;\n"),
        ("src/api/v1/cup.rs", "pub struct Cup;\n"),
        ("src/api/v1/codec.rs", ""),
        ("src/api/v2/mod.rs", "mod cup;\npub use cup::*;\n"),
        ("src/api/v2/cup.rs", "pub struct Cup;\n"),
        ("src/controller/mod.rs", "pub mod cup;\npub mod util;\n"),
        ("src/controller/cup.rs", ""),
        ("src/controller/util.rs", ""),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let mut moves = ModuleMoves::default();
    for (from, to) in [
        ("api::v1", "api::cache::v1"),
        ("api::v2", "api::cache::v2"),
        ("controller::cup", "controller::cache::cup"),
    ] {
        moves.insert(from, to);
    }
    (files.into(), moves)
}

/// Relocates the project with one file replaced. Returns the new text of that file, or the
/// obstructions.
fn relocate(path: &str, text: &str) -> Result<String, Vec<String>> {
    let (mut files, moves) = project();
    files.insert(path.to_owned(), text.to_owned());
    let shown = |found: Obstruction| {
        let Obstruction {
            path,
            line,
            column,
            reason,
            help,
        } = found;
        format!("{path}:{line}:{column}: {reason}: {help}")
    };
    match relocate_paths(&files, "shop", &moves) {
        Ok(mut texts) => Ok(texts.remove(path).unwrap_or_else(|| text.to_owned())),
        Err(found) => Err(found.into_iter().map(shown).collect()),
    }
}

#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    assert_eq!(relocate(path, text).as_deref(), Ok(expected), "{path}: {text}");
}

#[test]
fn paths_follow_their_modules() {
    const OTHER: &str = "src/settings.rs";
    for (text, expected) in [
        ("use crate::api::v1::Cup;\n", "use crate::api::cache::v1::Cup;\n"),
        (
            "use crate::api::v1;\nfn f(_: v1::Cup) {}\n",
            "use crate::api::cache::v1;\nfn f(_: v1::Cup) {}\n",
        ),
        (
            "use crate::api;\nfn f(_: api::v1::Cup) {}\n",
            "use crate::api;\nfn f(_: api::cache::v1::Cup) {}\n",
        ),
        (
            "use crate::{api::{self, common::Common, v1::{Cup, codec}, v2 as two}, controller};\n",
            "use crate::{api::{self, common::Common, cache::v1::{Cup, codec}, cache::v2 as two}, controller};\n",
        ),
        (
            "fn f() { use crate::api as a; { use a::v1; v1::f(a::v1::X, a::common::Y) } }\n",
            "fn f() { use crate::api as a; { use a::cache::v1; v1::f(a::cache::v1::X, a::common::Y) } }\n",
        ),
        (
            "fn f() -> crate :: api /* why */ :: v1::Cup { <crate::api::v1::Cup as Default>::default() }\n",
            "fn f() -> crate :: api /* why */ :: cache::v1::Cup { <crate::api::cache::v1::Cup as Default>::default() }\n",
        ),
        (
            "impl From<crate::api::v1::Cup> for Vec<super::api::v2::Cup> {}\n",
            "impl From<crate::api::cache::v1::Cup> for Vec<super::api::cache::v2::Cup> {}\n",
        ),
        (
            "fn f() { assert_eq!(crate::api::v1::X, vec![crate::api::v2::Y; 2]); }\n",
            "fn f() { assert_eq!(crate::api::cache::v1::X, vec![crate::api::cache::v2::Y; 2]); }\n",
        ),
        (
            "pub(in crate::api::v1) fn f() { match x { crate::api::v1::Phase::Up => a..crate::api::v1::END } }\n",
            "pub(in crate::api::cache::v1) fn f() { match x { crate::api::cache::v1::Phase::Up => a..crate::api::cache::v1::END } }\n",
        ),
        // Names that only look like the modules.
        (
            "mod api { pub mod v1 {} }\nuse self::api::v1::X;\nfn f() { other::api::v1(); \"crate::api::v1\"; x.api.v1::<u8>() }\n",
            "mod api { pub mod v1 {} }\nuse self::api::v1::X;\nfn f() { other::api::v1(); \"crate::api::v1\"; x.api.v1::<u8>() }\n",
        ),
        (
            "/// [`crate::api::v1`]\nfn f() {}\n",
            "/// [`crate::api::v1`]\nfn f() {}\n",
        ),
        (
            "use crate::api::v1 as api;\nmod tests { use super::*; fn f(_: api::Cup, _: crate::api::v1::Cup) {} }\n",
            "use crate::api::cache::v1 as api;\nmod tests { use super::*; fn f(_: api::Cup, _: crate::api::cache::v1::Cup) {} }\n",
        ),
        (
            "\u{feff}// ä\r\nuse crate::api::v1::Cup;\r\n",
            "\u{feff}// ä\r\nuse crate::api::cache::v1::Cup;\r\n",
        ),
    ] {
        check(OTHER, text, expected);
    }
    check(
        "tests/cup.rs",
        "use shop::api::v1::Cup;\nuse shop::controller;\nfn f() { controller::cup::controller(); ::shop::api::v2::X; crate::api::v1::X; }\n",
        "use shop::api::cache::v1::Cup;\nuse shop::controller;\nfn f() { controller::cache::cup::controller(); ::shop::api::cache::v2::X; crate::api::v1::X; }\n",
    );
    check(
        "src/main.rs",
        "use shop as lib;\nfn main() { lib::controller::cup::controller(); }\n",
        "use shop as lib;\nfn main() { lib::controller::cache::cup::controller(); }\n",
    );
    check(
        "src/controller/mod.rs",
        "pub mod cup;\npub mod util;\nfn f() { cup::controller(); self::cup::X; util::y(); }\n",
        "pub mod cup;\npub mod util;\nfn f() { cache::cup::controller(); self::cache::cup::X; util::y(); }\n",
    );
    check(
        "src/api/mod.rs",
        "pub mod common;\npub mod v1;\npub mod v2;\npub use v1::Cup;\npub use self::{common::Common, v2::*};\n",
        "pub mod common;\npub mod v1;\npub mod v2;\npub use cache::v1::Cup;\npub use self::{common::Common, cache::v2::*};\n",
    );
}

#[test]
fn moved_files_still_reach_other_modules() {
    for (path, text, expected) in [
        // Both versions move together.
        (
            "src/api/v1/cup.rs",
            "use super::super::v2::Cup as Two;\nuse super::codec;\n",
            "",
        ),
        (
            "src/api/v1/cup.rs",
            "use super::super::common::Common;\n",
            "use super::super::super::common::Common;\n",
        ),
        (
            "src/api/v1/cup.rs",
            "use super::super::super::settings::Settings;\nuse crate::settings::Settings as _;\n",
            "use super::super::super::super::settings::Settings;\nuse crate::settings::Settings as _;\n",
        ),
        (
            "src/controller/cup.rs",
            "use super::util::{self, x};\nuse super::*;\nmod tests { use super::super::util; use super::*; }\n",
            "use super::super::util::{self, x};\nuse super::super::*;\nmod tests { use super::super::super::util; use super::*; }\n",
        ),
        (
            "src/controller/cup.rs",
            "pub(super) fn f() {}\npub(crate) struct S { pub(super) x: u8 }\nmod inner { pub(super) fn g() {} }\n",
            "pub(in crate::controller) fn f() {}\npub(crate) struct S { pub(in crate::controller) x: u8 }\nmod inner { pub(super) fn g() {} }\n",
        ),
        (
            "src/controller/cup.rs",
            "const A: &str = include_str!(\"/etc/hosts\");\n",
            "",
        ),
        (
            "src/api/v1/cup.rs",
            "const A: &str = include_str!(\"cup.json\");\n",
            "",
        ),
        (
            "src/api/v1/cup.rs",
            "#[serde(with = \"super::codec\", default = \"Vec::new\")]\nstruct A;\n",
            "",
        ),
    ] {
        check(path, text, if expected.is_empty() { text } else { expected });
    }
}

#[test]
fn reports_uncertain_paths() {
    for (path, text, expected) in [
        (
            "src/settings.rs",
            "#[serde(with = \"crate::api::v1::codec\")]\nstruct A;\n",
            "src/settings.rs:1:16: `crate::api::v1::codec` is in an attribute, and will be at another path: write `crate::api::cache::v1::codec`",
        ),
        (
            "src/controller/cup.rs",
            "struct A {\n    #[x(default = super::util::y())]\n    a: u8,\n}\n",
            "src/controller/cup.rs:2:19: `super::util::y` is in an attribute, and will be at another path: write `crate::controller::util::y`",
        ),
        (
            "tests/cup.rs",
            "fn f() { tokio::select! { x = shop::controller::cup::run() => {} } }\n",
            "tests/cup.rs:1:31: `shop::controller::cup::run` is in macro arguments that are not expressions, and will be at another path: write `shop::controller::cache::cup::run`",
        ),
        (
            "src/settings.rs",
            "macro_rules! cup { () => { $crate::api::v1::Cup } }\n",
            "src/settings.rs:1:29: `crate::api::v1::Cup` is in the definition of a macro, and will be at another path: write `crate::api::cache::v1::Cup`",
        ),
        (
            "src/settings.rs",
            "use crate::api::*;\nfn f(_: v1::Cup) {}\n",
            "src/settings.rs:2:9: `v1::Cup` resolves `v1` through a glob import, which will no longer import it: write `crate::api::cache::v1::Cup`",
        ),
        (
            "src/settings.rs",
            "use crate::api::*;\nfn f() { cache::clear() }\n",
            "src/settings.rs:2:10: `cache` names a crate here, and will name the module `api::cache`: write `::cache::clear`",
        ),
        (
            "src/controller/mod.rs",
            "pub mod cup;\npub mod util;\nuse moka::sync as cache;\n",
            "src/controller/mod.rs:3:1: `cache` will be the name of a module here: use another name for what this item imports or defines",
        ),
        (
            "src/controller/cup.rs",
            "const A: &str = include_str!(\"../settings.rs\");\n",
            "src/controller/cup.rs:1:30: `../settings.rs` is relative to this file, which moves: write `concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/src/settings.rs\")`",
        ),
        (
            "src/controller/mod.rs",
            "#[path = \"../controller/cup.rs\"]\npub mod cup;\npub mod util;\n",
            "src/controller/mod.rs:1:1: the attribute `path` of `mod cup` names `../controller/cup.rs`, and one of both files moves: move the file to the place of its module, and remove the attribute",
        ),
        (
            "src/settings.rs",
            "fn f( {}\n",
            "src/settings.rs:1:1: it does not parse",
        ),
    ] {
        let found = relocate(path, text).expect_err(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{text}: {found:?}");
        if !text.contains("fn f( {}") {
            assert_eq!(found[0], expected);
        }
    }
    // After the suggested fix there is nothing left to report.
    for (path, text) in [
        (
            "src/settings.rs",
            "#[serde(with = \"crate::api::cache::v1::codec\")]\nstruct A;\n",
        ),
        (
            "src/settings.rs",
            "use crate::api::*;\nfn f() { ::cache::clear() }\n",
        ),
        (
            "src/controller/cup.rs",
            "const A: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/src/settings.rs\"));\n",
        ),
        (
            "src/controller/cup.rs",
            "struct A {\n    #[x(default = crate::controller::util::y())]\n    a: u8,\n}\n",
        ),
    ] {
        check(path, text, text);
    }
}

#[test]
fn moving_back_restores_the_files() {
    let (_, moves) = project();
    let mut back = ModuleMoves::default();
    for (from, to) in moves.iter() {
        back.insert(&to.join("::"), &from.join("::"));
    }
    for gone in ["api::cache", "controller::cache"] {
        back.insert_gone(&gone.split("::").map(str::to_owned).collect::<Vec<_>>());
    }
    let files = |code: &str| -> BTreeMap<String, String> {
        [
            ("src/lib.rs", "pub mod api;\npub mod controller;\n"),
            ("src/api/mod.rs", "pub mod cache;\n"),
            ("src/api/cache/mod.rs", "pub mod v1;\npub mod v2;\n"),
            ("src/api/cache/v1/mod.rs", ""),
            ("src/api/cache/v2/mod.rs", ""),
            ("src/controller/mod.rs", "pub mod cache;\npub mod util;\n"),
            ("src/controller/util.rs", ""),
            ("src/controller/cache/mod.rs", "pub mod cup;\n"),
            ("src/controller/cache/cup.rs", code),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into()
    };
    for (text, expected) in [
        ("use crate::api::cache::v1::Cup;\n", "use crate::api::v1::Cup;\n"),
        (
            "use crate::api::cache::{v1::Cup, v2};\n",
            "use crate::api::{v1::Cup, v2};\n",
        ),
        ("use super::super::util;\n", "use super::util;\n"),
    ] {
        let texts = relocate_paths(&files(text), "shop", &back).expect(text);
        assert_eq!(texts["src/controller/cache/cup.rs"], expected);
    }
    for text in ["use crate::api::cache;\n", "use crate::api::cache::*;\n"] {
        let found = relocate_paths(&files(text), "shop", &back).expect_err(text);
        assert!(
            found[0]
                .reason
                .contains("`api::cache`, which will no longer exist"),
            "{found:?}"
        );
    }
}

#[test]
fn files_follow_their_modules() {
    let (_, mut moves) = project();
    moves.insert("webhook::v1::pod", "webhook::core::v1::pod");
    moves.insert_gone(&["webhook".to_owned(), "v1".to_owned()]);
    let moved = |to: &str| FileFate::Moves(to.to_owned());
    for (path, expected) in [
        ("src/api/v1/mod.rs", moved("src/api/cache/v1/mod.rs")),
        ("src/api/v1/cup.rs", moved("src/api/cache/v1/cup.rs")),
        ("src/api/v1/deep/er.json", moved("src/api/cache/v1/deep/er.json")),
        ("src/api/v1.rs", moved("src/api/cache/v1.rs")),
        ("src/api/mod.rs", FileFate::Stays),
        ("src/api/v10/mod.rs", FileFate::Stays),
        ("src/controller/cup.rs", moved("src/controller/cache/cup.rs")),
        (
            "src/controller/cup/mod.rs",
            moved("src/controller/cache/cup/mod.rs"),
        ),
        (
            "src/controller/cup/part.rs",
            moved("src/controller/cache/cup/part.rs"),
        ),
        ("src/controller/cup_test.rs", FileFate::Stays),
        ("src/webhook/v1/mod.rs", FileFate::Gone),
        ("src/webhook/v1/pod.rs", moved("src/webhook/core/v1/pod.rs")),
        ("tests/api/v1/cup.rs", FileFate::Stays),
    ] {
        assert_eq!(moves.file(path), expected, "{path}");
    }
}
