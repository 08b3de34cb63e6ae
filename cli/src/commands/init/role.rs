//! The manager's role in a package without permission markers, copied from hand-written roles.

use serde_json::{Value, json};

use crate::commands::written_roles::WrittenRole;
use crate::project::Project;

pub(super) struct CopiedRole {
    pub(super) text: String,
    sources: Vec<String>,
    /// Roles whose rules Helm fills in.
    filled_in: Vec<String>,
    /// Namespaced roles, whose rules would apply to all namespaces in a ClusterRole.
    left_out: Vec<String>,
}

impl CopiedRole {
    pub(super) fn of(project: &Project, written: Vec<WrittenRole>) -> CopiedRole {
        let known = &project.known;
        let (copied, left_out): (Vec<WrittenRole>, Vec<WrittenRole>) = written
            .into_iter()
            // As part of a ClusterRole, the rules of a Role would apply everywhere.
            .partition(|role| known.namespaced || role.is_cluster_wide());
        let mut metadata = json!({ "name": "manager-role" });
        if known.namespaced {
            metadata["namespace"] = "system".into();
        }
        let filled_in = copied.iter().filter(|role| role.has_filled_in_rules());
        let filled_in = filled_in.map(WrittenRole::describe).collect();
        let rules: Vec<Value> = copied.iter().flat_map(WrittenRole::rules).collect();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": if known.namespaced { "Role" } else { "ClusterRole" },
            "metadata": metadata,
            "rules": rules,
        });
        let text = rbuilder_generator::yaml::to_string(&role);
        let body = text.strip_prefix("---\n").unwrap_or(&text);
        let sources: Vec<String> = copied.iter().map(WrittenRole::describe).collect();
        let origin: String = sources
            .iter()
            .map(|source| format!("# Copied from {source}.\n"))
            .collect();
        CopiedRole {
            text: format!(
                "# The permissions of the manager: write them here, or as `#[rbac]` markers of rbuilder, from which `rbuilder manifests`\n# then generates this file.\n{origin}{body}"
            ),
            sources,
            filled_in,
            left_out: left_out.iter().map(WrittenRole::describe).collect(),
        }
    }

    pub(super) fn describe_source(&self) -> Option<String> {
        (!self.sources.is_empty()).then(|| self.sources.join(" and "))
    }

    pub(super) fn warning(self) -> Option<(String, &'static str)> {
        if !self.left_out.is_empty() {
            return Some((
                format!(
                    "the manager does not have the permissions of {}, which are for one namespace",
                    self.left_out.join(" and ")
                ),
                "add the role to config/rbac with its binding, and list both in config/rbac/kustomization.yaml",
            ));
        }
        if !self.filled_in.is_empty() {
            return Some((
                format!(
                    "the manager does not have those permissions of {} that Helm fills in",
                    self.filled_in.join(" and ")
                ),
                "add the rules to config/rbac/role.yaml",
            ));
        }
        self.sources.is_empty().then(|| {
            (
                "config/rbac/role.yaml grants nothing: the manager would start without permissions"
                    .to_owned(),
                "write the rules that your program needs in it, or as `#[rbac]` markers",
            )
        })
    }
}
