//! `rbuilder import` with features of published projects that a new kubebuilder project doesn't
//! have.

use crate::import::{has_row, import, original};
use crate::support::{Folder, Ran};

const CRD: &str = "config/crd/bases/crew.example.com_cups.yaml";
const LIST: &str = "config/crd/kustomization.yaml";
const DEFAULT: &str = "config/default/kustomization.yaml";

fn text_of(folder: &Folder, path: &str) -> String {
    folder.tree()[path].clone()
}

/// The deployed kustomization has additional lines, and there is a patch.
fn with_patch(entry: &str, patch: &str) -> Folder {
    let original = original();
    let text = text_of(&original, DEFAULT);
    original.write(DEFAULT, &format!("{text}{entry}"));
    original.write("config/default/patch.yaml", patch);
    original.write(
        "config/manager/kustomization.yaml",
        "resources:\n- manager.yaml\n",
    );
    original
}

/// The imported project must deploy the patched Deployment. If only a patch sets a variable, it's
/// imported as well.
#[test]
fn patches_apply_to_the_deployment() {
    const STRATEGIC: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: barista\n  namespace: system\nspec:\n  template:\n    spec:\n      containers:\n      - name: kube-rbac-proxy\n        image: proxy\n      - name: manager\n        args:\n        - --metrics-bind-address=127.0.0.1:8080\n        - --leader-elect\n        - --brew\n        env:\n        - name: BEANS\n          value: arabica\n        volumeMounts:\n        - mountPath: /tmp/k8s-webhook-server/serving-certs\n          name: cert\n      volumes:\n      - name: cert\n        secret:\n          secretName: webhook-server-cert\n";
    const JSON: &str = "- op: add\n  path: /spec/template/spec/containers/0/env/-\n  value:\n    name: BEANS\n    value: arabica\n- op: add\n  path: /spec/template/spec/containers/0/args/0\n  value: --metrics-bind-address=:8443\n- op: add\n  path: /spec/template/spec/containers/0/args/-\n  value: --brew\n";
    let inline = format!(
        "patches:\n- target:\n    kind: Deployment\n  patch: |-\n    {}",
        JSON.replace('\n', "\n    ")
    );
    for (entry, patch) in [
        ("patches:\n- path: patch.yaml\n", STRATEGIC),
        ("patchesStrategicMerge:\n- patch.yaml\n", STRATEGIC),
        (
            "patches:\n- path: patch.yaml\n  target:\n    kind: Deployment\n",
            JSON,
        ),
        (
            "patchesJson6902:\n- path: patch.yaml\n  target:\n    kind: Deployment\n    name: barista\n",
            JSON,
        ),
        (&inline, ""),
    ] {
        let (folder, ran) = import(&with_patch(entry, patch));
        let ran = ran.ok();
        let manager = text_of(&folder, "config/manager/manager.yaml");
        let variables = "        - name: CUP_IMAGE\n          value: example.com/cup:v1\n        - name: BEANS\n          value: arabica\n";
        assert!(manager.contains(variables), "{entry}: {manager}");
        assert!(
            !manager.contains("webhook-server-cert") && !manager.contains("proxy"),
            "{manager}"
        );
        let row = "arguments of the manager ";
        assert!(
            has_row(&ran, row, "by hand  missing: \"--brew\""),
            "{entry}: {}",
            ran.out
        );
        for row in ["containers ", "volumes ", "volume mounts ", "patch "] {
            assert!(!ran.out.contains(&format!("\n{row}")), "{entry}: {}", ran.out);
        }
    }
}

#[test]
fn patches_apply_to_crds() {
    let original = original();
    original.write(
        LIST,
        "resources:\n- bases/crew.example.com_cups.yaml\npatches:\n- path: remove.yaml\n  target:\n    kind: CustomResourceDefinition\n    name: cups.crew.example.com\n- path: convert.yaml\n- path: inject.yaml\nlabels:\n- pairs:\n    contract: v1\n",
    );
    let head = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: cups.crew.example.com\n";
    original.write(
        "config/crd/remove.yaml",
        "- op: remove\n  path: /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/minimum\n",
    );
    original.write(
        "config/crd/convert.yaml",
        &format!("{head}  labels:\n    team: kitchen\nspec:\n  conversion:\n    strategy: Webhook\n"),
    );
    original.write(
        "config/crd/inject.yaml",
        &format!("{head}  annotations:\n    cert-manager.io/inject-ca-from: a/b\n"),
    );
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    assert!(has_row(&ran, "CRD cups.crew.example.com ", "same"), "{}", ran.out);
    assert!(!ran.out.contains("\npatch "), "{}", ran.out);
    let crd = text_of(&folder, CRD);
    assert!(
        !crd.contains("minimum: 1") && !crd.contains("conversion"),
        "{crd}"
    );
    assert!(!crd.contains("inject-ca-from"), "{crd}");
    assert!(
        crd.contains("  labels:\n    contract: v1\n    team: kitchen\n"),
        "{crd}"
    );
    assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
}

/// kubebuilder 3 records neither conversions nor hand-written versions. We only know from the patch
/// of the CRD that objects are converted.
#[test]
fn conversion_that_only_a_patch_shows_is_imported() {
    let original = original();
    let crd = text_of(&original, CRD);
    let version = &crd[crd.find("  - name: v1\n").expect("a version")..];
    let second = version
        .replacen("name: v1\n", "name: v2\n", 1)
        .replacen("type: integer", "type: string", 1)
        .replacen(
            "                format: int32\n                minimum: 1\n",
            "",
            1,
        );
    let first = crd.replacen("storage: true", "storage: false", 1);
    original.write(CRD, &format!("{first}{second}"));
    original.write(
        LIST,
        "resources:\n- bases/crew.example.com_cups.yaml\npatches:\n- path: convert.yaml\n",
    );
    original.write(
        "config/crd/convert.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: cups.crew.example.com\nspec:\n  conversion:\n    strategy: Webhook\n",
    );
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    assert!(has_row(&ran, "CRD cups.crew.example.com ", "same"), "{}", ran.out);
    assert!(!ran.out.contains("conversion of `Cup`"), "{}", ran.out);
    let project = text_of(&folder, "PROJECT");
    assert!(
        project.contains("conversion: true\n    spoke:\n    - v1\n"),
        "{project}"
    );
    assert!(text_of(&folder, "src/api/v2/cup.rs").contains("#[crd(conversion"));
    assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
}

#[test]
fn unsupported_patches_are_left_to_the_user() {
    let check = |entry: &str, patch: &str, expected: &str| {
        let ran = import(&with_patch(entry, patch)).1.ok();
        assert!(ran.out.contains(expected), "{expected}\n{}", ran.out);
        let left = text_of(&import(&with_patch(entry, patch)).0, "MIGRATION.md");
        assert!(left.contains("- [ ] patch "), "{left}");
    };
    let on_deployment = "patches:\n- path: patch.yaml\n  target:\n    kind: Deployment\n";
    check(
        "patches:\n- path: patch.yaml\n",
        "kind: Service\nmetadata:\n  name: metrics\nspec:\n  type: NodePort\n",
        "it changes Service metrics: make the same change in this project",
    );
    check(
        on_deployment,
        "- op: remove\n  path: /spec/replicas/5\n",
        "it cannot be applied to Deployment, because `/spec/replicas/5` is not there",
    );
    check(
        on_deployment,
        "metadata: text\n",
        "because it leaves no object with a name",
    );
    check(
        on_deployment,
        "- op: replace\n  path: \"\"\n  value: 5\n",
        "because ",
    );
    check(
        "patches:\n- path: none.yaml\n",
        "",
        "it was not read: make the same change in this project",
    );
    check(
        "patches:\n- path: patch.yaml\n  target:\n    labelSelector: a=b\n",
        "spec: {}\n",
        "it changes what a selector chooses",
    );
}

/// Every patch is applied to a copy of the object, so without a limit this could take forever.
#[test]
fn patches_are_bounded() {
    let entries = "- path: patch.yaml\n  target:\n    kind: Deployment\n".repeat(3_000);
    let patch = "- op: add\n  path: /spec/template/spec/containers/0/args/-\n  value: --brew\n";
    let ran = import(&with_patch(&format!("patches:\n{entries}"), patch)).1.ok();
    assert!(ran.out.contains("\n2600 patches "), "{}", ran.out);
}

/// kubebuilder 2 generated CRDs in an API version that Kubernetes hasn't served since 1.22.
#[test]
fn crds_of_v1beta1_are_converted() {
    let original = original();
    let text = text_of(&original, CRD).replace("k8s.io/v1\n", "k8s.io/v1beta1\n");
    original.write(CRD, &text);
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    assert!(has_row(&ran, "CRD cups.crew.example.com ", "same"), "{}", ran.out);
    let row = "unknown fields of `Cup` ";
    assert!(has_row(&ran, row, "by hand"), "{}", ran.out);
    assert!(text_of(&folder, "src/api/v1/cup.rs").contains("pub size: i32"));
    original.write(
        CRD,
        &text.replace("spec:\n  group", "spec:\n  preserveUnknownFields: false\n  group"),
    );
    let ran = import(&original).1.ok();
    assert!(!ran.out.contains(row), "{}", ran.out);
}

/// Users leave entries without a kind in PROJECT. It also still records the old module after a
/// project has moved.
#[test]
fn stale_entries_in_project_are_ignored() {
    let original = original();
    original.write(
        "PROJECT",
        "domain: example.com\nrepo: github.com/old/cups\nresources:\n- group: crew\n  kind: Cup\n  version: v1\n- group: crew\nversion: \"2\"\n",
    );
    original.write("go.mod", "module example.com/cups // moved\n\ngo 1.24\n");
    let (folder, ran) = import(&original);
    ran.ok();
    let controller = text_of(&folder, "src/controller/cup.rs");
    assert!(controller.contains(".owns::<Deployment>()"), "{controller}");
}

/// Older versions of operator-sdk record the full group, but no domain.
#[test]
fn group_without_a_domain_gets_the_domain_of_the_project() {
    let original = original();
    let project = text_of(&original, "PROJECT");
    let listed = project.replace(
        "  domain: example.com\n  group: crew\n",
        "  group: crew.example.com\n",
    );
    assert_ne!(listed, project);
    original.write("PROJECT", &listed);
    let ran = import(&original).1.ok();
    for name in ["mcup.kb.io ", "vcup.kb.io ", "vcupdelete.kb.io "] {
        assert!(has_row(&ran, &format!("webhook {name}"), "same"), "{}", ran.out);
    }
}

#[test]
fn built_in_type_is_found_by_its_import_path() {
    let original = original();
    let project = text_of(&original, "PROJECT");
    let service = "- controller: true\n  domain: k8s.io\n  group: networking\n  kind: Service\n  path: k8s.io/api/core/v1\n  version: v1\nversion: \"3\"\n";
    original.write("PROJECT", &project.replace("version: \"3\"\n", service));
    let (folder, ran) = import(&original);
    assert!(!ran.ok().out.contains("kind `Service`"));
    let tree = folder.tree();
    let has_controller = |(_, text): (_, &String)| text.contains("api::core::v1::Service");
    assert!(tree.iter().any(has_controller), "{:?}", tree.keys());
}

/// A handler serves a single kind, but webhooks of the original may share a path.
#[test]
fn webhooks_with_a_shared_path_get_separate_paths() {
    let original = original();
    let mug = |text: &str| text.replace("Cup", "Mug").replace("cup", "mug");
    original.write("config/crd/bases/mugs.yaml", &mug(&text_of(&original, CRD)));
    let webhooks =
        include_str!("import/webhooks.yaml").replace("/validate-crew-example-com-v1-cup", "/validate");
    original.write(
        "config/webhook/manifests.yaml",
        &format!("{webhooks}---\n{}", mug(&webhooks)),
    );
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    assert!(has_row(&ran, "webhook vcup.kb.io ", "same"), "{}", ran.out);
    assert!(has_row(&ran, "webhook vmug.kb.io ", "better"), "{}", ran.out);
    assert!(folder.run("manifests --check").ok().out.starts_with("unchanged"));
}

#[test]
fn kustomization_is_not_a_sample() {
    for name in ["kustomization.yml", "Kustomization"] {
        let original = original();
        original.write(
            &format!("config/samples/{name}"),
            "kind: Kustomization\nresources:\n- crew_v1_cup.yaml\n- other.yaml\n",
        );
        let (folder, ran) = import(&original);
        ran.ok();
        let tree = folder.tree();
        assert!(
            !tree.contains_key(format!("config/samples/{name}").as_str()),
            "{name}"
        );
    }
}

/// Some projects have build scripts that fill in such values.
#[test]
fn unreadable_base_is_left_to_the_user() {
    let original = original();
    original.write(
        "config/manifests/bases/cups.clusterserviceversion.yaml",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: cups.v0.0.0\nspec:\n  minKubeVersion: MIN_KUBE\n",
    );
    let ran = import(&original).1.ok();
    let expected =
        "`rbuilder bundle` rejects it: expected a version such as `1.29.0` for `spec.minKubeVersion`";
    assert!(ran.out.contains(expected), "{}", ran.out);
}

/// The row has to say why the kind can't be imported.
#[test]
fn reports_why_a_crd_cannot_be_imported() {
    let original = original();
    let text = text_of(&original, CRD);
    original.write(
        CRD,
        &text.replace("listKind: CupList\n    plural: cups", "plural: CUPS"),
    );
    let ran: Ran = import(&original).1.ok();
    assert!(ran.out.contains("`CUPS` is not a valid plural"), "{}", ran.out);
}

/// A handler serves a single kind, so a webhook for several kinds is split. Each part keeps the
/// original arguments.
#[test]
fn webhook_for_several_kinds_is_split() {
    let original = original();
    let mug = |text: &str| text.replace("Cup", "Mug").replace("cup", "mug");
    original.write("config/crd/bases/mugs.yaml", &mug(&text_of(&original, CRD)));
    let webhooks = include_str!("import/webhooks.yaml");
    let (mutating, _) = webhooks.split_once("---\n").expect("two documents");
    let both = mutating
        .replace("    - cups\n", "    - cups\n    - cups/status\n    - mugs\n")
        .replace("/mutate-crew-example-com-v1-cup", "/mutate");
    original.write("config/webhook/manifests.yaml", &both);
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    for name in ["mcup.kb.io ", "mmug-v1.kb.io "] {
        assert!(has_row(&ran, &format!("webhook {name}"), "better"), "{}", ran.out);
    }
    for (path, marker) in [
        (
            "src/webhook/v1/cup.rs",
            "#[webhook(\n    mutating,\n    resources = \"cups;cups/status\",\n    operations = \"create\",\n    name = \"mcup.kb.io\",\n    path = \"/mutate\",\n    failure_policy = \"Ignore\",\n    timeout_seconds = 5\n)]",
        ),
        (
            "src/webhook/v1/mug.rs",
            "#[webhook(\n    mutating,\n    operations = \"create\",\n    failure_policy = \"Ignore\",\n    timeout_seconds = 5\n)]",
        ),
    ] {
        let text = text_of(&folder, path);
        assert!(text.contains(marker), "{path}: {text}");
    }
}

/// Before controller-runtime 0.15, a watch had a source.
#[test]
fn type_in_a_source_is_watched() {
    let original = original();
    let path = "internal/controller/cup_controller.go";
    let text = text_of(&original, path);
    let watch = "Watches(&corev1.Secret{}, ";
    assert!(text.contains(watch), "{text}");
    let older = "Watches(&source.Channel{Source: events}, handler).\n\t\tWatches(&source.Kind{Type: &corev1.Secret{}}, ";
    original.write(path, &text.replace(watch, older));
    let (folder, ran) = import(&original);
    let ran = ran.ok();
    let controller = text_of(&folder, "src/controller/cup.rs");
    assert!(controller.contains(".watches(map_secret)"), "{controller}");
    assert!(
        ran.out.contains("its arguments are `&source.Channel{"),
        "{}",
        ran.out
    );
}

/// Names of an original may only end up in manifests.
#[test]
fn names_are_not_inserted_as_code() {
    let original = original();
    let path = "config/manager/manager.yaml";
    let evil = "\\\"); std::process::exit(1); //";
    let text = text_of(&original, path);
    original.write(
        path,
        &text
            .replace(
                "serviceAccountName: kitchen",
                &format!("serviceAccountName: \"{evil}\""),
            )
            .replace("control-plane: cups", &format!("control-plane: \"{evil}\"")),
    );
    let (folder, ran) = import(&original);
    ran.ok();
    let tree = folder.tree();
    let sources = tree.iter().filter(|(path, _)| path.ends_with(".rs"));
    let infected: Vec<_> = sources.filter(|(_, text)| text.contains("exit(1)")).collect();
    assert!(infected.is_empty(), "{infected:?}");
}

/// If no marker can express a rule, the import still goes on.
#[test]
fn rejected_rule_is_left_to_the_user() {
    let original = original();
    let role = text_of(&original, "config/rbac/role.yaml");
    let rules = "- nonResourceURLs: [metrics]\n  verbs: [get]\n- apiGroups: [Apps]\n  resources: [pods]\n  verbs: [get]\n";
    original.write("config/rbac/role.yaml", &format!("{role}{rules}"));
    let ran = import(&original).1.ok();
    for expected in ["a rule in config/rbac/role.yaml ", "invalid API group `Apps`"] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
}

#[test]
fn generated_watch_of_owned_objects_fits_on_a_line() {
    let original = original();
    let path = "internal/controller/cup_controller.go";
    let text = text_of(&original, path);
    let handler = "handler.EnqueueRequestsFromMapFunc(r.cupsOf)";
    assert!(text.contains(handler), "{text}");
    original.write(
        path,
        &text.replace(
            handler,
            "handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &crewv1.Cup{})",
        ),
    );
    let (folder, ran) = import(&original);
    ran.ok();
    let controller = text_of(&folder, "src/controller/cup.rs");
    for line in [
        "use kube::core::PartialObjectMeta;\n",
        "use rbuilder::{Action, Controller, Ctx, Result, Watch, rbac};\n",
        "        .watch(Watch::<PartialObjectMeta<Secret>>::owned().by_any_owner())\n",
    ] {
        assert!(controller.contains(line), "{line}: {controller}");
    }
}
