//! The messages about items, which the compiler and the command line both print.

use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::lex;
use rbuilder_reader::{Diagnostic, Span};
use rbuilder_schema::Key;
use rbuilder_syntax::marker::{Place, markers};
use rbuilder_syntax::{CRD_KEYS, KUBE_KEYS, Session, Type, parse_type};

/// Parses the only type in a source.
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

/// Returns every diagnostic about an item as `place: text`, where `place` is the source of its
/// span.
fn complaints(source: &str) -> Vec<String> {
    let mut session = Session::default();
    if let Err(error) = read(source, &mut session) {
        panic!("{source}: {}", error.message);
    }
    let list = session.diagnostics.into_vec();
    list.iter()
        .map(|diagnostic| {
            format!(
                "{}: {}",
                &source[diagnostic.place.range()],
                diagnostic.text().replace("\nhelp: ", " | ")
            )
        })
        .collect()
}

fn check(source: &str, expected: &[&str]) {
    assert_eq!(complaints(source), expected, "{source}");
}

/// Checks one field with these attributes.
fn field(attrs: &str, ty: &str, expected: &[&str]) {
    check(&format!("struct S {{ {attrs} f: {ty} }}"), expected);
}

#[test]
fn reports_invalid_csv_on_fields() {
    field(
        "#[csv(display_name = \"Pods\", description = \"Number of pods.\", order = 1)] #[csv(x_descriptors = [\"urn:x\"])]",
        "i32",
        &[],
    );
    for (args, expected) in [
        ("skip = 1", "skip: `skip` takes no value | write `skip`"),
        (
            "order = -1",
            "-1: `order` must not be negative | write an integer of at least 0",
        ),
        (
            "display_name = \" \"",
            "\" \": `display_name` must not be empty | write a string, or remove it",
        ),
        (
            "x_descriptors = [\"\"]",
            "[\"\"]: `x_descriptors` must not be empty | write a string, or remove it",
        ),
        (
            "displayName = \"Pods\"",
            "displayName: unknown argument `displayName` of `csv` | did you mean `display_name`?",
        ),
        ("order = 1, order = 2", "order: duplicate argument `order`"),
        (
            "resource(kind = \"Pod\", version = \"v1\")",
            "resource: unknown argument `resource` of `csv` | use one of: `display_name`, `description`, `x_descriptors`, `order`, `skip`",
        ),
    ] {
        field(&format!("#[csv({args})]"), "i32", &[expected]);
    }
    let place = "use it on a kind, or on a field of its spec or status";
    for (source, at) in [
        (
            "#[csv(order = 1)] struct S { f: i32 }",
            "a type other than a kind",
        ),
        ("struct S(#[csv(order = 1)] i32);", "the field of a newtype"),
        ("enum E { #[csv(order = 1)] A, B }", "a variant"),
        (
            "struct S { #[serde(flatten)] #[csv(order = 1)] f: Other }",
            "a flattened field",
        ),
        (
            "struct S { #[serde(skip)] #[csv(order = 1)] f: i32 }",
            "a field that the schema does not have",
        ),
    ] {
        let expected = format!("#[csv(order = 1)]: `csv` is not allowed on {at} | {place}");
        check(source, &[&expected]);
    }
    let kind = "#[kube(group = \"a.example.com\", version = \"v1\", kind = \"Test\", no_spec)]";
    check(
        &format!("{kind} struct S {{ #[csv] f: i32 }}"),
        &[&format!(
            "#[csv]: `csv` is not allowed on a field beside `metadata` | {place}"
        )],
    );
}

#[test]
fn bare_csv_is_allowed_on_fields_only() {
    for bare in ["#[csv]", "#[csv()]"] {
        field(bare, "i32", &[]);
        let kind = "#[kube(group = \"a.example.com\", version = \"v1\", kind = \"Test\")]";
        let help = "write `#[csv(display_name = \"…\")]`, or remove it";
        check(
            &format!("{kind} {bare} struct S {{ f: i32 }}"),
            &[&format!(
                "{bare}: expected arguments for `csv` on a kind | {help}"
            )],
        );
    }
    field(
        "#[csv = 1]",
        "i32",
        &["#[csv = 1]: `csv` takes arguments | write `#[csv(…)]`"],
    );
}

#[test]
fn reports_invalid_csv_on_kinds() {
    for (args, expected) in [
        (
            "display_name = \"Cup\", resource(kind = \"Pod\", version = \"v1\"), resource(kind = \"Service\", version = \"v1\")",
            &[] as &[&str],
        ),
        (
            "required(name = \"cups.example.com\", version = \"v1\", kind = \"Cup\", description = \"Cups.\")",
            &[],
        ),
        (
            "resource(kind = \"Pod\")",
            &["resource: missing argument `version` of `resource` | add `version = \"v1\"`"],
        ),
        (
            "required(name = \"cups\", version = \"v1\", kind = \"Cup\", description = \"Cups.\")",
            &[
                "\"cups\": expected the name of a CRD for `name`, found `cups` | write its plural and its group: `certificates.cert-manager.io`",
            ],
        ),
        (
            "required(name = \"cups.Example.com\", version = \"v1\", kind = \"Cup\", description = \"Cups.\")",
            &[
                "\"cups.Example.com\": expected the name of a CRD for `name`, found `cups.Example.com` | write its plural and its group: `certificates.cert-manager.io`",
            ],
        ),
        (
            "required(name = \"cups..com-\", version = \"1.0\", kind = \"cup-a\", description = \"Cups.\")",
            &[
                "\"cups..com-\": expected the name of a CRD for `name`, found `cups..com-` | write its plural and its group: `certificates.cert-manager.io`",
                "\"1.0\": invalid version `1.0` | write a version such as `v1`, `v1alpha1` or `v2beta3`",
                "\"cup-a\": invalid kind `cup-a` | use UpperCamelCase, as in `CronJob`",
            ],
        ),
        (
            "required(name = \"9cups.example.com\", version = \"v1\", kind = \"Cup\", description = \"Cups.\")",
            &[
                "\"9cups.example.com\": expected the name of a CRD for `name`, found `9cups.example.com` | write its plural and its group: `certificates.cert-manager.io`",
            ],
        ),
        (
            "resource(kind = \"pod-s\", version = \"apps/v1\")",
            &[
                "\"pod-s\": invalid kind `pod-s` | use UpperCamelCase, as in `CronJob`",
                "\"apps/v1\": invalid version `apps/v1` | write a version such as `v1`, `v1alpha1` or `v2beta3`",
            ],
        ),
        (
            "resource(kind = \"Pod\", version = \"v1\"), resource(kind = \"Pod\", version = \"v1\")",
            &["resource: duplicate `resource` of kind `Pod` | remove one of the two"],
        ),
        (
            "resource(kind = \"Cup\", version = \"v1\", name = \"cups.a.io\"), resource(kind = \"Cup\", version = \"v1\", name = \"cups.b.io\")",
            &[],
        ),
        (
            "required(name = \"cups.a.io\", version = \"v1\", kind = \"Cup\", description = \"A.\"), required(name = \"cups.a.io\", version = \"v1\", kind = \"Cup\", description = \"B.\")",
            &["required: duplicate `required` of CRD `cups.a.io` in version `v1` | remove one of the two"],
        ),
        (
            "required(name = \"cups.a.io\", version = \"v1\", kind = \"Cup\", description = \"A.\"), required(name = \"cups.a.io\", version = \"v2\", kind = \"Cup\", description = \"A.\")",
            &[],
        ),
        (
            "required(name = \"cups.example.com\", version = \"v1\", kind = \"Cup\")",
            &[
                "required: missing argument `description` of `required` | add `description = \"Certificates of the servers.\"`",
            ],
        ),
        (
            "skip",
            &[
                "skip: unknown argument `skip` of `csv` | use one of: `display_name`, `description`, `order`, `resource`, `required`",
            ],
        ),
    ] {
        let kind = "#[kube(group = \"a.example.com\", version = \"v1\", kind = \"Test\")]";
        check(
            &format!("{kind} #[csv({args})] struct TestSpec {{ f: i32 }}"),
            expected,
        );
    }
}

#[test]
fn reports_markers_that_a_whole_object_cannot_have() {
    let help = "write a rule in CEL instead: `cel(…)`";
    for (keys, marker, refused) in [
        (
            "no_spec, status = \"S\"",
            "validation(one_of = [{ \"required\": [\"f\"] }])",
            &[("[{ \"required\": [\"f\"] }]", "oneOf")] as &[(&str, &str)],
        ),
        (
            "no_spec, status = \"S\"",
            "validation(min_properties = 1)",
            &[("1", "minProperties")],
        ),
        (
            "no_spec, status = \"S\"",
            "validation(min_properties = 1, max_properties = 9)",
            &[("1", "minProperties"), ("9", "maxProperties")],
        ),
        ("no_spec", "validation(one_of = [{ \"required\": [\"f\"] }])", &[]),
        ("status = \"S\"", "validation(min_properties = 1)", &[]),
        ("no_spec, status = \"S\"", "cel(rule = \"true\")", &[]),
    ] {
        let expected: Vec<String> = refused
            .iter()
            .map(|(place, key)| {
                format!("{place}: an object with a status subresource cannot have `{key}` | {help}")
            })
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(
            &format!(
                "#[kube(group = \"a.example.com\", version = \"v1\", kind = \"Test\", {keys})] #[crd({marker})] struct TestSpec {{ f: Option<i32> }}"
            ),
            &expected,
        );
    }
}

#[test]
fn no_spec_requires_fields_with_other_names() {
    let kind = |keys: &str, item: &str| {
        format!("#[kube(group = \"a.example.com\", version = \"v1\", kind = \"Test\", {keys})] {item}")
    };
    let whole = |item: &str, expected: &[&str]| check(&kind("no_spec", item), expected);
    whole(
        "#[crd(schema = { \"type\": \"object\", \"default\": {} })] struct T { a: i32 }",
        &[
            "{ \"type\": \"object\", \"default\": {} }: an object must not have a default | remove it: its fields can have defaults",
        ],
    );
    whole(
        "#[crd(schema = { \"type\": \"string\" })] struct T { a: i32 }",
        &[
            "{ \"type\": \"string\" }: an object must be of type `object`, found `string` | write `\"type\": \"object\"`",
        ],
    );
    whole(
        "#[crd(schema = { \"type\": \"object\" })] struct T { a: i32 }",
        &[],
    );
    check(
        &kind(
            "served",
            "#[crd(schema = { \"type\": \"object\", \"default\": {} })] struct T { a: i32 }",
        ),
        &[],
    );
    let renamed = "remove the field, or rename it";
    for (field, place, name) in [
        ("metadata: ObjectMeta", "metadata", "metadata"),
        ("#[serde(rename = \"kind\")] sort: String", "sort", "kind"),
        ("status: Option<S>", "status", "status"),
        ("#[serde(flatten)] metadata: Inner", "metadata", "metadata"),
        (
            "#[serde(rename = \"version\")] api_version: i32",
            "api_version",
            "apiVersion",
        ),
    ] {
        let message = format!("{place}: every object has a field `{name}`, also without a spec | {renamed}");
        whole(&format!("struct T {{ {field}, a: i32 }}"), &[&message]);
        check(&kind("served", &format!("struct T {{ {field}, a: i32 }}")), &[]);
    }
    whole("struct T { spec: Inner, #[serde(flatten)] kinds: Inner }", &[]);
    let fields = "T: a kind with `no_spec` needs a struct with named fields | name the fields: without a spec they stand beside `metadata`";
    whole("struct T(Inner);", &[fields]);
    whole("enum T { A { a: i32 }, B { b: i32 } }", &[fields]);
}

#[test]
fn reports_types_without_a_schema() {
    let ours = |attrs: &str, ty: &str, expected: &[&str]| {
        check(
            &format!("#[derive(CrdSchema)] struct S {{ {attrs} f: {ty} }}"),
            expected,
        );
    };
    let tuple = "a tuple has no structural schema; the items of a list in a CRD have one type | use a struct with named fields";
    ours("", "(i32, i32)", &[&format!("(i32, i32): {tuple}")]);
    ours("", "Option<Vec<(i32, i32)>>", &[&format!("(i32, i32): {tuple}")]);
    ours(
        "",
        "()",
        &["(): `()` is `null` in JSON, which a CRD cannot store | remove the field"],
    );
    for ty in ["::core::time::Duration", "std::time::Duration"] {
        let message = format!(
            "{ty}: a `std::time::Duration` is an object of seconds and nanoseconds in JSON, not a duration as in \
             Kubernetes | use `kube::core::Duration`, which is a string such as `1h30m`"
        );
        ours("", ty, &[&message]);
    }
    for ty in ["Duration", "my::std::time::Duration", "time::Duration"] {
        ours("", ty, &[]);
    }
    let recursive = |ty: &str| {
        format!(
            "{ty}: the type contains itself: S → S | put `#[kube(schemaless, preserve_unknown_fields)]` on this field: \
             the schema of a CRD cannot be recursive"
        )
    };
    for ty in ["Box<S>", "Option<Box<Self>>", "BTreeMap<String, Vec<S>>", "[S]"] {
        ours("", ty, &[&recursive(ty)]);
    }
    // The schema of these types differs from the schema of `S`, whatever their arguments.
    for ty in ["Ref<S>", "other::S", "BTreeMap<S, i32>"] {
        ours("", ty, &[]);
    }
    ours("#[kube(schemaless, preserve_unknown_fields)]", "Vec<S>", &[]);
    ours("#[kube(schemaless, preserve_unknown_fields)]", "(i32, S)", &[]);
    ours("#[serde(skip)]", "Box<S>", &[]);
    // Other derives only need a schema if a kind uses the type.
    field("", "(i32, i32)", &[]);
}

#[test]
fn preserve_unknown_fields_applies_to_objects() {
    let marker = "#[crd(preserve_unknown_fields)]";
    for ty in [
        "Inner",
        "BTreeMap<String, Inner>",
        "Vec<Inner>",
        "Option<Vec<Vec<Inner>>>",
    ] {
        field(marker, ty, &[]);
    }
    for (ty, noun) in [("bool", "a boolean"), ("Vec<Vec<String>>", "a list")] {
        let complaint = format!(
            "preserve_unknown_fields: `preserve_unknown_fields` applies to maps, structs and lists of them; this field is \
             {noun} | remove it: it has no effect"
        );
        field(marker, ty, &[&complaint]);
    }
}

#[test]
fn accepts_valid_markers() {
    for (attrs, ty) in [
        (
            "#[kube(validation(minimum = 1, maximum = 5), default = 1)]",
            "i32",
        ),
        (
            "#[crd(validation(minimum = -0.5, exclusive_minimum))]",
            "Option<f64>",
        ),
        (
            "#[kube(validation(min_length = 1, pattern = \"^[a-z]+$\", format = \"uri\"))]",
            "String",
        ),
        (
            "#[kube(validation(enum = [\"A\", \"B\"]), default = \"A\")]",
            "String",
        ),
        (
            "#[kube(validation(max_items = 3), items(validation(max_length = 5)), list_type = \"set\")]",
            "Vec<String>",
        ),
        (
            "#[kube(list_type = \"map\", list_map_keys = [\"name\"])]",
            "Vec<Item>",
        ),
        (
            "#[kube(keys(validation(pattern = \"a+\")), values(validation(minimum = 1)))]",
            "BTreeMap<String, u16>",
        ),
        ("#[kube(items(items(validation(maximum = 1))))]", "Vec<Vec<i32>>"),
        (
            "#[kube(cel(rule = \"self > 1\", message = \"m\", reason = \"FieldValueInvalid\"), immutable)]",
            "i32",
        ),
        (
            "#[kube(validation = \"self > 1\", validation = Rule::new(\"self < 5\").message(\"m\"))]",
            "i32",
        ),
        (
            "#[kube(default = { \"a\": -1 }, example = { \"b\": 2 })]",
            "BTreeMap<String, i64>",
        ),
        ("#[kube(schemaless, validation(type = \"string\"))]", "Foreign"),
        (
            "#[kube(schema_type = \"String\")] #[serde(with = \"w\")]",
            "Foreign",
        ),
        (
            "#[kube(title = \"T\", external_docs(url = \"https://x.y\", description = \"d\"), nullable)]",
            "i32",
        ),
        (
            "#[kube(int_or_string, validation(pattern = \"[0-9]+%?\"))]",
            "Percent",
        ),
        (
            "#[kube(optional, embedded_resource, preserve_unknown_fields)]",
            "Value",
        ),
    ] {
        field(attrs, ty, &[]);
    }
}

#[test]
fn reports_unknown_names() {
    field(
        "#[kube(validation(minimun = 1))]",
        "i32",
        &["minimun: unknown validation `minimun` | did you mean `minimum`?"],
    );
    field(
        "#[kube(validation(minLength = 1))]",
        "String",
        &["minLength: unknown validation `minLength` | did you mean `min_length`?"],
    );
    field(
        "#[kube(minimum = 1)]",
        "i32",
        &["minimum: unknown marker `minimum` | write `validation(minimum = …)`"],
    );
    field(
        "#[kube(nulable)]",
        "i32",
        &["nulable: unknown marker `nulable` | did you mean `nullable`?"],
    );
    field(
        "#[kube(validation(unique_items))]",
        "Vec<i32>",
        &[
            "unique_items: unknown validation `unique_items` | write `list_type = \"set\"`: the API server rejects `unique_items`",
        ],
    );
    field(
        "#[kube(exactly_one_of(a, b))]",
        "i32",
        &["exactly_one_of: `exactly_one_of` is not allowed on a field | use it on a type"],
    );
    check(
        "#[crd(immutable)] struct S { a: i32 }",
        &["immutable: `immutable` is not allowed on a type | use it on a field"],
    );
    check(
        "#[crd(exactly_one_of(alpha, bta))] struct S { alpha: Option<i32>, beta: Option<i32> }",
        &["bta: unknown field `bta` | did you mean `beta`?"],
    );
}

/// Removes the letter in the middle of a word.
fn misspell(word: &str) -> String {
    let middle = word.len() / 2;
    format!("{}{}", &word[..middle], &word[middle + 1..])
}

/// Checks the help for a name, which replaces `NAME` in the source.
fn check_help(source: &str, name: &str, expected: &str) {
    let source = source.replace("NAME", name);
    let complaints = complaints(&source);
    let help = complaints[0].split_once(" | ").map(|(_, help)| help);
    assert_eq!(help, Some(expected), "{source}: {complaints:?}");
}

const CUP: &str =
    "#[derive(CustomResource, CrdSchema)] #[kube(group = \"a.io\", version = \"v1\", kind = \"Cup\")]";

#[test]
fn suggests_corrections_of_misspelled_names() {
    let kube_keys = || KUBE_KEYS.iter().map(|key| key.name);
    let crd_keys = || CRD_KEYS.iter().map(|key| key.name);
    let kind = format!("{CUP} #[ATTR(NAME)] struct CupSpec {{ a: i32 }}");
    let (kube, crd) = (kind.replace("ATTR", "kube"), kind.replace("ATTR", "crd"));
    let did_you_mean = |name: &str| format!("did you mean `{name}`?");
    for name in kube_keys() {
        check_help(&kube, &misspell(name), &did_you_mean(name));
    }
    for name in crd_keys() {
        check_help(&crd, &misspell(name), &did_you_mean(name));
    }
    for marker in markers() {
        for place in marker.places {
            let sources: &[&str] = match place {
                Place::Type => &[
                    "#[crd(NAME)] struct S { a: i32 }",
                    "#[kube(NAME)] enum E { A }",
                    &crd,
                ],
                Place::Field => &[
                    "struct S { #[kube(NAME)] a: i32 }",
                    "struct S { #[crd(NAME)] a: i32 }",
                ],
                Place::Newtype => &["struct S(#[crd(NAME)] i32);"],
                Place::Variant => &["enum E { #[kube(NAME)] A { b: i32 } }"],
                Place::Value => &["struct S { #[kube(items(NAME))] a: Vec<i32> }"],
            };
            for source in sources {
                check_help(source, &misspell(marker.name), &did_you_mean(marker.name));
            }
        }
    }
    for key in Key::arguments() {
        let name = key.argument;
        let (near, form) = (misspell(name), did_you_mean(&format!("validation({name} = …)")));
        check_help(
            "struct S { #[kube(validation(NAME = 1))] a: i32 }",
            &near,
            &did_you_mean(name),
        );
        check_help("struct S { #[kube(NAME = 1)] a: i32 }", &near, &form);
    }
}

#[test]
fn suggests_the_place_of_misplaced_names() {
    let kube = format!("{CUP} #[kube(NAME)] struct CupSpec {{ a: i32 }}");
    let crd = kube.replace("#[kube(NAME", "#[crd(NAME");
    for (source, name, expected) in [
        (kube.as_str(), "struct", "use `root = \"…\"`"),
        (
            &kube,
            "title",
            "write `#[crd(title…)]`: `#[kube(…)]` on a kind accepts no markers",
        ),
        (
            &kube,
            "conversion",
            "write `#[crd(conversion…)]`: kube does not know this key",
        ),
        (&kube, "convesion", "did you mean `#[crd(conversion…)]`?"),
        (
            &kube,
            "min_properties",
            "write `#[crd(validation(min_properties = …))]`",
        ),
        (
            &kube,
            "min_propertis",
            "did you mean `#[crd(validation(min_properties = …))]`?",
        ),
        (
            &crd,
            "printcolumn",
            "write `#[kube(printcolumn…)]`: it is one of kube's own keys",
        ),
        (&crd, "printcolum", "did you mean `#[kube(printcolumn…)]`?"),
        (&crd, "crat", "did you mean `crate`?"),
        (
            "#[crd(NAME)] struct S { a: i32 }",
            "conversion",
            "write `#[crd(conversion…)]` on the type that derives `CustomResource`",
        ),
        (
            "struct S { #[kube(NAME)] a: i32 }",
            "printcolumn",
            "write `#[kube(printcolumn…)]` on the type that derives `CustomResource`",
        ),
    ] {
        check_help(source, name, expected);
    }
    // schemars' derive accepts none of our attributes.
    let foreign = kube.replace("CrdSchema", "JsonSchema");
    check_help(&foreign, "plurral", "did you mean `plural`?");
    for name in ["title", "conversion", "min_properties"] {
        let told = complaints(&foreign.replace("NAME", name));
        assert!(told[0].contains(" | use one of: `group`, "), "{told:?}");
    }
    check(
        &crd.replace("NAME", "\"a\""),
        &["\"a\": expected the name of a marker | write `name`, `name = value` or `name(…)`"],
    );
    check(
        &kube.replace("NAME", "\"a\""),
        &["\"a\": expected the name of a key | write `name`, `name = value` or `name(…)`"],
    );
}

#[test]
fn selectable_field_must_be_in_the_struct() {
    let missing = "\".spec.colour\": `.spec.colour` is not a valid selectable field: unknown field `colour` | did you \
                   mean `color`?";
    let unlike = "\".spec.colour\": `.spec.colour` is not a valid selectable field: unknown field `colour` | use the path \
                  of a string, integer or boolean field, with JSON names";
    let kube = CUP.replace("\"Cup\"", "\"Cup\", selectable = \".spec.colour\"");
    for (attrs, fields, expected) in [
        ("", "color: String", &[missing][..]),
        ("", "size: String", &[unlike]),
        ("", "color: String, #[serde(skip)] colour: String", &[missing]),
        ("", "#[serde(rename = \"colour\")] color: String", &[]),
        ("", "#[serde(flatten)] more: More", &[]),
        ("#[serde(rename_all = \"camelCase\")]", "colour: Colour", &[]),
        ("#[crd(preserve_unknown_fields)]", "color: String", &[]),
        ("#[crd(schema = { \"type\": \"object\" })]", "color: String", &[]),
    ] {
        check(&format!("{kube} {attrs} struct CupSpec {{ {fields} }}"), expected);
        let by_hand = kube.replace("CrdSchema", "Clone");
        check(&format!("{by_hand} {attrs} struct CupSpec {{ {fields} }}"), &[]);
    }
}

#[test]
fn reports_unknown_serde_attributes() {
    let reported = |attributes: &str, expected: &[&str]| {
        check(
            &format!("#[derive(CrdSchema, Deserialize)] {attributes} struct S {{ a: i32 }}"),
            expected,
        );
    };
    reported(
        "#[serde(rename_all = \"kebab_case\")]",
        &["\"kebab_case\": unknown rule `kebab_case` of `rename_all` | did you mean `kebab-case`?"],
    );
    reported(
        "#[serde(rename_all(serialize = \"camelCase\", deserialize = \"camelCase\"))]",
        &[],
    );
    reported(
        "#[serde(renameall = \"kebab-case\")]",
        &[
            "renameall: unknown serde attribute `renameall`: the schema is made without it | did you mean `rename_all`?",
        ],
    );
    reported(
        "#[serde(zigzag)]",
        &[
            "zigzag: unknown serde attribute `zigzag`: the schema is made without it | remove it, unless your serde has it",
        ],
    );
    reported(
        "#[serde(bound = \"\", crate = \"serde\", expecting = \"an S\")]",
        &[],
    );
    field(
        "#[serde(skip_serialising_if = \"is_zero\")]",
        "i32",
        &[
            "skip_serialising_if: unknown serde attribute `skip_serialising_if`: the schema is made without it | did you mean \
           `skip_serializing_if`?",
        ],
    );
}

#[test]
fn cel_of_a_kind_is_a_flag() {
    kind("cel", &[]);
    kind(
        "cel(rule = \"self.a > 0\")",
        &[
            "cel: `cel` of a kind is a flag: kube checks the CEL rules in the client as well | write the rule in \
           `#[crd(cel(…))]`, or, for the whole object, in `validation = \"…\"`",
        ],
    );
}

#[test]
fn reports_repeated_markers() {
    field(
        "#[kube(default = 1, default = 2)]",
        "i32",
        &["default: duplicate argument `default`"],
    );
    field(
        "#[kube(validation(minimum = 1))] #[crd(validation(minimum = 2))]",
        "i32",
        &["minimum: duplicate argument `minimum`"],
    );
    field(
        "#[kube(optional, required)]",
        "i32",
        &["required: `optional` and `required` are mutually exclusive"],
    );
}

#[test]
fn help_for_a_quoted_number_keeps_its_value() {
    for (written, advised) in [("\"0\"", "0"), ("\"-2.5\"", "-2.5"), ("\"few\"", "1")] {
        let expected = format!(
            "{written}: expected a number for `minimum`, found `{written}` | write `minimum = {advised}`"
        );
        field(
            &format!("#[kube(validation(minimum = {written}))]"),
            "f64",
            &[&expected],
        );
    }
}

#[test]
fn reports_invalid_values() {
    field(
        "#[kube(validation(minimum = 5, maximum = 1))]",
        "i32",
        &["5: `minimum` 5 is greater than `maximum` 1"],
    );
    field(
        "#[kube(validation(min_length = -1))]",
        "String",
        &["-1: `min_length` must not be negative | write an integer of at least 0"],
    );
    field(
        "#[kube(validation(maximum = 1.5))]",
        "i32",
        &[
            "1.5: expected an integer for `maximum`, found `1.5` | write an integer, or change the type of the field",
        ],
    );
    field(
        "#[kube(validation(minimum = 1))]",
        "String",
        &["1: `minimum` applies to numbers; this field is a string | write `min_length`"],
    );
    field(
        "#[kube(validation(max_length = 1))]",
        "Vec<String>",
        &["1: `max_length` applies to strings; this field is a list | write `max_items`"],
    );
    field(
        "#[kube(validation(exclusive_minimum))]",
        "i32",
        &[
            "exclusive_minimum: `exclusive_minimum` requires `minimum` | add `minimum = …`: `exclusive_minimum` excludes only this bound",
        ],
    );
    field(
        "#[kube(validation(pattern = \"(?=x)\"))]",
        "String",
        &[
            "\"(?=x)\": invalid pattern: look-around is not supported | use RE2 syntax, as in Go: https://github.com/google/re2/wiki/Syntax",
        ],
    );
    field(
        "#[kube(validation(enum = [1, 1]))]",
        "i32",
        &["[1, 1]: duplicate `enum` value 1"],
    );
    field(
        "#[kube(default = \"x\")]",
        "i32",
        &["\"x\": expected an integer for `default`, found a string"],
    );
    field(
        "#[kube(validation(type = \"strnig\"))]",
        "i32",
        &["\"strnig\": unknown type `strnig` | did you mean `string`?"],
    );
    field(
        "#[kube(validation(format = \"datetime-local\"))]",
        "String",
        &["\"datetime-local\": unknown format `datetime-local` | remove it: it has no effect"],
    );
    field(
        "#[kube(cel(message = \"m\"))]",
        "i32",
        &["cel: missing argument `rule` of `cel` | add `rule = \"…\"`"],
    );
    field(
        "#[kube(cel(rule = \"self > 1\", reason = \"FieldValueInvalide\"))]",
        "i32",
        &["\"FieldValueInvalide\": unknown reason `FieldValueInvalide` | did you mean `FieldValueInvalid`?"],
    );
    field(
        "#[kube(items(validation(minimum = 1)))]",
        "i32",
        &["items: `items` applies to the items of a list; this field is an integer"],
    );
    field(
        "#[kube(list_type = \"map\")]",
        "Vec<Item>",
        &[
            "\"map\": a list of type `map` requires keys | add `list_map_keys = [\"name\"]` with the fields that identify an item",
        ],
    );
    field(
        "#[kube(list_type = \"sett\")]",
        "Vec<i32>",
        &["\"sett\": unknown value `sett` of `list_type` | did you mean `set`?"],
    );
}

#[test]
fn reports_shapes_without_a_schema() {
    check(
        "struct S(i32, String);",
        &[
            "S: a tuple struct has no structural schema | name the fields: the items of a list in a CRD have one type",
        ],
    );
    check(
        "struct S;",
        &[
            "S: a unit struct is `null` in JSON, which a CRD cannot store | write `{}` after the name: serde then uses an empty object",
        ],
    );
    check(
        "enum E { A(i32, i32) }",
        &[
            "A: variant `A` is a tuple, which has no structural schema | name the fields, or put a struct into the variant",
        ],
    );
    field(
        "#[serde(with = \"w\")]",
        "Foreign",
        &[
            "with: cannot determine the JSON that this function serializes | describe its JSON: `#[kube(schema_type = \"String\")]` names a type with the same form, which is an `Option` if the field may be absent, `#[kube(schema = { … })]` gives the schema itself, `#[kube(schemaless)]` uses only the other markers of the field",
        ],
    );
}

/// The attribute alone, since a derive macro does not see `#[derive(…)]`.
const KIND: &str = "#[kube(group = \"x.dev\", version = \"v1\", kind = \"Foo\"";

/// Checks a kind with additional keys.
fn kind(keys: &str, expected: &[&str]) {
    check(&format!("{KIND}, {keys})] struct FooSpec {{ a: i32 }}"), expected);
}

#[test]
fn accepts_valid_kinds() {
    kind(
        "plural = \"foos\", namespaced, status = \"FooStatus\", shortname = \"f\", category = \"all\"",
        &[],
    );
    kind(
        "status = FooStatus, scale(spec_replicas_path = \".spec.n\", status_replicas_path = \".status.n\")",
        &[],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"integer\", json_path = \".spec.n\", priority = \"1\")",
        &[],
    );
    kind(
        "printcolumn = r#\"{\"name\":\"N\",\"type\":\"integer\",\"jsonPath\":\".spec.n\"}\"#",
        &[],
    );
    kind(
        "annotation(\"a\", \"b\"), label(\"c\", \"d\"), deprecated = \"use v2\", storage = false, served",
        &[],
    );
    kind(
        "validation = \"self.metadata.name != 'x'\", selectable = \".spec.n\", derive = \"PartialEq\", doc = \"d\"",
        &[],
    );
}

#[test]
fn reports_invalid_kinds() {
    kind(
        "plurl = \"foos\"",
        &["plurl: unknown key `plurl` of a kind | did you mean `plural`?"],
    );
    kind(
        "immutable",
        &[
            "immutable: unknown key `immutable` of a kind | write `#[crd(immutable…)]`: `#[kube(…)]` on a kind accepts no markers",
        ],
    );
    kind(
        "plural = \"Foos\"",
        &["\"Foos\": invalid plural `Foos` | write lower-case letters, digits and `-`"],
    );
    kind(
        "namespaced, namespaced",
        &["namespaced: duplicate argument `namespaced`"],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"int\", json_path = \".spec.n\")",
        &["\"int\": unknown printer column type `int` | did you mean `integer`?"],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"integer\", json_path = \"spec.n\")",
        &["\"spec.n\": `spec.n` is not a valid JSON path | write `.spec.n`"],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"integer\")",
        &["printcolumn: missing argument `json_path` of `printcolumn` | add `json_path = \"…\"`"],
    );
    kind(
        "scale(spec_replicas_path = \".spec.n\", status_replicas_path = \".status.n\")",
        &["scale: `scale` has no effect without a status | add `status = \"…\"` with the type of the status"],
    );
    check(
        "#[derive(CustomResource, CrdSchema)] #[kube(group = \"x.dev\", version = \"v1\", kind = \"Foo\", \
         scale(spec_replicas_path = \".spec.n\", status_replicas_path = \".status.n\"))] struct FooSpec { n: i32 }",
        &["scale: `scale` has no effect without a status | add `status = \"…\"` with the type of the status"],
    );
    kind(
        "status = \"S\", scale(spec_replicas_path = \".status.n\", status_replicas_path = \".status.n\")",
        &["\".status.n\": invalid `spec_replicas_path`: `.status.n` | use a path below `.spec.`"],
    );
    check(
        "#[derive(CustomResource)] #[kube(group = \"dev\", version = \"1\", kind = \"foo\")] struct S { a: i32 }",
        &[
            "\"dev\": invalid API group `dev` | use a domain with a dot, such as `cache.example.com`",
            "\"1\": invalid version `1` | write a version such as `v1`, `v1alpha1` or `v2beta3`",
            "\"foo\": the kind `foo` does not begin with a capital letter | use UpperCamelCase, as in `CronJob`; if the kind is in use, keep it and name its struct: `root = \"Foo\"`",
        ],
    );
    check(
        "#[derive(CustomResource, CrdSchema)] #[kube(group = \"x.dev\", version = \"v1\", kind = \"foo\")] struct S { a: i32 }",
        &[
            "\"foo\": the kind `foo` does not begin with a capital letter | use UpperCamelCase, as in `CronJob`; if the kind is in use, keep it and name its struct: `root = \"Foo\"`",
        ],
    );
    check(
        "#[derive(CustomResource, CrdSchema)] #[kube(group = \"x.dev\", version = \"v1\", kind = \"foo\", root = \"Foo\")] struct S { a: i32 }",
        &[],
    );
    check(
        "#[derive(CustomResource)] #[kube(group = \"x.dev\", version = \"v1\", kind = \"foo_bar\")] struct S { a: i32 }",
        &["\"foo_bar\": invalid kind `foo_bar` | use UpperCamelCase, as in `CronJob`"],
    );
    check(
        "#[derive(CustomResource)] #[kube(group = \"x.dev\", kind = \"Foo\")] struct Foo { a: i32 }",
        &["Foo: missing `version` of the kind | add `version = \"v1alpha1\"` to `#[kube(…)]`"],
    );
}

/// Malformed attributes are normal input: they cause errors, but never a panic.
#[test]
fn malformed_attributes_do_not_panic() {
    let tokens = [
        "validation",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "=",
        ",",
        "-",
        "1",
        "1.5",
        "\"x\"",
        "minimum",
        "enum",
        "items",
        "cel",
        "rule",
        "default",
        "exactly_one_of",
        "list_type",
        "schema_type",
        "::",
        "printcolumn",
        "scale",
        "kind",
        "group",
        "external_docs",
        "true",
        "'c'",
        "b\"x\"",
    ];
    // A fixed random number generator, so that every run has the same cases.
    let mut state: u32 = 1;
    let mut read = 0;
    for _ in 0..8_000 {
        let mut text = String::new();
        for _ in 0..(state >> 7) % 9 + 1 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text += tokens[(state >> 16) as usize % tokens.len()];
            text += " ";
        }
        for item in [
            format!("#[crd({text})] #[kube({text})] struct S {{ #[kube({text})] #[serde({text})] a: i32 }}"),
            format!(
                "#[serde({text})] enum E {{ #[crd({text})] A, #[serde({text})] B(#[kube({text})] Vec<String>) }}"
            ),
        ] {
            read += usize::from(self::read(&item, &mut Session::default()).is_ok());
        }
    }
    assert!(read > 1000, "only {read} cases were Rust");
}
