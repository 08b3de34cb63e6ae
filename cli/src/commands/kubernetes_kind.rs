//! Controllers and webhooks for Kubernetes' built-in kinds. `create` scaffolds for kinds of the project only; for a
//! built-in kind it prints the code to write by hand.

use anyhow::{Error, anyhow};
use rbuilder_generator::{KubernetesKind, find_kubernetes_kind};

use super::scaffold;
use crate::project::{Project, names};
use crate::tree::Tree;

/// Cluster-scoped kinds of Kubernetes.
const CLUSTER_WIDE: &[&str] = &[
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrustBundle",
    "CustomResourceDefinition",
    "DeviceClass",
    "FlowSchema",
    "IPAddress",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ResourceSlice",
    "RuntimeClass",
    "ServiceCIDR",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// A built-in kind of Kubernetes that `create` was run for.
pub(super) struct BuiltinKind {
    path: String,
    kind: KubernetesKind,
}

impl BuiltinKind {
    /// Finds a built-in kind by the group, version and kind on the command line.
    pub(super) fn find(group: &str, version: &str, kind: &str) -> Option<BuiltinKind> {
        let (path, kind) = find_kubernetes_kind(group, version, kind)?;
        Some(BuiltinKind { path, kind })
    }

    /// Returns the error for a controller, with the files to write by hand.
    pub(super) fn refuse_controller(&self, project: &Project) -> Error {
        let BuiltinKind { path, kind } = self;
        let (name, module) = (&kind.kind, names::module_name(&kind.kind));
        let (group, plural) = (&kind.group, &kind.plural);
        let mut place = String::new();
        if project.known.namespaced && !CLUSTER_WIDE.contains(&name.as_str()) {
            place = format!(", namespace = \"{}-system\"", project.known.project_name);
        }
        let code = format!(
            r#"use std::sync::Arc;

use {path};
use kube::ResourceExt;
use rbuilder::{{Action, Controller, Ctx, Result, rbac}};
use tracing::info;

#[derive(Debug, Default)]
pub struct State {{}}

pub fn controller() -> Controller<{name}, State> {{
    Controller::new(reconcile, State::default())
}}

#[rbac(groups = "{group}", resources = "{plural}", verbs = ["get", "list", "watch"]{place})]
pub async fn reconcile(object: Arc<{name}>, _ctx: Ctx<State>) -> Result {{
    info!(name = object.name_any(), "reconciling");
    Ok(Action::await_change())
}}
"#
        );
        anyhow!(
            "{}\n\n\
             create src/controller/{module}.rs:\n\n{}\n\
             in src/controller/mod.rs, declare the module and add the controller to the end of `register`:\n\n    \
             pub mod {module};\n    manager.controller({module}::controller())\n\n\
             then run: make manifests",
            self.refusal(),
            indented(&code)
        )
    }

    /// Returns the error for webhooks, with the files to write by hand.
    pub(super) fn refuse_webhook(&self, project: &Project, tree: &Tree) -> Error {
        let BuiltinKind { path, kind } = self;
        let (name, module) = (&kind.kind, names::module_name(&kind.kind));
        let code = format!(
            r#"use {path};
use rbuilder::webhook::{{AdmissionRequest, Warnings}};
use rbuilder::{{Denied, Webhook, webhook}};

pub fn webhook() -> Webhook<{name}> {{
    Webhook::new().defaulter(default).validator(validate)
}}

#[webhook(mutating, failure_policy = "ignore")]
fn default(_object: &mut {name}, _request: &AdmissionRequest) {{}}

#[webhook(validating, failure_policy = "ignore")]
fn validate(
    _new: &{name},
    _old: Option<&{name}>,
    _request: &AdmissionRequest,
) -> Result<Warnings, Denied> {{
    Ok(Warnings::new())
}}
"#
        );
        let has_webhooks = matches!(tree.read("src/webhook/mod.rs"), Ok(Some(_)));
        let server = if has_webhooks {
            String::new()
        } else {
            webhook_server_steps(project)
        };
        anyhow!(
            "{}\n\n\
             {server}create src/webhook/{module}.rs:\n\n{}\n\
             in src/webhook/mod.rs, declare the module and add the webhooks to the end of `register`:\n\n    \
             pub mod {module};\n    manager.webhook({module}::webhook())\n\n\
             then run: make manifests",
            self.refusal(),
            indented(&code)
        )
    }

    fn refusal(&self) -> String {
        let KubernetesKind {
            group, version, kind, ..
        } = &self.kind;
        let group = if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        };
        format!(
            "cannot scaffold for `{kind}` in {group}, which is a built-in kind of Kubernetes; add these files by hand \
             (the type is in k8s-openapi)"
        )
    }
}

/// Returns the steps that set up the webhook server in a project without webhooks.
fn webhook_server_steps(project: &Project) -> String {
    let context = scaffold::project_context(project);
    let known = &project.known;
    let steps = format!(
        r#"scratch=$(mktemp -d) && project=$PWD && cd "$scratch"
rbuilder init --domain {} --project-name {}{}
rbuilder create api --group any --version v1 --kind Any
rbuilder create webhook --group any --version v1 --kind Any --defaulting --validation
cp -r config/webhook config/certmanager config/network-policy "$project/config/"
cd "$project" && mkdir src/webhook
"#,
        known.domain,
        known.project_name,
        if known.namespaced { " --namespaced" } else { "" }
    );
    let module = r"use rbuilder::Manager;

pub fn register(manager: Manager) -> Manager {
    manager
}
";
    format!(
        "the project has no webhook server yet; copy its Service, certificate and RBAC from a scratch project:\n\n{}\n\
         in config/default/kustomization.yaml, add under `components:`\n\n    - ../webhook\n\n\
         and at the end\n\n    transformers:\n    - ../webhook/names\n\n\
         in src/lib.rs, add\n\n    pub mod webhook;\n\n\
         in src/main.rs, import the module and register the webhooks before the controllers:\n\n    \
         use {}::{{controller, webhook}};\n    let manager = webhook::register(manager);\n\n\
         create src/webhook/mod.rs:\n\n{}\n",
        indented(&steps),
        context.crate_ident,
        indented(module)
    )
}

fn indented(lines: &str) -> String {
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    };
    lines.lines().map(line).collect()
}
