//! Codes for files of a project that don't match its source, i.e. samples, roles and PROJECT.

use super::{Code, ExamplePlace};
use crate::Severity;

pub(super) const CODES: &[Code] = &[
    Code {
        id: "RB1001",
        title: "A sample is not valid",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# config/samples/shop_v1_widget.yaml\napiVersion: shop.example.com/v1\nkind: Widget\nmetadata:\n  name: widget-sample\nspec:\n  foo: 3",
        right: "# config/samples/shop_v1_widget.yaml\napiVersion: shop.example.com/v1\nkind: Widget\nmetadata:\n  name: widget-sample\nspec:\n  foo: three",
        reason: "A sample is created with its kind, and is not updated with the types. The API server refuses it or warns about it, and \
                 catalogs show it as the example of the kind. Here, `foo` is a string.",
        server: "The Widget \"widget-sample\" is invalid: spec.foo: Invalid value: \"integer\": spec.foo in body must be of type string: \"integer\"",
        messages: &[
            "this sample is not a valid `{}` of {}: {}",
            "the sample `{}` in this list is not a valid `{}` of {}: {}",
            "the API server warns about this sample: {}",
            "the API server warns about the sample `{}` in this list: {}",
        ],
    },
    Code {
        id: "RB1002",
        title: "A sample is of a kind or a version that does not exist",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# config/samples/shop_v1_widget.yaml\napiVersion: shop.example.com/v1\nkind: Gadget\nmetadata:\n  name: gadget-sample\nspec:\n  foo: three",
        right: "# config/samples/shop_v1_widget.yaml\napiVersion: shop.example.com/v1\nkind: Widget\nmetadata:\n  name: widget-sample\nspec:\n  foo: three",
        reason: "The source has another name for the kind now, or no such version. Update `apiVersion` and `kind`, or delete the sample and \
                 its entry in the kustomization.",
        server: "error: resource mapping not found for name: \"gadget-sample\" namespace: \"\": no matches for kind \"Gadget\" in version \
                 \"shop.example.com/v1\"",
        messages: &[
            "this sample is of {}, and no CRD of the project has a `{}` there",
            "the sample `{}` in this list is of {}, and no CRD of the project has a `{}` there",
        ],
    },
    Code {
        id: "RB1003",
        title: "A generated role has no effect",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# config/rbac/role_binding.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: manager-rolebinding\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: operator-role\nsubjects:\n- kind: ServiceAccount\n  name: controller-manager\n  namespace: system",
        right: "# config/rbac/role_binding.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: manager-rolebinding\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: manager-role\nsubjects:\n- kind: ServiceAccount\n  name: controller-manager\n  namespace: system",
        reason: "Markers define roles, and `config/` binds them to the service account of the manager. Without a binding, or in another \
                 namespace, a role grants nothing, which only shows as 403 in a cluster.",
        server: "",
        messages: &[
            "no binding in config/ refers to {} `{}`: it grants nothing",
            "{} `{}` refers to {} `{}`, which config/default does not have: it grants nothing",
            "{} moves Role `{}` of namespace `{}` to namespace `{}`",
            "kustomize cannot deploy Role `{}` for the namespaces `{}`: it gives all objects one namespace before they get their own",
        ],
    },
    Code {
        id: "RB1004",
        title: "A role is for a resource that does not exist",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# config/rbac/widget_viewer_role.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: widget-viewer-role\nrules:\n- apiGroups:\n  - shop.example.com\n  resources:\n  - gadgets\n  verbs:\n  - get",
        right: "# config/rbac/widget_viewer_role.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: widget-viewer-role\nrules:\n- apiGroups:\n  - shop.example.com\n  resources:\n  - widgets\n  verbs:\n  - get",
        reason: "The API server accepts roles for resources that do not exist. After the group or the plural of a kind has changed, such a \
                 role grants nothing.",
        server: "",
        messages: &[
            "this role is for `{}` of {}, and no CRD of the project has this resource",
            "this role is for `{}` of {}, and no CRD of the project has this resource; so are {}",
        ],
    },
    Code {
        id: "RB1005",
        title: "PROJECT and the source differ",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# PROJECT\ndomain: example.com\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: widgets\nresources:\n- api:\n    crdVersion: v1\n    namespaced: true\n  controller: true\n  domain: example.com\n  group: shop\n  kind: Widget\n  plural: widgets\n  version: v2\nversion: \"3\"",
        right: "# PROJECT\ndomain: example.com\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: widgets\nresources:\n- api:\n    crdVersion: v1\n    namespaced: true\n  controller: true\n  domain: example.com\n  group: shop\n  kind: Widget\n  plural: widgets\n  version: v1\nversion: \"3\"",
        reason: "The scaffold is made from PROJECT: roles, samples, webhooks and tests would be for another kind than the source has.",
        server: "",
        messages: &[
            "PROJECT lists version `{}` of `{}`, but the source has no such version",
            "PROJECT lists the kind `{}` of {}, but the source has no such kind",
            "PROJECT has the plural `{}` for `{}`, but the source has `{}`",
            "`{}` is {} according to PROJECT, but {} in the source",
        ],
    },
    Code {
        id: "RB1006",
        title: "There is nothing to generate",
        level: Severity::Warning,
        place: ExamplePlace::Selection,
        wrong: "skip = [\"Widget\"]",
        right: "only = [\"Widget\"]",
        reason: "With `--check`, CI would compare nothing and succeed. Select the package, the features or the kinds that have markers.",
        server: "",
        messages: &[
            "no manifests are generated or compared: all kinds are excluded ({})",
            "no kinds or markers found in {} of the library and the binaries",
        ],
    },
    Code {
        id: "RB1007",
        title: "A manifest would lose what the source still has",
        level: Severity::Error,
        place: ExamplePlace::KindChange,
        wrong: "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n// becomes\n\
                #[cfg(test)]\n#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]",
        right: "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n// becomes\n\
                #[cfg(not(test))]\n#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]",
        reason: "The part of the source is left out of this run: no `mod` declares its file, a `cfg` excludes it, or the kind is not \
                 selected. Deployed manifests would lose it, so nothing is written without `--prune`.",
        server: "",
        messages: &[
            "`{}` in `{}` would be deleted, but the source still defines the kind: {}",
            "`{}` would be deleted, but the source still defines the kind: {}",
            "`{}` would lose version `{}`, which the source still defines: {}",
            "`{}` would lose permissions that this marker requests: {}",
            "`{}` would lose the webhook `{}`, which the source still defines: {}",
        ],
    },
    Code {
        id: "RB1008",
        title: "A key in PROJECT is misspelled",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# PROJECT\ndomain: example.com\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: widgets\nresources:\n- api:\n    crdVersion: v1\n    namespaced: true\n  controler: true\n  domain: example.com\n  group: shop\n  kind: Widget\n  plural: widgets\n  version: v1\nversion: \"3\"",
        right: "# PROJECT\ndomain: example.com\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: widgets\nresources:\n- api:\n    crdVersion: v1\n    namespaced: true\n  controller: true\n  domain: example.com\n  group: shop\n  kind: Widget\n  plural: widgets\n  version: v1\nversion: \"3\"",
        reason: "Commands ignore keys that they do not know, because plugins of kubebuilder have keys of their own. Here, the kind would \
                 have no controller.",
        server: "",
        messages: &["unknown key `{}` in PROJECT"],
    },
    Code {
        id: "RB1009",
        title: "An object of config/default refers to one that does not exist",
        level: Severity::Error,
        place: ExamplePlace::Project,
        wrong: "# config/rbac/role_binding.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: manager-rolebinding\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: manager-role\nsubjects:\n- kind: ServiceAccount\n  name: operator\n  namespace: system",
        right: "# config/rbac/role_binding.yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: manager-rolebinding\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: manager-role\nsubjects:\n- kind: ServiceAccount\n  name: controller-manager\n  namespace: system",
        reason: "`rbuilder doctor` and `rbuilder manifests --check` build config/default in memory, and look for every patch target, \
                 subject, role, Service, service account and pod that an object names. kustomize fails without a patch target. The API \
                 server accepts the other references, and the manager lacks permissions or gets no requests.",
        server: "",
        messages: &[
            "this kustomization names `{}`, but {} does not exist",
            "{} has no kustomization",
            "kustomizations have no field `{}`: kustomize fails",
            "{} `{}` is defined twice, here and in {}: kustomize fails",
            "expected objects with `kind` and `metadata.name`",
            "this patch is for {} `{}` of namespace `{}`, but {} has it in namespace `{}`: {}",
            "this patch is for {} `{}`, which config/default does not have: {}",
            "this patch is for the container `{}`, which {} `{}` does not have: it adds a container without an image, which the API server refuses",
            "this patch cannot be applied to {} `{}`, because {}",
            "a replacement has {} `{}` as its {}, which config/default does not have: {}",
            "the transformers `{}` do not exist",
            "config/default has no Deployment: it deploys no manager",
            "{} `{}` grants its role to ServiceAccount `{}`, which config/default does not have: the manager lacks these permissions",
            "{} `{}` calls Service `{}`, which config/default does not have",
            "Certificate `{}` is for Service `{}`, which config/default does not have",
            "{} `{}` selects pods with {}, which no workload of config/default has",
            "{} `{}` selects pods with {}, which its own pods do not have: the API server refuses it",
            "ServiceMonitor `{}` selects Services with {}, which config/default does not have",
            "HorizontalPodAutoscaler `{}` scales {} `{}`, which config/default does not have",
            "{} `{}` runs as ServiceAccount `{}`, which config/default does not have: no pod is created",
        ],
    },
    Code {
        id: "RB1010",
        title: "The program has two versions of kube",
        level: Severity::Warning,
        place: ExamplePlace::Project,
        wrong: "# Cargo.lock\nversion = 4\n\n[[package]]\nname = \"kube\"\nversion = \"4.2.0\"\ndependencies = [\"kube-core 4.2.0\"]\n\n[[package]]\nname = \"kube-core\"\nversion = \"5.0.0\"\n\n[[package]]\nname = \"kube-core\"\nversion = \"4.2.0\"\n\n[[package]]\nname = \"rbuilder-runtime\"\nversion = \"0.1.0\"\ndependencies = [\"kube-core 5.0.0\"]\n\n[[package]]\nname = \"widgets\"\nversion = \"0.1.0\"\ndependencies = [\"kube\", \"rbuilder-runtime\"]",
        right: "# Cargo.lock\nversion = 4\n\n[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\ndependencies = [\"kube-core\"]\n\n[[package]]\nname = \"kube-core\"\nversion = \"5.0.0\"\n\n[[package]]\nname = \"rbuilder-runtime\"\nversion = \"0.1.0\"\ndependencies = [\"kube-core\"]\n\n[[package]]\nname = \"widgets\"\nversion = \"0.1.0\"\ndependencies = [\"kube\", \"rbuilder-runtime\"]",
        reason: "Types for one version of kube do not implement the traits of another, so rustc reports that a trait bound is not satisfied. \
                 Two versions of k8s-openapi each need a feature for the version of Kubernetes. Use one version in `Cargo.toml` and in \
                 all dependencies whose types the program uses, or generate the types from the CRD with `rbuilder types`.",
        server: "",
        messages: &["`{}` {} uses {} {}, and this package uses {} {}"],
    },
];
