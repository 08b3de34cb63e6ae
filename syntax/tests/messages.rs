//! The messages about items. The compiler and the command line print these same words.

use rbuilder_reader::Span;
use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::{Malformed, lex};
use rbuilder_syntax::{Session, Type, parse_type};

/// Reads the one type of a source.
fn read(source: &str, session: &mut Session) -> Result<Option<Type>, Malformed> {
    let tokens = lex(source)?;
    match Items::new(tokens.cursor(), None).read()? {
        Some(Item {
            attrs,
            kind: ItemKind::Type(item),
            ..
        }) => Ok(parse_type(&attrs, item, session)),
        _ => Err(Malformed::new(Span::default(), "not a type")),
    }
}

/// Every complaint about an item, as `place: text`, where the place is the source it covers.
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

/// One field of a type with these attributes.
fn field(attrs: &str, ty: &str, expected: &[&str]) {
    check(&format!("struct S {{ {attrs} f: {ty} }}"), expected);
}

#[test]
fn correct_markers_pass() {
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
fn names_are_checked() {
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
            "unique_items: unknown validation `unique_items` | the API server refuses it; write `list_type = \"set\"`",
        ],
    );
    field(
        "#[kube(exactly_one_of(a, b))]",
        "i32",
        &["exactly_one_of: `exactly_one_of` has no meaning on a field | it can stand on a type"],
    );
    check(
        "#[crd(immutable)] struct S { a: i32 }",
        &["immutable: `immutable` has no meaning on a type | it can stand on a field"],
    );
    check(
        "#[crd(exactly_one_of(alpha, bta))] struct S { alpha: Option<i32>, beta: Option<i32> }",
        &["bta: there is no field `bta` | did you mean `beta`?"],
    );
}

#[test]
fn repetition_is_checked() {
    field(
        "#[kube(default = 1, default = 2)]",
        "i32",
        &["default: `default` is written twice"],
    );
    field(
        "#[kube(validation(minimum = 1))] #[crd(validation(minimum = 2))]",
        "i32",
        &["minimum: `minimum` is written twice"],
    );
    field(
        "#[kube(optional, required)]",
        "i32",
        &["required: a field is `optional` or `required`, not both"],
    );
}

#[test]
fn values_are_checked() {
    field(
        "#[kube(validation(minimum = 5, maximum = 1))]",
        "i32",
        &["5: no value fits: `minimum` is 5 and `maximum` is 1"],
    );
    field(
        "#[kube(validation(min_length = -1))]",
        "String",
        &["-1: `min_length` counts: it cannot be -1 | write a whole number, 0 or more"],
    );
    field(
        "#[kube(validation(maximum = 1.5))]",
        "i32",
        &["1.5: `maximum = 1.5` on a whole number | write a whole number"],
    );
    field(
        "#[kube(validation(minimum = 1))]",
        "String",
        &["1: `minimum` is about numbers, and this is text | write `min_length`"],
    );
    field(
        "#[kube(validation(max_length = 1))]",
        "Vec<String>",
        &["1: `max_length` is about text, and this is a list | write `max_items`"],
    );
    field(
        "#[kube(validation(exclusive_minimum))]",
        "i32",
        &[
            "exclusive_minimum: `exclusive_minimum` needs `minimum` | add `minimum = …`: `exclusive_minimum` says that this bound itself is refused",
        ],
    );
    field(
        "#[kube(validation(pattern = \"(?=x)\"))]",
        "String",
        &[
            "\"(?=x)\": the pattern cannot be used: look-around is not supported | patterns are Go's RE2: https://github.com/google/re2/wiki/Syntax",
        ],
    );
    field(
        "#[kube(validation(enum = [1, 1]))]",
        "i32",
        &["[1, 1]: `enum` holds 1 twice"],
    );
    field(
        "#[kube(default = \"x\")]",
        "i32",
        &["\"x\": this default is text, and the type is a whole number"],
    );
    field(
        "#[kube(validation(type = \"strnig\"))]",
        "i32",
        &["\"strnig\": `strnig` is not a type of OpenAPI | did you mean `string`?"],
    );
    field(
        "#[kube(validation(format = \"datetime-local\"))]",
        "String",
        &[
            "\"datetime-local\": the API server does not know the format `datetime-local` | it is passed on and has no effect",
        ],
    );
    field(
        "#[kube(cel(message = \"m\"))]",
        "i32",
        &["cel: `cel` needs `rule` | add `rule = \"…\"`"],
    );
    field(
        "#[kube(cel(rule = \"self > 1\", reason = \"FieldValueInvalide\"))]",
        "i32",
        &["\"FieldValueInvalide\": unknown reason `FieldValueInvalide` | did you mean `FieldValueInvalid`?"],
    );
    field(
        "#[kube(items(validation(minimum = 1)))]",
        "i32",
        &["items: `items` is about the items of a list, and this is a whole number"],
    );
    field(
        "#[kube(list_type = \"map\")]",
        "Vec<Item>",
        &[
            "\"map\": a list of type `map` needs keys | add `list_map_keys = [\"name\"]`: the fields that tell items apart",
        ],
    );
    field(
        "#[kube(list_type = \"sett\")]",
        "Vec<i32>",
        &["\"sett\": `sett` is not a value of `list_type` | did you mean `set`?"],
    );
}

#[test]
fn shapes_without_a_schema_are_explained() {
    check(
        "struct S(i32, String);",
        &[
            "S: a tuple struct has no structural schema | give the fields names: a list in a CRD has items of one type",
        ],
    );
    check(
        "struct S;",
        &[
            "S: a unit struct is `null` on the wire, which a CRD cannot hold | write `{}` after the name: serde then reads and writes an empty object",
        ],
    );
    check(
        "enum E { A(i32, i32) }",
        &[
            "A: the variant `A` is a tuple, which has no structural schema | give the fields names, or put one struct into the variant",
        ],
    );
    field(
        "#[serde(with = \"w\")]",
        "Foreign",
        &[
            "with: what this function writes cannot be read from the type of the field | say what it is on the wire: `#[kube(schema_type = \"String\")]` names a type with the same form, `#[kube(schema = { … })]` is the schema itself, `#[kube(schemaless)]` leaves all to the other markers of the field",
        ],
    );
}

/// Without the derive, as a derive sees the item.
const KIND: &str = "#[kube(group = \"x.dev\", version = \"v1\", kind = \"Foo\"";

/// A kind with further keys.
fn kind(keys: &str, expected: &[&str]) {
    check(&format!("{KIND}, {keys})] struct FooSpec {{ a: i32 }}"), expected);
}

#[test]
fn kinds_pass() {
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
fn kinds_are_checked() {
    kind(
        "plurl = \"foos\"",
        &["plurl: unknown key `plurl` of a kind | did you mean `plural`?"],
    );
    kind(
        "immutable",
        &[
            "immutable: unknown key `immutable` of a kind | kube takes no markers on a kind: write `#[crd(immutable…)]`",
        ],
    );
    kind(
        "plural = \"Foos\"",
        &["\"Foos\": `Foos` cannot be the plural of a kind | write lower-case letters, digits and `-`"],
    );
    kind(
        "namespaced, namespaced",
        &["namespaced: `namespaced` is written twice"],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"int\", json_path = \".spec.n\")",
        &[
            "\"int\": `int` is not the type of a column | known here: `integer`, `number`, `string`, `boolean`, `date`",
        ],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"integer\", json_path = \"spec.n\")",
        &["\"spec.n\": `spec.n` is not a JSON path | write `.spec.n`"],
    );
    kind(
        "printcolumn(name = \"N\", type_ = \"integer\")",
        &["printcolumn: `printcolumn` needs `json_path` | add `json_path = \"…\"`"],
    );
    kind(
        "scale(spec_replicas_path = \".spec.n\", status_replicas_path = \".status.n\")",
        &[
            "scale: `scale` has no effect without a status: kube leaves it out | add `status = \"…\"` with the type of the status",
        ],
    );
    kind(
        "status = \"S\", scale(spec_replicas_path = \".status.n\", status_replicas_path = \".status.n\")",
        &["scale: `.status.n` cannot be the spec_replicas_path | write a path under `.spec.`"],
    );
    check(
        "#[derive(CustomResource)] #[kube(group = \"dev\", version = \"1\", kind = \"foo\")] struct S { a: i32 }",
        &[
            "\"dev\": `dev` is not an API group | write a domain with a dot, as in `cache.example.com`",
            "\"1\": `1` cannot be the version of a kind | write `v1`, `v1alpha1` or `v2beta3`",
            "\"foo\": `foo` cannot be a kind | write it in UpperCamelCase, as in `CronJob`",
        ],
    );
    check(
        "#[derive(CustomResource)] #[kube(group = \"x.dev\", kind = \"Foo\")] struct Foo { a: i32 }",
        &["Foo: the kind has no version | add `version = \"v1alpha1\"` to `#[kube(…)]`"],
    );
}

/// Broken attributes are ordinary input: they make complaints, never a panic, wherever they break off.
#[test]
fn no_attribute_makes_the_reader_panic() {
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
    // A small generator, so that the cases are the same in every run.
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
