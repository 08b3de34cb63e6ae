//! `rbuilder validate --fix`, `rbuilder manifests --fix` of samples and PROJECT, and the same
//! corrections in SARIF logs. The corrections themselves are tested in `cli/src/replacement/tests.rs`.

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
            properties:
              size: { type: integer, maximum: 9 }
              colour: { type: string, enum: [white, blue] }
              tags: { type: array, x-kubernetes-list-type: set, items: { type: string } }
"#;

/// Has mistakes, but also comments and blanks.
const WRONG: &str = "\u{feff}# é 🫖 cups
apiVersion: example.com/v1
kind: Cup
metadata: {  name: mine,  lables: { a: b } }   # 🫖 kept
spec:
    sise:   \"3\"    # three

    colour: 'Bleu'
    tags:
      - é
      # again
      - é
---

apiVersion: example.com/v1
kind: Cpu
metadata:
  name: other
spec: { tags: [ü, ü] }";

const RIGHT: &str = "\u{feff}# é 🫖 cups
apiVersion: example.com/v1
kind: Cup
metadata: {  name: mine,  labels: { a: b } }   # 🫖 kept
spec:
    size:   3    # three

    colour: 'blue'
    tags:
      - é
      # again
---

apiVersion: example.com/v1
kind: Cup
metadata:
  name: other
spec: { tags: [ü] }";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("crds/cups.yaml", CRD);
    folder
}

/// Lines and columns count from 1, and columns count Unicode characters.
fn apply_fixes(log: &Value, uri: &str, text: &str) -> String {
    assert_eq!(log["runs"][0]["columnKind"], "unicodeCodePoints");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let fixes = results.iter().filter_map(|result| result["fixes"].as_array());
    let changes = fixes.flatten().flat_map(|fix| {
        assert!(fix["description"]["text"].is_string(), "{fix}");
        fix["artifactChanges"].as_array().expect("changes")
    });
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    for change in changes.filter(|change| change["artifactLocation"]["uri"] == uri) {
        for replacement in change["replacements"].as_array().expect("replacements") {
            let region = &replacement["deletedRegion"];
            let start = offset(text, region, "startLine", "startColumn");
            let end = offset(text, region, "endLine", "endColumn");
            let content = replacement.get("insertedContent");
            let new = content.map_or("", |content| content["text"].as_str().expect("text"));
            assert!(start < end || !new.is_empty(), "{replacement}");
            edits.push((start, end, new.to_owned()));
        }
    }
    edits.sort();
    edits.dedup();
    let mut text = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        text.replace_range(start..end, &new);
    }
    text
}

fn offset(text: &str, region: &Value, line: &str, column: &str) -> usize {
    let number = |key: &str| usize::try_from(region[key].as_u64().expect("a number")).expect("a position");
    assert!(number(line) >= 1 && number(column) >= 1, "{region}");
    let start: usize = text
        .split_inclusive('\n')
        .take(number(line) - 1)
        .map(str::len)
        .sum();
    let before = text[start..].chars().take(number(column) - 1);
    start + before.map(char::len_utf8).sum::<usize>()
}

/// SARIF 2.1.0 demands this of the parts that we write.
fn check_log(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules: Vec<&Value> = run["tool"]["driver"]["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .collect();
    let ids: Vec<&str> = rules
        .iter()
        .map(|rule| rule["id"].as_str().expect("an id"))
        .collect();
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!(unique, ids);
    for result in run["results"].as_array().expect("results") {
        assert!(
            ids.contains(&result["ruleId"].as_str().expect("a rule")),
            "{result}"
        );
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().expect("a level")));
        assert!(
            result["message"]["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        let physical = &result["locations"][0]["physicalLocation"];
        assert!(physical["artifactLocation"]["uri"].is_string(), "{result}");
        for fix in result["fixes"].as_array().into_iter().flatten() {
            let changes = fix["artifactChanges"].as_array().expect("changes");
            assert!(!changes.is_empty(), "{fix}");
            for change in changes {
                assert!(
                    !change["replacements"].as_array().expect("a list").is_empty(),
                    "{fix}"
                );
            }
        }
    }
}

#[test]
fn fix_changes_only_the_mistakes() {
    for end in ["\n", "\r\n"] {
        let folder = folder();
        let (wrong, right) = (WRONG.replace('\n', end), RIGHT.replace('\n', end));
        folder.write("a/cups.yaml", &wrong);
        let ran = folder.run("validate a --crds crds --fix --dry-run");
        assert_eq!(
            (ran.code, &folder.tree()["a/cups.yaml"]),
            (1, &wrong),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("dry run: no files were written"), "{}", ran.err);
        let ran = folder.run("validate a --crds crds --fix --output json").ok();
        assert_eq!(folder.tree()["a/cups.yaml"], right);
        let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(answer["corrected"], serde_json::json!(["a/cups.yaml"]));
        assert_eq!(answer["objects"][1]["verdict"], "accepted");
        let ran = folder.run("validate a --crds crds --fix --output json").ok();
        let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(answer["corrected"], serde_json::json!([]));
        assert_eq!(folder.tree()["a/cups.yaml"], right);
    }
}

/// A mistake may hide another one, so this takes several rounds.
#[test]
fn sarif_fixes_have_the_bytes_of_fix() {
    let folder = folder();
    folder.write("a b/é.yaml", WRONG);
    folder.run("validate . --crds crds --fix").ok();
    let fixed = folder.tree()["a b/é.yaml"].clone();
    assert_eq!(fixed, RIGHT);
    let mut text = WRONG.to_owned();
    for _ in 0..5 {
        folder.write("a b/é.yaml", &text);
        let ran = folder.run("validate . --crds crds --output sarif");
        let log: Value = serde_json::from_str(&ran.out).expect("JSON");
        check_log(&log);
        text = apply_fixes(&log, "a%20b/%C3%A9.yaml", &text);
    }
    assert_eq!(text, fixed);
}

#[test]
fn sarif_has_a_result_for_each_error() {
    let folder = folder();
    folder.write(
        "cup.yaml",
        "apiVersion: example.com/v1\nkind: Cup\nmetadata:\n  name: a\nspec:\n  size: 12\n",
    );
    let ran = folder.run("validate cup.yaml --crds crds --output sarif");
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    check_log(&log);
    let result = &log["runs"][0]["results"][0];
    assert_eq!(
        (&result["level"], &result["ruleId"]),
        (&"error".into(), &"RB0902".into())
    );
    assert_eq!(result.get("fixes"), None);
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "cup.yaml");
    assert_eq!(place["region"]["startLine"], 6);
}

#[test]
fn json_has_the_replacement() {
    let folder = folder();
    folder.write(
        "cup.yaml",
        "apiVersion: example.com/v1\nkind: Cup\nmetadata:\n  name: a\nspec:\n  sise: 2\n",
    );
    let ran = folder.run("validate cup.yaml --crds crds --output json");
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let said = &answer["objects"][0]["diagnostics"][0];
    let expected = serde_json::json!({
        "text": "size", "start": { "line": 6, "column": 3 }, "end": { "line": 6, "column": 7 },
    });
    assert_eq!(said["replacement"], expected);
    assert_eq!(said["help"], "did you mean `size`?");
}

/// Files outside of the directory, links, and what is piped must stay as they are.
#[cfg(unix)]
#[test]
fn fix_does_not_leave_the_directory() {
    let wrong = "apiVersion: example.com/v1\nkind: Cup\nmetadata:\n  name: a\nspec:\n  sise: 2\n";
    let outer = folder();
    outer.write("cup.yaml", wrong);
    outer.write("in/PROJECT", "");
    outer.write("in/real/cup.yaml", wrong);
    std::os::unix::fs::symlink("real/cup.yaml", outer.path().join("in/link.yaml")).expect("a link");
    std::os::unix::fs::symlink("real", outer.path().join("in/folder")).expect("a link");
    let before = outer.tree();
    let inside = outer.inside("in");
    for (typed, reason) in [
        ("../cup.yaml", "../cup.yaml is not corrected: it is not below"),
        ("link.yaml", "link.yaml is not corrected:"),
        ("folder/cup.yaml", "folder/cup.yaml is not corrected:"),
    ] {
        let ran = inside.run(&format!("validate {typed} --crds ../crds --fix"));
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(reason), "{reason}\n{}", ran.err);
        assert_eq!(outer.tree(), before);
    }
    inside
        .run("validate real/../real/cup.yaml --crds ../crds --fix")
        .ok();
    assert!(outer.tree()["in/real/cup.yaml"].contains("size: 2"));
}

fn project() -> Folder {
    let folder = Folder::with_cup();
    folder.run("manifests").ok();
    folder
}

const SAMPLE: &str = "config/samples/cache_v1_cup.yaml";

/// If a file is typed in a subdirectory, we name it as seen from there.
#[test]
fn files_of_a_project_are_corrected_from_below() {
    let folder = project();
    let text = folder.tree()[SAMPLE].clone();
    folder.write(SAMPLE, &text.replace("spec:", "spce:"));
    let below = folder.inside("config/samples");
    let ran = below.run("validate cache_v1_cup.yaml");
    assert!(ran.err.contains(" --> cache_v1_cup.yaml:"), "{}", ran.err);
    below.run("validate cache_v1_cup.yaml --fix").ok();
    assert_eq!(folder.tree()[SAMPLE], text);
}

/// If a file is generated from source, or rendered from manifests, a correction would be
/// overwritten.
#[test]
fn generated_files_are_not_corrected() {
    let folder = project();
    let sample = folder.tree()[SAMPLE].replace("spec:", "spce:");
    folder.write("dist/install.yaml", &sample);
    let role = folder.tree()["config/rbac/role.yaml"].replace("rules:", "ruels:");
    folder.write("config/rbac/role.yaml", &role);
    let before = folder.tree();
    for path in ["dist/install.yaml", "config/rbac/role.yaml"] {
        let ran = folder.run(&format!("validate {path} --fix"));
        assert_eq!(ran.code, 1);
        let reason = format!("{path} is not corrected: it is generated");
        assert!(ran.err.contains(&reason), "{}", ran.err);
        assert_eq!(folder.tree(), before);
    }
}

#[test]
fn manifests_fix_corrects_samples_and_project() {
    let folder = project();
    let text = folder.tree()[SAMPLE].clone();
    let project = folder.tree()["PROJECT"].clone();
    let before = folder.tree();
    folder.run("manifests --fix").ok();
    assert_eq!(folder.tree(), before);

    let wrong = text
        .replace("kind: Cup", "kind: Cpu # a cup")
        .replace("metadata:", "matadata:");
    folder.write(SAMPLE, &wrong.replace('\n', "\r\n"));
    let ran = folder.run("manifests --check --message-format json");
    assert!(ran.out.contains("suggested_replacement\":\"Cup\""), "{}", ran.out);
    folder.run("manifests --fix --dry-run").ok();
    assert_eq!(folder.tree()[SAMPLE], wrong.replace('\n', "\r\n"));
    folder.run("manifests --fix --allow RB1002").ok();
    assert_eq!(folder.tree()[SAMPLE], wrong.replace('\n', "\r\n"));
    folder.run("manifests --fix").ok();
    let right = text
        .replace("kind: Cup", "kind: Cup # a cup")
        .replace('\n', "\r\n");
    assert_eq!(folder.tree()[SAMPLE], right);
    let ran = folder.run("manifests --check").ok();
    assert_eq!(ran.err, "");

    let wrong = project.replace("version: v1\n", "version: v2\n");
    folder.write(
        "PROJECT",
        &wrong.replace("  controller: true", "  controler: true"),
    );
    folder.run("manifests --fix").ok();
    assert_eq!(folder.tree()["PROJECT"], project);
}

#[test]
fn sarif_of_manifests_has_the_fixes() {
    let folder = project();
    let is_types =
        |(path, text): &(String, String)| path.ends_with(".rs") && text.contains("max_length = 63");
    let (path, text) = folder.tree().into_iter().find(is_types).expect("the types");
    let wrong = text.replacen("max_length = 63", "max_lenght = 63", 1);
    folder.write(&path, &wrong);
    let ran = folder.run("manifests --message-format sarif");
    assert_eq!(ran.code, 1);
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    check_log(&log);
    assert_eq!(apply_fixes(&log, &path, &wrong), text);
    // In a subdirectory, paths are still those of the project.
    let ran = folder.inside("src").run("manifests --message-format sarif");
    assert_eq!(serde_json::from_str::<Value>(&ran.out).expect("JSON"), log);

    folder.write(&path, &text);
    let sample = folder.tree()[SAMPLE].clone();
    let wrong = sample.replace("kind: Cup", "kind: Cpu");
    folder.write(SAMPLE, &wrong);
    let ran = folder.run("manifests --check --message-format sarif").ok();
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    check_log(&log);
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "RB1002");
    assert_eq!(apply_fixes(&log, SAMPLE, &wrong), sample);

    folder.write(SAMPLE, &sample);
    let ran = folder.run("manifests --check --message-format sarif").ok();
    let log: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
}
