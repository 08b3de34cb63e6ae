//! `rbuilder diff`: the states that it compares, and its reports. How changes are classified is
//! tested in `crates/compatibility/tests`.

use serde_json::{Value, json};

use crate::support::{Folder, Ran};

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
              colour: { type: string }
"#;

fn lowered() -> String {
    CRD.replace("maximum: 9", "maximum: 7")
}

fn states(after: &str) -> Folder {
    let folder = Folder::new();
    folder.write("old/cups.yaml", CRD);
    folder.write("new/cups.yaml", after);
    folder
}

fn commit(folder: &Folder, message: &str) {
    folder.git("add --all");
    folder.git(&format!(
        "-c user.name=a -c user.email=a@example.com -c commit.gpgsign=false commit --quiet --message {message}"
    ));
}

/// The main branch has the CRD, and another branch changes it.
fn repository(after: &str) -> Folder {
    let folder = Folder::new();
    folder.git("init --quiet --initial-branch main");
    folder.write("crds/cups.yaml", CRD);
    commit(&folder, "one");
    folder.git("checkout --quiet -b change");
    folder.write("crds/cups.yaml", after);
    folder
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

#[test]
fn breaking_change_has_an_object_that_shows_it() {
    let ran = states(&lowered()).run("diff old --to new");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(
        ran.out,
        "breaking: cups.example.com v1 spec.size: maximum 7 instead of 9 [maximum-lowered]\n\
        \x20 affects clients that write: larger values are refused\n\
        \x20 this object was accepted, and is refused:\n\
        \x20 spec.size: Invalid value: 9: spec.size in body should be less than or equal to 7\n\
        \x20   apiVersion: example.com/v1\n\
        \x20   kind: Cup\n\
        \x20   metadata:\n\
        \x20     name: example\n\
        \x20     namespace: default\n\
        \x20   spec:\n\
        \x20     size: 9\n\
        \n\
        compared with old: 1 breaking, 0 risky, 0 compatible\n"
    );
}

#[test]
fn level_of_a_change_decides_about_the_exit_code() {
    let default = CRD.replace(
        "colour: { type: string }",
        "colour: { type: string, default: red }",
    );
    let raised = CRD.replace("maximum: 9", "maximum: 12");
    for (after, flags, expected) in [
        (lowered(), "", 1),
        (lowered(), "--fail-on risky", 1),
        (lowered(), "--fail-on never", 0),
        (default.clone(), "", 0),
        (default, "--fail-on risky", 1),
        (raised, "--fail-on risky", 0),
        (CRD.to_owned(), "--fail-on risky", 0),
    ] {
        let ran = states(&after).run(&format!("diff old --to new {flags}"));
        assert_eq!(ran.code, expected, "{flags}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn json_has_the_whole_example() {
    let ran = states(&lowered()).run("diff old --to new --output json");
    let report = json(&ran);
    assert_eq!(report["summary"]["breaking"], 1);
    let change = &report["changes"][0];
    assert_eq!(change["rule"], "maximum-lowered");
    assert_eq!(change["example"]["object"]["spec"]["size"], 9);
    assert_eq!(
        change["example"]["refused"][0],
        "spec.size: Invalid value: 9: spec.size in body should be less than or equal to 7"
    );
}

#[test]
fn markdown_has_a_table_and_folded_examples() {
    let ran = states(&lowered()).run("diff old --to new --output markdown");
    assert_eq!(ran.code, 1);
    for part in [
        "### API changes since old\n",
        "| CustomResourceDefinition `cups.example.com` | 1 | 0 | 0 |\n",
        "#### Breaking\n",
        "<details><summary>Example</summary>\n",
        "  ```yaml\n  apiVersion: example.com/v1\n",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let ran = states(CRD).run("diff old --to new --output markdown").ok();
    assert!(
        ran.out
            .ends_with("No changes of CRDs, roles and webhook configurations.\n"),
        "{}",
        ran.out
    );
}

#[test]
fn merge_base_with_the_main_branch_is_the_default() {
    let folder = repository(&lowered());
    commit(&folder, "two");
    // What happens on the main branch afterwards isn't a change of our branch.
    folder.git("checkout --quiet main");
    folder.write("crds/cups.yaml", &CRD.replace("colour", "color"));
    commit(&folder, "three");
    folder.git("checkout --quiet change");
    let report = json(&folder.run("diff --to crds --output json"));
    let rules: Vec<&str> = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| change["rule"].as_str())
        .collect();
    assert_eq!(rules, ["maximum-lowered"]);
    assert!(
        report["base"].as_str().unwrap().starts_with("main ("),
        "{}",
        report["base"]
    );
}

#[test]
fn revision_is_compared_with_the_work_tree() {
    let folder = repository(&lowered());
    for revision in ["main", "HEAD", "refs/heads/main", "HEAD~0"] {
        let ran = folder.run(&format!("diff {revision} --to crds"));
        assert_eq!(ran.code, 1, "{revision}: {}", ran.err);
        assert!(ran.out.contains("[maximum-lowered]"), "{revision}: {}", ran.out);
    }
    let inside = folder.inside("crds").run("diff main --to cups.yaml");
    assert!(
        inside.out.contains("[maximum-lowered]"),
        "{}{}",
        inside.out,
        inside.err
    );
}

#[test]
fn unknown_base_is_an_error_with_advice() {
    let folder = repository(CRD);
    for (line, expected) in [
        (
            "diff nowhere --to crds",
            "`nowhere` is neither a git revision nor a file or directory",
        ),
        ("diff --to gone", "gone does not exist"),
        (
            "diff main",
            "expected a project, or the new manifests with `--to`",
        ),
        ("diff --output=json --to old", "old does not exist"),
    ] {
        let ran = folder.run(line);
        assert_eq!(ran.code, 1, "{line}");
        assert!(
            ran.err.contains(expected) || ran.out.contains(expected),
            "{line}: {}{}",
            ran.out,
            ran.err
        );
    }
    folder.write("main/cups.yaml", CRD);
    let ran = folder.run("diff main --to crds");
    assert!(
        ran.err
            .contains("`main` is a git revision and a file or directory"),
        "{}",
        ran.err
    );
    assert_eq!(folder.run("diff ./main --to crds").code, 0);
    assert_eq!(folder.run("diff refs/heads/main --to crds").code, 0);
}

#[test]
fn base_without_manifests_is_an_error() {
    let folder = repository(CRD);
    folder.write("src/main.rs", "fn main() {}\n");
    folder.write("notes.txt", "no manifest\n");
    commit(&folder, "two");
    for base in ["src", "notes.txt"] {
        let line = format!("diff {base} --to crds");
        let ran = folder.run(&line);
        assert_eq!(ran.code, 1, "{line}: {}", ran.out);
        let expected = format!(
            "expected CustomResourceDefinitions, roles or webhook configurations in {base}, found none to compare with"
        );
        assert!(ran.err.contains(&expected), "{line}: {}", ran.err);
        assert!(!ran.out.contains("compatible"), "{line}: {}", ran.out);
        folder.run(&format!("{line} --allow-empty")).ok();
    }
    // An unset variable of a workflow must not compare the tree with itself.
    for base in ["", " "] {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_rbuilder"))
            .current_dir(folder.path())
            .args(["diff", base, "--to", "crds"])
            .output()
            .expect("the command runs");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.contains("BASE is empty"), "{said}");
    }
    let ran = folder.run("diff --versions --to crds");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.err.contains("with several versions, found none"),
        "{}",
        ran.err
    );
    folder.run("diff --versions --to crds --allow-empty").ok();
}

#[test]
fn renamed_directory_is_compared_with_its_former_files() {
    let folder = repository(CRD);
    folder.git("mv crds manifests");
    folder.write("manifests/cups.yaml", &lowered());
    commit(&folder, "two");
    let ran = folder.run("diff main --to manifests");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("[maximum-lowered]"), "{}", ran.out);
    assert!(
        ran.err.contains("cups.example.com was in crds/cups.yaml at main"),
        "{}",
        ran.err
    );
    // Another file of the same name is not its former state.
    folder.write(
        "manifests/cups.yaml",
        &CRD.replace("cups.example.com", "cups.example.org"),
    );
    let ran = folder.run("diff main --to manifests");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("found none to compare with"), "{}", ran.err);
}

#[test]
fn project_is_compared_by_its_source() {
    let folder = Folder::with_cup();
    let (types, controller) = ("src/api/v1/cup.rs", "src/controller/cup.rs");
    let [text, rules] = [types, controller].map(|path| folder.tree()[path].clone());
    folder.git("init --quiet --initial-branch main");
    commit(&folder, "one");
    let ran = folder.run("diff").ok();
    assert!(
        ran.out.ends_with("0 breaking, 0 risky, 0 compatible\n"),
        "{}",
        ran.out
    );
    let field = "pub struct CupSpec {\n    /// size is the size.\n    pub size: i32,\n";
    folder.write(types, &text.replace("pub struct CupSpec {", field));
    let marker = "#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get\")]\n#[rbac(";
    folder.write(controller, &rules.replacen("#[rbac(", marker, 1));
    // The manifests have not been generated yet.
    let ran = folder.run("diff");
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    for part in [
        "breaking: cups.cache.example.com v1 spec.size: required [required-added]",
        "risky: ClusterRole manager-role rules: may `get` on `deployments.apps` [permission-added]",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    folder.write(types, "pub struct");
    let ran = folder.run("diff");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error"), "{}", ran.err);
    assert!(!ran.out.contains("crd-removed"), "{}", ran.out);
}

#[cfg(unix)]
#[test]
fn configuration_of_a_repository_runs_no_program() {
    let folder = repository(&lowered());
    let script = folder.path().join("run");
    let marker = folder.path().join("ran");
    folder.write_program("run", &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    let run = script.display().to_string();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "core.hooksPath",
        "core.askPass",
        "core.alternateRefsCommand",
        "diff.external",
        "credential.helper",
        "alias.ls-tree",
        "pager.cat-file",
        "filter.a.smudge",
        "filter.a.process",
        "uploadpack.packObjectsHook",
        "gpg.program",
    ] {
        folder.git(&format!("config {key} {run}"));
    }
    folder.write(".gitattributes", "*.yaml filter=a\n");
    // In a partial clone, git fetches what is missing.
    folder.git("config remote.origin.url ssh://example.invalid/a");
    folder.git("config remote.origin.promisor true");
    folder.git("config core.repositoryFormatVersion 1");
    folder.git("config extensions.partialClone origin");
    let ran = folder.run("diff main --to crds");
    assert!(ran.out.contains("[maximum-lowered]"), "{}{}", ran.out, ran.err);
    let missing = "0123456789012345678901234567890123456789";
    let ran = folder.run(&format!("diff {missing} --to crds"));
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(!marker.exists(), "a program ran");
}

#[cfg(unix)]
mod cluster {
    use super::*;

    use std::process::Command;

    /// The cluster has a CRD and two objects. A program answers for it like kubectl.
    fn run_with_cluster(folder: &Folder, line: &str) -> Ran {
        let object = |name: &str, size: i64| {
            format!(
                "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Cup\",\"metadata\":{{\"name\":\"{name}\",\
                 \"namespace\":\"shop\",\"uid\":\"{name}\",\"resourceVersion\":\"1\"}},\"spec\":{{\"size\":{size},\"colour\":\"red\"}}}}"
            )
        };
        let crd: Value = yaml(CRD);
        folder.write("crd.json", &crd.to_string());
        folder.write(
            "cups.json",
            &format!(
                "{{\"kind\":\"List\",\"items\":[{},{}]}}",
                object("small", 1),
                object("large", 9)
            ),
        );
        let home = folder.path().display();
        folder.write_program(
            "kubectl",
            &format!("#!/bin/sh\ncase \"$*\" in\n*cups.v1.example.com*) cat {home}/cups.json;;\n*) cat > /dev/null; cat {home}/crd.json;;\nesac\n"),
        );
        let output = Command::new(env!("CARGO_BIN_EXE_rbuilder"))
            .current_dir(folder.path())
            .env("KUBECTL", folder.path().join("kubectl"))
            .env_remove("KUSTOMIZE")
            .args(line.split(' '))
            .output()
            .expect("the command runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Ran {
            code: output
                .status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .expect("a code"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn yaml(text: &str) -> Value {
        serde_saphyr::from_str(text).expect("YAML")
    }

    #[test]
    fn stored_objects_are_judged_by_the_new_schema() {
        let folder = states(&lowered().replace("              colour: { type: string }\n", ""));
        let ran = run_with_cluster(&folder, "diff cluster --to new");
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        for part in [
            "[maximum-lowered]",
            "stored object Cup shop/small (example.com/v1)\n  loses `spec.colour`\n",
            "stored object Cup shop/large (example.com/v1)\n  is not valid: spec.size: Invalid value: 9:",
            "2 objects in the cluster judged by the new CRDs, 2 affected\n",
            "compared with the cluster: 2 breaking, 0 risky, 0 compatible\n",
        ] {
            assert!(ran.out.contains(part), "{part}\n{}", ran.out);
        }
    }

    #[test]
    fn compatible_crd_affects_no_stored_object() {
        let folder = states(&CRD.replace("maximum: 9", "maximum: 12"));
        let ran = run_with_cluster(&folder, "diff cluster --to new --output json");
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let report = json(&ran);
        assert_eq!(
            report["storedObjects"],
            serde_json::json!({ "judged": 2, "affected": [] })
        );
    }
}

/// Each of the two versions has a field that the other one lacks.
fn two_versions(conversion: &str) -> Folder {
    let (_, first) = CRD.split_once("  - name: v1\n").expect("a version");
    let second = first
        .replace("storage: true", "storage: false")
        .replace("colour", "paint");
    let crd = format!("{CRD}  - name: v2\n{second}").replace("  scope:", &format!("{conversion}  scope:"));
    let folder = Folder::new();
    folder.write("new/cups.yaml", &crd);
    folder
}

#[test]
fn fields_that_objects_lose_between_versions_are_found() {
    let folder = two_versions("");
    let ran = folder.run("diff --versions --to new");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let lines: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| !line.starts_with("      "))
        .collect();
    assert_eq!(
        lines,
        [
            "breaking: cups.example.com v2 spec.paint: an object written in `v2` loses `spec.paint` when it is stored in \
             `v1` [conversion-loses-field]",
            "  affects stored objects, clients that write, clients that read: without a conversion webhook, the API server \
             only changes `apiVersion`, and prunes what the other version does not have",
            "  in this object, `spec.paint` was `\"example\"`, and is absent:",
            "    apiVersion: example.com/v2",
            "    kind: Cup",
            "    metadata:",
            "    spec:",
            "",
            "breaking: cups.example.com v1 spec.colour: a stored object loses `spec.colour` when a client of `v2` reads it \
             and writes it back [conversion-loses-field]",
            "  affects stored objects, clients that write, clients that read: without a conversion webhook, the API server \
             only changes `apiVersion`, and prunes what the other version does not have",
            "  in this object, `spec.colour` was `\"example\"`, and is absent:",
            "    apiVersion: example.com/v1",
            "    kind: Cup",
            "    metadata:",
            "    spec:",
            "",
            "compared 1 pair of versions: 2 breaking, 0 risky, 0 compatible",
        ]
    );
    let ran = folder.run("diff --versions --to new --output json --fail-on never");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = json(&ran);
    assert_eq!(report["base"], Value::Null);
    assert_eq!(
        report["versions"],
        json!({ "pairs": 1, "convertedByWebhook": [], "withoutRoundTripTest": {} })
    );
    assert_eq!(report["changes"][0]["field"], "spec.paint");
    assert_eq!(
        report["changes"][0]["example"]["object"]["apiVersion"],
        "example.com/v2"
    );
    let ran = folder.run("diff --versions --to new --output markdown");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out
            .starts_with("### Fields lost between versions\n\n| manifest |"),
        "{}",
        ran.out
    );
}

#[test]
fn versions_that_a_webhook_converts_are_named() {
    let folder = two_versions("  conversion: { strategy: Webhook }\n");
    let ran = folder.run("diff --versions --to new");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.out,
        "cups.example.com: a webhook converts its versions: `rbuilder::testing::assert_round_trip` in a test of the \
         operator finds what it loses\n\
         compared 0 pairs of versions: 0 breaking, 0 risky, 0 compatible\n"
    );
    let ran = folder.run("diff --versions --to new --output markdown");
    assert!(ran.out.ends_with("No object loses a field.\n"), "{}", ran.out);
    let ran = folder.run("diff main --versions");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--versions"), "{}", ran.err);
}

#[test]
fn versions_without_a_round_trip_test_are_named() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    for version in ["v1", "v2"] {
        let line = format!("create api --group g --version {version} --kind Cup --manifests=false");
        folder.run(&line).ok();
    }
    folder
        .run("create webhook --group g --version v1 --kind Cup --conversion --spoke v2")
        .ok();
    let tested = folder.run("diff --versions --fail-on risky").ok();
    assert_eq!(
        tested.out,
        "cups.g.example.com: a webhook converts its versions, and tests with `rbuilder::testing::assert_round_trip` examine \
         them all\n\
         compared 0 pairs of versions: 0 breaking, 0 risky, 0 compatible\n"
    );
    folder.replace(
        "tests/cup_v1_webhook.rs",
        "testing::assert_round_trip::<",
        "other::<",
    );
    let untested = folder.run("diff --versions").ok();
    let expected =
        "cups.g.example.com: a webhook converts its versions, and no test was found that examines v1, v2: ";
    assert!(untested.out.starts_with(expected), "{}", untested.out);
    assert_eq!(folder.run("diff --versions --fail-on risky").code, 1);
    let json = folder.run("diff --versions --output json").ok();
    let report: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        report["versions"],
        json!({
            "pairs": 0,
            "convertedByWebhook": ["cups.g.example.com"],
            "withoutRoundTripTest": { "cups.g.example.com": ["v1", "v2"] },
        })
    );
}
