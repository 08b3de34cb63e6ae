//! Constants in schemars and validator attributes.

use crate::support;

use serde_json::{Value, json};
use support::{Said, spec_of};

fn schema(attrs: &str, ty: &str, items: &str) -> Result<Value, Vec<Said>> {
    let text = format!(
        "use kube::CustomResource; use std::sync::*;
        #[derive(CustomResource, JsonSchema, Serialize, Deserialize)]
        #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]
        pub struct TestSpec {{ {attrs} a: {ty} }}
        {items}"
    );
    let other = "pub const SHORT: usize = 3; pub static PATTERN: &str = \"^b$\";";
    let found = spec_of(&[("src/lib.rs", &(text + "mod other;")), ("src/other.rs", other)]);
    found.map(|schema| schema["properties"]["a"].clone())
}

fn check(attrs: &str, ty: &str, expected: Value) {
    let found = schema(attrs, ty, ITEMS).unwrap_or_else(|said| panic!("{attrs}: {said:?}"));
    for (key, value) in expected.as_object().expect("keys") {
        assert_eq!(found[key], *value, "{attrs}");
    }
}

const ITEMS: &str = r##"
    const LONG: u32 = 4 * other::SHORT as u32;
    const MOST: u64 = 4 * FOUR - 1;
    const FOUR: u64 = 4;
    const LEAST: i32 = -2;
    struct Limits;
    impl Limits { const MOST: u8 = 9; }
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[a-z]+$").unwrap());
    static ONCE: once_cell::sync::Lazy<regex::Regex> = once_cell::sync::Lazy::new(|| { regex::Regex::new("^o$").expect("valid") });
    lazy_static::lazy_static! {
        /// A name.
        #[allow(unused)]
        pub(crate) static ref NAME: Regex = Regex::new("^n+$").unwrap();
        static ref LAST: Regex = Regex::new(concat!("^l", r"$",)).unwrap();
    }
    fn number() -> &'static Regex {
        static NUMBER: OnceLock<Regex> = OnceLock::new();
        NUMBER.get_or_init(|| Regex::new("^[0-9]$").unwrap())
    }
    static MADE: LazyLock<Regex> = LazyLock::new(|| Regex::new(&format!("^{}$", "a")).unwrap());
"##;

#[test]
fn bounds() {
    check(
        "#[schemars(range(min = LEAST, max = MOST))]",
        "i64",
        json!({"minimum": -2, "maximum": 15}),
    );
    check(
        "#[schemars(range(max = MOST * 2 + 1))]",
        "i64",
        json!({"maximum": 31}),
    );
    check(
        "#[validate(length(max = other::SHORT))]",
        "String",
        json!({"maxLength": 3}),
    );
    check(
        "#[schemars(length(min = 1, max = crate::other::SHORT))]",
        "Vec<String>",
        json!({"minItems": 1, "maxItems": 3}),
    );
    check("#[garde(range(max = Limits::MOST))]", "u8", json!({"maximum": 9}));
    check(
        "#[schemars(range(max = \"MOST\"))]",
        "i64",
        json!({"maximum": 15}),
    );
    check(
        "#[schemars(extend(\"maxLength\" = other::SHORT))]",
        "String",
        json!({"maxLength": 3}),
    );
    check(
        "#[schemars(inner(length(max = FOUR)))]",
        "Vec<String>",
        json!({"items": {"type": "string", "maxLength": 4}}),
    );
}

#[test]
fn patterns() {
    for (attrs, pattern) in [
        ("#[validate(regex(path = *WORD))]", "^[a-z]+$"),
        ("#[validate(regex(path = \"ONCE\"))]", "^o$"),
        ("#[validate(regex = \"NAME\")]", "^n+$"),
        ("#[schemars(regex(path = crate::LAST))]", "^l$"),
        ("#[schemars(regex(path = number()))]", "^[0-9]$"),
        ("#[schemars(regex(pattern = other::PATTERN))]", "^b$"),
    ] {
        check(attrs, "String", json!({"pattern": pattern}));
    }
}

#[test]
fn code_is_refused() {
    for (attrs, expected) in [
        (
            "#[schemars(length(max = LONG))]",
            "expected a literal number for `max`",
        ),
        (
            "#[schemars(length(max = MISSING))]",
            "expected a literal number for `max`",
        ),
        (
            "#[schemars(length(max = NAME))]",
            "expected a literal number for `max`",
        ),
        (
            "#[validate(regex(path = *MADE))]",
            "expected a string literal for the pattern",
        ),
        (
            "#[schemars(range(min = 4, max = other::SHORT))]",
            "`minimum` 4 is greater than `maximum` 3",
        ),
    ] {
        let ty = if attrs.contains("range") { "i64" } else { "String" };
        let said = schema(attrs, ty, ITEMS).expect_err(attrs);
        assert_eq!(said[0].0, expected, "{attrs}");
    }
    let circle = "const A: u32 = B; const B: u32 = A;";
    let said = schema("#[schemars(length(max = A))]", "String", circle).expect_err("a circle");
    assert_eq!(said[0].0, "expected a literal number for `max`");
}
