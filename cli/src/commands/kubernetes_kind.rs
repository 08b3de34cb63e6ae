//! Controllers and webhooks of Kubernetes' own kinds: which lines to write by hand, as `create` scaffolds for kinds of the
//! project only.

use anyhow::{Error, anyhow};
use rbuilder_generator::{KubernetesKind, find_kubernetes_kind};

use super::scaffold;
use crate::project::{Project, names};
use crate::tree::Tree;

/// Kinds that are in no namespace, among those that operators look at.
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

/// A kind of Kubernetes that a command was asked about as if it were the project's.
pub(super) struct Known {
    path: String,
    kind: KubernetesKind,
}

impl Known {
    /// The kind that a group, a version and a name stand for on a command line, if Kubernetes has it.
    pub(super) fn find(group: &str, version: &str, kind: &str) -> Option<Known> {
        let (path, kind) = find_kubernetes_kind(group, version, kind)?;
        Some(Known { path, kind })
    }

    /// The refusal to scaffold a controller, with the files to write.
    pub(super) fn refuse_controller(&self, project: &Project) -> Error {
        let Known { path, kind } = self;
        let (name, module) = (&kind.kind, names::module(&kind.kind));
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
             write a file src/controller/{module}.rs:\n\n{}\n\
             in src/controller/mod.rs, add a module and let `register` end in a call for it:\n\n    \
             pub mod {module};\n    manager.controller({module}::controller())\n\n\
             then run: make manifests",
            self.refusal(),
            indented(&code)
        )
    }

    /// The refusal to scaffold webhooks, with the files to write.
    pub(super) fn refuse_webhook(&self, project: &Project, tree: &Tree) -> Error {
        let Known { path, kind } = self;
        let (name, module) = (&kind.kind, names::module(&kind.kind));
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
            server(project, tree)
        };
        anyhow!(
            "{}\n\n\
             {server}write a file src/webhook/{module}.rs:\n\n{}\n\
             in src/webhook/mod.rs, add a module and let `register` end in a call for it:\n\n    \
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
            "`{kind}` of {group} is a kind of Kubernetes, and `rbuilder create` scaffolds for kinds of the project only; \
             its type is in k8s-openapi, and these lines are written by hand"
        )
    }
}

/// The steps that give a project without webhooks what serves them.
fn server(project: &Project, tree: &Tree) -> String {
    let context = scaffold::project_context(project, tree.root());
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
        "the project serves no webhooks yet; take the Service, the certificate and the permissions from another one:\n\n{}\n\
         in config/default/kustomization.yaml, add under `components:`\n\n    - ../webhook\n\n\
         in src/lib.rs, add\n\n    pub mod webhook;\n\n\
         in src/main.rs, import it and hand the manager to it before it goes to the controllers:\n\n    \
         use {}::{{controller, webhook}};\n    let manager = webhook::register(manager);\n\n\
         write a file src/webhook/mod.rs:\n\n{}\n",
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
