//! The scaffolded manifests as rendered by kustomize. Without kubectl, these tests print that they
//! are skipped. In CI they fail instead.
//!
//! A scaffolded manifest adds to others by strategic merge and never replaces a list, so that parts
//! can be combined. Names in fields that kustomize does not know are listed in
//! `config/webhook/kustomizeconfig.yaml`.

#![allow(clippy::disallowed_macros)] // a skipped test prints this
#![allow(clippy::disallowed_methods)] // the tests create the kubectl that the command starts

use crate::support;

use std::process::Command;

use serde_json::Value;
use support::Folder;

const COMMANDS: [&str; 4] = [
    "init --domain example.com --project-name shop",
    "create api --group cache --version v1 --kind Cup",
    "create api --group cache --version v2 --kind Cup",
    "create webhook --group cache --version v1 --kind Cup --defaulting --programmatic-validation --conversion --spoke v2",
];

/// Prints a message if it isn't installed.
pub(crate) fn has_kubectl() -> bool {
    let ran = Command::new("kubectl").args(["version", "--client"]).output();
    let is_there = ran.is_ok_and(|ran| ran.status.success());
    if !is_there {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI needs kubectl for these tests"
        );
        eprintln!("skipped: no kubectl on the PATH");
    }
    is_there
}

/// The project has each type of webhook. If kubectl isn't installed, we print a message and return
/// `None`.
fn project() -> Option<Folder> {
    if !has_kubectl() {
        return None;
    }
    let folder = Folder::new();
    for command in COMMANDS {
        folder.run(command).ok();
    }
    Some(folder)
}

/// The record is what our own reading of kustomizations is compared with.
#[test]
fn recorded_overlay_is_what_kubectl_renders() {
    if !has_kubectl() {
        return;
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/products/tests/overlay");
    let ran = Command::new("kubectl")
        .arg("kustomize")
        .arg(folder.join("config/default"))
        .output()
        .expect("kubectl runs");
    let parse = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        rbuilder_yaml::parse_values(&text).expect("YAML")
    };
    let recorded = std::fs::read(folder.join("rendered.yaml")).expect("the record");
    assert_eq!(
        parse(&ran.stdout),
        parse(&recorded),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[track_caller]
pub(crate) fn render(folder: &Folder, path: &str) -> Vec<Value> {
    let ran = Command::new("kubectl")
        .arg("kustomize")
        .arg(folder.path().join(path))
        .output()
        .expect("kubectl runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).expect("text");
    serde_saphyr::from_multiple(&text).expect("YAML")
}

#[track_caller]
pub(crate) fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let names: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["name"]).collect();
    objects
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {kind} {name} in {names:?}"))
}

fn manager<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    let deployment = find(objects, "Deployment", name);
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let is_manager = |container: &&Value| container["name"] == "manager";
    containers
        .and_then(|containers| containers.iter().find(is_manager))
        .expect("the manager")
}

fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let variables = container["env"].as_array()?;
    variables.iter().find(|variable| variable["name"] == name)?["value"].as_str()
}

fn change(folder: &Folder, path: &str, from: &str, to: &str) {
    let text = folder.tree()[path].clone();
    assert!(text.contains(from), "{path}:\n{text}");
    folder.write(path, &text.replacen(from, to, 1));
}

fn enable_cert_manager(folder: &Folder) {
    folder.run("edit --enable cert-manager").ok();
}

/// The overlay has another prefix and another namespace.
fn write_overlay(folder: &Folder) {
    folder.write(
        "config/prod/kustomization.yaml",
        "namespace: other\nnamePrefix: prod-\nresources:\n- ../default\ntransformers:\n- ../webhook/names\n",
    );
}

#[test]
fn webhooks_follow_the_prefix_and_the_namespace_of_an_overlay() {
    let Some(folder) = project() else { return };
    write_overlay(&folder);
    for (path, prefix, namespace) in [
        ("config/default", "shop-", "shop-system"),
        ("config/prod", "prod-shop-", "other"),
    ] {
        let objects = render(&folder, path);
        let service = format!("{prefix}webhook-service");
        let crd = find(&objects, "CustomResourceDefinition", "cups.cache.example.com");
        let mut references = vec![&crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]];
        let container = manager(&objects, &format!("{prefix}controller-manager"));
        assert_eq!(variable(container, "WEBHOOK_CERT_SERVICE"), Some(&*service));
        let role = find(&objects, "ClusterRole", &format!("{prefix}webhook-trust-role"));
        for (at, kind) in ["Mutating", "Validating"].into_iter().enumerate() {
            let name = format!("{prefix}{}-webhook-configuration", kind.to_lowercase());
            let configuration = find(&objects, &format!("{kind}WebhookConfiguration"), &name);
            references.push(&configuration["webhooks"][0]["clientConfig"]["service"]);
            let flag = format!("{}_WEBHOOK_CONFIGURATION", kind.to_uppercase());
            assert_eq!(variable(container, &flag), Some(&*name));
            assert_eq!(role["rules"][at]["resourceNames"], serde_json::json!([name]));
        }
        for reference in references {
            assert_eq!(reference["name"], service);
            assert_eq!(reference["namespace"], namespace);
        }
    }
}

/// The Roles are for two foreign namespaces, and for the manager's.
const ELSEWHERE: &str = "\
#[rbac(groups = \"\", resources = \"secrets\", verbs = \"get\", namespace = \"infra\")]
#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"list\", namespace = \"users\")]
#[rbac(groups = \"\", resources = \"configmaps\", verbs = \"get\", namespace = \"users\", role_name = \"reader\")]
#[rbac(groups = \"\", resources = \"services\", verbs = \"get\", namespace = \"shop-system\", role_name = \"own\")]
pub async fn reconcile";

#[test]
fn roles_in_other_namespaces_keep_their_bindings() {
    let Some(folder) = project() else { return };
    let before = folder.tree();
    let controller = "src/controller/cup.rs";
    change(&folder, controller, "pub async fn reconcile", ELSEWHERE);
    // This binding is somebody else's, and binds another account as well.
    let own = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: readers, namespace: users}\n\
               roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\nsubjects:\n\
               - {kind: ServiceAccount, name: auditor, namespace: audit}\n\
               - {kind: ServiceAccount, name: controller-manager, namespace: system}\n";
    folder.write("config/rbac/readers.yaml", own);
    change(
        &folder,
        "config/rbac/kustomization.yaml",
        "- role.yaml",
        "- readers.yaml\n- role.yaml",
    );
    let said = folder.run("manifests").ok().err;
    assert!(
        !said.contains("moves Role") && !said.contains("`manager-role-infra`"),
        "{said}"
    );
    // Nothing in the source uses the roles of this test, so we get a note.
    let said = folder.run("manifests --check").ok().err;
    assert!(!said.contains("warning"), "{said}");
    write_overlay(&folder);
    change(
        &folder,
        "config/prod/kustomization.yaml",
        "- ../webhook/names",
        "- ../webhook/names\n- ../rbac/namespaces",
    );
    for (path, prefix, namespace) in [
        ("config/default", "shop-", "shop-system"),
        ("config/prod", "prod-shop-", "other"),
    ] {
        let objects = render(&folder, path);
        for (kind, name, expected) in [
            ("Role", "manager-role-infra", "infra"),
            ("Role", "manager-role-users", "users"),
            ("Role", "reader", "users"),
            ("Role", "own", namespace),
            ("RoleBinding", "manager-role-infra-binding", "infra"),
            ("RoleBinding", "manager-role-users-binding", "users"),
            ("RoleBinding", "readers", "users"),
            ("RoleBinding", "leader-election-rolebinding", namespace),
        ] {
            let object = find(&objects, kind, &format!("{prefix}{name}"));
            assert_eq!(object["metadata"]["namespace"], expected, "{kind} {name}");
            if kind == "Role" {
                continue;
            }
            let role = object["roleRef"]["name"].as_str().expect("a role");
            assert_eq!(find(&objects, "Role", role)["metadata"]["namespace"], expected);
            let subjects = object["subjects"].as_array().expect("subjects");
            let account = serde_json::json!({
                "kind": "ServiceAccount", "name": format!("{prefix}controller-manager"), "namespace": namespace,
            });
            assert_eq!(subjects.last(), Some(&account), "{name}");
        }
        let readers = find(&objects, "RoleBinding", &format!("{prefix}readers"));
        assert_eq!(readers["subjects"][0]["name"], "auditor");
        assert_eq!(readers["subjects"][0]["namespace"], "audit");
    }
    // What the markers have created must disappear with them.
    folder.write(controller, &before[controller]);
    folder.run("manifests").ok();
    let mut after = folder.tree();
    for path in ["config/rbac/readers.yaml", "config/prod/kustomization.yaml"] {
        after.remove(path);
    }
    let rbac = "config/rbac/kustomization.yaml".to_owned();
    let listed = after[&rbac].replace("- readers.yaml\n", "");
    after.insert(rbac, listed);
    assert_eq!(after, before);
}

#[test]
fn warns_about_one_role_name_in_several_namespaces() {
    let Some(folder) = project() else { return };
    let same = ELSEWHERE.replace("role_name = \"own\"", "role_name = \"reader\"");
    change(&folder, "src/controller/cup.rs", "pub async fn reconcile", &same);
    let said = folder.run("manifests").ok().err;
    let warning = "kustomize cannot deploy Role `reader` for the namespaces `shop-system`, `users`";
    assert!(said.contains(warning), "{said}");
}

/// The project is deployed into the namespace `team`. Returns its webhook for Pods and the
/// Deployment of the manager.
fn render_pod_webhook(init: &str, path: &str) -> (Value, Value) {
    let folder = Folder::new();
    for command in [
        &*format!("init --domain example.com --project-name shop {init}"),
        "create webhook --group core --version v1 --kind Pod --defaulting",
        "create webhook --group apps --version v1 --kind Deployment --validation",
    ] {
        folder.run(command).ok();
    }
    change(
        &folder,
        "config/default/kustomization.yaml",
        "namespace: shop-system",
        "namespace: team",
    );
    write_overlay(&folder);
    let objects = render(&folder, path);
    let prefix = if path == "config/prod" {
        "prod-shop"
    } else {
        "shop"
    };
    let configuration = find(
        &objects,
        "MutatingWebhookConfiguration",
        &format!("{prefix}-mutating-webhook-configuration"),
    );
    let manager = find(&objects, "Deployment", &format!("{prefix}-controller-manager"));
    (configuration["webhooks"][0].clone(), manager.clone())
}

/// If the webhook were called for the Pods of the manager itself, the manager couldn't start again
/// once no replica is ready.
#[test]
fn webhook_for_pods_excludes_its_manager_in_every_namespace() {
    if project().is_none() {
        return;
    }
    for (init, path, expression) in [
        (
            "",
            "config/default",
            "!(request.namespace in ['team', 'kube-system'])",
        ),
        (
            "",
            "config/prod",
            "!(request.namespace in ['other', 'kube-system'])",
        ),
        ("--namespaced", "config/default", "request.namespace in ['team']"),
        ("--namespaced", "config/prod", "request.namespace in ['other']"),
    ] {
        let (webhook, manager) = render_pod_webhook(init, path);
        let pod = &manager["spec"]["template"]["metadata"]["labels"];
        let excluded = &webhook["objectSelector"]["matchExpressions"][0];
        assert_eq!(excluded["operator"], "NotIn");
        let key = excluded["key"].as_str().expect("a label");
        assert_eq!(excluded["values"], serde_json::json!([pod[key]]), "{path}");
        assert_eq!(manager["metadata"]["labels"][key], pod[key]);
        assert_eq!(webhook["matchConditions"][0]["expression"], expression, "{path}");
    }
}

#[test]
fn webhooks_of_a_namespaced_project_are_called_for_its_namespace() {
    if project().is_none() {
        return;
    }
    let folder = Folder::new();
    for command in [
        "init --domain example.com --project-name shop --namespaced",
        COMMANDS[1],
        "create api --group cache --version v1 --kind Shelf --namespaced=false",
        "create webhook --group cache --version v1 --kind Cup --defaulting --validation",
        "create webhook --group cache --version v1 --kind Shelf --validation",
        "create webhook --group core --version v1 --kind Secret --defaulting",
    ] {
        folder.run(command).ok();
    }
    let objects = render(&folder, "config/default");
    let conditions = |kind: &str, name: &str| -> Vec<Value> {
        let configurations = objects.iter().filter(|object| object["kind"] == kind);
        let webhooks = configurations.flat_map(|found| found["webhooks"].as_array().into_iter().flatten());
        let found = webhooks.clone().find(|webhook| webhook["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no webhook {name}"));
        let conditions = found["matchConditions"].as_array().into_iter().flatten();
        conditions
            .map(|condition| condition["expression"].clone())
            .collect()
    };
    let own = "request.namespace in ['shop-system']";
    assert_eq!(conditions("MutatingWebhookConfiguration", "mcup-v1.kb.io"), [own]);
    assert_eq!(
        conditions("ValidatingWebhookConfiguration", "vcup-v1.kb.io"),
        [own]
    );
    assert!(conditions("ValidatingWebhookConfiguration", "vshelf-v1.kb.io").is_empty());
    // The certificate of the webhooks has to be stored before they can be called.
    assert_eq!(
        conditions("MutatingWebhookConfiguration", "msecret-v1.kb.io"),
        [own, "!request.name.endsWith('webhook-server-cert')"]
    );
}

#[test]
fn manager_cannot_update_foreign_objects() {
    let Some(folder) = project() else { return };
    let objects = render(&folder, "config/default");
    for role in objects.iter().filter(|object| object["kind"] == "ClusterRole") {
        for rule in role["rules"].as_array().expect("rules") {
            let groups = &rule["apiGroups"];
            let is_admission =
                groups[0] == "admissionregistration.k8s.io" || groups[0] == "apiextensions.k8s.io";
            assert!(
                !is_admission
                    || rule["resourceNames"]
                        .as_array()
                        .is_some_and(|names| names.len() == 1),
                "{role}"
            );
        }
    }
    let conversion = find(&objects, "ClusterRole", "shop-cup-conversion-role");
    assert_eq!(
        conversion["rules"][0]["resourceNames"],
        serde_json::json!(["cups.cache.example.com"])
    );
    // Without conversions, the project needs no permissions for CRDs.
    let folder = Folder::new();
    for command in [
        COMMANDS[0],
        COMMANDS[1],
        "create webhook --group cache --version v1 --kind Cup --defaulting",
    ] {
        folder.run(command).ok();
    }
    let tree = folder.tree();
    assert!(
        !tree
            .values()
            .any(|text| text.contains("  - customresourcedefinitions\n"))
    );
}

/// Returns the rules that the manager's service account has in the whole cluster, as role, verbs,
/// resources and names. Leaves out those that are generated from markers.
fn cluster_wide_rules(objects: &[Value]) -> Vec<String> {
    let words = |list: &Value| {
        let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(",")
    };
    let bindings = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterRoleBinding");
    let mut rules = Vec::new();
    for binding in bindings {
        assert_eq!(binding["subjects"][0]["name"], "shop-controller-manager");
        let name = binding["roleRef"]["name"].as_str().expect("a name");
        let role = find(objects, "ClusterRole", name);
        for rule in role["rules"].as_array().into_iter().flatten() {
            let (verbs, resources) = (words(&rule["verbs"]), words(&rule["resources"]));
            let names = words(&rule["resourceNames"]);
            rules.push(
                format!("{name}: {verbs} {resources} {names}")
                    .trim_end()
                    .to_owned(),
            );
        }
    }
    rules.retain(|rule| !rule.starts_with("shop-manager-role: "));
    rules.sort();
    rules
}

#[test]
fn cluster_wide_permissions_are_only_for_cluster_scoped_objects() {
    if project().is_none() {
        return;
    }
    for init in ["", " --namespaced"] {
        let folder = Folder::new();
        for command in COMMANDS {
            let flags = if command.starts_with("init") { init } else { "" };
            folder.run(&format!("{command}{flags}")).ok();
        }
        let objects = render(&folder, "config/default");
        assert_eq!(
            cluster_wide_rules(&objects),
            [
                "shop-cup-conversion-role: get,list,watch,update customresourcedefinitions cups.cache.example.com",
                "shop-metrics-auth-role: create subjectaccessreviews",
                "shop-metrics-auth-role: create tokenreviews",
                "shop-webhook-trust-role: get,list,watch,update mutatingwebhookconfigurations \
                 shop-mutating-webhook-configuration",
                "shop-webhook-trust-role: get,list,watch,update validatingwebhookconfigurations \
                 shop-validating-webhook-configuration",
            ]
        );
        let is_generated = |object: &&Value| object["metadata"]["name"] == "shop-manager-role";
        let roles: Vec<_> = objects
            .iter()
            .filter(is_generated)
            .map(|role| &role["kind"])
            .collect();
        let expected = if init.is_empty() { "ClusterRole" } else { "Role" };
        assert!(roles.iter().all(|kind| *kind == expected), "{roles:?}");
    }
}

#[test]
fn cert_manager_adds_to_the_deployment() {
    let Some(folder) = project() else { return };
    let deployment = "config/manager/manager.yaml";
    change(
        &folder,
        deployment,
        "        ports:\n",
        "        env:\n        - name: MINE\n          value: here\n        volumeMounts:\n        - name: cache\n          \
         mountPath: /cache\n        ports:\n",
    );
    change(
        &folder,
        deployment,
        "      containers:\n",
        "      volumes:\n      - name: cache\n        emptyDir: {}\n      containers:\n      - name: sidecar\n        image: sidecar\n",
    );
    change(
        &folder,
        "config/webhook/kustomization.yaml",
        "patches:\n",
        "patches:\n- target:\n    kind: ValidatingWebhookConfiguration\n  patch: |-\n    - op: add\n      \
         path: /metadata/annotations\n      value: {mine: here}\n",
    );
    enable_cert_manager(&folder);
    let objects = render(&folder, "config/default");
    let container = manager(&objects, "shop-controller-manager");
    let names = |list: &Value| -> Vec<String> {
        let mut names: Vec<String> = list
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| item["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&container["volumeMounts"]), ["cache", "webhook-certs"]);
    let spec = &find(&objects, "Deployment", "shop-controller-manager")["spec"]["template"]["spec"];
    assert_eq!(names(&spec["volumes"]), ["cache", "webhook-certs"]);
    assert_eq!(variable(container, "MINE"), Some("here"));
    assert_eq!(variable(container, "METRICS_BIND_ADDRESS"), Some(":8443"));
    assert_eq!(
        variable(container, "WEBHOOK_CERT_PATH"),
        Some("/tmp/k8s-webhook-server/serving-certs")
    );
    // The manager refuses to start if both variables are set.
    assert_eq!(variable(container, "WEBHOOK_CERT_SERVICE"), None);
    let configuration = find(
        &objects,
        "ValidatingWebhookConfiguration",
        "shop-validating-webhook-configuration",
    );
    let annotations = &configuration["metadata"]["annotations"];
    assert_eq!(annotations["mine"], "here");
    assert_eq!(spec["enableServiceLinks"], false);
}

#[test]
fn cert_manager_injects_its_ca_into_configurations_and_converted_crds() {
    let Some(folder) = project() else { return };
    enable_cert_manager(&folder);
    write_overlay(&folder);
    for (path, prefix, namespace) in [
        ("config/default", "shop-", "shop-system"),
        ("config/prod", "prod-shop-", "other"),
    ] {
        let objects = render(&folder, path);
        for (kind, name) in [
            ("CustomResourceDefinition", "cups.cache.example.com".to_owned()),
            (
                "MutatingWebhookConfiguration",
                format!("{prefix}mutating-webhook-configuration"),
            ),
            (
                "ValidatingWebhookConfiguration",
                format!("{prefix}validating-webhook-configuration"),
            ),
        ] {
            let object = find(&objects, kind, &name);
            assert_eq!(
                object["metadata"]["annotations"]["cert-manager.io/inject-ca-from-secret"],
                format!("{namespace}/webhook-server-cert"),
                "{name}"
            );
        }
        let certificate = find(&objects, "Certificate", &format!("{prefix}serving-cert"));
        let host = format!("{prefix}webhook-service.{namespace}.svc");
        assert_eq!(
            certificate["spec"]["dnsNames"],
            serde_json::json!([host, format!("{host}.cluster.local")])
        );
        assert_eq!(
            certificate["spec"]["issuerRef"]["name"],
            format!("{prefix}selfsigned-issuer")
        );
        assert!(
            !objects.iter().any(|object| object["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.contains("trust"))),
            "cert-manager needs no permissions of the manager"
        );
    }
}

#[test]
fn all_objects_have_the_labels_of_the_project() {
    let Some(folder) = project() else { return };
    for object in render(&folder, "config/default") {
        let is_generated = matches!(
            object["kind"].as_str(),
            Some(
                "CustomResourceDefinition"
                    | "MutatingWebhookConfiguration"
                    | "ValidatingWebhookConfiguration"
            )
        ) || object["metadata"]["name"] == "shop-manager-role";
        let labels = &object["metadata"]["labels"];
        assert!(
            is_generated || labels["app.kubernetes.io/name"] == "shop",
            "{} {}",
            object["kind"],
            object["metadata"]["name"]
        );
    }
}

#[test]
fn samples_of_two_versions_are_separate_objects() {
    let Some(folder) = project() else { return };
    let samples = render(&folder, "config/samples");
    let names: Vec<&Value> = samples.iter().map(|sample| &sample["metadata"]["name"]).collect();
    assert_eq!(names, ["cup-sample", "cup-sample-v2"]);
}

fn feature_objects(feature: &str) -> &'static [(&'static str, &'static str)] {
    match feature {
        "metrics" => &[
            ("Service", "shop-controller-manager-metrics-service"),
            ("ClusterRole", "shop-metrics-auth-role"),
            ("ClusterRoleBinding", "shop-metrics-auth-rolebinding"),
            ("ClusterRole", "shop-metrics-reader"),
        ],
        "prometheus" => &[("ServiceMonitor", "shop-controller-manager-metrics-monitor")],
        "network-policy" => &[
            ("NetworkPolicy", "shop-allow-metrics-traffic"),
            ("NetworkPolicy", "shop-allow-webhook-traffic"),
        ],
        "webhooks" => &[
            ("Service", "shop-webhook-service"),
            (
                "MutatingWebhookConfiguration",
                "shop-mutating-webhook-configuration",
            ),
            (
                "ValidatingWebhookConfiguration",
                "shop-validating-webhook-configuration",
            ),
        ],
        "metrics-certificate" => &[
            ("Certificate", "shop-metrics-certs"),
            ("Issuer", "shop-metrics-selfsigned-issuer"),
        ],
        "sharding" => &[
            ("Role", "shop-sharding-role"),
            ("RoleBinding", "shop-sharding-rolebinding"),
            ("PodDisruptionBudget", "shop-controller-manager"),
        ],
        "cert-manager" => &[
            ("Certificate", "shop-serving-cert"),
            ("Issuer", "shop-selfsigned-issuer"),
        ],
        _ => &[],
    }
}

#[test]
fn renders_each_feature_alone_and_with_all_others() {
    if project().is_none() {
        return;
    }
    let all = [
        "metrics",
        "prometheus",
        "metrics-certificate",
        "network-policy",
        "webhooks",
        "cert-manager",
        "sharding",
    ];
    for on in [
        &[][..],
        &["metrics"],
        &["metrics", "prometheus"],
        &["metrics", "metrics-certificate"],
        &["metrics", "prometheus", "metrics-certificate"],
        &["network-policy"],
        &["webhooks"],
        &["webhooks", "cert-manager"],
        &["sharding"],
        &all,
    ] {
        let folder = Folder::new();
        for command in [
            COMMANDS[0],
            COMMANDS[1],
            "create webhook --group cache --version v1 --kind Cup --defaulting --validation",
        ] {
            folder.run(command).ok();
        }
        folder.run(&format!("edit --disable {}", all.join(","))).ok();
        if !on.is_empty() {
            folder.run(&format!("edit --enable {}", on.join(","))).ok();
        }
        let objects = render(&folder, "config/default");
        let has = |kind: &str, name: &str| {
            let mut objects = objects.iter();
            objects.any(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        };
        for feature in all {
            for (kind, name) in feature_objects(feature) {
                assert_eq!(
                    has(kind, name),
                    on.contains(&feature),
                    "{kind} {name} with {on:?}"
                );
            }
        }
        // The manager issues its own certificate, unless cert-manager does.
        let is_managed = on.contains(&"webhooks") && !on.contains(&"cert-manager");
        assert_eq!(has("Role", "shop-webhook-certificate-role"), is_managed, "{on:?}");
        let container = manager(&objects, "shop-controller-manager");
        let metrics = on.contains(&"metrics").then_some(":8443");
        assert_eq!(variable(container, "METRICS_BIND_ADDRESS"), metrics, "{on:?}");
        let certificate = on
            .contains(&"metrics-certificate")
            .then_some("/tmp/k8s-metrics-server/metrics-certs");
        assert_eq!(variable(container, "METRICS_CERT_PATH"), certificate, "{on:?}");
        let webhooks = (!on.contains(&"webhooks")).then_some("false");
        assert_eq!(variable(container, "ENABLE_WEBHOOKS"), webhooks, "{on:?}");
        let service = is_managed.then_some("shop-webhook-service");
        assert_eq!(variable(container, "WEBHOOK_CERT_SERVICE"), service, "{on:?}");
        let is_sharded = on.contains(&"sharding");
        assert_eq!(has("Role", "shop-leader-election-role"), !is_sharded, "{on:?}");
        assert_eq!(variable(container, "SHARDS"), is_sharded.then_some("auto"));
        let argument = if is_sharded {
            "--leader-elect=false"
        } else {
            "--leader-elect"
        };
        assert_eq!(container["args"][0], argument, "{on:?}");
    }
}

/// The manager keeps its Leases in the namespace of its Pod, so that releases in two namespaces
/// share none.
#[test]
fn sharded_releases_need_no_leases_outside_of_their_namespace() {
    let Some(folder) = project() else { return };
    folder.run("edit --enable sharding").ok();
    write_overlay(&folder);
    for (path, prefix, namespace) in [
        ("config/default", "shop-", "shop-system"),
        ("config/prod", "prod-shop-", "other"),
    ] {
        let objects = render(&folder, path);
        let role = find(&objects, "Role", &format!("{prefix}sharding-role"));
        let binding = find(&objects, "RoleBinding", &format!("{prefix}sharding-rolebinding"));
        let deployment = find(&objects, "Deployment", &format!("{prefix}controller-manager"));
        for object in [role, binding, deployment] {
            assert_eq!(object["metadata"]["namespace"], namespace, "{object}");
        }
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        let account = serde_json::json!([{
            "kind": "ServiceAccount", "name": format!("{prefix}controller-manager"), "namespace": namespace,
        }]);
        assert_eq!(binding["subjects"], account);
        let container = manager(&objects, &format!("{prefix}controller-manager"));
        assert_eq!(variable(container, "SHARDS"), Some("auto"));
        assert_eq!(variable(container, "LEADER_ELECTION_NAMESPACE"), None);
        let arguments = container["args"].as_array().expect("arguments").iter();
        let mut arguments = arguments.filter_map(Value::as_str);
        assert!(!arguments.any(|argument| argument.starts_with("--leader-election-namespace")));
    }
}

#[test]
fn sharding_adds_to_the_deployment_and_scales_it() {
    let Some(folder) = project() else { return };
    let deployment = "config/manager/manager.yaml";
    change(
        &folder,
        deployment,
        "        - --leader-elect\n",
        "        - --leader-election-namespace=ours\n        - --leader-elect=true\n",
    );
    change(
        &folder,
        deployment,
        "      containers:\n",
        "      topologySpreadConstraints:\n      - {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}\n      \
         containers:\n      - name: sidecar\n        image: sidecar\n        args: [--leader-elect]\n",
    );
    change(
        &folder,
        deployment,
        "  replicas: 1\n",
        "  replicas: 1\n  strategy:\n    type: RollingUpdate\n    rollingUpdate: {maxSurge: 1}\n",
    );
    folder.run("edit --enable sharding").ok();
    write_overlay(&folder);
    for (path, prefix) in [("config/default", "shop-"), ("config/prod", "prod-shop-")] {
        let objects = render(&folder, path);
        let name = format!("{prefix}controller-manager");
        let spec = &find(&objects, "Deployment", &name)["spec"];
        assert_eq!(spec["replicas"], 2);
        assert_eq!(spec["strategy"], serde_json::json!({ "type": "Recreate" }));
        let pod = &spec["template"]["spec"];
        let spread = pod["topologySpreadConstraints"].as_array().expect("constraints");
        assert_eq!(spread.len(), 3, "{spread:?}");
        let arguments = &manager(&objects, &name)["args"];
        assert_eq!(arguments[0], "--leader-election-namespace=ours");
        assert_eq!(arguments[1], "--leader-elect=false");
        let sidecar = pod["containers"].as_array().expect("containers").iter();
        let sidecar = sidecar.filter(|container| container["name"] == "sidecar");
        assert!(
            sidecar
                .clone()
                .all(|container| container["args"][0] == "--leader-elect")
        );
        let budget = find(&objects, "PodDisruptionBudget", &name);
        let labels = &spec["template"]["metadata"]["labels"];
        let selected = &budget["spec"]["selector"]["matchLabels"];
        for constraint in spread
            .iter()
            .filter(|constraint| constraint["topologyKey"] != "rack")
        {
            assert_eq!(&constraint["labelSelector"]["matchLabels"], selected);
        }
        assert_eq!(selected, labels);
    }
    // Do what the comment about the example of an autoscaler says.
    change(
        &folder,
        "config/sharding/kustomization.yaml",
        "# - autoscaler.yaml",
        "- autoscaler.yaml",
    );
    change(
        &folder,
        "config/sharding/manager_sharding_patch.yaml",
        "replicas: 2",
        "replicas: null",
    );
    let objects = render(&folder, "config/prod");
    let scaler = find(
        &objects,
        "HorizontalPodAutoscaler",
        "prod-shop-controller-manager",
    );
    let target = scaler["spec"]["scaleTargetRef"]["name"].as_str().expect("a name");
    assert_eq!(
        find(&objects, "Deployment", target)["spec"]["replicas"],
        Value::Null
    );
}

#[test]
fn verifies_metrics_with_the_names_of_an_overlay() {
    let Some(folder) = project() else { return };
    enable_cert_manager(&folder);
    folder.run("edit --enable prometheus,metrics-certificate").ok();
    folder.write(
        "config/prod/kustomization.yaml",
        "namespace: other\nnamePrefix: prod-\nresources:\n- ../default\ntransformers:\n- ../webhook/names\n- \
         ../metrics-certificate/names\n",
    );
    for (path, prefix, namespace) in [
        ("config/default", "shop-", "shop-system"),
        ("config/prod", "prod-shop-", "other"),
    ] {
        let objects = render(&folder, path);
        let host = format!("{prefix}controller-manager-metrics-service.{namespace}.svc");
        let certificate = find(&objects, "Certificate", &format!("{prefix}metrics-certs"));
        let names = serde_json::json!([host, format!("{host}.cluster.local")]);
        assert_eq!(certificate["spec"]["dnsNames"], names);
        let issuer = format!("{prefix}metrics-selfsigned-issuer");
        assert_eq!(certificate["spec"]["issuerRef"]["name"], issuer);
        find(&objects, "Issuer", &issuer);
        let secret = &certificate["spec"]["secretName"];

        let monitor = find(
            &objects,
            "ServiceMonitor",
            &format!("{prefix}controller-manager-metrics-monitor"),
        );
        let endpoint = &monitor["spec"]["endpoints"][0];
        let expected = serde_json::json!({
            "ca": { "secret": { "name": secret, "key": "ca.crt" } },
            "serverName": host,
        });
        assert_eq!(endpoint["tlsConfig"], expected);
        assert_eq!(endpoint["port"], "https");

        let deployment = find(&objects, "Deployment", &format!("{prefix}controller-manager"));
        let pod = &deployment["spec"]["template"]["spec"];
        let volumes = pod["volumes"].as_array().expect("volumes");
        let mounted = volumes
            .iter()
            .find(|volume| volume["secret"]["secretName"] == *secret);
        let volume = &mounted.expect("the volume of the certificate")["name"];
        let mounts = pod["containers"][0]["volumeMounts"].as_array().expect("mounts");
        let mount = mounts
            .iter()
            .find(|mount| mount["name"] == *volume)
            .expect("a mount");
        let container = manager(&objects, &format!("{prefix}controller-manager"));
        assert_eq!(
            variable(container, "METRICS_CERT_PATH"),
            mount["mountPath"].as_str()
        );
    }
}

/// Renders like kubectl, but records what it would send.
#[cfg(unix)]
const KUBECTL: &str = r#"#!/bin/sh
if [ "$1" = kustomize ]; then exec "$KUBECTL_ITSELF" "$@"; fi
[ "$1" = apply ] || exit 0
echo "$@" > "${0%/*}/call"
for file; do :; done
if [ "$file" = - ]; then cat; else cat "$file"; fi > "${0%/*}/sent"
"#;

/// This kubectl doesn't connect to a cluster.
#[cfg(unix)]
struct Deployments {
    project: Folder,
    programs: Folder,
}

#[cfg(unix)]
impl Deployments {
    fn new() -> Option<Deployments> {
        let (project, programs) = (project()?, Folder::new());
        programs.write_program("kubectl", KUBECTL);
        Some(Deployments { project, programs })
    }

    /// Returns the arguments of kubectl and the objects that it got, or the error messages.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<(String, Vec<Value>), String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let kubectl = std::env::split_paths(&path).map(|folder| folder.join("kubectl"));
        let kubectl = kubectl.into_iter().find(|file| file.is_file()).expect("kubectl");
        let folders = [self.programs.path().to_owned()];
        let folders = folders.into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.project.path());
        command
            .env("PATH", std::env::join_paths(folders).expect("paths"))
            .env("KUBECTL_ITSELF", kubectl)
            .env_remove("MAKEFLAGS")
            .env_remove("KUBECONFIG");
        let ran = command.output().expect("it runs");
        if !ran.status.success() {
            return Err(String::from_utf8(ran.stderr).expect("text"));
        }
        let sent = |name: &str| std::fs::read_to_string(self.programs.path().join(name)).expect("a call");
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(&sent("sent")).expect("YAML");
        if objects[0]["kind"] == "List" {
            objects = objects[0]["items"].as_array().expect("items").clone();
        }
        Ok((sent("call"), objects))
    }

    fn make(&self) -> Result<(String, Vec<Value>), String> {
        let command = format!("RBUILDER={}", env!("CARGO_BIN_EXE_rbuilder"));
        self.run("make", &["deploy", "IMG=example.com:5000/shop:1", &command])
    }

    fn rbuilder(&self) -> Result<(String, Vec<Value>), String> {
        let arguments = ["deploy", "--image", "example.com:5000/shop:1"];
        self.run(env!("CARGO_BIN_EXE_rbuilder"), &arguments)
    }
}

#[cfg(unix)]
#[test]
fn make_and_the_command_deploy_the_same() {
    let Some(deployments) = Deployments::new() else {
        return;
    };
    let manifest = "config/manager/manager.yaml";
    let check = || {
        let (call, objects) = deployments.rbuilder().expect("it deploys");
        assert_eq!(deployments.make(), Ok((call, objects.clone())));
        let spec = &find(&objects, "Deployment", "shop-controller-manager")["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["image"], "example.com:5000/shop:1");
    };
    check();
    change(
        &deployments.project,
        manifest,
        "controller:latest",
        "example.com/mine:1",
    );
    check();
    // The manager is only the first container, and only in the Deployment with the label.
    change(
        &deployments.project,
        manifest,
        "      serviceAccountName: ",
        "      - name: sidecar\n        image: controller:latest\n      serviceAccountName: ",
    );
    let text = deployments.project.tree()[manifest].clone();
    let (_, deployment) = text.rsplit_once("---\n").expect("two documents");
    let other = deployment.replace("controller-manager", "other");
    deployments
        .project
        .write(manifest, &format!("{text}---\n{other}"));
    check();

    change(
        &deployments.project,
        manifest,
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n    control-plane: controller-manager\n",
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n",
    );
    let reason =
        "config/default has no Deployment with the label control-plane=controller-manager: no image was set";
    for result in [deployments.make(), deployments.rbuilder()] {
        let error = result.expect_err("there is no manager");
        assert!(error.contains(reason), "{error}");
    }
}
