//! Text before and after each edit.

use super::*;
use crate::edit::Obstacle;

fn check(edit: impl Fn(&str) -> Result<String, Obstacle>, before: &str, after: &str) {
    let edited = edit(before).expect(before);
    assert_eq!(edited, after, "editing\n{before}");
    assert_eq!(edit(&edited).expect(after), after, "editing twice\n{before}");
}

#[test]
fn adds_module_in_order() {
    let edit = |text: &str| add_module(text, "v2", true);
    check(edit, "//! Docs.\n", "//! Docs.\n\npub mod v2;\n");
    check(edit, "", "pub mod v2;\n");
    check(edit, "//! Docs.", "//! Docs.\n\npub mod v2;\n");
    check(
        edit,
        "pub mod v1;\npub mod v10;\n",
        "pub mod v1;\npub mod v2;\npub mod v10;\n",
    );
    check(
        edit,
        "pub mod v1;\n\n// after\n",
        "pub mod v1;\npub mod v2;\n\n// after\n",
    );
    check(
        edit,
        "/// Third.\npub mod v3;\n",
        "pub mod v2;\n/// Third.\npub mod v3;\n",
    );
    check(
        edit,
        "//! Docs.\n\nuse a::b;\n\nfn f() {}\n",
        "//! Docs.\n\npub mod v2;\n\nuse a::b;\n\nfn f() {}\n",
    );
    check(
        edit,
        "pub mod v1; // old\r\n",
        "pub mod v1; // old\r\npub mod v2;\r\n",
    );
}

/// Adding several lines at once must have the same result as adding them one by one.
#[test]
fn several_lines_are_added_as_one_by_one() {
    fn check<T: Copy>(
        texts: &[&str],
        added: &[T],
        one: impl Fn(&str, T) -> Result<String, Obstacle>,
        all: impl Fn(&str, &[T]) -> Result<String, Obstacle>,
    ) {
        for text in texts {
            // Each rotation is another order.
            for start in 0..added.len() {
                let order = [&added[start..], &added[..start], &added[..1]].concat();
                let expected = order
                    .iter()
                    .try_fold((*text).to_owned(), |text, added| one(&text, *added));
                assert_eq!(all(text, &order), expected, "{text}");
                let missing = order.iter().any(|added| one(text, *added).as_deref() != Ok(text));
                assert!(missing, "{text}");
            }
        }
    }
    check(
        &[
            "",
            "//! Docs.\n",
            "//! Docs.\n\nuse a::b;\n\nfn f() {}\n",
            "pub mod c; // old\r\n\r\nuse x::y;\r\n",
            "/// Docs.\nmod b;\npub mod v2;\n\npub use b::*;\n",
        ],
        &[
            ("v2", true),
            ("c", true),
            ("r#type", false),
            ("v10", true),
            ("a", true),
        ],
        |text, (name, public)| add_module(text, name, public),
        add_modules,
    );
    check(
        &[
            "",
            "mod a;\nmod c;\n",
            "mod a;\n\npub use b::B;\npub use d::{self, E};\n\nfn f() {}\n",
            "pub use self::b::*;\n",
        ],
        &[
            ("c", "*"),
            ("self::mug", "*"),
            ("a", "A"),
            ("self::cup", "*"),
            ("d", "*"),
            ("e", "*"),
        ],
        |text, (path, names)| add_reexport(text, path, names),
        add_reexports,
    );
    check(
        &[
            "fn register(m: M) -> M {\n    m\n}\n",
            "fn register(m: M) -> M {\n    m.controller(c::controller())\n}\n",
            "fn register(m: M) -> M {\n    m\n        .controller(a_rather_long_name::controller()) // why\n        .controller(c::controller())\n}\n",
        ],
        &[
            "a::controller()",
            "c::controller()",
            "a_rather_long_name::controller()",
            "b::controller()",
        ],
        |text, call| add_registration(text, "controller", call),
        |text, calls| add_registrations(text, "controller", calls),
    );
}

#[test]
fn removes_several_modules_as_one_by_one() {
    let text = "//! Docs.\n\npub mod a;\npub mod b;\npub mod c;\n\npub mod d;\n\nfn f() {}\n";
    for names in [
        &["a", "b", "c"][..],
        &["a", "d"],
        &["b", "x"],
        &["a", "b", "c", "d"],
        &[],
    ] {
        let one_by_one = names
            .iter()
            .try_fold(text.to_owned(), |text, name| remove_module(&text, name));
        let at_once = remove_modules(text, names).map_err(|(_, obstacle)| obstacle);
        assert_eq!(at_once, one_by_one, "{names:?}");
    }
    let refused = remove_modules("pub mod a;\nfn f() {} pub mod b;\n", &["a", "b"]);
    assert_eq!(refused.map_err(|(name, _)| name), Err("b"));
}

#[test]
fn adds_reexport_in_order() {
    let edit = |text: &str| add_reexport(text, "mug", "*");
    check(edit, "mod mug;\n", "mod mug;\n\npub use mug::*;\n");
    check(
        edit,
        "mod cup;\nmod mug;\n\npub use cup::*;\n",
        "mod cup;\nmod mug;\n\npub use cup::*;\npub use mug::*;\n",
    );
    check(
        edit,
        "mod mug;\npub use self::mug::Mug;\n",
        "mod mug;\npub use self::mug::Mug;\n",
    );
    check(
        |text: &str| add_reexport(text, "self::mug", "*"),
        "mod cup;\nmod mug;\n\npub use cup::*;\n",
        "mod cup;\nmod mug;\n\npub use self::mug::*;\npub use cup::*;\n",
    );
}

#[test]
fn registers_controller() {
    let edit = |text: &str| add_registration(text, "controller", "mug::controller()");
    check(
        edit,
        "pub fn register(manager: Manager) -> Manager {\n    manager\n}\n",
        "pub fn register(manager: Manager) -> Manager {\n    manager.controller(mug::controller())\n}\n",
    );
    check(
        edit,
        "fn register(m: Manager) -> Manager {\n    m.controller(a_kind_with_a_name::controller())\n}\n",
        "fn register(m: Manager) -> Manager {\n    m\n        .controller(a_kind_with_a_name::controller())\n        .controller(mug::controller())\n}\n",
    );
    check(
        edit,
        "fn register(m: Manager) -> Manager {\n    let m = other(m);\n    m\n        // The first.\n        .controller(a::controller())\n}\n",
        "fn register(m: Manager) -> Manager {\n    let m = other(m);\n    m\n        // The first.\n        .controller(a::controller())\n        .controller(mug::controller())\n}\n",
    );
}

#[test]
fn registers_webhooks_next_to_controllers() {
    let main =
        |import: &str, calls: &str| format!("use {import};\n\nfn main() {{\n    let m = f();\n{calls}}}\n");
    let controllers = "    controller::register(m).start()\n";
    let both = "    let m = webhook::register(m);\n    controller::register(m).start()\n";
    check(
        register_webhooks,
        &main("shop::controller", controllers),
        &main("shop::{controller, webhook}", both),
    );
    check(
        register_webhooks,
        &main("shop::{api, controller}", controllers),
        &main("shop::{api, controller, webhook}", both),
    );
    for text in [
        main("shop::controller", "    other(m)\n"),
        main("shop::*", controllers),
        main("shop::controller", "    controller::register(f(m))\n"),
        main("shop::controller", &format!("{controllers}{controllers}")),
    ] {
        assert!(register_webhooks(&text).is_err(), "{text}");
    }
}

#[test]
fn adds_conversion_to_the_kind() {
    let edit = |text: &str| add_conversion(text, "Mug");
    let before = "/// A mug.\n#[derive(CustomResource)]\n#[kube(\n    kind = \"Mug\"\n)]\n#[serde(x)]\nstruct MugSpec {}\n";
    let after = before.replace(")]\n#[serde", ")]\n#[crd(conversion)]\n#[serde");
    check(edit, before, &after);
    let own = "#[kube(kind = \"Mug\")]\n#[crd(conversion(path = \"/c\"))]\nstruct MugSpec {}\n";
    check(edit, own, own);
    assert!(edit("struct CupSpec {}").is_err());
    assert!(edit("struct MugSpec {}").is_err());
}

#[test]
fn rejects_unknown_code() {
    for text in [
        "fn register( {",
        "fn start() {}",
        "fn register(m: M) -> M { return m; }",
        "fn register(m: M) -> M { if a { m } else { m } }",
    ] {
        assert!(
            add_registration(text, "controller", "mug::controller()").is_err(),
            "{text}"
        );
    }
}

#[test]
fn byte_order_mark_and_shebang_do_not_shift_edits() {
    let register = "pub fn register(manager: Manager) -> Manager {\n    manager\n}\n";
    for head in [
        "\u{feff}",
        "#!/usr/bin/env rust\n",
        "\u{feff}#!/x\n",
        "#![allow(unused)]\n",
    ] {
        check(
            |text| add_registration(text, "controller", "mug::controller()"),
            &format!("{head}{register}"),
            &format!(
                "{head}{}",
                register.replace("    manager\n", "    manager.controller(mug::controller())\n")
            ),
        );
        check(
            |text| add_module(text, "b", true),
            &format!("{head}mod a;\n"),
            &format!("{head}mod a;\npub mod b;\n"),
        );
        check(
            |text| add_module(text, "a", true),
            &format!("{head}mod b;\n"),
            &format!("{head}{}pub mod a;\nmod b;\n", ""),
        );
        check(
            |text| add_conversion(text, "Mug"),
            &format!("{head}#[kube(kind = \"Mug\")]\nstruct MugSpec;\n"),
            &format!("{head}#[kube(kind = \"Mug\")]\n#[crd(conversion)]\nstruct MugSpec;\n"),
        );
    }
}

#[test]
fn module_goes_on_its_own_line() {
    let edit = |text: &str| add_module(text, "b", false);
    for (before, after) in [
        (
            "mod a; /* x\ny */\nmod c;\n",
            "mod a; /* x\ny */\nmod b;\nmod c;\n",
        ),
        (
            "mod a; /* x\n/* n */ y */ // z\n",
            "mod a; /* x\n/* n */ y */ // z\nmod b;\n",
        ),
        ("mod a; mod c;\nfn f() {}\n", "mod a; mod c;\nmod b;\nfn f() {}\n"),
        (
            "mod a; fn f() {\n}\nmod d;\n",
            "mod a; fn f() {\n}\nmod b;\nmod d;\n",
        ),
        ("#![allow(x)] mod c;\n", "#![allow(x)] mod c;\nmod b;\n"),
        (
            "#![allow(x)]\n#[cfg(x)] mod c;\n",
            "#![allow(x)]\nmod b;\n#[cfg(x)] mod c;\n",
        ),
        ("/* head\n */ mod c;\n", "mod b;\n/* head\n */ mod c;\n"),
        (
            "// Head.\n\n// Of c.\nmod c;\n",
            "// Head.\n\nmod b;\n// Of c.\nmod c;\n",
        ),
        ("// Head.\nmod c;\n", "// Head.\nmod b;\nmod c;\n"),
        ("mod a;\n// Of c.\nmod c;\n", "mod a;\nmod b;\n// Of c.\nmod c;\n"),
        ("mod a; // mod b;", "mod a; // mod b;\nmod b;\n"),
        ("// mod b;\n/* mod b; */\n", "// mod b;\n/* mod b; */\n\nmod b;\n"),
        (
            "const A: &str = \"\nmod b;\n\";\n",
            "mod b;\n\nconst A: &str = \"\nmod b;\n\";\n",
        ),
        ("m! { mod b; }\n", "mod b;\n\nm! { mod b; }\n"),
        ("mod a;\r\nmod c;\n", "mod a;\r\nmod b;\r\nmod c;\n"),
        ("mod a;\nmod c;\r\n", "mod a;\nmod b;\nmod c;\r\n"),
        (
            "mod a;\n\n#[cfg(test)]\nmod tests {\n}\n",
            "mod a;\nmod b;\n\n#[cfg(test)]\nmod tests {\n}\n",
        ),
        (
            "#[path = \"b/mod.rs\"]\nmod b;\n",
            "#[path = \"b/mod.rs\"]\nmod b;\n",
        ),
        ("mod r#b;\n", "mod r#b;\n"),
    ] {
        check(edit, before, after);
    }
    for text in [
        "mod b {}\n",
        "#[path = \"x.rs\"] mod b;\n",
        "#[cfg(test)]\nmod b;\n",
        "mod b\n",
        "mod b; */",
    ] {
        assert!(edit(text).is_err(), "{text}");
    }
}

#[test]
fn finds_existing_registrations() {
    let edit = |text: &str| add_registration(text, "controller", "mug::controller()");
    let file = |body: &str| {
        format!("use crate::controller::mug::controller as other;\nfn register(m: M) -> M {{\n{body}}}\n")
    };
    for body in [
        "    m.controller(mug::controller())\n",
        "    m\n        .controller( // x\n            mug :: controller ( ),\n        )\n",
        "    let m = m.controller(self::mug::controller());\n    m\n",
        "    if x { m.controller(crate::controller::mug::controller()) } else { m }\n",
        "    m.controller(mug::controller().workers(3)).then()\n",
        "    let mug = wrap(mug::controller());\n    return m.controller(mug);\n",
        "    m.controller(other())\n",
        "    M::controller(m, mug::controller())\n",
        "    chained!(m.controller(mug::controller()))\n",
        "    more(m)\n}\nfn more(m: M) -> M {\n    m.controller(mug::controller())\n",
    ] {
        check(edit, &file(body), &file(body));
    }
    for (before, after) in [
        (
            "    // .controller(mug::controller())\n    m\n",
            "    // .controller(mug::controller())\n    m.controller(mug::controller())\n",
        ),
        (
            "    say(\".controller(mug::controller())\");\n    m\n",
            "    say(\".controller(mug::controller())\");\n    m.controller(mug::controller())\n",
        ),
        (
            "    drop(mug::controller());\n    m\n",
            "    drop(mug::controller());\n    m.controller(mug::controller())\n",
        ),
        (
            "    m.controller(tall::mug::controller())\n",
            "    m\n        .controller(tall::mug::controller())\n        .controller(mug::controller())\n",
        ),
        (
            "    m // .controller(mug::controller())\n",
            "    m.controller(mug::controller()) // .controller(mug::controller())\n",
        ),
        (
            "    m\n        .controller(a::controller()) // first\n    // last\n",
            "    m\n        .controller(a::controller()) // first\n        .controller(mug::controller())\n    // last\n",
        ),
        (
            "\tm\n\t\t.a()\n",
            "\tm\n\t\t.a()\n\t\t.controller(mug::controller())\n",
        ),
        (
            "    m }\n#[cfg(test)]\nfn more(m: M) -> M { m.controller(mug::controller()) ",
            "    m.controller(mug::controller()) }\n#[cfg(test)]\nfn more(m: M) -> M { m.controller(mug::controller()) ",
        ),
    ] {
        check(edit, &file(before), &file(after));
    }
    check(
        edit,
        "fn register(m: M) -> M {\r\n    m.controller(a_kind_with_a_long_name::controller())\r\n}\r\n",
        "fn register(m: M) -> M {\r\n    m\r\n        .controller(a_kind_with_a_long_name::controller())\r\n        .controller(mug::controller())\r\n}\r\n",
    );
    for text in [
        "#[cfg(a)]\nfn register(m: M) -> M { m }\n#[cfg(not(a))]\nfn register(m: M) -> M { m }\n",
        "fn register(m: M) -> M { other.a() }",
        "mod inner { fn register(m: M) -> M { m } }",
        "// fn register(m: M) -> M { m }",
    ] {
        assert!(edit(text).is_err(), "{text}");
    }
    let both = "#[cfg(a)]\nfn register(m: M) -> M { m }\n#[cfg(not(a))]\nfn register(m: M) -> M { m.controller(mug::controller()) }\n";
    check(edit, both, both);
}

#[test]
fn finds_the_registration_of_controllers() {
    let file = |import: &str, body: &str| format!("use {import};\nfn main() {{\n{body}}}\n");
    let call = "    controller::register(m).start()\n";
    let both = format!("    let m = webhook::register(m);\n{call}");
    for (before, after) in [
        (
            file(
                "shop::controller",
                &format!("    // webhook::register(m)\n{call}"),
            ),
            file(
                "shop::{controller, webhook}",
                &format!("    // webhook::register(m)\n{both}"),
            ),
        ),
        (
            file(
                "shop::controller",
                "    let running =\n        controller::register(m)\n            .start();\n",
            ),
            file(
                "shop::{controller, webhook}",
                "    let m = webhook::register(m);\n    let running =\n        controller::register(m)\n            .start();\n",
            ),
        ),
        (
            file(
                "shop::controller",
                "    let x = match y { _ => controller::register(m) };\n",
            ),
            file(
                "shop::{controller, webhook}",
                "    let m = webhook::register(m);\n    let x = match y { _ => controller::register(m) };\n",
            ),
        ),
        (
            file("clap::Parser", "    f(); shop::controller::register(m);\n"),
            file(
                "clap::Parser",
                "    f(); let m = shop::webhook::register(m); shop::controller::register(m);\n",
            ),
        ),
        (
            file("shop::controller;\nuse rbuilder::webhook", call),
            file(
                "shop::controller;\nuse rbuilder::webhook",
                "    let m = shop::webhook::register(m);\n    controller::register(m).start()\n",
            ),
        ),
        (
            file("shop::controller;\nuse shop::webhook", call),
            file("shop::controller;\nuse shop::webhook", &both),
        ),
        (
            file("shop::controller", &both),
            file("shop::{controller, webhook}", &both),
        ),
    ] {
        check(register_webhooks, &before, &after);
    }
    for text in [
        file("shop::controller", "    // controller::register(m)\n"),
        file("shop::controller", "    let x = \"controller::register(m)\";\n"),
    ] {
        assert!(register_webhooks(&text).is_err(), "{text}");
    }
}

#[test]
fn finds_existing_conversions() {
    let edit = |text: &str| add_conversion(text, "Mug");
    for (before, after) in [
        (
            "#[kube(kind = \"Mug\")] pub struct Mug1 {}\n",
            "#[kube(kind = \"Mug\")] #[crd(conversion)] pub struct Mug1 {}\n",
        ),
        (
            "#[kube(kind = \"Mug\")] /* x\n*/\n#[crd(title = \"conversion\")]\nstruct M;\n",
            "#[kube(kind = \"Mug\")] /* x\n*/\n#[crd(conversion)]\n#[crd(title = \"conversion\")]\nstruct M;\n",
        ),
        (
            "#[kube(kind = \"Mug\")] // x\r\nstruct M;\r\n",
            "#[kube(kind = \"Mug\")] // x\r\n#[crd(conversion)]\r\nstruct M;\r\n",
        ),
        (
            "mod a {\n    #[kube(kind = \"Mug\")]\n    struct M;\n}\n",
            "mod a {\n    #[kube(kind = \"Mug\")]\n    #[crd(conversion)]\n    struct M;\n}\n",
        ),
    ] {
        check(edit, before, after);
    }
    for text in [
        "#[kube(kind = \"Cup\")] struct MugSpec {}",
        "#[cfg(a)] #[kube(kind = \"Mug\")] struct A; #[cfg(b)] #[kube(kind = \"Mug\")] struct B;",
        "#[kube(kind = \"Mug\")] #[crd(conversion(strategy = \"None\"))] struct A;",
        "// #[kube(kind = \"Mug\")]\nstruct MugSpec;",
    ] {
        assert!(edit(text).is_err(), "{text}");
    }
}

const PIECES: &[&str] = &[
    "mod b;",
    "mod a",
    "pub use b::*;",
    "fn register(m: M) -> M",
    "fn webhook() -> W<K>",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "->",
    "::<",
    ">::",
    ".a()",
    ".controller(mug::controller())",
    "m",
    "let m =",
    ";",
    ",",
    "=",
    "#[webhook(mutating)]",
    "#[cfg(test)]",
    "#![a]",
    "#!x\n",
    "\n",
    "\r\n",
    "\r",
    "// c\n",
    "/* d */",
    "/*",
    "*/",
    "\"",
    "\u{feff}",
    "\u{e4}",
    "r#fn",
    "'a",
    "1.",
    "use shop::controller;",
    "use {a::{self as b}, *};",
    "controller::register(m)",
    "#[kube(kind = \"K\")]",
    "struct K",
    "W::new()",
    "#[crd(",
    "if a",
    "match x",
    "=>",
    "|x|",
    "m!",
    "return",
    "impl From<A> for B {}",
    "type T = a::B;",
    "async",
];

type Edit<'a> = &'a dyn Fn(&str) -> Result<String, Obstacle>;

proptest::proptest! {
    /// An edit returns an addition or a reason for any input.
    #[test]
    fn edits_succeed_or_fail_on_any_input(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24)) {
        let handlers = Handlers {
            scaffold: "use crate::api::v1::K;\npub fn webhook() -> rbuilder::Webhook<K> {\n    rbuilder::Webhook::new()\n}\n#[rbuilder::webhook(mutating)]\nfn default(k: &mut K) {}\n",
            kind: "K",
            variable: "k",
            module: &["webhook", "v1", "k"],
            defaulting: true,
            validation: false,
            spokes: &["crate::api::v2::K".to_owned()],
        };
        let edits: [Edit<'_>; 6] = [
            &|text| add_module(text, "b", true),
            &|text| add_reexport(text, "b", "*"),
            &|text| add_registration(text, "controller", "mug::controller()"),
            &register_webhooks,
            &|text| add_conversion(text, "K"),
            &|text| add_handlers(text, &handlers),
        ];
        for text in [pieces.concat(), pieces.join(" ")] {
            for edit in &edits {
                let Ok(edited) = edit(&text) else { continue };
                proptest::prop_assert!(verify_rust_edit(&text, &edited).is_ok(), "{text}\nbecame\n{edited}");
                proptest::prop_assert_eq!(edit(&edited), Ok(edited.clone()), "{}", text);
            }
            let _ = (has_conversion(&text), defines_kind(&text, "K"));
        }
    }
}
