//! Whatever state `rbuilder adopt` leaves a repository in, `manifests`, `manifests --check`,
//! `doctor` and a second `adopt` agree afterwards.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::Folder;

fn kind(kind: &str, field: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, schemars::JsonSchema)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"{kind}\", namespaced)]\n\
         pub struct {kind}Spec {{\n    {field},\n}}\n"
    )
}

/// All kinds are in one file, and each has one field.
fn package(kinds: &[(&str, &str)], files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n",
    );
    let kinds: String = kinds.iter().map(|(name, field)| kind(name, field)).collect();
    folder.write("src/main.rs", &format!("{kinds}fn main() {{}}\n"));
    files.iter().for_each(|(path, text)| folder.write(path, text));
    folder
}

fn crd(kind: &str) -> String {
    let singular = kind.to_lowercase();
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {singular}s.x.io\nspec:\n  \
         group: x.io\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {singular}s, singular: {singular}}}\n  versions:\n  - \
         name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         required: [spec]\n        properties:\n          spec:\n            type: object\n            required: [size]\n            \
         properties: {{size: {{type: integer, format: int32}}}}\n"
    )
}

const SIZE: &str = "pub size: i32";

fn files_with(folder: &Folder, plural: &str) -> Vec<String> {
    let name = format!("name: {plural}.x.io");
    let tree = folder.tree().into_iter();
    tree.filter(|(path, text)| path.ends_with(".yaml") && text.contains(&name))
        .map(|(path, _)| path)
        .collect()
}

/// Runs all commands in order, and returns the last output of `adopt`.
#[track_caller]
fn settle(folder: &Folder) -> String {
    folder.run("adopt").ok();
    folder.run("manifests").ok();
    let said = settled(folder);
    let checked = folder.run("manifests --check").ok();
    assert!(
        !checked.err.contains("no manifests are generated"),
        "{}",
        checked.err
    );
    said
}

/// Checks that no command has anything left to do. Returns the output of `adopt`.
#[track_caller]
fn settled(folder: &Folder) -> String {
    folder.run("manifests --check --allow-empty").ok();
    let before = folder.tree();
    let said = folder.run("adopt").ok().out;
    folder.run("manifests").ok();
    assert_eq!(folder.tree(), before);
    said
}

#[test]
fn newly_readable_kind_updates_its_committed_crd() {
    let folder = package(
        &[("Cup", SIZE), ("Pot", "pub size: Size")],
        &[
            ("deploy/crds/cafe-cup.yaml", &crd("Cup")),
            ("deploy/crds/cafe-pot.yaml", &crd("Pot")),
        ],
    );
    settle(&folder);
    folder.replace("src/main.rs", "fn main", "type Size = i32;\nfn main");
    let said = settle(&folder);
    assert!(
        said.contains("Pot  x.io/v1  same  deploy/crds/cafe-pot.yaml\n"),
        "{said}"
    );
    assert_eq!(files_with(&folder, "pots"), ["deploy/crds/cafe-pot.yaml"]);
}

/// After the first `adopt`, the user adds a kind whose CRD is not in one of the configured
/// locations.
#[test]
fn second_run_adds_files_outside_of_the_configured_places() {
    let folder = package(&[("Cup", SIZE)], &[("crds/cups.yaml", &crd("Cup"))]);
    settle(&folder);
    folder.write("deploy/the-pot.yaml", &crd("Pot"));
    folder.replace("src/main.rs", "fn main", &format!("{}fn main", kind("Pot", SIZE)));
    settle(&folder);
    assert_eq!(files_with(&folder, "pots"), ["deploy/the-pot.yaml"]);
    let manifest = folder.tree()["Cargo.toml"].clone();
    assert!(
        manifest.contains("crd-files = { \"pots.x.io\" = \"deploy/the-pot.yaml\" }\n"),
        "{manifest}"
    );
    // When the file is moved, it isn't written again at its old path.
    let pot = folder.tree()["deploy/the-pot.yaml"].clone();
    folder.remove("deploy/the-pot.yaml");
    folder.write("deploy/pots/crd.yaml", &pot);
    settle(&folder);
    assert_eq!(files_with(&folder, "pots"), ["deploy/pots/crd.yaml"]);
}

#[test]
fn one_file_can_contain_all_crds() {
    let all = format!("{}---\n{}", crd("Pot"), crd("Cup"));
    let folder = package(&[("Cup", SIZE), ("Pot", SIZE)], &[("yaml/crd.yaml", &all)]);
    let said = settle(&folder);
    assert!(said.contains("2 kinds, 2 readable\n"), "{said}");
    let tree = folder.tree();
    assert!(
        tree["Cargo.toml"].contains("crd-dir = \"yaml\"\ncrd-file = \"crd.yaml\"\n"),
        "{}",
        tree["Cargo.toml"]
    );
    let text = &tree["yaml/crd.yaml"];
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("listKind: PotList") < at("listKind: CupList"), "{text}");
    // A new kind is appended, and the CRD of a deleted one is removed.
    folder.write(
        "src/main.rs",
        &format!("{}{}fn main() {{}}\n", kind("Can", SIZE), kind("Cup", SIZE)),
    );
    let warned = folder.run("manifests").ok();
    let removed = "warning[RB0805]: `pots.x.io` in `yaml/crd.yaml` is deleted, because the source no longer defines the kind";
    assert!(warned.err.contains(removed), "{}", warned.err);
    settled(&folder);
    let text = folder.tree()["yaml/crd.yaml"].clone();
    assert!(
        !text.contains("pots") && text.contains("listKind: CanList"),
        "{text}"
    );
    assert_eq!(text.matches("---\n").count(), 2, "{text}");
}

/// CRDs in a shared file must not be lost either.
#[test]
fn crd_in_a_shared_file_is_protected() {
    let all = format!("{}---\n{}", crd("Pot"), crd("Cup"));
    let folder = package(
        &[("Cup", SIZE)],
        &[("yaml/crd.yaml", &all), ("src/pot.rs", &kind("Pot", SIZE))],
    );
    folder.replace("src/main.rs", "fn main", "mod pot;\nfn main");
    settle(&folder);
    folder.replace("src/main.rs", "mod pot;\n", "");
    let before = folder.tree();
    let refused = folder.run("manifests");
    assert_eq!(refused.code, 1, "{}", refused.err);
    let message = "`pots.x.io` in `yaml/crd.yaml` would be deleted, but the source still defines the kind: no `mod` declares the file";
    assert!(refused.err.contains(message), "{}", refused.err);
    assert_eq!(folder.tree(), before);
}

#[test]
fn other_objects_in_a_file_are_preserved() {
    let (before, after) = (
        "# Made by hand.\nkind:   Role # ours\n",
        "---\nkind: RoleBinding\n",
    );
    let folder = package(
        &[("Cup", SIZE)],
        &[("deploy/all.yaml", &format!("{before}---\n{}{after}", crd("Cup")))],
    );
    settle(&folder);
    let text = folder.tree()["deploy/all.yaml"].clone();
    assert!(text.starts_with(before) && text.ends_with(after), "{text}");
    assert!(text.contains("listKind: CupList"), "{text}");
    assert_eq!(files_with(&folder, "cups"), ["deploy/all.yaml"]);
    // Only the CRD of the kind is removed, and the rest of the file stays.
    folder.write("src/main.rs", "fn main() {}\n");
    folder.run("manifests").ok();
    assert_eq!(folder.tree()["deploy/all.yaml"], format!("{before}{after}"));
}

#[test]
fn spec_in_a_chart_template_is_updated() {
    let head = "{{- if .Values.crds.install }}\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: cups.x.io\n  labels:\n    {{- include \"cafe.labels\" . | nindent 4 }}\n";
    let spec = crd("Cup").split_once("spec:\n").expect("a spec").1.to_owned();
    let folder = package(
        &[("Cup", "/// As `{{ .name }}`.\n    pub size: i32"), ("Pot", SIZE)],
        &[
            ("charts/cafe/Chart.yaml", "name: cafe\n"),
            (
                "charts/cafe/templates/cup.yaml",
                &format!("{head}spec:\n{spec}{{{{- end }}}}\n"),
            ),
        ],
    );
    let said = settle(&folder);
    assert!(
        said.contains(
            "Cup  x.io/v1  same  charts/cafe/templates/cup.yaml\n    compared without template expressions\n"
        ),
        "{said}"
    );
    let text = folder.tree()["charts/cafe/templates/cup.yaml"].clone();
    assert!(
        text.starts_with(&format!("{head}spec:\n  group: x.io\n")),
        "{text}"
    );
    assert!(text.ends_with("\n    storage: true\n{{- end }}\n"), "{text}");
    assert!(text.contains("As `{{ \"{{\" }} .name }}`."), "{text}");
    // A kind without a CRD goes to the default place instead of the templates.
    assert_eq!(files_with(&folder, "pots"), ["config/crd/bases/x.io_pots.yaml"]);
}

#[test]
fn spec_with_template_expressions_is_left_alone() {
    let template = format!("{{{{- if .Values.crds }}}}\n{}{{{{- end }}}}\n", crd("Cup"))
        .replace("scope: Namespaced", "scope: {{ .Values.scope }}");
    let folder = package(&[("Cup", SIZE)], &[("charts/cafe/templates/cup.yaml", &template)]);
    let said = folder.run("adopt").ok().out;
    assert!(
        said.contains("not written: its `spec` contains template expressions (charts/cafe/templates/cup.yaml): move the CRD to a file of its own, and run `rbuilder adopt` again"),
        "{said}"
    );
    let checked = folder.run("manifests --check --allow-empty").ok();
    assert!(
        checked
            .err
            .contains("warning[RB1006]: no manifests are generated or compared"),
        "{}",
        checked.err
    );
    settled(&folder);
    // Once the obstacle is gone, the `skip` item is removed.
    folder.write(
        "charts/cafe/templates/cup.yaml",
        &template.replace("{{ .Values.scope }}", "Namespaced"),
    );
    let said = settle(&folder);
    assert!(said.contains("1 kind, 1 readable\n"), "{said}");
    assert!(!folder.tree()["Cargo.toml"].contains("skip"));
    assert_eq!(files_with(&folder, "cups"), ["charts/cafe/templates/cup.yaml"]);
}

/// `{{` in a description must not turn a generated file into a template.
#[test]
fn braces_in_a_description_do_not_make_a_template() {
    let folder = package(
        &[(
            "Cup",
            "/// As `{{ .name }}` of `{{ .guest }}`.\n    pub size: i32",
        )],
        &[],
    );
    let said = settle(&folder);
    assert!(
        said.contains("Cup  x.io/v1  same  config/crd/bases/x.io_cups.yaml\n\n"),
        "{said}"
    );
}

/// A note about a kind of another project must not hide the warning that nothing is compared.
#[test]
fn empty_check_warns_despite_other_notes() {
    let folder = package(&[("Cup", SIZE)], &[]);
    let other = kind("PodMonitor", SIZE).replace("x.io", "monitoring.coreos.com");
    folder.replace("src/main.rs", "fn main", &format!("{other}fn main"));
    folder.replace(
        "Cargo.toml",
        "[dependencies]",
        "[package.metadata.rbuilder]\nskip = [\"Cup\"]\n\n[dependencies]",
    );
    let checked = folder.run("manifests --check --allow-empty").ok();
    for part in [
        "note: skipping the CRD of kind `PodMonitor`",
        "warning[RB1006]: no manifests are generated or compared: all kinds are excluded (`Cup`: `skip` in Cargo.toml lists it; `PodMonitor`: its group",
    ] {
        assert!(checked.err.contains(part), "{}", checked.err);
    }
}

/// If a kind becomes unreadable, its CRD is kept until it can be read again.
#[test]
fn crd_of_an_unreadable_kind_is_kept() {
    for path in ["crds/cups.yaml", "crds/all.yaml"] {
        let mut text = crd("Cup");
        if path.contains("all") {
            text.push_str(&format!("---\n{}", crd("Can")));
        }
        let folder = package(&[("Cup", SIZE), ("Can", SIZE)], &[(path, &text)]);
        settle(&folder);
        let before = folder.tree()[path].clone();
        folder.replace("src/main.rs", SIZE, "pub size: (i32, i32)");
        folder.run("adopt").ok();
        folder.run("manifests").ok();
        settled(&folder);
        assert_eq!(folder.tree()[path], before);
    }
}

#[test]
fn crds_outside_of_the_package_are_compared_only() {
    let folder = Folder::new();
    folder.write(
        "helm/cafe/crds/cups.yaml",
        &crd("Cup").replace("            required: [size]\n", ""),
    );
    let inner = package(&[("Cup", SIZE)], &[]);
    inner
        .tree()
        .iter()
        .for_each(|(path, text)| folder.write(&format!("operator/{path}"), text));
    let operator = folder.inside("operator");
    // Outside of a repository, we can't tell whether the files around the package belong to it.
    let said = operator.run("adopt --dry-run").ok().out;
    assert!(said.contains("no CRD is committed"), "{said}");
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    let said = operator.run("adopt").ok().out;
    for part in [
        "Cup  x.io/v1  narrower  ../helm/cafe/crds/cups.yaml\n",
        "not written: it is outside of the directory of the package (../helm/cafe/crds/cups.yaml): update it with `rbuilder manifests --stdout --only crd --kind Cup > ../helm/cafe/crds/cups.yaml`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    operator.run("manifests").ok();
    assert_eq!(files_with(&folder, "cups"), ["helm/cafe/crds/cups.yaml"]);
    let before = folder.tree();
    operator.run("adopt").ok();
    assert_eq!(folder.tree(), before);
    // Now do what the help says.
    let printed = operator.run("manifests --stdout --only crd --kind Cup").ok().out;
    folder.write("helm/cafe/crds/cups.yaml", &printed);
    let said = operator.run("adopt").ok().out;
    assert!(
        said.contains("Cup  x.io/v1  skipped  ../helm/cafe/crds/cups.yaml\n"),
        "{said}"
    );
}

/// A project that is deployed from `config/` has its CRDs there. It also updates those that are
/// committed elsewhere.
#[test]
fn adopted_package_updates_crds_in_config_and_elsewhere() {
    let folder = package(
        &[("Cup", SIZE), ("Pot", SIZE)],
        &[
            ("deploy/cups.yaml", &crd("Cup")),
            ("charts/cafe/crds/pots.yaml", &crd("Pot")),
        ],
    );
    settle(&folder);
    folder.run("init --in-package --domain x.io").ok();
    let tree = folder.tree();
    for (plural, kind, other) in [
        ("cups", "Cup", "deploy/cups.yaml"),
        ("pots", "Pot", "charts/cafe/crds/pots.yaml"),
    ] {
        let path = format!("config/crd/bases/x.io_{plural}.yaml");
        assert!(tree["config/crd/kustomization.yaml"].contains(&format!("bases/x.io_{plural}.yaml")));
        assert!(tree[&path].contains(&format!("listKind: {kind}List")));
        assert_eq!(tree[&path], tree[other]);
    }
    let said = settled(&folder);
    assert!(said.contains("Cup  x.io/v1  same  deploy/cups.yaml\n"), "{said}");
    assert!(!said.contains("also in"), "{said}");
    let doctor = folder.run("doctor --output json").out;
    assert!(!doctor.contains("\"error\""), "{doctor}");
    // Both files have to be written and compared.
    folder.replace("src/main.rs", SIZE, "pub size: i64");
    assert_eq!(folder.run("manifests --check").code, 1);
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert_eq!(tree["config/crd/bases/x.io_cups.yaml"], tree["deploy/cups.yaml"]);
    assert!(tree["deploy/cups.yaml"].contains("int64"));
    settled(&folder);
}

/// A user may run `init --in-package` before `adopt`.
#[test]
fn adopt_works_after_init_in_package() {
    let folder = package(
        &[("Cup", SIZE)],
        &[(
            "charts/cafe/templates/cup.yaml",
            &format!("{{{{ if .a }}}}\n{}{{{{ end }}}}\n", crd("Cup")),
        )],
    );
    folder.run("init --in-package --domain x.io").ok();
    let said = settle(&folder);
    assert!(
        said.contains("Cup  x.io/v1  same  charts/cafe/templates/cup.yaml\n"),
        "{said}"
    );
    assert_eq!(
        files_with(&folder, "cups"),
        [
            "charts/cafe/templates/cup.yaml",
            "config/crd/bases/x.io_cups.yaml"
        ]
    );
    folder.replace("src/main.rs", SIZE, "pub size: i64");
    settle(&folder);
    assert!(folder.tree()["charts/cafe/templates/cup.yaml"].contains("int64"));
}

/// Packages of a workspace, each with one type in its library, and the only CRD of both.
fn workspace(op: &str, api: &str) -> Folder {
    let folder = Folder::new();
    folder.write("Cargo.toml", "[workspace]\nmembers = [\"op\", \"api\"]\n");
    for (name, lib) in [("op", op), ("api", api)] {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n"
        );
        folder.write(&format!("{name}/Cargo.toml"), &manifest);
        folder.write(&format!("{name}/src/lib.rs"), lib);
    }
    folder.write("deploy/cups.yaml", &crd("Cup"));
    folder
}

/// A client often declares the few fields of a kind that it needs.
#[test]
fn kind_that_two_packages_define_is_not_written() {
    let (whole, partial) = (kind("Cup", SIZE), kind("Cup", "pub label: String"));
    for (op, api, advice, skip_in) in [
        (
            &whole,
            &partial,
            "deploy/cups.yaml equals the definition at op/src/lib.rs:3:12: keep it, and add `skip = [\"Cup.x.io\"]` to \
             `[package.metadata.rbuilder]` in api/Cargo.toml",
            Some("api/Cargo.toml"),
        ),
        (
            &partial,
            &whole,
            "deploy/cups.yaml equals the definition at api/src/lib.rs:3:12: keep it, and add `skip = [\"Cup.x.io\"]` to \
             `[package.metadata.rbuilder]` in op/Cargo.toml",
            Some("op/Cargo.toml"),
        ),
        (
            &whole,
            &whole,
            "deploy/cups.yaml equals the definitions at api/src/lib.rs:3:12 and op/src/lib.rs:3:12: keep one of them, and add \
             `skip = [\"Cup.x.io\"]` to `[package.metadata.rbuilder]` in api/Cargo.toml or op/Cargo.toml",
            Some("op/Cargo.toml"),
        ),
        (
            &partial,
            &partial,
            "deploy/cups.yaml equals none of the definitions at api/src/lib.rs:3:12 and op/src/lib.rs:3:12: keep one of them",
            None,
        ),
    ] {
        let folder = workspace(op, api);
        let said = folder.run("adopt").ok().out;
        for part in [
            "op/src/lib.rs:3:12: kind `Cup` in group `x.io` is defined twice, here and in `api/src/lib.rs`",
            "api/src/lib.rs:3:12: kind `Cup` in group `x.io` is defined twice, here and in `op/src/lib.rs`",
            advice,
        ] {
            assert!(said.contains(part), "{part:?} is missing in\n{said}");
        }
        let before = folder.tree();
        assert!(before.values().all(|text| !text.contains("skip")));
        for command in ["manifests", "manifests --check", "manifests --stdout"] {
            let ran = folder.run(command);
            assert_eq!((ran.code, folder.tree()), (1, before.clone()), "{command}");
            assert!(ran.err.contains(advice), "{}", ran.err);
            assert!(!ran.err.contains("storage = false"), "{}", ran.err);
        }
        let Some(path) = skip_in else { continue };
        let skip = "[package.metadata.rbuilder]\nskip = [\"Cup.x.io\"]\n\n[dependencies]";
        folder.replace(path, "[dependencies]", skip);
        settle(&folder);
        assert!(folder.tree()["deploy/cups.yaml"].contains("size:"));
    }
}

#[test]
fn kind_is_skipped_in_all_packages_with_a_version_of_it() {
    let broken = kind("Cup", "pub size: Size").replace("\"v1\"", "\"v2\", storage = false");
    let folder = workspace(&kind("Cup", SIZE), &broken);
    let before = folder.tree()["deploy/cups.yaml"].clone();
    folder.run("adopt").ok();
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert_eq!(tree["deploy/cups.yaml"], before);
    for path in ["op/Cargo.toml", "api/Cargo.toml"] {
        assert!(tree[path].contains("\"Cup.x.io\","), "{}", tree[path]);
    }
    folder.replace("api/src/lib.rs", "Size", "i32");
    settle(&folder);
    let tree = folder.tree();
    assert!(tree["deploy/cups.yaml"].contains("name: v2"));
    assert!(tree.values().all(|text| !text.contains("skip")));
}
