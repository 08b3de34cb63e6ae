//! Controllers and webhooks for foreign kinds: kinds of Kubernetes, and kinds from other crates.

use crate::support;

use support::{Folder, golden};

const INIT: &str = "init --domain example.com --project-name shop --library version --library-version 0.1.0";
const REPLICA_SET: &str = "create api --group apps --version v1 --kind ReplicaSet --controller";
const POD: &str = "create webhook --group core --version v1 --kind Pod --defaulting";
const GATEWAY: &str = "create api --group gateway.networking.k8s.io --version v1 --kind Gateway \
                       --external-crate gateway-api@0.22 \
                       --external-path gateway_api::apis::standard::gateways::Gateway";
const GATEWAY_WEBHOOK: &str =
    "create webhook --group gateway.networking.k8s.io --version v1 --kind Gateway --validation";

fn project(flags: &str) -> Folder {
    let folder = Folder::new();
    folder.run(&format!("{INIT} {flags}")).ok();
    folder
}

/// Returns the error, and checks that nothing is written.
fn refusal(folder: &Folder, command: &str) -> String {
    let before = folder.tree();
    let ran = folder.run(command);
    assert_eq!(ran.code, 1, "{command}");
    assert_eq!(folder.tree(), before);
    ran.err
}

/// The golden file has all changes. Afterwards we run the command twice.
fn scaffold(folder: &Folder, command: &str, name: &str) {
    let ran = folder.run(&format!("{command} --dry-run")).ok();
    golden(name, &ran.out);
    folder.run(command).ok();
    let again = folder.run(command).ok();
    assert!(again.out.starts_with("unchanged"), "{command}: {}", again.out);
    folder.run("manifests --check").ok();
}

#[test]
fn controller_of_replica_sets_owns_pods() {
    let folder = project("");
    scaffold(&folder, REPLICA_SET, "foreign/replica-set.diff");
    let tree = folder.tree();
    assert!(tree.keys().all(|path| !path.starts_with("config/crd/bases/")));
}

#[test]
fn webhook_for_pods_excludes_its_manager() {
    let folder = project("");
    scaffold(&folder, POD, "foreign/pod-webhook.diff");
    for group in ["--group core", ""] {
        let command = format!("create webhook {group} --version v1 --kind Pod --defaulting");
        let ran = folder.run(&command).ok();
        assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    }
}

#[test]
fn kind_of_another_crate_gets_no_crd() {
    let folder = project("");
    scaffold(&folder, GATEWAY, "foreign/gateway.diff");
    scaffold(&folder, GATEWAY_WEBHOOK, "foreign/gateway-webhook.diff");
}

#[test]
fn accepts_kubebuilder_flag_names() {
    let ours = project("");
    ours.run(GATEWAY).ok();
    let theirs = project("");
    theirs
        .run(
            &GATEWAY
                .replace("external-crate", "external-api-module")
                .replace("external-path", "external-api-path"),
        )
        .ok();
    assert_eq!(ours.tree(), theirs.tree());
    let split = project("");
    let group = "--group gateway.networking --external-api-domain k8s.io";
    split
        .run(&GATEWAY.replace("--group gateway.networking.k8s.io", group))
        .ok();
    for path in ["src/controller/gateway.rs", "config/rbac/role.yaml"] {
        assert_eq!(ours.tree()[path], split.tree()[path]);
    }
}

#[test]
fn binding_in_the_project_gets_no_crd() {
    let folder = project("");
    let lib = folder.tree()["src/lib.rs"].clone();
    folder.write("src/lib.rs", &format!("{lib}pub mod stall;\n"));
    folder.write(
        "src/stall.rs",
        "#[derive(kube::CustomResource, schemars::JsonSchema)]\n\
         #[kube(group = \"example.org\", version = \"v1\", kind = \"Stall\", namespaced)]\n\
         pub struct StallSpec {\n    pub owner: String,\n}\n",
    );
    folder
        .run("create api --group example.org --version v1 --kind Stall --external-path crate::stall::Stall")
        .ok();
    let tree = folder.tree();
    assert!(!tree.contains_key("config/crd/bases/example.org_stalls.yaml"));
    assert!(tree["src/controller/stall.rs"].contains("\nuse crate::stall::Stall;\n"));
    assert!(tree["tests/stall.rs"].contains("\nuse shop::controller;\nuse shop::stall::Stall;\n"));
}

#[test]
fn accepts_short_and_full_group_names() {
    for (group, kind, recorded) in [
        ("--group core", "Pod", "group: core\n"),
        ("", "Pod", "group: core\n"),
        (
            "--group networking",
            "Ingress",
            "domain: k8s.io\n  group: networking\n",
        ),
        (
            "--group networking.k8s.io",
            "Ingress",
            "domain: k8s.io\n  group: networking\n",
        ),
        (
            "--group rbac.authorization",
            "Role",
            "domain: k8s.io\n  group: rbac.authorization\n",
        ),
    ] {
        let folder = project("");
        let command = format!("create api {group} --version v1 --kind {kind} --resource=false");
        folder.run(&command).ok();
        assert!(folder.tree()["PROJECT"].contains(recorded), "{command}");
    }
}

#[test]
fn kinds_of_the_project_take_precedence() {
    // In kubebuilder's tutorial, CronJob isn't the kind of Kubernetes either.
    let folder = project("");
    folder
        .run("create api --group batch --version v1 --kind CronJob")
        .ok();
    assert!(folder.tree().contains_key("src/api/v1/cron_job.rs"));
    folder
        .run("create webhook --group batch --version v1 --kind CronJob --validation")
        .ok();
    assert!(folder.tree()["src/webhook/v1/cron_job.rs"].contains("use crate::api::v1::CronJob;"));
    // From now on, the group can be either of the two.
    let said = refusal(
        &folder,
        "create api --group batch --version v1 --kind Job --controller",
    );
    assert!(said.contains("group `batch` can be `batch.example.com` of this project or the built-in group: pass `--resource=false`"), "{said}");
    folder
        .run("create api --group batch --version v1 --kind Job --resource=false")
        .ok();
    assert!(folder.tree()["src/controller/job.rs"].contains("use k8s_openapi::api::batch::v1::Job;"));
}

/// If a kind may belong to another project, or may be a misspelled built-in kind, we don't scaffold
/// it as a kind of this project.
#[test]
fn ambiguous_kinds_need_a_flag() {
    let folder = project("");
    let external = "error: the API group would be `cert-manager.io.example.com`: the domain of the project is added to `--group`\n  \
                    = help: for a kind of cert-manager, pass `--external-path` with its Rust type; for a kind of your own, \
                    pass `--resource`\n";
    let built_in = "error: the API group would be `networking.k8s.io.example.com`: the domain of the project is added to `--group`\n  \
                    = help: for a controller of the existing kind `Ingress`, pass `--controller`; for a kind of your own, pass \
                    `--resource`\n";
    let misspelled = "error: there is no built-in kind `Deploymnet` in apps/v1: to scaffold one of your own in `apps.example.com`, pass \
                      `--resource`\n  = help: did you mean the built-in kind of `--group apps --version v1 --kind Deployment`?\n";
    for (command, expected) in [
        (
            "--group cert-manager.io --version v1 --kind Certificate",
            external,
        ),
        (
            "--group cert-manager.io --version v1 --kind Certificate --controller",
            external,
        ),
        ("--group networking.k8s.io --version v1 --kind Ingress", built_in),
        (
            "--group apps --version v1 --kind Deploymnet --controller",
            misspelled,
        ),
    ] {
        let said = refusal(&folder, &format!("create api {command}"));
        assert_eq!(said, expected, "{command}");
    }
    // Check the same in a project that already has a group.
    folder
        .run("create api --group shop --version v1 --kind Order")
        .ok();
    let said = refusal(
        &folder,
        "create api --group cert-manager.io --version v1 --kind Certificate",
    );
    assert_eq!(said, external);
    let said = refusal(&folder, "create api --group apps --version v1 --kind Deployment");
    assert!(
        said.ends_with("\n  = help: for a controller of the existing kind `Deployment`, which needs no group of its own, pass `--controller`\n"),
        "{said}"
    );
    let said = refusal(&folder, "create api --version v1 --kind Order");
    assert!(
        said.contains("use group `shop` instead of none, or run"),
        "{said}"
    );
    folder
        .run("create api --group apps --version v1 --kind Deployment --controller")
        .ok();
    let ungrouped = project("");
    ungrouped.run("create api --version v1 --kind Order").ok();
    let said = refusal(&ungrouped, "create api --group shop --version v1 --kind Item");
    assert!(
        said.contains("not enabled: omit `--group` instead of passing `shop`, or run"),
        "{said}"
    );
    // The project may have kinds in such a group if a flag says so. It may also have kinds in a
    // group with a dot that belongs to no known project.
    for [group, flags] in [["cert-manager.io", " --resource --controller"], ["sea.crew", ""]] {
        let folder = project("");
        folder
            .run(&format!(
                "create api --group {group} --version v1 --kind Captain{flags}"
            ))
            .ok();
        folder
            .run(&format!("create api --group {group} --version v1 --kind Mate"))
            .ok();
    }
}

#[test]
fn rejects_unsupported_foreign_kinds() {
    let folder = project("");
    for (command, expected) in [
        (
            "api --group apps --version v2 --kind Deployment --resource=false",
            "for the built-in kind, pass `--group apps --version v1 --kind Deployment`",
        ),
        (
            "api --group apps --version v1 --kind Deploymnet --resource=false",
            "did you mean the built-in kind of `--group apps --version v1 --kind Deployment`?",
        ),
        (
            "webhook --version v1 --kind Deployment --validation",
            "did you mean the built-in kind of `--group apps --version v1 --kind Deployment`?",
        ),
        (
            "api --group authentication --version v1 --kind TokenReview --controller",
            "objects of `TokenReview` are not stored",
        ),
        (
            "api --version v1 --kind ComponentStatus --resource=false",
            "the API server computes objects of `ComponentStatus` for each request, so a controller cannot watch them",
        ),
        (
            "webhook --version v1 --kind ComponentStatus --validation",
            "no client can create, update or delete objects of `ComponentStatus`",
        ),
        (
            "webhook --group core --version v1 --kind Pod --conversion --spoke v2",
            "belongs to another project, and only that project can convert it",
        ),
        (
            "api --group core --version v1 --kind Pod --resource=false --controller=false",
            "nothing to scaffold for `Pod`",
        ),
        (
            "api --group core --version v1 --kind Pod --resource=false --plural poddies",
            "kind `Pod` has the plural `pods`",
        ),
        (
            "api --group core --version v1 --kind Node --resource=false --namespaced",
            "kind `Node` is cluster-scoped",
        ),
        (
            "api --group g.io --version v1 --kind Gateway --external-path gateway_api::Gateway",
            "crate `gateway_api` of `gateway_api::Gateway` is not a dependency of this package: pass `--external-crate gateway-api@<version>`",
        ),
        (
            "api --group g.io --version v1 --kind Gateway --external-crate gateway-api --external-path gateway_api::Gateway",
            "pass a version, as in `--external-crate gateway-api@1.0`",
        ),
        (
            "api --group g.io --version v1 --kind Gateway --external-crate other@1 --external-path gateway_api::Gateway",
            "expected `other::…`, found `gateway_api::Gateway`",
        ),
        (
            "api --group g.io --version v1 --kind Gateway --external-path gateway_api",
            "type path `gateway_api` must be the Rust path",
        ),
        (
            "api --group g.io --version v1 --kind Gateway --external-path a::B --resource",
            "omit `--resource`",
        ),
        (
            "webhook --group core --version v1 --kind Pod --validation --validation-path /convert",
            "path `/convert` is the path of conversion webhooks",
        ),
        (
            "webhook --group core --version v1 --kind Pod --validation --validation-path pods",
            "path `pods` must be a URL path",
        ),
    ] {
        let said = refusal(&folder, &format!("create {command}"));
        assert!(said.contains(expected), "{command}: {said}");
    }
}

#[test]
fn cluster_scoped_kinds_get_permissions_in_a_namespaced_project() {
    let folder = project("--namespaced");
    scaffold(
        &folder,
        "create api --version v1 --kind Node --controller",
        "foreign/node-namespaced.diff",
    );
    folder.run(REPLICA_SET).ok();
    let role = &folder.tree()["config/rbac/role.yaml"];
    let (cluster_role, role) = role.split_once("kind: Role\n").expect("both");
    assert!(cluster_role.contains("- nodes\n") && !role.contains("- nodes\n"));
    assert!(role.contains("- replicasets\n") && !cluster_role.contains("- replicasets\n"));
}

#[test]
fn kind_can_have_several_controllers() {
    let folder = project("");
    folder
        .run("create api --group crew --version v1 --kind Captain")
        .ok();
    scaffold(
        &folder,
        "create api --group crew --version v1 --kind Captain --controller-name captain-backup",
        "foreign/captain-backup.diff",
    );
    for (name, expected) in [
        ("captain", None),
        ("captain-backup", None),
        (
            "Captain",
            Some("controller name `Captain` must be a DNS-1035 label"),
        ),
        ("mod", Some("has a valid name")),
    ] {
        let command = format!("create api --group crew --version v1 --kind Captain --controller-name {name}");
        match expected {
            None => assert!(folder.run(&command).ok().out.starts_with("unchanged"), "{name}"),
            Some(expected) => {
                let said = refusal(&folder, &command);
                assert!(said.contains(expected), "{said}");
            }
        }
    }

    // If the first controller has a name, all others need one, too.
    let folder = project("");
    folder
        .run("create api --group crew --version v1 --kind Captain --controller-name watch")
        .ok();
    assert!(folder.tree()["src/controller/watch.rs"].contains(".named(\"watch\")"));
    let said = refusal(
        &folder,
        "create api --group crew --version v1 --kind Captain --controller",
    );
    assert!(said.contains("already has the controller `watch`"), "{said}");
}

#[test]
fn files_of_kinds_with_the_same_name_do_not_collide() {
    let folder = project("");
    folder
        .run("create api --group shop --version v1 --kind Deployment")
        .ok();
    let command = "create api --group apps --version v1 --kind Deployment --controller";
    let said = refusal(&folder, command);
    assert!(
        said.contains("belongs to kind `Deployment` of shop.example.com/v1")
            && said.contains("--controller-name"),
        "{said}"
    );
    folder
        .run(&format!("{command} --controller-name apps-deployment"))
        .ok();
    let tree = folder.tree();
    assert!(tree["src/controller/apps_deployment.rs"].contains(".named(\"apps-deployment\")"));

    let folder = project("--multigroup");
    folder
        .run("create api --group shop --version v1 --kind Deployment")
        .ok();
    folder.run(command).ok();
    let tree = folder.tree();
    assert!(tree["src/controller/apps/deployment.rs"].contains(".named(\"apps-deployment\")"));
    assert!(!tree["src/controller/shop/deployment.rs"].contains(".named("));
    for group in ["shop", "apps"] {
        folder
            .run(&format!(
                "create webhook --group {group} --version v1 --kind Deployment --validation"
            ))
            .ok();
    }
    let manifests = &folder.tree()["config/webhook/manifests.yaml"];
    for name in [
        "name: vdeployment-v1.kb.io\n",
        "name: vdeployment-v1.apps.kb.io\n",
    ] {
        assert!(manifests.contains(name), "{manifests}");
    }
}

#[test]
fn webhook_paths_match_in_marker_and_server() {
    let folder = project("");
    folder
        .run("create api --group crew --version v1 --kind Captain")
        .ok();
    scaffold(
        &folder,
        "create webhook --group crew --version v1 --kind Captain --defaulting --defaulting-path /mutate/captains \
         --validation --validation-path /validate/captains",
        "foreign/paths.diff",
    );
}

#[test]
fn group_may_be_empty() {
    let folder = project("");
    scaffold(
        &folder,
        "create api --version v1 --kind Captain",
        "foreign/no-group.diff",
    );
    folder
        .run("create webhook --version v1 --kind Captain --defaulting")
        .ok();
    assert!(
        folder
            .tree()
            .contains_key("config/crd/bases/example.com_captains.yaml")
    );
    let grouped = project("--multigroup");
    grouped.run("create api --version v1 --kind Captain").ok();
    grouped
        .run("create api --group crew --version v1 --kind Captain")
        .ok();
    let tree = grouped.tree();
    for path in [
        "src/api/v1/captain.rs",
        "src/api/crew/v1/captain.rs",
        "config/samples/v1_captain.yaml",
    ] {
        assert!(tree.contains_key(path), "{path}");
    }
    folder.run("manifests --check").ok();
}

#[test]
fn manifests_flag_skips_generation() {
    for flag in ["--make=false", "--manifests=false"] {
        let folder = project("");
        folder.run(&format!("{REPLICA_SET} {flag}")).ok();
        assert!(!folder.tree()["config/rbac/role.yaml"].contains("replicasets"));
    }
}
