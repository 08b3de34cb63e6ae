//! `rbuilder create api` for another version of an existing kind. It starts as a copy of the newest
//! version.

use crate::support;

use support::Folder;

const INIT: &str = "init --domain example.com --project-name shop";
const V1: &str = "create api --group cache --version v1 --kind Cup";
const V2: &str = "create api --group cache --version v2 --kind Cup";

const TYPES: &str = "src/api/v1/cup.rs";
const NEW_TYPES: &str = "src/api/v2/cup.rs";
const SAMPLE: &str = "config/samples/cache_v1_cup.yaml";
const CRD: &str = "config/crd/bases/cache.example.com_cups.yaml";

fn project() -> Folder {
    let folder = Folder::new();
    for command in [INIT, V1] {
        folder.run(command).ok();
    }
    folder
}

fn change(folder: &Folder, path: &str, from: &str, to: &str) {
    let text = folder.tree()[path].clone();
    assert!(text.contains(from), "{path}:\n{text}");
    folder.write(path, &text.replace(from, to));
}

/// Some arguments of `#[kube(…)]` refer to fields, so those are added as well.
fn write_names(folder: &Folder) {
    change(
        folder,
        TYPES,
        "    namespaced,\n",
        "    singular = \"acup\",\n    shortname = \"cp\",\n    shortname = \"cps\",\n    category = \"all\",\n    \
         scale(\n        spec_replicas_path = \".spec.replicas\",\n        status_replicas_path = \".status.replicas\"\n    ),\n    \
         printcolumn(name = \"Size\", type_ = \"integer\", json_path = \".spec.replicas\"),\n    namespaced,\n",
    );
    change(
        folder,
        TYPES,
        "    pub foo: Option<String>,",
        "    pub foo: Option<String>,\n\n    /// replicas is how many there are.\n    #[kube(validation(minimum = 1))]\n    pub replicas: i32,",
    );
    change(
        folder,
        TYPES,
        "    pub conditions: Vec<Condition>,",
        "    pub conditions: Vec<Condition>,\n\n    /// replicas is how many are ready.\n    #[serde(default)]\n    pub replicas: i32,",
    );
    change(
        folder,
        SAMPLE,
        "foo: bar",
        "foo: bar\n  # As many as needed.\n  replicas: 3",
    );
}

#[test]
fn copy_of_an_unchanged_kind_matches_the_template() {
    let folder = project();
    let before = folder.tree();
    let ran = folder.run(V2).ok();
    assert_eq!(ran.err.matches("warning").count(), 0, "{}", ran.err);
    let tree = folder.tree();
    let expected = before[TYPES]
        .replace("in version v1 of", "in version v2 of")
        .replace("\"v1\"", "\"v2\"")
        .replace("    namespaced,\n", "    namespaced,\n    storage = false,\n");
    assert_eq!(tree[NEW_TYPES], expected);
    assert_eq!(tree[TYPES], before[TYPES]);
    assert_eq!(
        tree["config/samples/cache_v2_cup.yaml"],
        before[SAMPLE]
            .replace("example.com/v1", "example.com/v2")
            .replace("cup-sample", "cup-sample-v2")
    );
}

#[test]
fn copies_names_scope_fields_and_sample() {
    let folder = project();
    write_names(&folder);
    folder.run("manifests").ok();
    let before = folder.tree();
    folder.run(V2).ok();
    let tree = folder.tree();
    let crd = &tree[CRD];
    assert_eq!(
        crd.matches("    shortNames:\n    - cp\n    - cps\n").count(),
        1,
        "{crd}"
    );
    assert_eq!(crd.matches("singular: acup\n").count(), 1, "{crd}");
    assert_eq!(
        crd.matches("specReplicasPath: .spec.replicas\n").count(),
        2,
        "{crd}"
    );
    assert_eq!(crd.matches("jsonPath: .spec.replicas\n").count(), 2, "{crd}");
    assert_eq!(
        crd.matches("replicas is how many there are.\n").count(),
        2,
        "{crd}"
    );
    assert_eq!(crd.matches("storage: true").count(), 1, "{crd}");
    let sample = &tree["config/samples/cache_v2_cup.yaml"];
    assert_eq!(
        *sample,
        before[SAMPLE]
            .replace("example.com/v1", "example.com/v2")
            .replace("cup-sample", "cup-sample-v2")
    );
    // The command changes nothing when it runs again, even if the preceding version has changed.
    change(&folder, TYPES, "is how many there are", "is the number of cups");
    change(&folder, SAMPLE, "replicas: 3", "replicas: 4");
    folder.run("manifests").ok();
    let tree = folder.tree();
    let ran = folder.run(V2).ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    assert_eq!(folder.tree(), tree);
    // A deleted file is created again, from the current state of the preceding version.
    folder.remove(NEW_TYPES);
    folder.run(V2).ok();
    assert!(folder.tree()[NEW_TYPES].contains("is the number of cups"));
}

#[test]
fn manual_name_applies_to_every_version() {
    let folder = project();
    change(&folder, TYPES, "\"cups\"", "\"cuppa\"");
    change(&folder, TYPES, "    namespaced,\n", "");
    change(&folder, SAMPLE, "cup-sample", "my-cup");
    folder.run("manifests").ok();
    folder.run(V2).ok();
    let tree = folder.tree();
    let sample = &tree["config/samples/cache_v2_cup.yaml"];
    assert!(sample.contains("name: my-cup-v2\n"), "{sample}");
    assert!(tree["config/crd/bases/cache.example.com_cuppa.yaml"].contains("scope: Cluster\n"));
    let ran = folder.run(V2).ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
}

#[test]
fn copies_the_newest_version() {
    let folder = project();
    for version in ["v1alpha1", "v1beta1"] {
        folder
            .run(&format!(
                "create api --group cache --version {version} --kind Cup"
            ))
            .ok();
        let path = format!("src/api/{version}/cup.rs");
        change(
            &folder,
            &path,
            "pub foo:",
            &format!("/// Of {version}.\n    pub foo:"),
        );
    }
    change(&folder, TYPES, "pub foo:", "/// Of v1.\n    pub foo:");
    folder.run(V2).ok();
    assert!(folder.tree()[NEW_TYPES].contains("/// Of v1.\n"));
}

#[test]
fn copy_of_a_deprecated_version_is_served() {
    let folder = project();
    folder.run(V2).ok();
    change(
        &folder,
        NEW_TYPES,
        "    storage = false,\n",
        "    deprecated = \"use v3\",\n",
    );
    change(
        &folder,
        TYPES,
        "    namespaced,\n",
        "    namespaced,\n    storage = false,\n    served = false,\n",
    );
    folder
        .run("create api --group cache --version v3 --kind Cup")
        .ok();
    let tree = folder.tree();
    let made = &tree["src/api/v3/cup.rs"];
    assert!(
        made.contains("storage = false") && !made.contains("deprecated"),
        "{made}"
    );
    let crd = &tree[CRD];
    assert_eq!(crd.matches("storage: true").count(), 1, "{crd}");
    assert_eq!(crd.matches("deprecated: true").count(), 1, "{crd}");
}

/// We can still take names and scope from the file or the CRD. The command reports what is missing.
#[test]
fn copies_names_even_if_types_cannot_be_copied() {
    let shared = "use super::shared::Size;\n";
    for (reason, spoil) in [
        (
            "it refers to its parent module with `super::`",
            Box::new(|folder: &Folder| {
                change(
                    folder,
                    TYPES,
                    "use kube::CustomResource;\n",
                    &format!("use kube::CustomResource;\n{shared}"),
                );
            }) as Box<dyn Fn(&Folder)>,
        ),
        (
            "the file does not exist",
            Box::new(|folder: &Folder| {
                folder.write("src/api/v1/moved.rs", &folder.tree()[TYPES]);
                folder.remove(TYPES);
                change(
                    folder,
                    "src/api/v1/mod.rs",
                    "mod cup;\n\npub use cup::*;",
                    "mod moved;\n\npub use moved::*;",
                );
            }),
        ),
    ] {
        let folder = project();
        write_names(&folder);
        folder.run("manifests").ok();
        spoil(&folder);
        let ran = folder.run(V2).ok();
        assert!(
            ran.err
                .contains("warning: src/api/v2/cup.rs does not have the fields")
                && ran.err.contains(reason),
            "{}",
            ran.err
        );
        let crd = &folder.tree()[CRD];
        assert_eq!(
            crd.matches("    shortNames:\n    - cp\n    - cps\n").count(),
            1,
            "{crd}"
        );
        assert_eq!(crd.matches("storage: false").count(), 1, "{crd}");
        let ran = folder.run(V2).ok();
        // The version without the fields is served, but there is no conversion.
        let warning = "warning[RB0503]: only version `v1` of `Cup` has `.spec.replicas`";
        assert!(
            ran.out.starts_with("unchanged") && ran.err.starts_with(warning),
            "{}{}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn warns_about_versions_without_conversion() {
    let folder = project();
    folder.run(V2).ok();
    folder
        .run("create webhook --group cache --version v1 --kind Cup --conversion --spoke v2")
        .ok();
    let ran = folder
        .run("create api --group cache --version v3 --kind Cup")
        .ok();
    let command = "create webhook --group cache --version v1 --kind Cup --conversion --spoke v3";
    assert!(ran.err.contains(command), "{}", ran.err);
    assert!(!folder.tree()["src/api/v3/cup.rs"].contains("conversion"));
    folder.run(command).ok();
    let ran = folder
        .run("create api --group cache --version v3 --kind Cup")
        .ok();
    assert!(!ran.err.contains("--spoke"), "{}", ran.err);
}

#[test]
fn kinds_in_kubernetes_groups_are_marked_unapproved() {
    for domain in ["k8s.io", "x-k8s.io", "sigs.k8s.io", "kubernetes.io"] {
        let folder = Folder::new();
        folder
            .run(&format!("init --domain {domain} --project-name shop"))
            .ok();
        folder.run(V1).ok();
        folder.run(V2).ok();
        let tree = folder.tree();
        let is_protected = domain != "x-k8s.io";
        for path in [TYPES, NEW_TYPES] {
            let said = "#[crd(annotation(\"api-approved.kubernetes.io\", \"unapproved, ";
            assert_eq!(
                tree[path].contains(said),
                is_protected,
                "{domain}: {}",
                tree[path]
            );
        }
        let crd = &tree[&format!("config/crd/bases/cache.{domain}_cups.yaml")];
        let said = crd.matches("api-approved.kubernetes.io: unapproved, ").count();
        assert_eq!(said, usize::from(is_protected), "{crd}");
    }
}

/// Every version is converted to and from the hub, so if another version were stored, we would
/// convert twice.
#[test]
fn hub_becomes_the_storage_version() {
    let folder = project();
    folder.run(V2).ok();
    change(&folder, NEW_TYPES, "pub foo:", "// Mine.\n    pub foo:");
    let before = folder.tree();
    let hub = "create webhook --group cache --version v2 --kind Cup --conversion --spoke v1";
    let ran = folder.run(hub).ok();
    assert!(
        ran.err
            .contains("warning: version `v2` of `Cup` is now the storage version"),
        "{}",
        ran.err
    );
    let tree = folder.tree();
    let without = |text: &str| {
        text.replace("#[crd(conversion)]\n", "")
            .replace("    storage = false,\n", "")
    };
    assert_eq!(without(&tree[NEW_TYPES]), without(&before[NEW_TYPES]));
    assert!(!tree[NEW_TYPES].contains("storage"), "{}", tree[NEW_TYPES]);
    assert!(tree[TYPES].contains("    storage = false,\n"), "{}", tree[TYPES]);
    let crd = &tree[CRD];
    let (first, second) = crd.split_once("name: v2").expect("two versions");
    assert!(
        first.contains("storage: false") && second.contains("storage: true"),
        "{crd}"
    );
    for again in [hub, V1, V2] {
        let ran = folder.run(again).ok();
        assert!(ran.out.starts_with("unchanged"), "{again}: {}", ran.out);
    }
}

/// If git tracks a CRD, it may be in use. So we leave its storage version to the author, who can
/// change it once every replica converts.
#[test]
fn keeps_the_storage_version_of_a_released_kind() {
    let hub = "create webhook --group cache --version v2 --kind Cup --conversion --spoke v1";
    let stays = "warning: version `v1` of `Cup` stays the storage version, because clusters may store objects in it: it is the storage version in config/crd/bases/cache.example.com_cups.yaml, and git tracks it\n";
    for (add, is_released) in [
        (None, false),
        (Some("src PROJECT"), false),
        (Some("config/crd/bases"), true),
        (Some("."), true),
    ] {
        let folder = project();
        folder.run(V2).ok();
        // Keep the git index elsewhere, because tests expect all files in the directory to be text.
        let outside = Folder::new();
        let place = outside.path().join("git");
        folder.git(&format!("init -q --separate-git-dir {}", place.display()));
        if let Some(paths) = add {
            folder.git(&format!("add {paths}"));
        }
        let before = folder.tree();
        let ran = folder.run(hub).ok();
        let tree = folder.tree();
        assert_eq!(ran.err.contains(stays), is_released, "{add:?}: {}", ran.err);
        assert_eq!(tree[TYPES].contains("storage = false"), !is_released, "{add:?}");
        assert_eq!(
            tree[NEW_TYPES].contains("storage = false"),
            is_released,
            "{add:?}"
        );
        let again = folder.run(hub).ok();
        assert!(again.out.starts_with("unchanged"), "{}", again.out);
        if !is_released {
            continue;
        }
        assert_eq!(tree[TYPES], before[TYPES]);
        for line in [
            "remove `storage = false` from `#[kube(…)]` in src/api/v2/cup.rs",
            "add `storage = false` to `#[kube(…)]` in src/api/v1/cup.rs",
            "`rbuilder migrate-storage cups.cache.example.com`",
        ] {
            assert!(ran.err.contains(line), "{line}: {}", ran.err);
        }
        // After these changes, nothing more is reported.
        change(&folder, NEW_TYPES, "    storage = false,\n", "");
        change(
            &folder,
            TYPES,
            "    namespaced,\n",
            "    namespaced,\n    storage = false,\n",
        );
        folder.run("manifests").ok();
        let done = folder.run(hub).ok();
        assert!(
            done.out.starts_with("unchanged") && done.err.is_empty(),
            "{}",
            done.err
        );
        folder.run("update").ok();
        // By now, objects may be stored in the hub version. Without a conversion, they couldn't be
        // read in the first version.
        let ran = folder
            .run("delete webhook --group cache --version v2 --kind Cup --conversion")
            .ok();
        let stays = stays.replace("`v1`", "`v2`");
        assert!(ran.err.contains(&stays), "{}", ran.err);
        let tree = folder.tree();
        assert!(tree[TYPES].contains("storage = false") && !tree[NEW_TYPES].contains("storage = false"));
    }
    // If we can't tell, the CRD counts as released.
    let folder = project();
    folder.run(V2).ok();
    folder.write(".git/index", "nonsense");
    let ran = folder.run(hub).ok();
    assert!(
        ran.err.contains("cannot determine if git tracks it"),
        "{}",
        ran.err
    );
    // If the hub is stored and the CRD was never generated, there is nothing to decide.
    folder.remove(CRD);
    folder.run(&hub.replace("v2", "v3").replace("v1", "v2"));
    let ran = folder.run(hub).ok();
    assert!(ran.err.contains("is now the storage version"), "{}", ran.err);
}

#[test]
fn reports_unchangeable_storage_version() {
    let folder = project();
    folder.run(V2).ok();
    let text = folder.tree()[NEW_TYPES].clone();
    folder.write(NEW_TYPES, &format!("\u{feff}{text}"));
    let types = folder.tree()[TYPES].clone();
    let ran = folder
        .run("create webhook --group cache --version v2 --kind Cup --conversion --spoke v1")
        .ok();
    assert!(
        ran.err.contains(
            "the storage version of `Cup` was not changed to the hub `v2`, because src/api/v2/cup.rs has an unsupported form"
        ),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree()[TYPES], types);
}

/// Returns the messages of `manifests`.
fn rename_version(folder: &Folder) -> String {
    change(folder, TYPES, "version = \"v1\"", "version = \"v2\"");
    folder.run("manifests").ok().err
}

#[test]
fn reports_renamed_version() {
    let folder = project();
    let said = rename_version(&folder);
    for part in [
        "warning[RB0804]: the CRD of `Cup` loses its storage version `v1`: a cluster that stores objects in this version rejects the CRD",
        "= help: keep `v1` beside `v2`, with `storage = false`",
        "warning[RB1005]: PROJECT lists version `v1` of `Cup`, but the source has no such version\n  --> PROJECT:",
        "|   version: v1\n",
        "add `v2` with `rbuilder create api --group cache --version v2 --kind Cup`",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    // The manifest now has what a cluster would reject, and PROJECT still differs.
    let ran = folder.run("manifests --check").ok();
    assert!(
        ran.err.contains("PROJECT lists version `v1`") && !ran.err.contains("loses"),
        "{}",
        ran.err
    );
    let found = folder.run("doctor").out;
    assert!(
        found.contains("warning[RB1005] manifests: up to date, with a warning: PROJECT:"),
        "{found}"
    );
    // A part of the source tells us nothing about all of it.
    let ran = folder.run("manifests --check --skip-kind Cup").ok();
    assert!(!ran.err.contains("PROJECT lists"), "{}", ran.err);
}

#[test]
fn reports_wrong_version_in_project() {
    let folder = project();
    change(&folder, "PROJECT", "  version: v1\n", "  version: v1beta\n");
    let said = folder.run("manifests --check").ok().err;
    for part in [
        "warning[RB1005]: PROJECT lists version `v1beta` of `Cup`, but the source has no such version\n  --> PROJECT:",
        "|   version: v1beta\n",
        "= help: write `version: v1` in its entry in PROJECT\n",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

/// The webhooks of the renamed version get other default names, but their markers are still read.
#[test]
fn renames_webhooks_of_a_renamed_version() {
    let folder = project();
    folder
        .run("create webhook --group cache --version v1 --kind Cup --defaulting --programmatic-validation")
        .ok();
    let said = rename_version(&folder);
    assert!(!said.contains("error") && !said.contains("cfg"), "{said}");
    let webhooks = folder.tree()["config/webhook/manifests.yaml"].clone();
    assert!(
        webhooks.contains("name: mcup-v2.kb.io") && !webhooks.contains("-v1.kb.io"),
        "{webhooks}"
    );
}

#[test]
fn reports_kinds_missing_from_the_source() {
    let folder = project();
    change(&folder, TYPES, "kind = \"Cup\"", "kind = \"Mug\"");
    let said = folder.run("manifests").ok().err;
    for part in [
        "warning[RB1005]: PROJECT lists the kind `Cup` of cache.example.com/v1, but the source has no such kind",
        "if it has become `Mug` of cache.example.com, restore `Cup`, run `rbuilder create api --group cache --version v1 --kind Mug`, move \
         your code to the new files, and run `rbuilder delete api --group cache --version v1 --kind Cup --force`; otherwise restore its \
         type, or remove it with `rbuilder delete api --group cache --version v1 --kind Cup`",
        // The kind keeps its plural, and so the name of its CRD.
        "warning[RB0804]: the kind of the CRD `cups.cache.example.com` changes from `Cup` to `Mug`: the API server rejects this for an installed CRD",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let folder = project();
    folder.remove(TYPES);
    folder.write("src/api/v1/mod.rs", "");
    let said = folder.run("manifests").ok().err;
    assert!(
        said.contains("help: restore its type, or remove it with `rbuilder delete api"),
        "{said}"
    );
    let ran = folder
        .run("delete api --group cache --version v1 --kind Cup")
        .ok();
    assert!(!ran.err.contains("PROJECT lists"), "{}", ran.err);
}

/// When we follow the help about a new group, all scaffolded files get the group.
#[test]
fn scaffold_follows_a_renamed_group() {
    let folder = project();
    folder.run(V2).ok();
    folder
        .run("create webhook --group cache --version v1 --kind Cup --conversion --spoke v2")
        .ok();
    let renamed = |text: &str| text.replace("cache.example.com", "store.example.com");
    for (path, text) in folder.tree() {
        if path.starts_with("src/") {
            folder.write(&path, &renamed(&text));
        }
    }
    let said = folder.run("manifests").ok().err;
    for part in [
        "warning[RB1005]: PROJECT lists the kind `Cup` of cache.example.com/v1, but the source has no such kind",
        "help: if it has become `Cup` of store.example.com, write `group: store` in its entry in PROJECT, run `rbuilder update`, which \
         updates its roles, and rename its sample to config/samples/store_v1_cup.yaml; otherwise",
        "warning[RB1004]: this role is for `cups` of cache.example.com, and no CRD of the project has this resource; so are \
         config/rbac/cup_editor_role.yaml, config/rbac/cup_viewer_role.yaml, config/webhook/cup_conversion_role.yaml\n  --> \
         config/rbac/cup_admin_role.yaml:14:1\n",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("config/rbac/role.yaml"), "{said}");
    change(&folder, "PROJECT", "group: cache", "group: store");
    let found = folder.run("doctor").out;
    assert!(
        found.contains(
            "warning[RB1004] roles: config/rbac/cup_admin_role.yaml: this role is for `cups` of cache.example.com"
        ),
        "{found}"
    );
    assert!(
        found.contains("warning[RB1002] samples: config/samples/cache_v1_cup.yaml"),
        "{found}"
    );
    folder.run("update").ok();
    assert!(folder.run("update").ok().out.starts_with("unchanged"));
    for version in ["v1", "v2"] {
        let old = format!("config/samples/cache_{version}_cup.yaml");
        let text = renamed(&folder.tree()[&old]);
        folder.remove(&old);
        folder.write(&old.replace("cache_", "store_"), &text);
    }
    let list = "config/samples/kustomization.yaml";
    let text = folder.tree()[list].replace("cache_", "store_");
    folder.write(list, &text);
    folder.run("manifests --check").ok();
    let found = folder.run("doctor").out;
    assert!(
        !found.contains("] roles: ") && !found.contains("] samples: "),
        "{found}"
    );
    let stale: Vec<String> = folder
        .tree()
        .into_iter()
        .filter(|(_, text)| text.contains("cache.example.com"))
        .map(|(path, _)| path)
        .collect();
    assert!(stale.is_empty(), "{stale:?}");
}

/// If a kind replaces another one, it's created with the same flags.
#[test]
fn advice_for_a_renamed_kind_has_its_flags() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder
        .run("create api --group cache --version v1 --kind Shelf --namespaced=false --controller=false")
        .ok();
    let path = "src/api/v1/shelf.rs";
    change(&folder, path, "kind = \"Shelf\"", "kind = \"Rack\"");
    change(&folder, path, "plural = \"shelves\"", "plural = \"rackses\"");
    let said = folder.run("manifests").ok().err;
    let create = "create api --group cache --version v1 --kind Rack --plural rackses --namespaced=false --controller=false";
    assert!(said.contains(&format!("run `rbuilder {create}`")), "{said}");
    change(&folder, path, "kind = \"Rack\"", "kind = \"Shelf\"");
    change(&folder, path, "plural = \"rackses\"", "plural = \"shelves\"");
    folder.run(create).ok();
    folder
        .run("delete api --group cache --version v1 --kind Shelf --force")
        .ok();
    let stale: Vec<String> = folder
        .tree()
        .into_keys()
        .filter(|path| path.contains("shel"))
        .collect();
    assert!(stale.is_empty(), "{stale:?}");
    let ran = folder.run("manifests --check").ok();
    assert_eq!(ran.err, "");
}

/// If the user has changed a role, it's kept, and reported until its rules are right.
#[test]
fn reports_renamed_plural() {
    let folder = project();
    change(&folder, TYPES, "plural = \"cups\"", "plural = \"cupboards\"");
    let said = folder.run("manifests").ok().err;
    assert!(
        said.contains(" --> config/rbac/role.yaml:")
            && said.contains("help: update the `#[rbac(…)]` markers in the source that name this resource"),
        "{said}"
    );
    let controller = "src/controller/cup.rs";
    let text = folder.tree()[controller].replace("\"cups", "\"cupboards");
    folder.write(controller, &text);
    for part in [
        "warning[RB1005]: PROJECT has the plural `cups` for `Cup`, but the source has `cupboards`\n  --> PROJECT:",
        "|   plural: cups\n",
        "help: write `plural: cupboards` in all its entries in PROJECT, and run `rbuilder update`, which updates its roles",
        "warning[RB1004]: this role is for `cups` of cache.example.com",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    change(&folder, "PROJECT", "plural: cups", "plural: cupboards");
    let viewer = "config/rbac/cup_viewer_role.yaml";
    folder.write(viewer, &format!("{}# mine\n", folder.tree()[viewer]));
    folder.run("update").ok();
    let tree = folder.tree();
    assert!(tree["config/rbac/cup_editor_role.yaml"].contains("- cupboards\n"));
    assert!(tree[viewer].contains("- cups\n"));
    let found = folder.run("doctor").out;
    assert_eq!(found.matches("warning[RB1004] roles").count(), 1, "{found}");
    assert!(
        found.contains(&format!("warning[RB1004] roles: {viewer}: ")),
        "{found}"
    );
}

#[test]
fn reports_changed_scope() {
    let folder = project();
    change(&folder, TYPES, "    namespaced,\n", "");
    let said = folder.run("manifests").ok().err;
    for part in [
        "warning[RB0804]: the scope of the CRD `cups.cache.example.com` changes from `Namespaced` to `Cluster`: the API server rejects this for an \
         installed CRD\n  --> src/api/v1/cup.rs:",
        "help: undo it, or delete the CRD and all its objects from each cluster first",
        "warning[RB1005]: `Cup` is namespaced according to PROJECT, but cluster-scoped in the source",
        "help: remove `namespaced: true` below `api` in all its entries in PROJECT, and adapt its tests",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

/// A sample is written with the types, but doesn't change with them. A further version copies it.
#[test]
fn reports_invalid_samples() {
    let folder = project();
    change(&folder, TYPES, "max_length = 63", "max_items = 63");
    change(
        &folder,
        TYPES,
        "pub foo: Option<String>",
        "pub foo: Option<Vec<String>>",
    );
    let part = "warning[RB1001]: this sample is not a valid `Cup` of cache.example.com/v1: spec.foo: Invalid value: \"string\": spec.foo in body must be of type array: \"string\"\n --> config/samples/cache_v1_cup.yaml:";
    let said = folder.run("manifests").ok().err;
    assert!(said.contains(part), "{said}");
    // The CRD is up to date now, but the sample is still invalid.
    let said = folder.run("manifests").ok().err;
    assert!(said.contains(part), "{said}");
    let found = folder.run("doctor").out;
    assert!(
        found.contains(
            "warning[RB1001] samples: config/samples/cache_v1_cup.yaml: this sample is not a valid `Cup`"
        ),
        "{found}"
    );
    let said = folder.run("bundle --channels stable").ok().err;
    assert!(
        said.contains("warning[RB1001]: config/samples/cache_v1_cup.yaml: this sample is not a valid `Cup`"),
        "{said}"
    );
    let said = folder.run(V2).ok().err;
    assert!(said.contains("config/samples/cache_v2_cup.yaml:"), "{said}");
    change(&folder, SAMPLE, "foo: bar", "foo: [bar]");
    change(
        &folder,
        "config/samples/cache_v2_cup.yaml",
        "foo: bar",
        "foo: [bar]",
    );
    let found = folder.run("doctor").out;
    assert!(!found.contains("] samples: "), "{found}");
}

/// kubectl and kustomize extract the objects from a list, so we have to do the same.
#[test]
fn reads_samples_in_lists() {
    let folder = project();
    let item = |name: &str, foo: &str| {
        format!(
            "- apiVersion: cache.example.com/v1\n  kind: Cup\n  metadata:\n    name: {name}\n  spec:\n    foo: {foo}\n"
        )
    };
    let list = |foo: &str| {
        format!(
            "apiVersion: v1\nkind: List\nitems:\n{}{}",
            item("big", "bar"),
            item("small", foo)
        )
    };
    folder.write(SAMPLE, &list("[]"));
    let part = "config/samples/cache_v1_cup.yaml: the sample `small` in this list is not a valid `Cup` of cache.example.com/v1: spec.foo: Invalid value: \"array\"";
    let found = folder.run("doctor").out;
    assert!(found.contains(part), "{found}");
    assert!(!found.contains("`big` in this list"), "{found}");
    folder.write(SAMPLE, &list("baz"));
    let found = folder.run("doctor").out;
    assert!(!found.contains("is not a valid"), "{found}");
    folder.run("bundle --channels stable").ok();
    folder.run("docs --file docs/api.md").ok();
    let tree = folder.tree();
    for (path, part) in [
        (
            "bundle/manifests/shop.clusterserviceversion.yaml",
            "\"name\": \"small\"",
        ),
        ("docs/api.md", "  name: small\n"),
    ] {
        assert!(tree[path].contains(part), "{}", tree[path]);
    }
}

/// Samples are only checked on the side. If a file can't be read, the manifests are generated
/// anyway.
#[test]
fn ignores_unreadable_samples() {
    for text in ["spec: [\n", "\u{feff}# Nothing.\r\n", ""] {
        let folder = project();
        folder.write(SAMPLE, text);
        change(&folder, TYPES, "foo: Option<String>", "bar: Option<String>");
        assert_eq!(folder.run("manifests").ok().err, "", "{text:?}");
    }
}

/// If a version or kind isn't served anymore, kubectl can't apply its samples.
#[test]
fn reports_samples_of_removed_versions() {
    let folder = project();
    folder.write(
        "config/samples/other.yaml",
        "apiVersion: other.example.com/v1\nkind: Cup\n---\napiVersion: v1\nkind: ConfigMap\n",
    );
    for (from, to) in [
        ("version = \"v1\"", "version = \"v3\""),
        ("kind = \"Cup\"", "kind = \"Mug\""),
    ] {
        change(&folder, TYPES, from, to);
        let part = "this sample is of cache.example.com/v1, and no CRD of the project has a `Cup` there";
        let said = folder.run("manifests").ok().err;
        let is_first = from.starts_with("version");
        assert_eq!(said.contains(part), is_first, "{said}");
        let found = folder.run("doctor").out;
        assert!(
            found.contains(&format!("warning[RB1002] samples: {SAMPLE}: {part}")),
            "{found}"
        );
        assert_eq!(found.matches("warning[RB1002] samples").count(), 1, "{found}");
    }
}

/// All objects have the same metadata. If the status isn't a subresource, it's written with the
/// rest.
#[test]
fn checks_samples_as_complete_objects() {
    let folder = project();
    let crd = folder.tree()[CRD].clone();
    let sample = folder.tree()[SAMPLE].clone();
    let check = |crd: &str, sample: &str, expected: Option<&str>| {
        folder.write(CRD, crd);
        folder.write(SAMPLE, sample);
        let found = folder.run("doctor").out;
        let said = found
            .lines()
            .find(|line| line.starts_with("warning[") && line.contains("] samples: "));
        match expected {
            Some(expected) => assert!(said.is_some_and(|said| said.ends_with(expected)), "{found}"),
            None => assert_eq!(said, None, "{found}"),
        }
    };
    let with = |from: &str, to: &str| sample.replace(from, to);
    check(
        &crd,
        &with("  labels:\n", "  lables:\n"),
        Some("strict decoding error: unknown field \"metadata.lables\""),
    );
    check(
        &crd,
        &with("  labels:\n", "  labels:\n    a: 1\n"),
        Some("cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
    );
    // The server knows the fields of a status even if it doesn't keep them.
    let unknown = format!("{sample}status:\n  nothing: 1\n");
    check(
        &crd,
        &unknown,
        Some("strict decoding error: unknown field \"status.nothing\""),
    );
    let status = format!("{sample}status:\n  conditions: 1\n");
    check(&crd, &status, None);
    let alone = crd.replace("    subresources:\n      status: {}\n", "");
    assert_ne!(alone, crd);
    check(
        &alone,
        &status,
        Some("status.conditions in body must be of type array: \"integer\""),
    );
    let counted = crd.replace(
        "      openAPIV3Schema:\n",
        "      openAPIV3Schema:\n        minProperties: 4\n",
    );
    assert_ne!(counted, crd);
    check(&counted, &sample, None);
}

/// We leave out an empty group, because a shell would take the next flag for its value.
#[test]
fn omits_an_empty_group() {
    let folder = Folder::new();
    folder.run(INIT).ok();
    folder.run("create api --version v1 --kind Cup").ok();
    change(&folder, TYPES, "version = \"v1\"", "version = \"v2\"");
    let said = folder.run("manifests").ok().err;
    assert!(
        said.contains("`rbuilder create api --version v2 --kind Cup`"),
        "{said}"
    );
    assert!(said.contains("  version: v1\n"), "{said}");
    change(&folder, TYPES, "kind = \"Cup\"", "kind = \"Mug\"");
    let said = folder.run("manifests").ok().err;
    assert!(
        said.contains("`rbuilder delete api --version v1 --kind Cup`"),
        "{said}"
    );
}
