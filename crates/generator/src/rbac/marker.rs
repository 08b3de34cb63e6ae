//! Formats markers for permissions that the code needs.

use rbuilder_kubernetes::gvk;

use crate::package::Package;
use crate::permissions::Need;

/// A resource as in a rule. `resource` is the plural, possibly with a subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Permission {
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) is_namespaced: bool,
}

impl Permission {
    pub(super) fn of(need: &Need) -> Permission {
        Permission {
            group: need.resource.group.clone(),
            resource: need.rule_resource(),
            is_namespaced: need.resource.is_namespaced,
        }
    }

    /// Formats the resource like kubectl, e.g. `deployments.apps` or `pods`.
    pub(super) fn describe(&self) -> String {
        let Permission { group, resource, .. } = self;
        match resource.split_once('/') {
            None => gvk::qualify(resource, group),
            Some((plural, part)) => format!("{}/{part}", gvk::qualify(plural, group)),
        }
    }
}

pub(super) fn write_marker(permission: &Permission, verbs: &[&str], namespace: Option<&str>) -> String {
    let Permission { group, resource, .. } = permission;
    let verbs: Vec<String> = verbs.iter().map(|verb| format!("\"{verb}\"")).collect();
    let verbs = verbs.join(", ");
    let namespace = namespace.map(|namespace| format!(", namespace = \"{namespace}\""));
    let namespace = namespace.unwrap_or_default();
    format!("#[rbac(groups = \"{group}\", resources = \"{resource}\", verbs = [{verbs}]{namespace})]")
}

/// Returns the namespace for a new marker, if all markers for the package's own kinds have the same
/// one.
pub(super) fn find_namespace<'a>(package: &'a Package, permission: &Permission) -> Option<&'a str> {
    if !permission.is_namespaced {
        return None;
    }
    let kinds = package.own_kinds();
    let is_own = |group: &String| {
        kinds
            .iter()
            .any(|own| own.kind.group == *group && own.kind.namespaced)
    };
    let mut rules = package
        .rules
        .iter()
        .map(|placed| &placed.rule)
        .filter(|rule| rule.role_name.is_none() && rule.groups.iter().any(is_own));
    let first = rules.next()?.namespace.as_deref()?;
    rules
        .all(|rule| rule.namespace.as_deref() == Some(first))
        .then_some(first)
}
