//! The same CEL rule is twice on a value. Server-side apply uses the expression as the key of the
//! list, so it rejects such CRDs.

use rbuilder_generator::{Options, SourceSet, generate};

/// Returns the manifests and the errors.
fn run(kind: &str, field: &str, items: &str) -> (String, Vec<String>) {
    let manifest = "[package]\nname = \"shop\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\nserde = \"1\"\n";
    let source = format!(
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
         #[kube(group = \"example.com\", version = \"v1\", kind = \"Cup\"{kind})]\npub struct CupSpec {{\n{field}\n}}\n{items}"
    );
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", manifest);
    sources.insert("src/lib.rs", source.as_str());
    let generated = generate(&sources, &Options::default());
    let text = generated.files.into_iter().map(|file| file.text).collect();
    let errors = generated.diagnostics.into_iter().map(|found| {
        let place = &source[found.place.range.clone()];
        format!("{place}: {}", found.message)
    });
    (text, errors.collect())
}

const NAME: &str = "\n#[derive(rbuilder::CrdSchema)]\n#[crd(cel(rule = \"self.name == oldSelf.name\", message = \"fixed\"))]\npub struct Name { pub name: String }\n";

fn count(text: &str, rule: &str) -> usize {
    text.matches(&format!("rule: {rule}")).count()
}

#[test]
fn equal_rules_of_type_and_field_are_merged() {
    for field in [
        "#[crd(cel(rule = \"self.name == oldSelf.name\", message = \"fixed\"))] pub name: Name,",
        "#[crd(cel(rule = \"self.name == oldSelf.name\", message = \"fixed\"), cel(rule = \"self.name == oldSelf.name\", message = \"fixed\"))] pub name: Name,",
        "pub name: Name,",
        "#[serde(flatten)] pub name: Name, #[serde(flatten)] pub other: Other,",
    ] {
        let other = NAME
            .replace("Name {", "Other {")
            .replace("pub name:", "pub other:");
        let (text, errors) = run(
            "",
            field,
            &format!("{NAME}{}", other.replace("self.name == oldSelf.name", "true")),
        );
        assert_eq!(errors, [] as [String; 0], "{field}");
        assert_eq!(count(&text, "self.name == oldSelf.name"), 1, "{field}:\n{text}");
    }
}

#[test]
fn reports_conflicting_rules_at_the_marker() {
    let check = |field: &str, items: &str, expected: &str| {
        let (text, errors) = run("", field, items);
        assert_eq!(text, "", "{field}");
        assert_eq!(errors, [expected], "{field}");
    };
    let fixed = NAME.replace("self.name == oldSelf.name", "self == oldSelf");
    check(
        "#[crd(immutable)] pub name: Name,",
        &fixed,
        "immutable: the rule `self == oldSelf` is on this value twice, with different contents",
    );
    check(
        "#[crd(cel(rule = \"self.name == oldSelf.name\"))] pub name: Name,",
        NAME,
        "cel: the rule `self.name == oldSelf.name` is on this value twice, with different contents",
    );
}

#[test]
fn checks_rules_of_raw_schemas() {
    let schema = |second: &str| {
        format!(
            "#[crd(schema = {{ \"type\": \"string\", \"x-kubernetes-validations\": [{{ \"rule\": \"self != ''\" }}, {second}] }})] pub name: String,"
        )
    };
    let (text, errors) = run(
        "",
        &schema("{ \"rule\": \"self != ''\", \"message\": \"m\" }"),
        "",
    );
    assert_eq!((text.as_str(), errors.len()), ("", 1), "{errors:?}");
    assert!(
        errors[0].contains("the rule `self != ''` is on this value twice"),
        "{errors:?}"
    );
}

#[test]
fn merges_rules_of_whole_object() {
    let rule = ", validation = Rule::new(\"self.spec.name != ''\")";
    let kind = format!("{rule}{rule}");
    let (text, errors) = run(&kind, "pub name: String,", "");
    assert_eq!(errors, [] as [String; 0]);
    assert_eq!(count(&text, "self.spec.name != ''"), 1, "{text}");
}
