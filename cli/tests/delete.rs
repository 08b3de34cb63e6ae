//! `delete` removes what `create` added, and nothing else: after random sequences of both, the
//! project has the same bytes as before.

use crate::support;

use support::{Folder, golden};

const INIT: &str = "init --domain example.com --project-name shop --library version --library-version 0.1.0";

/// Each command that creates something, with the command that removes it.
const PAIRS: &[(&str, &str)] = &[
    (
        "create api --group crew --version v1 --kind Captain",
        "delete api --group crew --version v1 --kind Captain",
    ),
    (
        "create api --group crew --version v1 --kind Mate --controller=false --namespaced=false",
        "delete api --group crew --version v1 --kind Mate",
    ),
    (
        "create api --group crew --version v1 --kind Captain --resource=false --controller-name captain-backup",
        "delete controller --group crew --version v1 --kind Captain --controller-name captain-backup",
    ),
    (
        "create webhook --group crew --version v1 --kind Captain --defaulting",
        "delete webhook --group crew --version v1 --kind Captain --defaulting",
    ),
    (
        "create webhook --group crew --version v1 --kind Captain --validation --validation-path /check/captains",
        "delete webhook --group crew --version v1 --kind Captain --validation",
    ),
    (
        "create api --group crew --version v2 --kind Captain",
        "delete api --group crew --version v2 --kind Captain",
    ),
    (
        "create webhook --group crew --version v2 --kind Captain --conversion --spoke v1",
        "delete webhook --group crew --version v2 --kind Captain --conversion",
    ),
    (
        "create api --group apps --version v1 --kind ReplicaSet --controller",
        "delete api --group apps --version v1 --kind ReplicaSet",
    ),
    (
        "create webhook --version v1 --kind Pod --defaulting --validation",
        "delete webhook --version v1 --kind Pod",
    ),
    (
        "create api --group core --version v1 --kind Node --controller-name node-labels",
        "delete controller --version v1 --kind Node",
    ),
    (
        "create api --group gateway.networking.k8s.io --version v1 --kind Gateway --external-crate gateway-api@0.22 \
         --external-path gateway_api::apis::standard::gateways::Gateway",
        "delete api --group gateway.networking.k8s.io --version v1 --kind Gateway",
    ),
    (
        "create webhook --group gateway.networking.k8s.io --version v1 --kind Gateway --validation",
        "delete webhook --group gateway.networking.k8s.io --version v1 --kind Gateway",
    ),
];

const SHAPES: [&str; 4] = [
    "",
    "--multigroup",
    "--namespaced --license none",
    "--multigroup --namespaced",
];

fn project(flags: &str) -> Folder {
    let folder = Folder::new();
    folder.run(&format!("{INIT} {flags}")).ok();
    folder
}

fn captain() -> Folder {
    let folder = project("");
    folder.run(PAIRS[0].0).ok();
    folder
}

fn store_second_version(folder: &Folder) {
    folder.replace("src/api/v2/captain.rs", "    storage = false,\n", "");
    let stored = "    namespaced,\n    storage = false,\n";
    folder.replace("src/api/v1/captain.rs", "    namespaced,\n", stored);
}

/// Returns the error, and checks that nothing is written.
fn refusal(folder: &Folder, command: &str) -> String {
    let before = folder.tree();
    let ran = folder.run(command);
    assert_eq!(ran.code, 1, "{command}: {}", ran.out);
    assert_eq!(folder.tree(), before);
    ran.err
}

/// Pseudo-random, but the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("a small number")
    }
}

#[track_caller]
fn assert_same(folder: &Folder, before: &std::collections::BTreeMap<String, String>, command: &str) {
    let after = folder.tree();
    for (path, text) in before {
        assert_eq!(after.get(path), Some(text), "{path} after {command}");
    }
    let new: Vec<&String> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(new.is_empty(), "left by {command}: {new:?}");
}

#[test]
fn delete_reverts_create() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for sequence in 0..12 {
        let folder = project(SHAPES[sequence % SHAPES.len()]);
        let mut done = Vec::new();
        for _ in 0..14 {
            let (create, delete) = PAIRS[numbers.below(PAIRS.len())];
            let before = folder.tree();
            // The command fails if its kind doesn't exist yet.
            if folder.run(create).code == 0 && folder.tree() != before {
                done.push((create, delete, before));
            }
        }
        assert!(!done.is_empty());
        while let Some((create, delete, before)) = done.pop() {
            let ran = folder.run(delete);
            assert_eq!(ran.code, 0, "{delete} after {create}: {}", ran.err);
            assert_same(&folder, &before, delete);
        }
    }
}

#[test]
fn dry_run_shows_deleted_files() {
    let folder = captain();
    folder
        .run("create webhook --group crew --version v1 --kind Captain --validation")
        .ok();
    for (command, name) in [
        (
            "delete webhook --group crew --version v1 --kind Captain",
            "delete/webhook.diff",
        ),
        (
            "delete controller --group crew --version v1 --kind Captain",
            "delete/controller.diff",
        ),
    ] {
        let before = folder.tree();
        let ran = folder.run(&format!("{command} --dry-run")).ok();
        assert_eq!(folder.tree(), before);
        golden(name, &ran.out);
        folder.run(command).ok();
        folder.run("manifests --check").ok();
    }
    let ran = folder
        .run("delete api --group crew --version v1 --kind Captain --dry-run")
        .ok();
    golden("delete/api.diff", &ran.out);
}

#[test]
fn changed_file_is_only_deleted_with_force() {
    let folder = captain();
    let command = "delete api --group crew --version v1 --kind Captain";
    for path in ["src/controller/captain.rs", "config/samples/crew_v1_captain.yaml"] {
        let text = folder.tree()[path].clone();
        folder.write(
            path,
            &format!("{text}# mine\n")
                .replace("# mine", if path.ends_with("rs") { "// mine" } else { "# mine" }),
        );
    }
    let said = refusal(&folder, command);
    assert!(
        said.contains("these files were changed since they were scaffolded:\n  config/samples/crew_v1_captain.yaml\n  src/controller/captain.rs\n"),
        "{said}"
    );
    folder.run(&format!("{command} --force")).ok();
    assert_same(&folder, &project("").tree(), command);
}

/// If there is no record, we only know that a file is unchanged when it matches the templates.
#[test]
fn unrecorded_file_is_compared_with_the_templates() {
    let folder = captain();
    let command = "delete api --group crew --version v1 --kind Captain";
    folder.remove(".rbuilder/files.sum");
    let path = "src/controller/captain.rs";
    let text = folder.tree()[path].clone();
    folder.write(path, &format!("{text}// mine\n"));
    let said = refusal(&folder, command);
    assert_eq!(
        said,
        "error: .rbuilder/files.sum does not list these files, so they may have been changed since they were scaffolded:\n  \
         src/controller/captain.rs\n\
         no files were written; take .rbuilder/files.sum from a commit that lists them, or delete them with `--force`\n"
    );
    folder.write(path, &text);
    folder.run(command).ok();
    let tree = folder.tree();
    assert!(!tree.contains_key(path) && !tree.contains_key("src/api/v1/captain.rs"));
}

#[test]
fn reports_rewritten_lines_to_remove_by_hand() {
    let folder = captain();
    let list = "src/controller/mod.rs";
    let text = folder.tree()[list].clone();
    let own = text.replace(
        "    manager.controller(captain::controller())\n",
        "    let captain = captain::controller();\n    manager.controller(captain)\n",
    );
    assert_ne!(own, text);
    folder.write(list, &own);
    let command = "delete controller --group crew --version v1 --kind Captain";
    let said = refusal(&folder, command);
    assert!(
        said.contains("cannot edit src/controller/mod.rs") && said.contains("remove these lines by hand"),
        "{said}"
    );
    folder.write(
        list,
        &text.replace("manager.controller(captain::controller())", "manager"),
    );
    folder.run(command).ok();
    assert!(!folder.tree()[list].contains("captain"));
}

#[test]
fn does_not_delete_what_is_needed() {
    let folder = captain();
    folder
        .run("create api --group crew --version v2 --kind Captain")
        .ok();
    let said = refusal(&folder, "delete api --group crew --version v1 --kind Captain");
    assert!(
        said.contains("version `v1` of `Captain` is the storage version"),
        "{said}"
    );
    folder
        .run("create webhook --group crew --version v1 --kind Captain --conversion --spoke v2")
        .ok();
    for (version, expected) in [
        (
            "v1",
            "delete them first with `rbuilder delete webhook --group crew --version v1 --kind Captain`",
        ),
        (
            "v2",
            "remove it from the conversion first with `rbuilder delete webhook --group crew --version v1 --kind Captain --conversion --spoke v2`",
        ),
    ] {
        let said = refusal(
            &folder,
            &format!("delete api --group crew --version {version} --kind Captain"),
        );
        assert!(said.contains(expected), "{said}");
    }
    for (command, expected) in [
        (
            "delete api --group crew --version v3 --kind Captain",
            "PROJECT has no kind `Captain` of crew/v3: it lists `Captain` of crew/v1",
        ),
        (
            "delete webhook --group crew --version v1 --kind Captain --defaulting",
            "has no defaulting webhook",
        ),
        (
            "delete controller --group crew --version v1 --kind Captain --controller-name x",
            "has no controller `x`",
        ),
    ] {
        let said = refusal(&folder, command);
        assert!(said.contains(expected), "{command}: {said}");
    }
}

#[test]
fn first_version_can_be_deleted_if_another_is_stored() {
    let folder = captain();
    folder
        .run("create api --group crew --version v2 --kind Captain")
        .ok();
    store_second_version(&folder);
    folder
        .run("delete api --group crew --version v1 --kind Captain --force")
        .ok();
    let tree = folder.tree();
    assert!(
        !tree.keys().any(|path| path.contains("/v1/")),
        "{:?}",
        tree.keys()
    );
    for path in ["tests/captain_v2.rs", "config/rbac/captain_admin_role.yaml"] {
        assert!(tree.contains_key(path), "{path}");
    }
    folder
        .run("delete api --group crew --version v2 --kind Captain --force")
        .ok();
    assert_same(&folder, &project("").tree(), "both deletions");
}

#[test]
fn keeps_controller_moved_to_another_version() {
    for init in ["", "--multigroup"] {
        let folder = project(init);
        for version in ["v1", "v2"] {
            let command = format!("create api --group crew --version {version} --kind Captain");
            folder.run(&command).ok();
        }
        let group = if init.is_empty() { "" } else { "crew/" };
        let change = |path: String, from: &str, to: &str| {
            let text = folder.tree()[&path].clone();
            assert!(text.contains(from), "{path}:\n{text}");
            folder.write(&path, &text.replace(from, to));
        };
        change(
            format!("src/api/{group}v2/captain.rs"),
            "    storage = false,\n",
            "",
        );
        let stored = "    namespaced,\n    storage = false,\n";
        change(
            format!("src/api/{group}v1/captain.rs"),
            "    namespaced,\n",
            stored,
        );
        let controller = format!("src/controller/{group}captain.rs");
        change(controller.clone(), "v1::Captain;", "v2::Captain;");
        let moved = folder.tree()[&controller].clone();
        folder
            .run("delete api --group crew --version v1 --kind Captain --force")
            .ok();
        let tree = folder.tree();
        assert_eq!(tree[&controller], moved);
        assert!(tree["src/controller/mod.rs"].contains(&format!("{}captain", group.replace('/', "::"))));
        assert_eq!(tree["PROJECT"].matches("controller: true").count(), 1);
        let test = format!("tests/{}captain_v2.rs", group.replace('/', "_"));
        assert!(tree[&test].contains("controller::"), "{}", tree[&test]);
        folder.run("manifests --check").ok();
        let ran = folder
            .run("create api --group crew --version v2 --kind Captain")
            .ok();
        assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
        folder
            .run("delete api --group crew --version v2 --kind Captain --force")
            .ok();
        assert_same(&folder, &project(init).tree(), "both deletions");
    }
}

#[test]
fn deleting_the_conversion_keeps_a_chosen_storage_version() {
    let folder = captain();
    for command in [
        "create api --group crew --version v2 --kind Captain",
        "create webhook --group crew --version v1 --kind Captain --conversion --spoke v2",
    ] {
        folder.run(command).ok();
    }
    store_second_version(&folder);
    let (first, second) = ("src/api/v1/captain.rs", "src/api/v2/captain.rs");
    let ran = folder
        .run("delete webhook --group crew --version v1 --kind Captain --conversion")
        .ok();
    assert!(!ran.err.contains("storage version"), "{}", ran.err);
    let tree = folder.tree();
    assert!(tree[first].contains("storage = false") && !tree[second].contains("storage = false"));
}

/// `v1` is converted from and to two spokes.
fn captain_with_spokes() -> Folder {
    let folder = captain();
    for command in [
        "create api --group crew --version v2 --kind Captain",
        "create api --group crew --version v3 --kind Captain",
        "create webhook --group crew --version v1 --kind Captain --validation",
        "create webhook --group crew --version v1 --kind Captain --conversion --spoke v2",
    ] {
        folder.run(command).ok();
    }
    folder
}

#[test]
fn deletes_one_of_several_spokes_with_its_version() {
    let folder = captain_with_spokes();
    let before = folder.tree();
    folder
        .run("create webhook --group crew --version v1 --kind Captain --conversion --spoke v3")
        .ok();
    let command = "delete webhook --group crew --version v1 --kind Captain --conversion --spoke v3";
    let ran = folder.run(command).ok();
    assert_same(&folder, &before, command);
    assert!(
        ran.err.contains(
            "Next: delete each version that has no conversion now, before you deploy:\n  \
             rbuilder delete api --group crew --version v3 --kind Captain\n"
        ),
        "{}",
        ran.err
    );
    folder
        .run("delete api --group crew --version v3 --kind Captain")
        .ok();
    assert!(!folder.tree().keys().any(|path| path.contains("v3")));
    // The conversion goes with its last spoke.
    folder
        .run("delete webhook --group crew --version v1 --kind Captain --conversion --spoke v2")
        .ok();
    let tree = folder.tree();
    assert!(!tree["PROJECT"].contains("conversion") && tree["PROJECT"].contains("validation: true"));
    assert!(!tree["src/api/v1/captain.rs"].contains("crd(conversion)"));
}

#[test]
fn deleting_a_spoke_keeps_other_user_changes() {
    let folder = captain_with_spokes();
    folder
        .run("create webhook --group crew --version v1 --kind Captain --conversion --spoke v3")
        .ok();
    let (handlers, tests) = ("src/webhook/v1/captain.rs", "tests/captain_v1_webhook.rs");
    folder.replace(
        handlers,
        "    Ok(Warnings::new())",
        "    let mine = Warnings::new();\n    Ok(mine)",
    );
    folder.replace(
        tests,
        "#[rbuilder::envtest::test]",
        "// Mine.\n#[rbuilder::envtest::test]",
    );
    let (with_handlers, with_tests) = (folder.tree()[handlers].clone(), folder.tree()[tests].clone());
    let command = "delete webhook --group crew --version v1 --kind Captain --conversion --spoke v2";
    folder.run(command).ok();
    let tree = folder.tree();
    assert_eq!(
        tree[handlers],
        with_handlers.replace("\n        .spoke::<crate::api::v2::Captain>()", "")
    );
    assert!(tree[tests].contains("// Mine.") && !tree[tests].contains("v2"));
    assert!(with_tests.contains("the_round_trip_through_v2_is_lossless"));
    assert!(!tree.contains_key("src/api/v2/captain_conversion.rs"));
    assert!(!tree["src/api/v2/mod.rs"].contains("captain_conversion"));

    // Since the test is changed and the conversion implemented, they are only deleted with
    // `--force`.
    folder.replace(
        tests,
        "testing::assert_round_trip::<Captain, Spoke>();",
        "// Mine too.",
    );
    folder.replace("src/api/v3/captain_conversion.rs", "\nimpl", "\n// Mine.\nimpl");
    let command = command.replace("v2", "v3");
    let said = refusal(&folder, &command);
    assert!(
        said.contains(
            "  src/api/v3/captain_conversion.rs\n  \
             tests/captain_v1_webhook.rs: `the_round_trip_through_v3_is_lossless`\n"
        ),
        "{said}"
    );
    folder.run(&format!("{command} --force")).ok();
    let tree = folder.tree();
    assert!(tree[handlers].contains("Ok(mine)") && !tree[handlers].contains("spoke"));
    assert!(tree[tests].contains("// Mine.") && !tree[tests].contains("v3"));
    folder.run("manifests --check").ok();
}

#[test]
fn does_not_delete_a_stored_or_unknown_spoke() {
    let folder = captain_with_spokes();
    folder
        .run("create webhook --group crew --version v1 --kind Captain --conversion --spoke v3")
        .ok();
    let command = "delete webhook --group crew --version v1 --kind Captain --conversion --spoke";
    let said = refusal(&folder, &format!("{command} v2,v4"));
    assert_eq!(
        said,
        "error: `v4` is not a spoke of the conversion of `Captain`: PROJECT records `v2`, `v3`\n"
    );
    store_second_version(&folder);
    let said = refusal(&folder, &format!("{command} v2"));
    assert!(
        said.contains("version `v2` of `Captain` is the storage version")
            && said.contains("before you delete its conversion"),
        "{said}"
    );
    folder.run(&format!("{command} v3")).ok();
}
