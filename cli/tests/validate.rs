//! `rbuilder validate`: verdicts on objects, with their places. The verdicts themselves are tested
//! in `crates/judge/tests`.

use crate::support::Folder;

use serde_json::Value;

const CRD: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: cups.example.com
spec:
  group: example.com
  names: { kind: Cup, plural: cups }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - rule: self.size >= oldSelf.size
              message: cups do not shrink
            properties:
              size: { type: integer, maximum: 9 }
              colour: { type: string, default: white }
"#;

fn cup(spec: &str) -> String {
    format!("apiVersion: example.com/v1\nkind: Cup\nmetadata:\n  name: mine\nspec:\n{spec}")
}

fn folder(spec: &str) -> Folder {
    let folder = Folder::new();
    folder.write("crds/cups.yaml", CRD);
    folder.write("cup.yaml", &cup(spec));
    folder
}

#[test]
fn samples_of_a_project_are_judged_by_its_source() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder
        .run("create api --group cache --version v1 --kind Cup")
        .ok();
    let ran = folder.run("validate").ok();
    assert_eq!(ran.out, "1 object accepted, 0 refused\n");
    let sample = "config/samples/cache_v1_cup.yaml";
    let text = folder.tree()[sample].clone();
    folder.write(sample, &text.replace("spec:", "spek: 1\nspec:"));
    let ran = folder.run("validate");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("error: strict decoding error: unknown field \"spek\""),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("cache_v1_cup.yaml:"), "{}", ran.err);
    // The file is named as seen from the directory of the user.
    assert_eq!(folder.inside("config").run("validate").code, 1);
}

#[test]
fn refused_object_is_shown_with_its_line() {
    let folder = folder("  size: 12\n  colour: red\n");
    let ran = folder.run("validate cup.yaml --crds crds");
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (1, "0 objects accepted, 1 refused\n")
    );
    let message = "error: spec.size: Invalid value: 12: spec.size in body should be less than or equal to 9";
    for part in [message, "--> cup.yaml:6:9", "size: 12", "^^"] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
}

#[test]
fn absent_field_is_shown_at_the_value_around_it() {
    let ran = folder("  colour: red\n").run("validate cup.yaml --crds crds/cups.yaml");
    assert!(
        ran.err.contains("error: spec.size: Required value"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--> cup.yaml:5:1"), "{}", ran.err);
}

#[test]
fn unknown_field_is_a_matter_of_field_validation() {
    let folder = folder("  size: 1\n  sise: 2\n");
    let ran = folder.run("validate cup.yaml --crds crds");
    assert!(
        ran.err
            .contains("strict decoding error: unknown field \"spec.sise\""),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--> cup.yaml:7:3"), "{}", ran.err);
    let ran = folder
        .run("validate cup.yaml --crds crds --field-validation warn")
        .ok();
    assert!(
        ran.err.contains("warning: unknown field \"spec.sise\""),
        "{}",
        ran.err
    );
    let ran = folder
        .run("validate cup.yaml --crds crds --field-validation ignore")
        .ok();
    assert_eq!(ran.err.trim(), "");
}

#[test]
fn update_is_judged_with_the_old_object() {
    let folder = folder("  size: 3\n");
    folder.write("old.yaml", &cup("  size: 4\n"));
    folder.run("validate cup.yaml --crds crds").ok();
    let ran = folder.run("validate cup.yaml --crds crds --old old.yaml");
    assert!(
        ran.err.contains("error: spec: Invalid value: cups do not shrink"),
        "{}",
        ran.err
    );
    // Unchanged parts keep their errors.
    folder.write("cup.yaml", &cup("  size: 12\n  colour: red\n"));
    folder.write("old.yaml", &cup("  size: 12\n"));
    folder.run("validate cup.yaml --crds crds --old old.yaml").ok();
}

#[test]
fn stored_object_has_defaults() {
    let ran = folder("  size: 1.0\n")
        .run("validate cup.yaml --crds crds --show-defaults")
        .ok();
    assert!(
        ran.out.contains("spec:\n  colour: white\n  size: 1\n"),
        "{}",
        ran.out
    );
}

#[test]
fn json_has_the_status_of_the_server() {
    let folder = folder("  size: 12\n");
    folder.write(
        "other.yaml",
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n",
    );
    let ran = folder.run("validate cup.yaml other.yaml --crds crds --output json");
    assert_eq!(ran.code, 1);
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let (cup, pod) = (&answer["objects"][0], &answer["objects"][1]);
    assert_eq!(cup["verdict"], "refused");
    assert_eq!(cup["status"]["reason"], "Invalid");
    assert_eq!(cup["diagnostics"][0]["start"]["line"], 6);
    assert_eq!(pod["verdict"], "unknown kind");
}

#[test]
fn sarif_has_a_result_for_each_error() {
    let ran = folder("  size: 12\n").run("validate cup.yaml --crds crds --output sarif");
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "cup.yaml");
    assert_eq!(place["region"]["startLine"], 6);
}

#[test]
fn unknown_version_of_a_known_kind_is_an_error() {
    let folder = folder("  size: 1\n");
    folder.replace("cup.yaml", "example.com/v1", "example.com/v2");
    let ran = folder.run("validate cup.yaml --crds crds");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("no matches for kind \"Cup\" in version \"example.com/v2\""),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("the kind has the versions: v1"), "{}", ran.err);
}

#[test]
fn definitions_are_needed() {
    let folder = folder("  size: 1\n");
    let ran = folder.run("validate cup.yaml");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("pass `--crds`"), "{}", ran.err);
    let ran = folder.run("validate cup.yaml --crds cup.yaml");
    assert!(
        ran.err
            .contains("expected a CustomResourceDefinition, found none in cup.yaml"),
        "{}",
        ran.err
    );
    folder.write("cup.yaml", "a: [\n");
    let ran = folder.run("validate cup.yaml --crds crds");
    assert!(ran.err.contains("cannot parse cup.yaml"), "{}", ran.err);
}
