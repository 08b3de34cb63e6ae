//! `rbuilder validate` returns verdicts on objects, and their places. The verdicts themselves are
//! tested in `crates/judge/tests`.

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
    let folder = Folder::with_cup();
    let ran = folder.run("validate").ok();
    assert_eq!(ran.out, "1 object accepted, 0 refused\n");
    let sample = "config/samples/cache_v1_cup.yaml";
    let text = folder.tree()[sample].clone();
    folder.write(sample, &text.replace("spec:", "spek: 1\nspec:"));
    let ran = folder.run("validate");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("error[RB0904]: strict decoding error: unknown field \"spek\""),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("cache_v1_cup.yaml:"), "{}", ran.err);
    // From another directory, we name the file as seen from there.
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
    let message =
        "error[RB0902]: spec.size: Invalid value: 12: spec.size in body should be less than or equal to 9";
    for part in [message, "--> cup.yaml:6:9", "size: 12", "^^"] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
}

#[test]
fn absent_field_is_shown_at_the_value_around_it() {
    let ran = folder("  colour: red\n").run("validate cup.yaml --crds crds/cups.yaml");
    assert!(
        ran.err.contains("error[RB0901]: spec.size: Required value"),
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
        ran.err.contains("warning[RB0904]: unknown field \"spec.sise\""),
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
        ran.err
            .contains("error[RB0902]: spec: Invalid value: cups do not shrink"),
        "{}",
        ran.err
    );
    // Parts that didn't change keep their errors.
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
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: other.io/v1\n  kind: Pot\n",
    );
    let ran = folder.run("validate cup.yaml other.yaml --crds crds --output json");
    assert_eq!(ran.code, 1);
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let (cup, pot) = (&answer["objects"][0], &answer["objects"][1]);
    assert_eq!(cup["verdict"], "refused");
    assert_eq!(cup["status"]["reason"], "Invalid");
    assert_eq!(cup["diagnostics"][0]["start"]["line"], 6);
    assert_eq!(pot["verdict"], "unknown kind");
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

#[test]
fn nothing_to_judge_is_an_error() {
    let folder = folder("  size: 1\n");
    folder.write("empty.yaml", "");
    folder.write("null.yaml", "---\n---\n# nothing\n");
    folder.write(
        "other.yaml",
        "apiVersion: example.org/v1\nkind: Mug\nmetadata: { name: a }\n",
    );
    folder.write("values/values.yaml", "replicas: 1\n");
    for file in ["empty.yaml", "null.yaml", "other.yaml", "values"] {
        let line = format!("validate {file} --crds crds");
        let ran = folder.run(&line);
        assert_eq!(ran.code, 1, "{line}: {}", ran.out);
        assert!(ran.err.contains("nothing was judged"), "{line}: {}", ran.err);
        folder.run(&format!("{line} --allow-empty")).ok();
    }
    let ran = folder.run("validate cup.yaml --crds crds --old empty.yaml");
    assert_eq!(ran.code, 1, "{}", ran.out);
    let expected = "expected objects in the files of `--old`, found none";
    assert!(ran.err.contains(expected), "{}", ran.err);
    folder.run("validate cup.yaml empty.yaml --crds crds").ok();
}

#[test]
fn value_without_type_is_refused() {
    let folder = folder("  size: 1\n");
    let cup = folder.tree()["cup.yaml"].clone();
    for (text, help) in [
        ("hello\n", "every object has `apiVersion` and `kind`"),
        ("- a\n- b\n", "every object has `apiVersion` and `kind`"),
        (
            "kind: Cup\nmetadata: { name: a }\n",
            "every object has `apiVersion` and `kind`",
        ),
        (
            &cup.replace("apiVersion", "apiversion"),
            "write `apiVersion` instead of `apiversion`",
        ),
    ] {
        folder.write("cup.yaml", text);
        let ran = folder.run("validate cup.yaml --crds crds");
        assert_eq!(ran.code, 1, "{text}: {}", ran.out);
        assert!(
            ran.err.contains("error[RB0901]: apiVersion: Required value"),
            "{text}: {}",
            ran.err
        );
        assert!(ran.err.contains(help), "{text}: {}", ran.err);
    }
}

#[test]
fn kustomization_without_version_is_no_object() {
    let folder = folder("  size: 1\n");
    folder.write("sub/kustomization.yaml", "kind: Component\nimages: []\n");
    folder
        .run("validate cup.yaml sub/kustomization.yaml --crds crds")
        .ok();
}

/// `<(…)` of a shell is a pipe, which may have no writer for ever if it is a named one.
#[cfg(unix)]
#[test]
fn pipes_are_read_if_something_writes_to_them() {
    let folder = folder("  size: 1\n");
    let ran = std::process::Command::new("bash")
        .args([
            "-c",
            "\"$0\" validate <(sleep 0.2; cat cup.yaml) --crds <(cat crds/cups.yaml)",
        ])
        .arg(env!("CARGO_BIN_EXE_rbuilder"))
        .current_dir(folder.path())
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "1 object accepted, 0 refused\n"
    );
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path().join("pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    let ran = folder.run("validate pipe --crds crds");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(
        ran.err.contains("no process has written to this pipe within 5 s"),
        "{}",
        ran.err
    );
    let ran = folder.run("validate /dev/null --crds crds");
    assert!(
        ran.err.contains("/dev/null is neither a file nor a pipe"),
        "{}",
        ran.err
    );
}

#[test]
fn text_of_a_repository_has_no_effect_on_terminals_and_runners() {
    let folder = folder("  size: 1\n  colour: \"a\x1b[8m\" # \x1b[8m\n");
    let text = folder.tree()["cup.yaml"].clone();
    folder.write("cup.yaml", &text.replace("size: 1", "size: 10"));
    folder.write(
        "other.yaml",
        "apiVersion: example.org/v1\nkind: \"Mug\\n::add-mask::x\"\n",
    );
    let line = "validate cup.yaml other.yaml --crds crds";
    for line in [line.to_owned(), format!("--color always {line}")] {
        let ran = folder.run(&line);
        assert_eq!(ran.code, 1, "{}", ran.out);
        for said in [&ran.out, &ran.err] {
            assert!(!said.contains("\x1b[8m"), "{said:?}");
            assert!(
                !said.lines().any(|line| line.trim_start().starts_with("::")),
                "{said:?}"
            );
        }
    }
}

#[test]
fn kinds_of_kubernetes_are_judged_by_their_structure() {
    let folder = Folder::new();
    folder.write(
        "app.yaml",
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: two
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
      - name: web
        imge: nginx
",
    );
    let ran = folder.run("validate app.yaml");
    let unknown =
        "error[RB0904]: strict decoding error: unknown field \"spec.template.spec.containers[0].imge\"";
    for part in [unknown, "--> app.yaml:13:9"] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
    folder.replace("app.yaml", "imge", "image");
    let ran = folder.run("validate app.yaml");
    assert_eq!(ran.code, 1);
    for part in [
        "error[RB0902]: spec.replicas: Invalid value: \"string\"",
        "--> app.yaml:6:13",
    ] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
    folder.replace("app.yaml", "two", "2");
    let ran = folder.run("validate app.yaml").ok();
    assert_eq!(ran.out, "1 object accepted, 0 refused\n");
    folder.replace("app.yaml", "apps/v1", "apps/v1beta1");
    let ran = folder.run("validate app.yaml");
    for part in [
        "no matches for kind \"Deployment\" in version \"apps/v1beta1\"",
        "the kind has the versions: v1",
    ] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
}

#[test]
fn kinds_of_kubernetes_are_judged_by_rules_in_code() {
    let folder = Folder::new();
    folder.write(
        "service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec:\n  ports: []\n",
    );
    let ran = folder.run("validate service.yaml");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("error[RB0901]: spec.ports: Required value"),
        "{}",
        ran.err
    );
    // The schema requires `involvedObject`; the server doesn't.
    folder.write(
        "event.yaml",
        "apiVersion: v1\nkind: Event\nmetadata: { name: a }\n",
    );
    let ran = folder.run("validate event.yaml").ok();
    for part in [
        "warning[RB0901]: involvedObject: Required value",
        "help: the schema of Kubernetes requires the field",
    ] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
}

#[test]
fn kind_that_kubernetes_does_not_have_is_an_error() {
    let folder = Folder::new();
    folder.write(
        "a.yaml",
        "apiVersion: v1\nkind: Deploymnt\nmetadata: { name: a }\n",
    );
    let ran = folder.run("validate a.yaml");
    assert_eq!(ran.code, 1);
    let message = "error[RB0906]: no matches for kind \"Deploymnt\" in version \"v1\"";
    assert!(ran.err.contains(message), "{}", ran.err);
    // An object without a kind is one of no kind only if it is beside others.
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
    folder.write(
        "a.yaml",
        &format!("{map}---\napiVersion: v1\nmetadata: {{ name: b }}\n"),
    );
    let ran = folder.run("validate a.yaml");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("error[RB0901]: kind: Required value"),
        "{}",
        ran.err
    );
}

#[test]
fn unknown_fields_are_reported_up_to_a_limit() {
    let fields: String = (0..40_000).map(|number| format!("  f{number}: 1\n")).collect();
    let folder = folder(&format!("  size: 1\n{fields}"));
    let ran = folder.run("validate cup.yaml --crds crds");
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err.matches("unknown field").count(), 100);
    let note = "note: 39900 more errors of this object are not shown";
    assert!(ran.err.contains(note), "{}", ran.err);
    // The API server doesn't read a larger request at all.
    let long: String = (0..40_000)
        .map(|number| format!("  f{number}: {}\n", "x".repeat(99)))
        .collect();
    folder.write("cup.yaml", &cup(&long));
    let ran = folder.run("validate cup.yaml --crds crds");
    let message = "error[RB0907]: Request entity too large: limit is 3145728";
    assert!(ran.err.contains(message), "{}", ran.err);
    assert!(!ran.err.contains("unknown field"), "{}", ran.err);
}

#[test]
fn long_streams_and_lists_are_judged() {
    let folder = Folder::new();
    let map = |number: usize| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a{number}}}, data: {{a: '{}'}}}}",
            "x".repeat(600)
        )
    };
    let stream: String = (0..1025).map(|number| format!("--- {}\n", map(number))).collect();
    folder.write("stream.yaml", &stream);
    let items: Vec<String> = (0..5000).map(map).collect();
    folder.write(
        "list.yaml",
        &format!("{{apiVersion: v1, kind: List, items: [{}]}}\n", items.join(", ")),
    );
    let ran = folder.run("validate stream.yaml list.yaml").ok();
    assert_eq!(ran.out, "6025 objects accepted, 0 refused\n");
}

#[test]
fn scalars_have_the_types_of_kubectl() {
    let folder = folder("  size: 07\n  colour: '010'\n");
    let ran = folder.run("validate cup.yaml --crds crds --show-defaults").ok();
    assert!(ran.out.contains("colour: \"010\"\n  size: 7\n"), "{}", ran.out);
    folder.replace("cup.yaml", "07", "011");
    folder.replace("crds/cups.yaml", "maximum: 9", "maximum: 10");
    folder.run("validate cup.yaml --crds crds").ok();
}

#[test]
fn fields_that_the_stored_version_lacks_are_dropped() {
    let stored = "  - name: v2\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        \
                  type: object\n        properties: { spec: { type: object, properties: { size: { type: integer } } } }\n";
    let folder = folder("  size: 1\n  colour: red\n");
    folder.write(
        "crds/cups.yaml",
        &CRD.replace("storage: true", "storage: false")
            .replace(", default: white", ""),
    );
    let crd = folder.tree()["crds/cups.yaml"].clone();
    folder.write("crds/cups.yaml", &format!("{crd}{stored}"));
    let ran = folder.run("validate cup.yaml --crds crds --show-defaults").ok();
    assert!(ran.out.contains("size: 1"), "{}", ran.out);
    assert!(!ran.out.contains("colour"), "{}", ran.out);
}

#[test]
fn names_of_builtin_objects_are_judged() {
    let folder = folder("  size: 1\n");
    for (kind, name, words) in [
        (
            "ConfigMap",
            "My_App",
            "metadata.name: Invalid value: \"My_App\": a lowercase RFC 1123 subdomain",
        ),
        (
            "Namespace",
            "my.app",
            "metadata.name: Invalid value: \"my.app\": must not contain dots",
        ),
    ] {
        folder.write(
            "object.yaml",
            &format!("apiVersion: v1\nkind: {kind}\nmetadata: {{ name: {name} }}\n"),
        );
        let ran = folder.run("validate object.yaml");
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

#[test]
fn summary_names_the_kinds_that_no_definition_is_known_of() {
    let folder = folder("  size: 1\n");
    let other = "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: { name: a }\n";
    folder.write("other.yaml", &format!("{other}---\n{other}"));
    let ran = folder.run("validate cup.yaml other.yaml --crds crds").ok();
    assert_eq!(
        ran.out,
        "1 object accepted, 0 refused\n\
         2 objects not judged, because no CRD here defines Issuer of cert-manager.io/v1: pass the CRD with `--crds`\n"
    );
}

/// The program prints an object for `kustomize` or `template`.
#[cfg(unix)]
#[allow(clippy::disallowed_methods)] // the test creates the program that the command starts
fn run_with_program(folder: &Folder, name: &str, line: &str) -> (Option<i32>, String) {
    let bin = Folder::new();
    bin.write("object.yaml", &cup("  size: 12\n  colour: 5\n"));
    // The `PATH` only has the directory of the program.
    let script = "#!/bin/sh\ncase \"$1\" in kustomize|template) ;; *) exit 1 ;; esac\n\
                  while IFS= read -r line; do printf '%s\\n' \"$line\"; done < \"${0%/*}/object.yaml\"\n";
    bin.write_program(name, script);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rbuilder"))
        .args(line.split_whitespace())
        .current_dir(folder.path())
        .env("PATH", bin.path())
        .env_remove("KUBEBUILDER_ASSETS")
        .env_remove("KUBECTL")
        .env_remove("KUSTOMIZE")
        .env("HOME", bin.path())
        .env("XDG_DATA_HOME", bin.path())
        .output()
        .expect("the command runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("text"))
}

#[cfg(unix)]
#[test]
fn kustomizations_and_charts_are_rendered() {
    let folder = folder("  size: 1\n");
    let refused = "error[RB0902]: spec.size: Invalid value: 12";
    folder.write(
        "deploy/kustomization.yaml",
        "namePrefix: a-\nresources: [cup.yaml]\n",
    );
    folder.write("deploy/cup.yaml", &cup("  size: 1\n"));
    folder.write("chart/Chart.yaml", "apiVersion: v2\nname: cups\nversion: 0.1.0\n");
    folder.write("chart/templates/cup.yaml", "{{ fail }}\n");
    for (program, directory) in [("kubectl", "deploy"), ("helm", "chart")] {
        let line = format!("validate {directory} --crds crds");
        let (code, text) = run_with_program(&folder, program, &line);
        assert_eq!(code, Some(1), "{text}");
        for part in [refused, &format!("--> {directory} (rendered):6:9")] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let (_, text) = run_with_program(&folder, program, &format!("{line} --output sarif"));
        let log: Value = serde_json::from_str(&text).expect("JSON");
        let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], directory);
        assert_eq!(place.get("region"), None);
        assert_eq!(log["runs"][0]["results"][0].get("fixes"), None);
        let before = folder.tree();
        let (_, text) = run_with_program(&folder, program, &format!("{line} --fix"));
        let reason = format!(
            "warning: {directory} (rendered) is not corrected: correct the files that it is made from"
        );
        assert!(text.contains(&reason), "{text}");
        assert_eq!(folder.tree(), before);
    }
    let (_, text) = run_with_program(&folder, "kubectl", "validate chart --crds crds");
    assert!(text.contains("helm was not found"), "{text}");
    let (_, text) = run_with_program(&folder, "helm", "validate deploy --crds crds");
    assert!(text.contains("kubectl was not found"), "{text}");
    // If a kustomization only lists files, we have lines to show.
    folder.write("deploy/kustomization.yaml", "resources: [cup.yaml]\n");
    let (code, text) = run_with_program(&folder, "helm", "validate deploy --crds crds");
    assert_eq!((code, text.as_str()), (Some(0), "1 object accepted, 0 refused\n"));
}
