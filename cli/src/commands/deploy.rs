//! `rbuilder deploy`: applies the manager and everything that it needs, like `make deploy`, but
//! without make and a shell.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::conversions::keep_conversions;
use super::install::ALL;
use super::local::refuse_redirected;
use super::removal::apply_namespaces;
use super::{find_kubectl, manifests, read_names};
use crate::cluster::{APPLY, allow_recreate, apply, parse_documents, set_image};
use crate::flags::DeployFlags;
use crate::shell::Shell;

pub(super) fn deploy(dir: &Path, flags: &DeployFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster.choice())?;
    manifests::generate_if_asked(dir, &flags.generation, shell)?;
    let rendered = kubectl.render(ALL)?;
    let (namespaces, mut objects): (Vec<Value>, Vec<Value>) = with_image(&rendered, dir, &flags.image)?
        .into_iter()
        .partition(|object| object["kind"] == "Namespace");
    shell.note(&format!("the image of the manager is {}\n", flags.image));
    if let Some(role) = find_empty_role(&objects) {
        shell.message(&format!(
            "warning: {role} has no rules: the manager starts without its permissions\n  = help: write them as `#[rbac(…)]` markers, or in config/rbac/role.yaml\n"
        ));
    }
    refuse_redirected(&kubectl, &objects)?;
    keep_conversions(&kubectl, &mut objects, shell)?;
    kubectl.show_pipe(ALL, &APPLY, shell);
    // Namespaces first, since other objects are in them.
    apply_namespaces(&kubectl, &namespaces, shell)?;
    allow_recreate(&kubectl, &objects, shell)?;
    apply(&kubectl, &objects, &[], shell)?;
    Ok(0)
}

/// Sets the manager's image in rendered manifests. Fails if there is no Deployment for it.
fn with_image(rendered: &str, dir: &Path, image: &str) -> Result<Vec<Value>> {
    let mut objects = parse_documents(rendered)?;
    let names = read_names(dir);
    let label = names.label();
    ensure!(
        set_image(&mut objects, label, image) > 0,
        "{ALL} has no Deployment with the label control-plane={label}: no image was set"
    );
    Ok(objects)
}

fn find_empty_role(objects: &[Value]) -> Option<String> {
    let is_empty = |role: &&Value| {
        let kind = &role["kind"];
        let has_rules = role["rules"].as_array().is_some_and(|rules| !rules.is_empty());
        (kind == "ClusterRole" || kind == "Role") && !has_rules && !role["aggregationRule"].is_object()
    };
    let is_bound = |role: &&Value| {
        objects.iter().any(|binding| {
            let to = &binding["roleRef"];
            to["kind"] == role["kind"] && to["name"] == role["metadata"]["name"]
        })
    };
    let role = objects.iter().filter(is_empty).find(is_bound)?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(format!(
        "{} `{}`",
        word(&role["kind"]),
        word(&role["metadata"]["name"])
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bound_roles_without_rules_are_found() {
        let role = |rules: Value| json!({"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": rules});
        let binding = json!({"kind": "ClusterRoleBinding", "roleRef": {"kind": "ClusterRole", "name": "a"}});
        let check = |objects: &[Value], expected: Option<&str>| {
            assert_eq!(find_empty_role(objects).as_deref(), expected, "{objects:?}");
        };
        check(&[role(json!([])), binding.clone()], Some("ClusterRole `a`"));
        check(&[role(Value::Null), binding.clone()], Some("ClusterRole `a`"));
        check(&[role(json!([{"verbs": ["get"]}])), binding.clone()], None);
        check(&[role(json!([]))], None);
        let aggregated =
            json!({"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": [], "aggregationRule": {}});
        check(&[aggregated, binding], None);
    }
}
