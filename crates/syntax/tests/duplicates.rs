//! Every argument list treats duplicates the same way: the second argument is an error, the first
//! value is kept, and later mistakes are still found.

use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::lex;
use rbuilder_reader::{Diagnostic, Span};
use rbuilder_schema::Key;
use rbuilder_syntax::marker::{Place, markers};
use rbuilder_syntax::{
    CRD_KEYS, KUBE_KEYS, RBAC_ARGS, Session, Type, WEBHOOK_ARGS, parse_rbac, parse_type, parse_webhook,
};

fn read(source: &str, session: &mut Session) -> Result<Option<Type>, Diagnostic> {
    let tokens = lex(source)?;
    match Items::new(tokens.cursor(), None).read()? {
        Some(Item {
            attrs,
            kind: ItemKind::Type(item),
            ..
        }) => Ok(parse_type(&attrs, item, session)),
        _ => Err(Diagnostic::error(Span::default(), "not a type")),
    }
}

/// Counts the reported duplicates of `name`, and checks that each error is at the second argument.
fn count(name: &str, source: &str, session: Session) -> usize {
    let message = format!("duplicate argument `{name}`");
    let all = session.diagnostics.into_vec();
    let duplicates: Vec<_> = all.iter().filter(|each| each.message == message).collect();
    for duplicate in &duplicates {
        let place = duplicate.place.range();
        assert_eq!(&source[place.clone()], name, "{source}");
        assert!(
            source[..place.start].contains(name),
            "{source}: not the second one"
        );
    }
    duplicates.len()
}

fn count_in_type(name: &str, source: &str) -> usize {
    let mut session = Session::default();
    read(source, &mut session).expect("a type");
    count(name, source, session)
}

#[test]
fn reports_duplicate_arguments() {
    for marker in markers() {
        let (name, expected) = (marker.name, usize::from(!marker.repeatable));
        let source = if marker.places.contains(&Place::Field) {
            format!("struct S {{ #[kube({name}, {name})] f: Foreign }}")
        } else {
            format!("#[kube({name}, {name})] struct S {{ a: u8 }}")
        };
        assert_eq!(count_in_type(name, &source), expected, "{source}");
        if marker.places.contains(&Place::Value) {
            let source = format!("struct S {{ #[crd(items({name}, {name}))] f: Foreign }}");
            assert_eq!(count_in_type(name, &source), expected, "{source}");
        }
    }
    for key in Key::arguments() {
        let name = key.argument;
        let source = format!("struct S {{ #[kube(validation({name}), validation({name}))] f: Foreign }}");
        assert_eq!(count_in_type(name, &source), 1, "{source}");
    }
    for key in KUBE_KEYS {
        let (name, expected) = (key.name, usize::from(!key.repeatable));
        let source = format!("#[derive(CustomResource)] #[kube({name})] #[kube({name})] struct S {{}}");
        assert_eq!(count_in_type(name, &source), expected, "{source}");
    }
    for key in CRD_KEYS {
        let (name, expected) = (key.name, usize::from(!key.repeatable));
        let source = format!("#[derive(CustomResource)] #[crd({name}, {name})] struct S {{}}");
        assert_eq!(count_in_type(name, &source), expected, "{source}");
    }
    for row in RBAC_ARGS {
        let source = format!("{0}, {0}", row.name);
        let tokens = lex(&source).expect("tokens");
        let mut session = Session::default();
        parse_rbac(tokens.cursor(), &mut session);
        let expected = usize::from(!row.repeatable);
        assert_eq!(count(row.name, &source, session), expected, "{source}");
    }
    for row in WEBHOOK_ARGS {
        let source = format!("{0}, {0}", row.name);
        let tokens = lex(&source).expect("tokens");
        let mut session = Session::default();
        parse_webhook(tokens.cursor(), &mut session);
        assert_eq!(
            count(row.name, &source, session),
            usize::from(!row.repeatable),
            "{source}"
        );
    }
}

#[test]
fn reports_duplicate_nested_arguments() {
    let lists: &[(&str, &[&str])] = &[
        (
            "struct S { #[kube(cel(?, ?))] f: Foreign }",
            &[
                "rule",
                "message",
                "message_expression",
                "reason",
                "field_path",
                "optional_old_self",
            ],
        ),
        (
            "struct S { #[kube(external_docs(?, ?))] f: Foreign }",
            &["url", "description"],
        ),
        (
            "#[derive(CustomResource)] #[kube(printcolumn(?, ?))] struct S {}",
            &["name", "type_", "json_path", "description", "format", "priority"],
        ),
        (
            "#[derive(CustomResource)] #[kube(scale(?, ?))] struct S {}",
            &[
                "spec_replicas_path",
                "status_replicas_path",
                "label_selector_path",
            ],
        ),
        (
            "#[derive(CustomResource)] #[crd(conversion(?, ?))] struct S {}",
            &[
                "strategy",
                "service_name",
                "service_namespace",
                "service_port",
                "path",
                "url",
                "ca_bundle",
                "review_versions",
            ],
        ),
        (
            "#[serde(?)] #[serde(?)] struct S { a: u8 }",
            &["default", "tag", "from", "deny_unknown_fields"],
        ),
        (
            "struct S { #[serde(?, ?)] a: u8 }",
            &["default", "skip", "skip_serializing_if", "with"],
        ),
        ("enum E { #[serde(?, ?)] A }", &["skip_serializing", "other"]),
        (
            "struct S { #[serde(rename(?, ?))] a: u8 }",
            &["serialize", "deserialize"],
        ),
    ];
    for (list, names) in lists {
        for name in *names {
            let source = list.replace('?', name);
            assert_eq!(count_in_type(name, &source), 1, "{source}");
        }
    }
    let lists: &[(&str, &[&str])] = &[
        ("match_condition(?, ?)", &["name", "expression"]),
        ("object_selector(?, ?)", &["match_labels"]),
        (
            "namespace_selector(match_expression(?, ?))",
            &["key", "operator", "values"],
        ),
    ];
    for (list, names) in lists {
        for name in *names {
            let source = list.replace('?', name);
            let tokens = lex(&source).expect("tokens");
            let mut session = Session::default();
            parse_webhook(tokens.cursor(), &mut session);
            assert_eq!(count(name, &source, session), 1, "{source}");
        }
    }
}

#[test]
fn serde_renames_each_direction_once() {
    let name = |attrs: &str| {
        let source = format!("struct S {{ {attrs} f: u8 }}");
        let mut session = Session::default();
        let read = read(&source, &mut session).expect("a type").expect("a type");
        let rbuilder_schema::Shape::Object(fields) = read.container.shape else {
            panic!("{source} has no fields");
        };
        (fields[0].name.clone(), count("rename", &source, session))
    };
    for (attrs, expected) in [
        (r#"#[serde(rename = "a", rename = "b")]"#, ("a", 1)),
        (
            r#"#[serde(rename(serialize = "a"), rename(deserialize = "a"))]"#,
            ("a", 0),
        ),
        (
            r#"#[serde(rename(deserialize = "a"), rename(deserialize = "b", serialize = "a"))]"#,
            ("a", 1),
        ),
        (r#"#[serde(rename = "a")] #[schemars(rename = "a")]"#, ("a", 0)),
    ] {
        let (found, duplicates) = name(attrs);
        assert_eq!((found.as_str(), duplicates), expected, "{attrs}");
    }
}

#[test]
fn first_value_is_kept_and_later_mistakes_are_found() {
    let source = r#"#[derive(CustomResource)]
        #[kube(group = "a.b", version = "v1", kind = "Foo", plural = "as", plural = "bs", plurl = "x")]
        #[crd(conversion(path = "/a", path = "/b"))]
        #[crd(conversion(path = "/c"))]
        struct FooSpec { #[kube(title = "a", title = "b", tytle = "c")] a: u8 }"#;
    let mut session = Session::default();
    let read = read(source, &mut session).expect("a type").expect("a type");
    let resource = read.custom_resource.expect("a kind");
    assert_eq!(resource.plural.as_deref(), Some("as"));
    assert_eq!(resource.conversion.expect("a conversion").path, "/a");
    let rbuilder_schema::Shape::Object(fields) = &read.container.shape else {
        panic!("no fields");
    };
    assert_eq!(fields[0].markers.stated().title.as_deref(), Some("a"));
    let messages: Vec<_> = session
        .diagnostics
        .into_vec()
        .into_iter()
        .map(|diagnostic| diagnostic.message)
        .collect();
    let expected = [
        "duplicate argument `plural`",
        "unknown key `plurl` of a kind",
        "duplicate argument `path`",
        "duplicate argument `conversion`",
        "duplicate argument `title`",
        "unknown marker `tytle`",
    ];
    assert_eq!(messages, expected);
}
