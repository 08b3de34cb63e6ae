//! Attributes of schemars, validator, garde and kube's `KubeSchema` are equivalent to markers.

use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::lex;
use rbuilder_reader::{Diagnostic, Span};
use rbuilder_syntax::{Session, Type, parse_type};

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

/// Returns the model of a type and the diagnostics about it.
fn describe_model(source: &str) -> (String, Vec<String>) {
    let mut session = Session::default();
    let read = read(source, &mut session).map_err(|error| error.message);
    let read = read.unwrap_or_else(|message| panic!("{source}: {message}"));
    let shown = read.map_or_else(String::new, |read| {
        let kinds: Vec<_> = read.slots.iter().map(|slot| &slot.kind).collect();
        format!("{:?} {kinds:?}", read.container)
    });
    let places = shown.replace("span: Some", "");
    let list = session.diagnostics.into_vec();
    (
        without_numbers(&places),
        list.iter().map(|diagnostic| diagnostic.text()).collect(),
    )
}

/// Removes spans, which depend on the length of the source.
fn without_numbers(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Origin {") {
        kept.push_str(&rest[..at]);
        let end = rest[at..].find('}').map_or(rest.len(), |end| at + end + 1);
        rest = &rest[end..];
    }
    let mut plain = String::new();
    for part in (kept + rest).split("span: Span {") {
        match (plain.is_empty(), part.split_once('}')) {
            (false, Some((_, after))) => plain.push_str(after),
            _ => plain.push_str(part),
        }
    }
    plain
}

/// Checks that two sets of attributes produce the same field.
#[track_caller]
fn field(theirs: &str, ours: &str, ty: &str) {
    let source = |attrs: &str| format!("struct S {{ {attrs} a: {ty} }}");
    let (theirs, complaints) = describe_model(&source(theirs));
    assert!(complaints.is_empty(), "{complaints:?}");
    assert_eq!(theirs, describe_model(&source(ours)).0);
}

#[track_caller]
fn container(theirs: &str, ours: &str) {
    let source = |attrs: &str| format!("{attrs} struct S {{ b_c: Option<String> }}");
    let (theirs, complaints) = describe_model(&source(theirs));
    assert!(complaints.is_empty(), "{complaints:?}");
    assert_eq!(theirs, describe_model(&source(ours)).0);
}

#[track_caller]
fn refused(attrs: &str, expected: &str) {
    let (_, complaints) = describe_model(&format!("struct S {{ {attrs} a: String }}"));
    let [complaint] = &complaints[..] else {
        panic!("{complaints:?}")
    };
    assert!(complaint.starts_with(expected), "{complaint}");
}

#[test]
fn translates_ranges_and_lengths() {
    let range = "#[kube(validation(minimum = 1, maximum = 5))]";
    field("#[schemars(range(min = 1, max = 5))]", range, "i32");
    field(
        "#[validate(range(min = 1, max = 5, message = \"no\"))]",
        range,
        "i32",
    );
    field("#[garde(range(min = 1, max = 2 + 3))]", range, "i32");
    // Repeated for each tool that checks it.
    field(
        "#[garde(range(min = 1, max = 9))] #[schemars(range(min = 1, max = 5))]",
        range,
        "i32",
    );
    field(
        "#[validate(range(min = 1))] #[garde(range(max = 5))]",
        range,
        "i32",
    );
    field(
        "#[validate(range(exclusive_min = 0.0))]",
        "#[kube(validation(exclusive_minimum, minimum = 0.0))]",
        "f64",
    );
    field(
        "#[schemars(range(max = u16::MAX))]",
        "#[kube(validation(maximum = 65535))]",
        "i64",
    );
    field(
        "#[schemars(range(max = (1 << 10) - 1, min = -i8::MAX))]",
        "#[kube(validation(maximum = 1023, minimum = -127))]",
        "i64",
    );
    let length = "#[schemars(length(min = 1, max = 9))]";
    field(
        length,
        "#[kube(validation(min_length = 1, max_length = 9))]",
        "Option<String>",
    );
    field(
        length,
        "#[kube(validation(min_items = 1, max_items = 9))]",
        "Vec<u8>",
    );
    let keys = "#[kube(validation(min_properties = 1, max_properties = 9))]";
    field(length, keys, "BTreeMap<String, u8>");
    field(
        "#[schemars(length(equal = 3))]",
        "#[kube(validation(min_length = 3, max_length = 3))]",
        "String",
    );
    refused(
        "#[schemars(length(max = MAX))]",
        "expected a literal number for `max`",
    );
}

#[test]
fn translates_patterns_and_formats() {
    let pattern = "#[kube(validation(pattern = \"^a$\"))]";
    field("#[schemars(regex(pattern = r\"^a$\"))]", pattern, "String");
    field("#[schemars(pattern(\"^a$\"))]", pattern, "String");
    field("#[garde(pattern(\"^a$\"))]", pattern, "String");
    let dot = "#[kube(validation(pattern = \"a\\\\.b\"))]";
    field("#[schemars(contains(pattern = \"a.b\"))]", dot, "String");
    field(
        "#[schemars(url)]",
        "#[kube(validation(format = \"uri\"))]",
        "String",
    );
    let email = "#[kube(validation(format = \"email\"))]";
    field(
        "#[validate(email(message = \"no\"), custom(function = \"f\"))]",
        email,
        "String",
    );
    refused(
        "#[schemars(regex(path = *RE))]",
        "expected a string literal for the pattern",
    );
    refused(
        "#[schemars(ip)]",
        "the API server does not support the format `ip`",
    );
}

#[test]
fn translates_inner_required_and_with() {
    field(
        "#[schemars(inner(length(min = 1), regex(pattern = \"a\")))]",
        "#[kube(items(validation(min_length = 1), validation(pattern = \"a\")))]",
        "Vec<String>",
    );
    field(
        "#[garde(inner(range(min = 1)))]",
        "#[kube(values(validation(minimum = 1)))]",
        "BTreeMap<String, i32>",
    );
    field("#[schemars(required)]", "#[kube(required)]", "Option<String>");
    field(
        "#[schemars(with = \"Vec<u8>\")]",
        "#[kube(schema_type = \"Vec<u8>\")]",
        "Foreign",
    );
    field(
        "#[serde(with = \"m\")] #[schemars(with = \"String\")]",
        "#[serde(with = \"m\")] #[kube(schema_type = \"String\")]",
        "Foreign",
    );
    container("#[schemars(with = \"String\")]", "#[serde(from = \"String\")]");
}

/// With garde, `inner` applies to an `Option`. schemars compiles that as well, but its schema does
/// not contain the constraint.
#[test]
fn ignores_inner_on_other_types_than_lists() {
    for (attrs, ty, noun) in [
        ("#[garde(inner(length(min = 1)))]", "Option<String>", "a string"),
        (
            "#[schemars(inner(length(min = 1)))]",
            "Option<String>",
            "a string",
        ),
        (
            "#[garde(inner(inner(ascii, length(min = 1))))]",
            "Option<Vec<String>>",
            "a string",
        ),
    ] {
        let (shown, warnings) = describe_model(&format!("struct S {{ {attrs} a: {ty} }}"));
        assert_eq!(
            shown,
            describe_model(&format!("struct S {{ a: {ty} }}")).0,
            "{attrs}"
        );
        let start = "`inner` is left out, as in `Kind::crd()`: schemars applies it to the items of a list; this field is ";
        assert!(
            warnings.len() == 1 && warnings[0].starts_with(&format!("{start}{noun}")),
            "{warnings:?}"
        );
    }
}

#[test]
fn translates_titles_defaults_and_names() {
    field(
        "#[schemars(title = \"T\", example = 1)]",
        "#[kube(title = \"T\", example = 1)]",
        "i32",
    );
    field("#[schemars(example = compute())]", "", "i32");
    field("#[schemars(description = \"D.\")]", "/// D.\n", "i32");
    field("/// Lost.\n#[schemars(description = \"D.\")]", "/// D.\n", "i32");
    field(
        "#[serde(default)] #[schemars(rename = \"b\", default)]",
        "#[serde(rename = \"b\", default)]",
        "i32",
    );
    // The generator evaluates the default.
    field("#[schemars(default)]", "", "i32");
    // schemars' name takes precedence over serde's.
    field(
        "#[serde(rename = \"b\")] #[schemars(rename = \"c\")]",
        "#[serde(rename = \"c\")]",
        "i32",
    );
    field("#[schemars(skip)]", "#[serde(skip)]", "i32");
    container(
        "#[schemars(rename_all = \"camelCase\")]",
        "#[serde(rename_all = \"camelCase\")]",
    );
    container(
        "#[schemars(crate = \"x::schemars\", inline, rename = \"N\", bound = \"\")]",
        "",
    );
    refused(
        "#[schemars(titel = \"a\")]",
        "unknown argument `titel` of `schemars`\nhelp: did you mean `title`?",
    );
}

#[test]
fn translates_extensions() {
    field(
        "#[schemars(extend(\"x-kubernetes-list-type\" = \"map\", \"x-kubernetes-list-map-keys\" = [\"name\"]))]",
        "#[kube(list_type = \"map\", list_map_keys = [\"name\"])]",
        "Vec<Item>",
    );
    field(
        "#[schemars(extend(\"type\" = \"object\", \"x-kubernetes-preserve-unknown-fields\" = true))]",
        "#[kube(validation(type = \"object\"), preserve_unknown_fields)]",
        "Foreign",
    );
    field(
        "#[schemars(extend(\"x-kubernetes-int-or-string\" = false))]",
        "",
        "Foreign",
    );
    field(
        "#[schemars(extend(\"x-kubernetes-validations\" = [{\"rule\": \"self > 1\", \"messageExpression\": \"'a'\"}]))]",
        "#[kube(cel(rule = \"self > 1\", message_expression = \"'a'\"))]",
        "i32",
    );
    for rules in [
        "serde_json::json!([{\"rule\": \"self > 1\", \"message\": \"a\"}])",
        "[serde_json::json!({\"rule\": \"self > 1\", \"message\": \"a\"})]",
        "[json!({\"rule\": \"self > 1\", \"message\": \"a\".to_owned(),})]",
    ] {
        field(
            &format!("#[schemars(extend(\"x-kubernetes-validations\" = {rules}))]"),
            "#[kube(cel(rule = \"self > 1\", message = \"a\"))]",
            "i32",
        );
    }
    field(
        "#[schemars(extend(\"maxProperties\" = 3))]",
        "#[kube(validation(max_properties = 3))]",
        "Foreign",
    );
    refused(
        "#[schemars(extend(\"x-other\" = 1))]",
        "`x-other` is not supported in a CRD",
    );
    refused(
        "#[schemars(extend(\"x-kubernetes-validations\" = [json!({\"rule\": rule()})]))]",
        "expected a literal for `x-kubernetes-validations`",
    );
    refused(
        "#[schemars(extend(\"maxLength\" = f()))]",
        "expected a literal for `maxLength`",
    );
}

#[test]
fn code_is_rejected_unless_a_marker_states_the_schema() {
    refused(
        "#[schemars(schema_with = f)]",
        "the schema that this function returns is unknown",
    );
    refused(
        "#[schemars(transform = f)]",
        "the effect of this transform on the schema is unknown",
    );
    field(
        "#[schemars(schema_with = \"f\")] #[kube(schema_type = \"i64\")]",
        "#[kube(schema_type = \"i64\")]",
        "Foreign",
    );
}

#[test]
fn translates_rules_and_merge_strategies_of_kube_schema() {
    let rule = "#[kube(cel(rule = \"self != ''\", message = \"m\"))]";
    field(
        "#[x_kube(validation = Rule::new(\"self != ''\").message(\"m\"))]",
        rule,
        "String",
    );
    for converted in [
        "(\"self != ''\", \"m\")",
        "(\"self != ''\", \"m\").into()",
        "Rule::from((\"self != ''\", \"m\"))",
        "Rule::new(\"self != ''\").message(\"m\").into()",
    ] {
        field(&format!("#[x_kube(validation = {converted})]"), rule, "String");
    }
    field(
        "#[x_kube(validation = \"self != ''\", merge_strategy = ListMerge::Set)]",
        "#[kube(validation = \"self != ''\", list_type = \"set\")]",
        "Vec<String>",
    );
    let map = "#[kube(list_type = \"map\", list_map_keys = [\"a\", \"b\"])]";
    field(
        "#[x_kube(merge_strategy = ListMerge::Map(vec![\"a\".into(), \"b\".to_string()]))]",
        map,
        "Vec<Item>",
    );
    field(
        "#[x_kube(merge_strategy = k::MapMerge::Granular)]",
        "#[kube(map_type = \"granular\")]",
        "BTreeMap<String, i32>",
    );
    field(
        "#[x_kube(merge_strategy = StructMerge::Atomic)]",
        "#[kube(struct_type = \"atomic\")]",
        "Foreign",
    );
    container(
        "#[x_kube(validation = \"has(self.b_c)\")]",
        "#[kube(validation = \"has(self.b_c)\")]",
    );
    refused(
        "#[x_kube(merge_strategy = f())]",
        "expected a literal merge strategy: rbuilder does not run the program",
    );
    refused("#[x_kube(merge = 1)]", "unknown argument `merge` of `x_kube`");
}
