use super::*;
use crate::SourceSet;
use crate::package::Dependency;

fn files(list: &[(&str, &str)]) -> SourceSet {
    let mut sources = SourceSet::default();
    list.iter().for_each(|(path, text)| sources.insert(*path, *text));
    sources
}

fn package(manifest: &str, paths: &[&str]) -> SourceSet {
    let mut sources = files(&[("Cargo.toml", manifest)]);
    paths.iter().for_each(|path| sources.insert(*path, ""));
    sources
}

fn read_all(sources: &SourceSet, options: &Options) -> Result<Vec<Manifest>, String> {
    let mut report = Report::default();
    let read = read_manifests(sources, options, &mut report).map(|manifests| manifests.packages);
    read.ok_or_else(|| {
        let said = report.into_sorted().into_iter();
        said.map(|problem| format!("{}: {}", problem.0.place.path, problem.0.message))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn check_targets(manifest: &str, paths: &[&str], library: Option<(&str, &str)>, roots: &[&str]) {
    let manifests = read_all(&package(manifest, paths), &Options::default()).expect("a manifest");
    let [manifest] = &manifests[..] else {
        panic!("one package")
    };
    let found = manifest.library.as_ref();
    assert_eq!(
        found.map(|found| (found.name.as_str(), found.path.as_str())),
        library
    );
    assert_eq!(manifest.roots, roots);
}

#[test]
fn finds_targets() {
    let named = "[package]\nname = \"my-operator\"\n";
    let library = Some(("my_operator", "src/lib.rs"));
    check_targets(named, &["src/lib.rs"], library, &[]);
    check_targets(
        named,
        &[
            "src/lib.rs",
            "src/main.rs",
            "src/bin/a.rs",
            "src/bin/b/main.rs",
            "src/bin/b/c.rs",
        ],
        library,
        &["src/bin/a.rs", "src/bin/b/main.rs", "src/main.rs"],
    );
    check_targets(
        "[package]\nname = \"x\"\nautobins = false\n[lib]\nname = \"api\"\npath = \"./api/lib.rs\"\n[[bin]]\nname = \"run\"",
        &["api/lib.rs", "src/main.rs", "src/bin/run.rs"],
        Some(("api", "api/lib.rs")),
        &["src/bin/run.rs"],
    );
    // An explicit `path` replaces the discovered one. Cargo looks for a binary with the package's
    // name in `src/main.rs`.
    check_targets(
        "[package]\nname = \"x\"\n[[bin]]\nname = \"x\"\n[[bin]]\nname = \"y\"\npath = \"other/y.rs\"",
        &["src/main.rs", "other/y.rs"],
        None,
        &["other/y.rs", "src/main.rs"],
    );
}

#[test]
fn examples_replace_other_targets() {
    let sources = package(
        "[package]\nname = \"x\"\n[[example]]\nname = \"named\"\npath = \"x.rs\"\n[dev-dependencies]\nserde = \"1\"",
        &[
            "src/lib.rs",
            "src/main.rs",
            "x.rs",
            "examples/auto.rs",
            "examples/other.rs",
        ],
    );
    let options = Options {
        examples: vec!["named".into(), "auto".into()],
        ..Options::default()
    };
    let manifests = read_all(&sources, &options).expect("a manifest");
    assert_eq!(manifests[0].roots, ["examples/auto.rs", "x.rs"]);
    assert!(!manifests[0].selected && manifests[0].library.is_some());
    assert!(manifests[0].dependencies.contains_key("serde"));
}

/// `expected` is sorted by directory.
fn check_features(list: &[(&str, &str)], options: &Options, expected: &[(&str, &[&str])]) {
    let mut manifests = read_all(&files(list), options).expect("manifests");
    manifests.sort_by(|a, b| a.folder.cmp(&b.folder));
    let found: Vec<(&str, Vec<&str>)> = manifests
        .iter()
        .map(|manifest| {
            (
                manifest.folder.as_str(),
                manifest.features.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(folder, list)| (*folder, list.to_vec()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn features() {
    let text =
        "[package]\nname = \"x\"\n[features]\ndefault = [\"a\"]\na = [\"b\", \"dep:kube\"]\nb = []\nc = []";
    let one: &[(&str, &str)] = &[("Cargo.toml", text), ("src/lib.rs", "")];
    let options = |features: &[&str]| Options {
        features: features.iter().map(|name| (*name).to_owned()).collect(),
        ..Options::default()
    };
    check_features(one, &options(&["c"]), &[("", &["a", "b", "c", "default"])]);
    check_features(one, &options(&["x/c"]), &[("", &["a", "b", "c", "default"])]);
    let none = Options {
        no_default_features: true,
        ..options(&["b"])
    };
    check_features(one, &none, &[("", &["b"])]);
    let all = Options {
        all_features: true,
        ..Options::default()
    };
    check_features(one, &all, &[("", &["a", "b", "c", "default"])]);
    let error = read_all(&files(one), &options(&["d"])).expect_err("an unknown feature");
    assert_eq!(error, "Cargo.toml: no package has a feature `d`");
}

#[test]
fn dependents_enable_features_of_path_crates() {
    let api = "[package]\nname = \"api\"\n[features]\ndefault = [\"std\"]\nstd = []\nschema = []\nweak = []\nfull = []";
    check_features(
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"x\"\n[features]\ndefault = [\"api?/weak\", \"more/full\"]\n[dependencies]\n\
                 api = { path = \"api\", default-features = false, features = [\"schema\"] }\n\
                 more = { path = \"more\", optional = true }\n\
                 off = { path = \"off\", optional = true }",
            ),
            ("src/lib.rs", ""),
            ("api/Cargo.toml", api),
            ("api/src/lib.rs", ""),
            (
                "more/Cargo.toml",
                "[package]\nname = \"more\"\n[features]\nfull = []",
            ),
            ("more/src/lib.rs", ""),
        ],
        &Options::default(),
        &[
            ("", &["default", "more"]),
            ("api", &["schema", "weak"]),
            ("more", &["default", "full"]),
        ],
    );
}

#[test]
fn names_of_dependencies_in_source() {
    let sources = files(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"op\"]\n[workspace.package]\nedition = \"2024\"\n[workspace.dependencies]\n\
             api = { path = \"libs/api\", package = \"shop-api\" }\nplain-api = { path = \"libs/plain\" }\nk = { package = \"kube\", version = \"5\" }",
        ),
        (
            "op/Cargo.toml",
            "[package]\nname = \"op\"\nedition.workspace = true\n[dependencies]\napi.workspace = true\n\
             rbuilder-runtime = \"1\"\nrb = { package = \"rbuilder-runtime\", path = \"../../runtime\" }\n\
             plain-api = { workspace = true, features = [\"f\"] }\nk.workspace = true\nserde-json = \"1\"\n\
             kube-core = { path = \"../../kube-core\" }\n[target.'cfg(unix)'.dependencies]\nnix = \"1\"",
        ),
        ("op/src/main.rs", ""),
        ("libs/api/Cargo.toml", "[package]\nname = \"shop-api\""),
        ("libs/api/src/lib.rs", ""),
        (
            "libs/plain/Cargo.toml",
            "[package]\nname = \"plain-api\"\n[lib]\nname = \"plain\"\n[features]\nf = []",
        ),
        ("libs/plain/src/lib.rs", ""),
    ]);
    let manifests = read_all(&sources, &Options::default()).expect("manifests");
    let op = manifests
        .iter()
        .find(|manifest| manifest.folder == "op")
        .expect("the operator");
    let shown: Vec<String> = op
        .dependencies
        .iter()
        .map(|(name, dependency)| match dependency {
            Dependency::Package(index) => format!("{name} = {}", manifests[index.0].folder),
            Dependency::Other(package) => format!("{name} = crate {package}"),
            Dependency::Locked(locked) => format!("{name} = locked {}", locked.name),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "api = libs/api",
            "k = crate kube",
            "kube_core = crate kube_core",
            "nix = locked nix",
            "plain = libs/plain",
            "rb = crate rbuilder",
            "rbuilder = crate rbuilder",
            "serde_json = crate serde_json",
        ]
    );
    assert!(!op.is_2015);
    assert!(
        manifests
            .iter()
            .all(|manifest| manifest.is_2015 || manifest.folder == "op")
    );
    // To Cargo, path dependencies inside the workspace directory are members of the workspace.
    assert!(manifests.iter().all(|manifest| manifest.selected));
}

#[test]
fn finds_workspace_members() {
    let text = "[workspace]\nmembers = [\"crates/*\", \"tool\"]\nexclude = [\"crates/old\"]";
    let mut sources = files(&[("Cargo.toml", text)]);
    for name in ["crates/a", "crates/b", "crates/old", "tool", "stray"] {
        let name_only = name.trim_start_matches("crates/");
        sources.insert(
            format!("{name}/Cargo.toml"),
            format!("[package]\nname = \"{name_only}\""),
        );
        sources.insert(format!("{name}/src/lib.rs"), "");
    }
    sources.insert("crates/notes/README.md", "");
    let folders = |options: &Options| -> Vec<String> {
        let manifests = read_all(&sources, options).expect("manifests");
        manifests.into_iter().map(|manifest| manifest.folder).collect()
    };
    assert_eq!(folders(&Options::default()), ["crates/a", "crates/b", "tool"]);
    let only_b = Options {
        packages: vec!["b".into()],
        ..Options::default()
    };
    let chosen = read_all(&sources, &only_b).expect("manifests");
    let selected: Vec<_> = chosen
        .iter()
        .filter(|manifest| manifest.selected)
        .map(|m| &m.folder)
        .collect();
    assert_eq!(selected, ["crates/b"]);
    let unknown = Options {
        packages: vec!["c".into()],
        ..Options::default()
    };
    let error = read_all(&sources, &unknown).expect_err("an unknown package");
    assert_eq!(error, "Cargo.toml: the workspace has no package `c`");
}

#[test]
fn member_finds_its_workspace_and_siblings() {
    let sources = files(&[
        (
            "../Cargo.toml",
            "[workspace]\nmembers = [\"*\"]\n[workspace.dependencies]\napi = { path = \"api\" }",
        ),
        ("../api/Cargo.toml", "[package]\nname = \"api\""),
        ("../api/src/lib.rs", ""),
        (
            "Cargo.toml",
            "[package]\nname = \"op\"\n[dependencies]\napi = { workspace = true }",
        ),
        ("src/main.rs", ""),
    ]);
    let manifests = read_all(&sources, &Options::default()).expect("manifests");
    let shown: Vec<_> = manifests
        .iter()
        .map(|manifest| (manifest.folder.as_str(), manifest.selected))
        .collect();
    assert_eq!(shown, [("", true), ("../api", false)]);
}

#[test]
fn reports_broken_manifests() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "Cargo.toml: no `Cargo.toml` in this directory"),
        (
            &[("Cargo.toml", "[package")],
            "Cargo.toml: failed to parse `Cargo.toml` as TOML",
        ),
        (
            &[("Cargo.toml", "[profile.dev]")],
            "Cargo.toml: `Cargo.toml` has neither `[package]` nor `[workspace]`",
        ),
        (
            &[("Cargo.toml", "[package]\nname = \"x\"")],
            "Cargo.toml: the package has neither",
        ),
        (
            &[("Cargo.toml", "[workspace]")],
            "Cargo.toml: the workspace has no packages",
        ),
        (
            &[("Cargo.toml", "[workspace]\nmembers = [\"gone\"]")],
            "Cargo.toml: the member `gone` has no `Cargo.toml`",
        ),
        (
            &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"x\"\n[dependencies]\napi = { path = \"../api\" }",
                ),
                ("src/lib.rs", ""),
                ("../api/Cargo.toml", "]"),
            ],
            "../api/Cargo.toml: failed to parse `../api/Cargo.toml` as TOML",
        ),
        (
            &[
                ("Cargo.toml", "[package]\nname = \"x\"\nedition.workspace = true"),
                ("src/lib.rs", ""),
            ],
            "Cargo.toml: the manifest inherits from a workspace, but no parent directory has one",
        ),
    ];
    for (list, expected) in cases {
        let said = read_all(&files(list), &Options::default()).expect_err("a broken manifest");
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn k8s_openapi_feature_selects_kubernetes_version() {
    let check = |manifests: &[(&str, &str)], expected: Option<u8>| {
        let mut sources = files(manifests);
        sources.insert("src/lib.rs", "");
        sources.insert("api/src/lib.rs", "");
        let read = read_manifests(&sources, &Options::default(), &mut Report::default()).expect("manifests");
        assert_eq!(
            read.k8s_openapi
                .choose(None)
                .minor
                .map(rbuilder_catalogue::Minor::number),
            expected,
            "{manifests:?}"
        );
    };
    let head = "[package]\nname = \"x\"\n";
    let of = |rest: &str| format!("{head}{rest}");
    for (rest, expected) in [
        ("[dependencies]\nk8s-openapi = \"0.29\"", None),
        (
            "[dependencies]\nk8s-openapi = { version = \"0.29\", features = [\"v1_34\", \"schemars\"] }",
            Some(34),
        ),
        (
            "[dependencies.k]\npackage = \"k8s-openapi\"\nfeatures = [\"earliest\"]",
            Some(33),
        ),
        (
            "[target.'cfg(unix)'.dependencies]\nk8s-openapi = { features = [\"latest\"] }",
            Some(37),
        ),
        (
            "[dev-dependencies]\nk8s-openapi = { features = [\"v1_35\"] }",
            Some(35),
        ),
        (
            "[dependencies]\nk8s-openapi = { features = [\"v1_36\"] }\n\
             [dev-dependencies]\nk8s-openapi = { features = [\"v1_35\"] }",
            Some(36),
        ),
        (
            "[features]\ndefault = [\"k8s-openapi/v1_35\"]\n[dependencies]\nk8s-openapi = \"0.29\"",
            Some(35),
        ),
        (
            "[dependencies]\nk8s-openapi.workspace = true\n\
             [workspace.dependencies]\nk8s-openapi = { version = \"0.29\", features = [\"v1_36\"] }",
            Some(36),
        ),
    ] {
        check(&[("Cargo.toml", &of(rest))], expected);
    }
    let uses_api = "[dependencies]\napi = { path = \"api\" }";
    let api = "[package]\nname = \"api\"\n[dependencies]\nk8s-openapi = { features = [\"v1_34\"] }";
    check(
        &[("Cargo.toml", &of(uses_api)), ("api/Cargo.toml", api)],
        Some(34),
    );
}
