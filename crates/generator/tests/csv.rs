//! `#[csv(…)]` results in descriptors for the bundle. If a field can't have one, there's a
//! diagnostic.

use rbuilder_generator::{CsvMarkers, Options, SourceSet, generate_each};

use crate::support::{CARGO_TOML, PRELUDE, kind};

/// Returns the `#[csv(…)]` attributes and the messages.
fn read(source: &str) -> (Vec<CsvMarkers>, Vec<String>) {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/lib.rs", source);
    let options = Options {
        csv: true,
        ..Options::default()
    };
    let found = generate_each(&sources, &options, &mut |_| {});
    let said = found.diagnostics.iter().map(|said| {
        let place = &source[said.place.range.clone()];
        format!("{place}: {}", said.message)
    });
    (found.csv, said.collect())
}

/// `paths` are those of the descriptors in the spec.
fn check(fields: &str, items: &str, paths: &[&str], expected: &[&str]) {
    let (markers, said) = read(&kind(fields, items));
    let found = markers.iter().flat_map(|markers| &markers.spec);
    let found: Vec<&str> = found.map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, paths, "{fields}");
    assert_eq!(said, expected, "{fields}");
}

#[test]
fn marker_without_arguments_describes_nested_field() {
    let items = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
                 pub struct Part { #[csv] a: i32, #[csv()] b: i32, c: i32 }";
    check("part: Part", items, &["part.a", "part.b"], &[]);
    check("parts: Vec<Part>", items, &["parts[0].a", "parts[0].b"], &[]);
    let (markers, _) = read(&kind("part: Part", items));
    assert_eq!(markers[0].spec[0].1, Default::default());
}

#[test]
fn ambiguous_name_has_no_descriptor() {
    let items = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
                 pub struct Part { #[csv(order = 1)] a: i32, #[csv(skip)] b: i32 }";
    for name in ["a.b", "pods[0]", "a]"] {
        let message = format!("the field has no descriptor: `{name}` would be ambiguous in its path");
        let renamed = format!("#[serde(rename = \"{name}\")]");
        check(
            &format!("{renamed} #[csv(order = 2)] f: i32, #[csv] g: i32"),
            "",
            &["g"],
            &[&format!("#[csv(order = 2)]: {message}")],
        );
        check(
            &format!("{renamed} f: Vec<Part>"),
            items,
            &[],
            &[&format!("#[csv(order = 1)]: {message}")],
        );
        check(&format!("{renamed} #[csv(skip)] f: i32"), "", &[], &[]);
        check(&format!("{renamed} f: i32"), "", &[], &[]);
    }
    check("#[serde(rename = \"a-b/c\")] #[csv] f: i32", "", &["a-b/c"], &[]);
}

#[test]
fn warns_about_marker_without_effect() {
    let items = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
                 pub struct Part { #[csv] a: i32 }";
    let in_map = "#[csv]: the field has no descriptor: its path leads through a map, whose keys are unknown";
    check("parts: BTreeMap<String, Part>", items, &[], &[in_map]);
    check(
        "parts: Option<Vec<BTreeMap<String, Vec<Part>>>>",
        items,
        &[],
        &[in_map],
    );
    // The type is also used outside of the map, and there the attribute has an effect.
    let both = "parts: BTreeMap<String, Part>, part: Part";
    check(both, items, &["part.a"], &[]);
    let (_, said) = read(&kind("part: Part", items).replace("version = \"v1\"", "version = \"v1\", no_spec"));
    assert_eq!(
        said,
        ["#[csv]: the field has no descriptor: it is neither in `spec` nor in `status`"]
    );
}

#[test]
fn kinds_must_agree_on_required_crd() {
    let required = |version: &str, words: &str| {
        format!("required(name = \"cups.a.io\", version = \"{version}\", kind = \"Cup\", {words})")
    };
    let kind = |name: &str, required: &str| {
        format!(
            "#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"g.example.com\", version = \"v1\", kind = \"{name}\")]\n\
             #[csv({required})]\n\
             pub struct {name}Spec {{ a: i32 }}\n"
        )
    };
    let said = |first: &str, second: &str| {
        let source = format!("{PRELUDE}{}{}", kind("Second", second), kind("First", first));
        read(&source).1
    };
    let a = required("v1", "description = \"A.\"");
    let none: [&str; 0] = [];
    assert_eq!(said(&a, &a), none);
    assert_eq!(said(&a, &required("v2", "description = \"B.\"")), none);
    let differs = "required: `required` of CRD `cups.a.io` in version `v1` differs from that on kind `First`";
    for words in [
        "description = \"B.\"",
        "description = \"A.\", display_name = \"Cup of tea\"",
    ] {
        assert_eq!(said(&a, &required("v1", words)), [differs], "{words}");
    }
}
