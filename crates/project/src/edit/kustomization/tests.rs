use super::*;

fn check(before: &str, after: &str) {
    let edited = add_resource(before, "new.yaml").expect(before);
    assert_eq!(edited, after, "adding to\n{before}");
    assert_eq!(
        add_resource(&edited, "new.yaml").expect(after),
        after,
        "adding twice to\n{before}"
    );
    let list = serde_saphyr::from_str::<serde_json::Value>(&edited).expect("it is YAML");
    let names = list["resources"].as_array().expect("a list");
    assert!(names.iter().any(|name| name == "new.yaml"), "{edited}");
}

#[test]
fn components_are_a_separate_list() {
    let before = "resources:\n- a.yaml\n\ncomponents:\n- ../metrics\n# A heading.\n# - ../off\n";
    let after = "resources:\n- a.yaml\n\ncomponents:\n- ../metrics\n# A heading.\n# - ../off\n- ../new\n";
    assert_eq!(enable(before, COMPONENTS, "../new").as_deref(), Ok(after));
    assert_eq!(enable(after, COMPONENTS, "../new").as_deref(), Ok(after));
    assert_eq!(
        enable("resources: []\n", COMPONENTS, "../new").as_deref(),
        Ok("resources: []\ncomponents:\n- ../new\n")
    );
}

#[test]
fn enables_and_disables_entry_in_place() {
    for (off, on) in [
        (
            "components:\n- a\n# Why.\n# - x\n# - z\nb: 1\n",
            "components:\n- a\n# Why.\n- x\n# - z\nb: 1\n",
        ),
        (
            "components: []\n# Why.\n# - x # more\n\nb: 1\n",
            "components:\n# Why.\n- x # more\n\nb: 1\n",
        ),
        ("components:\n  # - x\n  - a", "components:\n  - x\n  - a"),
        (
            "components:\r\n- a\r\n# - ./x\r\n",
            "components:\r\n- a\r\n- ./x\r\n",
        ),
        (
            "\u{feff}components:\n- a\n# - 'x'\n",
            "\u{feff}components:\n- a\n- 'x'\n",
        ),
    ] {
        assert_eq!(enable(off, COMPONENTS, "x").as_deref(), Ok(on), "{off}");
        assert_eq!(disable(on, COMPONENTS, "x").as_deref(), Ok(off), "{on}");
        assert_eq!(enable(on, COMPONENTS, "x").as_deref(), Ok(on), "{on}");
        assert_eq!(disable(off, COMPONENTS, "x").as_deref(), Ok(off), "{off}");
    }
    // Comments that belong to another list, have another form, or say more than the entry.
    for (off, on) in [
        (
            "a:\n- b\n# - x\ncomponents:\n- a\n",
            "a:\n- b\n# - x\ncomponents:\n- a\n- x\n",
        ),
        (
            "components:\n- a\n# - x is off\n",
            "components:\n- a\n# - x is off\n- x\n",
        ),
        ("components: [a]\n# - x\n", "components: [a, x]\n# - x\n"),
        ("# - x\n", "# - x\ncomponents:\n- x\n"),
    ] {
        assert_eq!(enable(off, COMPONENTS, "x").as_deref(), Ok(on), "{off}");
    }
    for text in ["components: [x]\n", "components: &a\n- x\n"] {
        assert!(disable(text, COMPONENTS, "x").is_err(), "{text}");
        assert!(replace(text, COMPONENTS, "x", "y").is_err(), "{text}");
    }
}

#[test]
fn replaces_entry_in_place() {
    let before = "components:\n- ../a # why\n- ../a/b\n- \"../c\"\n";
    let after = "components:\n- ../a/off # why\n- ../a/b\n- \"../c\"\n";
    assert_eq!(
        replace(before, COMPONENTS, "../a", "../a/off").as_deref(),
        Ok(after)
    );
    assert_eq!(
        replace(after, COMPONENTS, "../a/off", "../a").as_deref(),
        Ok(before)
    );
    assert_eq!(replace(after, COMPONENTS, "../a", "../x").as_deref(), Ok(after));
    assert_eq!(entries(after, COMPONENTS), ["../a/off", "../a/b", "../c"]);
    let changes = BTreeMap::from([("../a", "../b/longer"), ("../a/b", "../a"), ("../x", "../y")]);
    assert_eq!(
        replace_all(before, COMPONENTS, &changes).as_deref(),
        Ok("components:\n- ../b/longer # why\n- ../a\n- \"../c\"\n")
    );
}

#[test]
fn removes_commented_out_entry() {
    let text = "components:\n- a\n# - x\n\ntransformers: []\n# - x/y\n";
    let text = remove_commented(text, TRANSFORMERS, "x/y");
    assert_eq!(text, "components:\n- a\n# - x\n\n");
    assert_eq!(remove_commented(&text, COMPONENTS, "x"), "components:\n- a\n\n");
    assert_eq!(remove_commented(&text, COMPONENTS, "a"), text);
}

#[test]
fn adds_entry_in_every_notation() {
    check("resources:\n- a.yaml\n", "resources:\n- a.yaml\n- new.yaml\n");
    check(
        "resources:\n  - a.yaml # why\n  # more\n\npatches: []\n",
        "resources:\n  - a.yaml # why\n  - new.yaml\n  # more\n\npatches: []\n",
    );
    check("resources: []\n", "resources:\n- new.yaml\n");
    check(
        "resources: [] # none yet\nx: 1\n",
        "resources: # none yet\n- new.yaml\nx: 1\n",
    );
    check("resources: [ ]\n", "resources:\n- new.yaml\n");
    check("resources:\n", "resources:\n- new.yaml\n");
    check("resources: null\nx: 1\n", "resources:\n- new.yaml\nx: 1\n");
    check(
        "resources: [a.yaml, b.yaml]\n",
        "resources: [a.yaml, b.yaml, new.yaml]\n",
    );
    check(
        "resources: [\n  a.yaml,\n]\n",
        "resources: [\n  a.yaml, new.yaml\n]\n",
    );
    check(
        "kind: Kustomization",
        "kind: Kustomization\nresources:\n- new.yaml\n",
    );
    check("", "resources:\n- new.yaml\n");
    check(
        "a: 1\r\nresources:\r\n- a.yaml\r\nb: 1\r\n",
        "a: 1\r\nresources:\r\n- a.yaml\r\n- new.yaml\r\nb: 1\r\n",
    );
    check("resources:\n- a.yaml", "resources:\n- a.yaml\n- new.yaml\n");
    check(
        "resources:\n# - off.yaml\n",
        "resources:\n- new.yaml\n# - off.yaml\n",
    );
    check(
        "resources:\n- a.yaml\n# Heading.\n",
        "resources:\n- a.yaml\n# Heading.\n- new.yaml\n",
    );
    check(
        "resources:\n- a.yaml\n# +kubebuilder:scaffold:x\n",
        "resources:\n- a.yaml\n- new.yaml\n# +kubebuilder:scaffold:x\n",
    );
    check("resources:\n- \"new.yaml\"\n", "resources:\n- \"new.yaml\"\n");
    let listed = "resources:\n- ./new.yaml\n";
    assert_eq!(add_resource(listed, "new.yaml").as_deref(), Ok(listed));
}

#[test]
fn only_the_list_changes() {
    check(
        "\u{feff}resources:\n- a.yaml\n",
        "\u{feff}resources:\n- a.yaml\n- new.yaml\n",
    );
    check(
        "# resources:\n# - new.yaml\nresources:\n- a.yaml\n",
        "# resources:\n# - new.yaml\nresources:\n- a.yaml\n- new.yaml\n",
    );
    check(
        "a: 1\nresources:\r\n- a.yaml\r\nb: 1\n",
        "a: 1\nresources:\r\n- a.yaml\r\n- new.yaml\r\nb: 1\n",
    );
    check(
        "---\nresources:\n- a.yaml\n",
        "---\nresources:\n- a.yaml\n- new.yaml\n",
    );
    check(
        "x: |\n  resources:\n  - new.yaml\nresources:\n- a.yaml\n",
        "x: |\n  resources:\n  - new.yaml\nresources:\n- a.yaml\n- new.yaml\n",
    );
    check(
        "x: &a [b]\nresources:\n- \"a # b.yaml\"\ny: *a\n",
        "x: &a [b]\nresources:\n- \"a # b.yaml\"\n- new.yaml\ny: *a\n",
    );
}

#[test]
fn does_not_add_existing_entries() {
    for text in [
        "\"resources\":\n- new.yaml\n",
        "resources : [a.yaml, ./new.yaml]\n",
        "{resources: [new.yaml]}\n",
        "resources: &all\n- new.yaml\n",
        "resources:\n- >-\n  new.yaml\n",
        "resources: [a.yaml, # x\n new.yaml]\n",
    ] {
        assert_eq!(add_resource(text, "new.yaml").as_deref(), Ok(text), "{text}");
    }
    // Lines that only look like entries.
    for text in [
        "resources:\n- |\n  a\n- \"a\n- new.yaml\n\"\n",
        "resources:\n- a.yaml\nresources:\n- b.yaml\n",
        "a: 1\n---\nb: 1\n",
        "resources:\n\t- a.yaml\n",
        "resources:\n- a.yaml\n...\n",
        "- a\n",
    ] {
        match add_resource(text, "new.yaml") {
            Err(_) => {}
            Ok(edited) => {
                let list = read(&edited).expect(&edited)["resources"].clone();
                let names = list.as_array().expect(&edited);
                assert_eq!(
                    names.iter().filter(|name| *name == "new.yaml").count(),
                    1,
                    "{edited}"
                );
            }
        }
    }
}

#[test]
fn existing_entries_are_not_missing() {
    let entries = || vec!["a.yaml".to_owned(), "b.yaml".to_owned()];
    assert_eq!(
        find_missing("resources: [a.yaml] # b.yaml\n", entries()),
        ["b.yaml"]
    );
    assert_eq!(
        find_missing("resources:\n- b.yaml\n- ./a.yaml\n", entries()),
        [""; 0]
    );
    assert_eq!(
        find_missing("resources:\n- 'a.yaml'\n- b.yaml\n", entries()),
        [""; 0]
    );
    assert_eq!(
        find_missing("resources:\n- \"x\n- a.yaml\n\"\n", entries()),
        entries()
    );
}

#[test]
fn rejects_values_other_than_lists() {
    for text in [
        "resources: a.yaml\n",
        "resources: [a.yaml\n",
        "a: [\n",
        "resources: [{a: b}]\n",
        "\"resources\":\n- a.yaml\n",
        "{resources: [a.yaml]}\n",
    ] {
        assert!(add_resource(text, "new.yaml").is_err(), "{text}");
    }
}

#[test]
fn removes_entry() {
    for (before, after) in [
        (
            "resources:\n- a.yaml\n- old.yaml # x\n- b.yaml\n",
            "resources:\n- a.yaml\n- b.yaml\n",
        ),
        ("resources:\n- old.yaml\nx: 1\n", "resources: []\nx: 1\n"),
        ("resources:\n- a.yaml\n", "resources:\n- a.yaml\n"),
    ] {
        assert_eq!(remove_resource(before, "old.yaml").expect(before), after);
    }
}
