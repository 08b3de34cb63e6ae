use std::collections::BTreeMap;
use std::path::Path;

use rbuilder_project::plan::Plan;
use rbuilder_project::tree::Tree;

use super::*;
use crate::chart::config::Config;

const DEFAULT: &str = "\
namespace: shop-system
namePrefix: shop-
resources:
- ../rbac
- ../manager
components:
- ../webhook
";
const MANAGER: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: system}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till, tier: a}}
    spec:
      serviceAccountName: clerk
      containers:
      - {name: manager, image: x}
";
const RBAC: &str = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: clerk, namespace: system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: manager-role, namespace: system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding, namespace: system}
roleRef: {kind: Role, name: manager-role}
subjects: [{kind: ServiceAccount, name: clerk, namespace: system}]
";
const PATCH: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: system}
spec:
  template:
    spec:
      containers:
      - name: manager
        env: [{name: WEBHOOK_CERT_SERVICE, value: webhook-service}]
";
const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: webhook-service, namespace: system}
spec: {selector: {app: till}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks: [{clientConfig: {service: {name: webhook-service, namespace: system}}}]
";

fn files() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("config/default/kustomization.yaml", DEFAULT.to_owned()),
        (
            "config/manager/kustomization.yaml",
            "resources: [manager.yaml]\n".to_owned(),
        ),
        ("config/manager/manager.yaml", MANAGER.to_owned()),
        (
            "config/rbac/kustomization.yaml",
            "resources: [rbac.yaml]\n".to_owned(),
        ),
        ("config/rbac/rbac.yaml", RBAC.to_owned()),
        (
            "config/webhook/kustomization.yaml",
            "kind: Component\nresources: [service.yaml]\npatches: [{path: patch.yaml}]\n".to_owned(),
        ),
        ("config/webhook/service.yaml", SERVICE.to_owned()),
        ("config/webhook/patch.yaml", PATCH.to_owned()),
    ])
}

fn faults_of(files: &BTreeMap<&str, String>) -> Vec<Fault> {
    let (faults, references) = find_each(&|path| Ok(files.get(path).cloned()));
    faults.into_iter().chain(references).collect()
}

/// Replaces a text of the file, and expects one fault that starts with `expected`.
#[track_caller]
fn check(path: &'static str, (before, after): (&str, &str), expected: &str) {
    let mut files = files();
    let text = files.get_mut(path).expect(path);
    assert!(text.contains(before), "{path}: {before}");
    *text = text.replacen(before, after, 1);
    let faults = faults_of(&files);
    let shown: Vec<String> = faults
        .iter()
        .map(|fault| {
            format!(
                "{}: {}: {} | {}",
                fault.is_error, fault.path, fault.message, fault.help
            )
        })
        .collect();
    assert_eq!(shown.len(), usize::from(!expected.is_empty()), "{shown:#?}");
    if let Some(found) = shown.first() {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn consistent_objects_have_no_faults() {
    assert_eq!(faults_of(&files()), []);
}

#[test]
fn every_kind_of_reference_is_resolved() {
    const MANAGER: &str = "config/manager/manager.yaml";
    const RBAC: &str = "config/rbac/rbac.yaml";
    const SERVICE: &str = "config/webhook/service.yaml";
    const PATCH: &str = "config/webhook/patch.yaml";
    check(
        RBAC,
        (
            "[{kind: ServiceAccount, name: clerk",
            "[{kind: ServiceAccount, name: controller-manager",
        ),
        "true: config/rbac/rbac.yaml: RoleBinding `binding` grants its role to ServiceAccount `controller-manager`, which config/default does not have: the manager lacks these permissions | correct the name: config/default has ServiceAccount `clerk`",
    );
    check(
        RBAC,
        (
            "roleRef: {kind: Role, name: manager-role}",
            "roleRef: {kind: ClusterRole, name: manager-role}",
        ),
        "true: config/rbac/rbac.yaml: RoleBinding `binding` refers to ClusterRole `manager-role`, which config/default does not have: it grants nothing | config/default has Role `manager-role`: correct `kind` of `roleRef`",
    );
    check(
        RBAC,
        (
            "roleRef: {kind: Role, name: manager-role}",
            "roleRef: {kind: ClusterRole, name: other}",
        ),
        "false: config/rbac/rbac.yaml: RoleBinding `binding` refers to ClusterRole `other`",
    );
    check(
        PATCH,
        ("name: till", "name: controller-manager"),
        "true: config/webhook/patch.yaml: this patch is for Deployment `controller-manager`, which config/default does not have: kustomize fails | config/default has Deployment `till`: correct the name",
    );
    check(
        PATCH,
        ("name: till, namespace: system", "name: till"),
        "true: config/webhook/patch.yaml: this patch is for Deployment `till` of namespace `default`, but config/manager/manager.yaml has it in namespace `system`",
    );
    check(
        PATCH,
        ("name: manager", "name: operator"),
        "true: config/webhook/patch.yaml: this patch is for the container `operator`, which Deployment `till` does not have: it adds a container without an image, which the API server refuses | its containers are `manager`: correct the name",
    );
    check(
        SERVICE,
        (
            "selector: {app: till}",
            "selector: {control-plane: controller-manager}",
        ),
        "true: config/webhook/service.yaml: Service `webhook-service` selects pods with `control-plane: controller-manager`, which no workload of config/default has | correct the selector: the pods of Deployment `till` have `app: till`, `tier: a`",
    );
    check(
        SERVICE,
        (
            "{name: webhook-service, namespace: system}}}",
            "{name: hooks, namespace: system}}}",
        ),
        "true: config/webhook/service.yaml: ValidatingWebhookConfiguration `hooks` calls Service `hooks`, which config/default does not have",
    );
    check(
        MANAGER,
        ("matchLabels: {app: till}", "matchLabels: {app: other}"),
        "true: config/manager/manager.yaml: Deployment `till` selects pods with `app: other`, which its own pods do not have",
    );
    check(
        MANAGER,
        ("serviceAccountName: clerk", "serviceAccountName: shop-clerk"),
        "",
    );
    check(
        MANAGER,
        ("serviceAccountName: clerk", "serviceAccountName: waiter"),
        "true: config/manager/manager.yaml: Deployment `till` runs as ServiceAccount `waiter`",
    );
}

#[test]
fn mistakes_of_kustomizations_are_reported() {
    const DEFAULT: &str = "config/default/kustomization.yaml";
    check(
        DEFAULT,
        ("- ../manager\n", "- ../manager\n- ../managers\n"),
        "true: config/default/kustomization.yaml: this kustomization names `../managers`, but config/managers does not exist",
    );
    check(
        DEFAULT,
        ("- ../manager\n", "- ../manager\n- ../rbac/rbac.yaml\n"),
        "true: config/default/kustomization.yaml: `../rbac/rbac.yaml` is included twice: kustomize fails",
    );
    check(
        "config/rbac/rbac.yaml",
        (
            "---\n",
            "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: clerk, namespace: system}\n---\n",
        ),
        "true: config/rbac/rbac.yaml: ServiceAccount `clerk` is defined twice, here and in config/rbac/rbac.yaml: kustomize fails",
    );
    check(
        DEFAULT,
        ("components:", "component: []\ncomponents:"),
        "true: config/default/kustomization.yaml: kustomizations have no field `component`: kustomize fails | write `components`, or remove the field",
    );
    check(
        DEFAULT,
        (
            "components:",
            "patches:\n- target: {kind: Role, name: other-role}\n  patch: '[]'\ncomponents:",
        ),
        "false: config/default/kustomization.yaml: this patch is for Role `other-role`, which config/default does not have: it changes nothing",
    );
    check(
        DEFAULT,
        (
            "components:",
            "replacements:\n- source: {kind: Service, name: other}\n  targets: []\ncomponents:",
        ),
        "true: config/default/kustomization.yaml: a replacement has Service `other` as its source",
    );
    // Only a misspelled target is reported: others are in components that are disabled.
    for (target, expected) in [
        (
            "webhook-servise",
            "false: config/default/kustomization.yaml: a replacement has Service `webhook-servise` as its target",
        ),
        ("metrics-service", ""),
    ] {
        let replacement = format!(
            "replacements:\n- source: {{kind: Deployment, name: till}}\n  targets:\n  - select: {{kind: Service, name: {target}}}\ncomponents:"
        );
        check(DEFAULT, ("components:", &replacement), expected);
    }
    check(
        "config/rbac/rbac.yaml",
        ("kind: Role\n", "kind: [\n"),
        "true: config/rbac/rbac.yaml: cannot parse config/rbac/rbac.yaml",
    );
}

/// The objects of a remote resource, or in a file that can't be read, are not known.
#[test]
fn incomplete_builds_break_no_reference() {
    let mut files = files();
    let unreadable = find_each(&|path| match path {
        "config/manager/manager.yaml" => Err(anyhow::anyhow!("it is a link")),
        path => Ok(files.get(path).cloned()),
    });
    assert_eq!(unreadable, (Vec::new(), Vec::new()));
    let root = files
        .get_mut("config/default/kustomization.yaml")
        .expect("the root");
    *root = root.replace("- ../rbac\n", "- https://example.com/rbac.yaml\n");
    assert_eq!(faults_of(&files), []);
}

fn by_kind_and_name<'v>(objects: impl Iterator<Item = &'v Value>) -> BTreeMap<String, &'v Value> {
    let name = |value: &Value| format!("{} {}", value["kind"], value["metadata"]["name"]);
    objects.map(|value| (name(value), value)).collect()
}

/// `rendered.yaml` is what kubectl prints for the overlay. It has every notation that we read.
#[test]
fn overlay_is_built_like_by_kubectl() {
    let tree = Tree::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/overlay"));
    let rendered = tree.read("rendered.yaml").expect("readable").expect("the record");
    let rendered = rbuilder_yaml::parse_values(&rendered).expect("YAML");
    let mut expected = by_kind_and_name(rendered.iter());
    let read = |path: &str| tree.read(path);
    let (build, objects) = Build::run(&read);
    assert_eq!((build.faults, build.is_incomplete), (Vec::new(), false));
    let mut found = by_kind_and_name(objects.iter().map(|object| &object.value));
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    // The content of generated objects isn't known.
    let generated = "\"ConfigMap\" \"settings\"";
    found.remove(generated);
    expected.remove(generated);
    assert_eq!(found, expected);

    let config = Config::read(&Plan::default(), &tree).expect("a configuration");
    let found = by_kind_and_name(config.objects.iter().map(|object| &object.value));
    assert_eq!(found, expected);
    let warned: Vec<&str> = config
        .warnings
        .iter()
        .map(|(message, _)| message.as_str())
        .collect();
    assert_eq!(
        warned,
        [
            "`configMapGenerator` in config/default/kustomization.yaml is not part of the chart",
            "`generatorOptions` in config/default/kustomization.yaml is not part of the chart",
        ]
    );
}
