//! `rbuilder adopt --role`: prints markers for the permissions required by calls in the source, and
//! compares them with hand-written roles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use rbuilder_generator::rbac::{DraftedCall, DraftedRole, NeededPermission, Unfollowed, draft_role};
use rbuilder_generator::{FileRange, Sources};
use rbuilder_kubernetes::rbac::{Permission, Rule, Target, is_granted};
use serde_json::{Value, json};

use crate::commands::manifests::{self, Request};
use crate::commands::written_roles::{WrittenRole, find_written_roles};
use crate::count::counted;
use crate::flags::{AdoptFlags, Output};
use crate::plan::Plan;
use crate::report::find_start;
use crate::shell::Shell;
use crate::tree::Tree;

/// More calls that cannot be followed are only counted, unless the user asks for them.
const MOST_UNFOLLOWED: usize = 3;

struct Draft {
    role: DraftedRole,
    written: Vec<WrittenRole>,
    /// Permissions required by calls but not granted by any hand-written role, as verbs by
    /// resource.
    not_granted: BTreeMap<String, Vec<String>>,
    /// Permissions of hand-written roles without a corresponding call, as verbs by resource.
    without_call: BTreeMap<String, Vec<String>>,
}

pub(super) fn run(dir: &Path, flags: &AdoptFlags, shell: &mut Shell) -> Result<u8> {
    let tree = Tree::new(dir);
    let (request, _) = Request::of_everything(&tree)?;
    let plan = Plan::default();
    let (sources, found) = manifests::generate_in_memory(&plan, &tree, &request, &mut drop)?;
    let groups = found.kinds.iter().map(|kind| kind.group.clone());
    let written = find_written_roles(&tree, &groups.filter(|group| !group.is_empty()).collect(), "")?;
    let role = draft_role(&sources, &manifests::options(&sources, &request)?);
    let draft = Draft::new(role, written);
    if flags.plan.output == Output::Json {
        shell.out(&format!("{:#}\n", draft.to_json(&sources)));
        return Ok(0);
    }
    shell.report(&draft.render(&sources, shell.is_verbose()));
    Ok(0)
}

impl Draft {
    fn new(role: DraftedRole, written: Vec<WrittenRole>) -> Draft {
        let needed: BTreeSet<Permission> = role.needed.iter().map(permission_of).collect();
        let granted: BTreeSet<Permission> = written.iter().flat_map(permissions_anywhere).collect();
        let missing = needed
            .iter()
            .filter(|permission| !is_granted(permission, &granted));
        let without_call = granted
            .iter()
            .filter(|permission| !is_called(permission, &needed));
        Draft {
            not_granted: by_resource(missing),
            without_call: by_resource(without_call),
            role,
            written,
        }
    }

    fn render(&self, sources: &dyn Sources, is_verbose: bool) -> String {
        let mut text = String::new();
        let DraftedRole {
            markers, unfollowed, ..
        } = &self.role;
        if markers.is_empty() {
            text.push_str("no call in the source needs a permission that no marker grants\n");
        } else {
            text.push_str(
                "the calls in the source need these permissions; write the markers above the reconcile function, with `use rbuilder::rbac;`\n",
            );
        }
        for marker in markers {
            text.push_str(&format!("    {}\n", marker.text));
            text.push_str(&format!("        // {}\n", list_calls(&marker.calls, sources)));
        }
        match unfollowed.as_slice() {
            [] => {}
            all if all.len() <= MOST_UNFOLLOWED || is_verbose => {
                text.push_str("\nnot followed, so permissions may be missing above:\n");
                for Unfollowed { place, message } in all {
                    text.push_str(&format!("    {}: {message}\n", locate(place, sources)));
                }
            }
            all => text.push_str(&format!(
                "\n{} not followed, so permissions may be missing above; `--verbose` lists them\n",
                counted(all.len(), "call")
            )),
        }
        text.push_str(&self.render_comparison());
        text
    }

    fn render_comparison(&self) -> String {
        if self.written.is_empty() {
            return String::new();
        }
        let roles: Vec<String> = self.written.iter().map(WrittenRole::describe).collect();
        let roles = roles.join(", ");
        let mut text = String::new();
        for (title, permissions) in [
            ("does not grant", &self.not_granted),
            ("grants without a call for it", &self.without_call),
        ] {
            if !permissions.is_empty() {
                text.push_str(&format!("\n{roles} {title}:\n"));
            }
            for (resource, verbs) in permissions {
                text.push_str(&format!("    {}: {resource}\n", verbs.join(", ")));
            }
        }
        if text.is_empty() {
            text = format!("\n{roles} grants the same permissions\n");
        }
        text
    }

    fn to_json(&self, sources: &dyn Sources) -> Value {
        let at = |place: &FileRange| {
            let (line, column) = find_start(place, sources);
            json!({ "path": place.path, "line": line, "column": column })
        };
        let markers = self.role.markers.iter().map(|marker| {
            let calls = marker
                .calls
                .iter()
                .map(|call| json!({ "name": call.name, "place": at(&call.place) }));
            json!({
                "marker": marker.text,
                "group": marker.group,
                "resource": marker.resource,
                "verbs": marker.verbs,
                "calls": calls.collect::<Vec<_>>(),
            })
        });
        let unfollowed = self.role.unfollowed.iter();
        let unfollowed = unfollowed
            .map(|unfollowed| json!({ "message": unfollowed.message, "place": at(&unfollowed.place) }));
        let written = self.written.iter();
        let written = written.map(|role| json!({ "path": role.path, "kind": role.kind, "name": role.name }));
        json!({
            "command": "adopt",
            "markers": markers.collect::<Vec<_>>(),
            "notFollowed": unfollowed.collect::<Vec<_>>(),
            "roles": written.collect::<Vec<_>>(),
            "notGranted": self.not_granted,
            "withoutCall": self.without_call,
        })
    }
}

/// Lists the calls by name, e.g. `` `get` at src/main.rs:3:1 and 2 more, `list` at … ``.
fn list_calls(calls: &[DraftedCall], sources: &dyn Sources) -> String {
    let mut by_name: BTreeMap<&str, Vec<&FileRange>> = BTreeMap::new();
    for call in calls {
        by_name.entry(&call.name).or_default().push(&call.place);
    }
    let listed = by_name.into_iter().filter_map(|(name, places)| {
        let (first, rest) = places.split_first()?;
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {}", counted(more, "more place")),
        };
        Some(format!("`{name}` at {}{more}", locate(first, sources)))
    });
    listed.collect::<Vec<_>>().join(", ")
}

fn locate(place: &FileRange, sources: &dyn Sources) -> String {
    let (line, column) = find_start(place, sources);
    format!("{}:{line}:{column}", place.path)
}

fn permission_of(needed: &NeededPermission) -> Permission {
    Permission {
        namespace: None,
        target: Target::Resource {
            group: needed.group.clone(),
            resource: needed.resource.clone(),
            name: None,
        },
        verb: needed.verb.to_owned(),
    }
}

/// A role's permissions on resources, as if granted for all namespaces and names.
fn permissions_anywhere(role: &WrittenRole) -> BTreeSet<Permission> {
    let rules = role.rules();
    let permissions = rules.iter().map(Rule::read).flat_map(|rule| {
        // The objects of a call are unknown, and calls need no URL.
        let (names, urls) = Default::default();
        Rule { names, urls, ..rule }.permissions(None)
    });
    permissions.collect()
}

fn is_called(permission: &Permission, drafted: &BTreeSet<Permission>) -> bool {
    drafted.iter().any(|needed| {
        // The permission to list or watch objects covers reading each of them.
        let is_read = permission.verb == "get"
            && needed.target == permission.target
            && matches!(needed.verb.as_str(), "list" | "watch");
        is_read || permission.grants(needed)
    })
}

/// Groups verbs by `resource.group`.
fn by_resource<'p>(permissions: impl Iterator<Item = &'p Permission>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Permission { target, verb, .. } in permissions {
        let Target::Resource { group, resource, .. } = target else {
            continue;
        };
        let name = match (group.as_str(), resource.split_once('/')) {
            ("", _) => resource.clone(),
            (group, Some((plural, part))) => format!("{plural}.{group}/{part}"),
            (group, None) => format!("{resource}.{group}"),
        };
        found.entry(name).or_default().push(verb.clone());
    }
    found
}
