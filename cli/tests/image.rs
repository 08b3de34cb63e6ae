//! `create api --image`: a controller that deploys an image.

use crate::support;

use serde_json::{Value, json};
use support::Folder;

const MEMCACHED: &str = "create api --group cache --version v1 --kind Memcached";
const FLAGS: &str = "--image memcached:1.6 --image-container-command memcached,-m,64 --image-container-port 11211 \
                     --run-as-user 1001";

fn project() -> Folder {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder
}

#[test]
fn flags_are_in_the_source_and_in_project() {
    let folder = project();
    folder.run(&format!("{MEMCACHED} {FLAGS}")).ok();
    let tree = folder.tree();
    for (path, expected) in [
        (
            "PROJECT",
            "  image:\n    command:\n    - memcached\n    - -m\n    - \"64\"\n    name: memcached:1.6\n",
        ),
        ("PROJECT", "    port: 11211\n    runAsUser: 1001\n"),
        ("src/api/v1/memcached.rs", "default = 11211)]"),
        (
            "src/controller/memcached.rs",
            "pub const IMAGE: &str = \"memcached:1.6\";",
        ),
        (
            "src/controller/memcached.rs",
            "const COMMAND: &str = \"\\\nmemcached\n-m\n64\";",
        ),
        ("src/controller/memcached.rs", "run_as_user: Some(1001),"),
        (
            "config/samples/cache_v1_memcached.yaml",
            "  containerPort: 11211\n",
        ),
        ("config/rbac/role.yaml", "  - deployments\n"),
        (
            "src/controller/memcached.rs",
            "const IMAGE_VARIABLE: &str = \"RELATED_IMAGE_CACHE_MEMCACHED\";",
        ),
        (
            "config/manager/kustomization.yaml",
            "components:\n- cache_memcached_image\n",
        ),
        (
            "config/manager/cache_memcached_image/kustomization.yaml",
            "- name: RELATED_IMAGE_CACHE_MEMCACHED\n              value: \"memcached:1.6\"\n",
        ),
    ] {
        assert!(tree[path].contains(expected), "{path}:\n{}", tree[path]);
    }

    // PROJECT records the flags, so that the scaffold can be rebuilt.
    for command in [
        MEMCACHED.to_owned(),
        format!("{MEMCACHED} {FLAGS}"),
        "update".to_owned(),
    ] {
        let ran = folder.run(&command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
    // A further version has the same types, but no second controller.
    folder.run(&MEMCACHED.replace("v1", "v2")).ok();
    let tree = folder.tree();
    assert!(tree["src/api/v2/memcached.rs"].contains("pub container_port: i32"));
    assert!(!tree["tests/memcached_v2.rs"].contains("IMAGE"));
}

#[test]
fn image_is_in_the_chart_values_and_the_bundle() {
    let folder = project();
    folder.run(&format!("{MEMCACHED} {FLAGS}")).ok();
    folder
        .run("create api --group cache --version v1 --kind Cup --image cup:2")
        .ok();
    let ran = folder.run("helm").ok();
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    folder.run("bundle --image registry.example.com/shop:v1").ok();
    let parse = |path: &str| -> Value { serde_saphyr::from_str(&folder.tree()[path]).expect("YAML") };
    let values = parse("charts/shop/values.yaml");
    let csv = parse("bundle/manifests/shop.clusterserviceversion.yaml");
    for (variable, name, image) in [
        (
            "RELATED_IMAGE_CACHE_MEMCACHED",
            "cache-memcached",
            "memcached:1.6",
        ),
        ("RELATED_IMAGE_CACHE_CUP", "cache-cup", "cup:2"),
    ] {
        let entry = json!({ "name": variable, "value": image });
        let env = values["env"].as_array().expect("variables");
        assert!(env.contains(&entry), "{env:?}");
        let entry = json!({ "name": name, "image": image });
        let images = csv["spec"]["relatedImages"].as_array().expect("images");
        assert!(images.contains(&entry), "{images:?}");
    }
}

#[test]
fn cluster_scoped_kind_runs_in_the_namespace_of_the_manager() {
    for init in ["", "--namespaced"] {
        let folder = Folder::new();
        folder
            .run(&format!("init --domain example.com --project-name shop {init}"))
            .ok();
        folder
            .run(&format!("{MEMCACHED} --image memcached --namespaced=false"))
            .ok();
        let tree = folder.tree();
        let crd = &tree["config/crd/bases/cache.example.com_memcacheds.yaml"];
        assert!(crd.contains("  scope: Cluster\n"), "{crd}");
        let controller = &tree["src/controller/memcached.rs"];
        assert!(
            controller.contains("namespace: Some(namespace.to_owned()),"),
            "{controller}"
        );
        // The objects are cluster-scoped, although the manager is restricted to a namespace.
        let rules = &tree["config/rbac/role.yaml"];
        let of_cluster = rules
            .split("---\n")
            .find(|role| role.contains("kind: ClusterRole\n"));
        assert!(
            of_cluster.is_some_and(|role| role.contains("- memcacheds\n")),
            "{rules}"
        );
        let ran = folder.run("update").ok();
        assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    }
}

#[test]
fn omitted_flags_are_not_in_the_source() {
    let folder = project();
    folder.run(&format!("{MEMCACHED} --image memcached")).ok();
    let tree = folder.tree();
    let controller = &tree["src/controller/memcached.rs"];
    for word in ["COMMAND", "ContainerPort", "run_as_user"] {
        assert!(!controller.contains(word), "{word}:\n{controller}");
    }
    assert!(!tree["src/api/v1/memcached.rs"].contains("container_port"));
}

#[test]
fn controller_can_be_replaced_by_named_ones() {
    let folder = project();
    folder.run(&format!("{MEMCACHED} {FLAGS}")).ok();
    let whole = folder.tree();
    folder
        .run(&MEMCACHED.replace("create api", "delete controller"))
        .ok();
    let tree = folder.tree();
    assert!(!tree.contains_key("src/controller/memcached.rs"));
    assert!(!tree.keys().any(|path| path.contains("_image/")));
    assert!(tree["config/manager/kustomization.yaml"].ends_with("\ncomponents: []\n"));
    assert!(
        !tree["tests/memcached.rs"].contains("controller"),
        "{}",
        tree["tests/memcached.rs"]
    );
    assert!(tree["src/api/v1/memcached.rs"].contains("container_port"));
    let ran = folder.run("update").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);

    folder
        .run(&format!("{MEMCACHED} --resource=false --controller"))
        .ok();
    let tree = folder.tree();
    assert_eq!(
        tree["src/controller/memcached.rs"],
        whole["src/controller/memcached.rs"]
    );
    folder.run(&format!("{MEMCACHED} --controller-name backup")).ok();
    assert!(!folder.tree()["src/controller/backup.rs"].contains("IMAGE"));
    let ran = folder.run("edit --license mit").ok();
    assert!(
        ran.out.contains("replace src/controller/backup.rs"),
        "{}",
        ran.out
    );
    folder.run("edit --license apache2").ok();
    let ran = folder.run("update").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
}

#[test]
fn rejects_invalid_combinations_of_flags() {
    for (flags, expected) in [
        ("--image a --resource=false", "omit `--resource=false`"),
        ("--image a --controller=false", "omit `--resource=false`"),
        ("--image a{{b}}", "expected an image such as"),
        (
            "--image a --image-container-command a,,b",
            "arguments separated by commas",
        ),
        ("--image a --image-container-port 0", "--image-container-port"),
        ("--image a --run-as-user 0", "--run-as-user"),
        ("--image-container-port 80", "--image"),
    ] {
        let folder = project();
        let before = folder.tree();
        let ran = folder.run(&format!("{MEMCACHED} {flags}"));
        assert!(
            ran.code != 0 && ran.err.contains(expected),
            "{flags}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{flags}");
    }
    let folder = project();
    folder.run(MEMCACHED).ok();
    for version in ["v1", "v2"] {
        let ran = folder.run(&format!("{} --image a", MEMCACHED.replace("v1", version)));
        assert!(
            ran.err.contains("`--image` is for a new kind"),
            "{version}: {}",
            ran.err
        );
    }
}
