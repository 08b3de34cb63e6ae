//! Ports the setup of the original's controllers: owned and watched kinds, and permissions.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_kubernetes::rbac::{Permission, Target};

use super::composed::{Composed, Ported};
use super::kinds::Leftover;
use super::rust_paths::{FoundType, GoTypes};
use crate::commands::permissions::{MarkedRule, Rule};
use crate::edit::rust;
use rbuilder_go_project::{Builder, GoFile, GoProject, OtherCall};

const REGISTRATION: &str = "src/controller/mod.rs";
const CHAIN: &str = "    Controller::new(reconcile, State::default())";

/// Names already used by the scaffolded controller.
const TAKEN: &[&str] = &[
    "Action",
    "Arc",
    "Controller",
    "Ctx",
    "Result",
    "ResourceExt",
    "State",
    "ObjectRef",
    "Watch",
    "PartialObjectMeta",
];

pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    // Take the kinds out for the loop, which changes the rest of `composed`.
    let kinds = std::mem::take(&mut composed.kinds);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut permissions = BTreeSet::new();
    for kind in &kinds {
        for controller in &kind.controllers {
            let resource = composed
                .stored_resource(&kind.resource)
                .unwrap_or_else(|| kind.resource.clone());
            let name = controller
                .name
                .clone()
                .unwrap_or_else(|| resource.default_controller());
            let context = composed.places(&resource).with_controller(&name).context();
            let path = format!("src/{}.rs", context.controller_path.replace("::", "/"));
            let Some(text) = composed.files.get(&path).cloned() else {
                continue;
            };
            let mut edit = ControllerEdit {
                text,
                kind: context.kind_type.clone(),
                ported: Ported {
                    kind: resource.kind.clone(),
                    rust_file: path.clone(),
                    go_file: controller.found.map(|(file, _)| file),
                    taken: Vec::new(),
                    maps: Vec::new(),
                },
                calls: Vec::new(),
                imports: Vec::new(),
                functions: String::new(),
                left: Vec::new(),
            };
            if let Some((file, builder)) = controller.found {
                edit.add_builder(original, file, builder);
                // A file may build several controllers, but its markers only count once.
                if seen.insert(&file.path) {
                    let rules = rules_of(file, &mut edit.left);
                    for marked in &rules {
                        permissions.extend(marked.rule.permissions());
                    }
                    edit.set_permissions(&rules, (&context.qualified_group, &context.plural));
                }
            }
            let (text, ported, left) = edit.finish();
            composed.files.insert(path, text);
            composed.ported.push(ported);
            composed.left.extend(left);
        }
    }
    composed.kinds = kinds;
    add_other_permissions(
        original,
        composed,
        &seen.into_iter().map(str::to_owned).collect(),
        permissions,
    );
    Ok(())
}

fn rules_of(file: &GoFile, left: &mut Vec<Leftover>) -> Vec<MarkedRule> {
    let mut rules = Vec::new();
    for (line, marker) in file
        .markers
        .iter()
        .filter(|(_, marker)| marker.starts_with("kubebuilder:rbac:"))
    {
        let rule = Rule::parse_marker(marker).ok_or_else(|| "it was not understood".to_owned());
        match rule.and_then(MarkedRule::new) {
            Ok(rule) if rules.contains(&rule) => {}
            Ok(rule) => rules.push(rule),
            Err(reason) => left.push(Leftover::new(format!("marker at {}:{line}", file.path), reason)),
        }
    }
    rules
}

/// Adds markers of other files, and rules of the role without a marker, to the function that
/// registers everything.
fn add_other_permissions(
    original: &GoProject,
    composed: &mut Composed<'_>,
    seen: &BTreeSet<String>,
    mut known: BTreeSet<Permission>,
) {
    let mut rules = Vec::new();
    for file in original.files.iter().filter(|file| !seen.contains(&file.path)) {
        for rule in rules_of(file, &mut composed.left) {
            known.extend(rule.rule.permissions());
            rules.push(rule);
        }
    }
    for kind in ["ClusterRole", "Role"] {
        for (path, role) in original.documents("config/rbac/role.yaml", kind) {
            for rule in Rule::of_role(role) {
                let lacks = rule
                    .permissions()
                    .into_iter()
                    .any(|permission| !known.contains(&permission));
                if !lacks {
                    continue;
                }
                match MarkedRule::new(rule) {
                    Ok(rule) => rules.push(rule),
                    Err(reason) => composed
                        .left
                        .push(Leftover::new(format!("a rule in {path}"), reason)),
                }
            }
        }
    }
    let mut markers: Vec<String> = rules.into_iter().map(|rule| rule.marker).collect();
    markers.dedup();
    if let Some(text) = composed.files.get_mut(REGISTRATION)
        && let Some(at) = text.find("pub fn register(")
    {
        let lines: String = markers.iter().map(|marker| format!("{marker}\n")).collect();
        text.insert_str(at, &lines);
    }
}

/// controller-runtime builder calls and options, and what to use instead with a `Controller`.
const COUNTERPARTS: &[(&str, &str)] = &[
    (
        "CacheSyncTimeout",
        "set it for all controllers with `Manager::cache_sync_timeout`",
    ),
    ("MaxConcurrentReconciles", "set the number with `.concurrency(…)`"),
    (
        "NeedLeaderElection",
        "`.on_every_replica()` is for a controller that does not wait for the Lease",
    ),
    ("Owns", "name the type with `.owns::<…>()`"),
    (
        "RateLimiter",
        "set the delays between attempts with `.backoff(…)`, or a limiter of your own with `.rate_limiter(…)`",
    ),
    (
        "RecoverPanic",
        "a panic in a reconcile fails only that reconcile, unless `.recover_panics(false)` is set",
    ),
    (
        "Watches",
        "name the type with `.watches(…)`, or pass a stream of object references to `.triggers(…)`",
    ),
    (
        "WatchesMetadata",
        "watch metadata alone with `.watch(Watch::<PartialObjectMeta<…>>::…)`",
    ),
    (
        "WatchesRawSource",
        "pass a stream of object references to `.triggers(…)`",
    ),
    (
        "WithEventFilter",
        "write the predicate with `.filter(…)`, whose functions are in `rbuilder::predicate`",
    ),
    (
        "WithLogConstructor",
        "fields of log lines come from spans of tracing",
    ),
    (
        "WithPredicates",
        "write the predicate with `.filter(…)`, whose functions are in `rbuilder::predicate`: of the controller for `For`, and of a `Watch` for others",
    ),
];

fn advise_on_call(call: &OtherCall, rust_file: &str) -> String {
    let counterpart = COUNTERPARTS.iter().find(|(name, _)| *name == call.name);
    let advice = counterpart.map_or(
        "call its counterpart of `rbuilder::Controller` (`cargo doc --open --package rbuilder-runtime`)",
        |(_, advice)| *advice,
    );
    match call.arguments.as_str() {
        "" => format!("{advice}, in {rust_file}"),
        arguments => format!("its arguments are `{arguments}`: {advice}, in {rust_file}"),
    }
}

struct ControllerEdit<'a> {
    text: String,
    /// Name of the kind's type in the file.
    kind: String,
    ported: Ported<'a>,
    calls: Vec<String>,
    imports: Vec<String>,
    functions: String,
    left: Vec<Leftover>,
}

impl<'a> ControllerEdit<'a> {
    fn add_builder(&mut self, original: &GoProject, file: &'a GoFile, builder: &'a Builder) {
        let types = GoTypes::new(original);
        if builder.is_by_generation {
            self.calls
                .push(".filter(rbuilder::predicate::generation_changed())".to_owned());
            self.ported
                .taken
                .push("only changes of the generation".to_owned());
        }
        for owned in &builder.owns {
            let at = format!("`Owns` at {}:{}", file.path, owned.line);
            if let Some(name) = self.import(&types.find(file, owned), (&at, &owned.name)) {
                self.calls.push(format!(".owns::<{name}>()"));
                self.ported.taken.push(format!("owns {}", owned.name));
            }
        }
        for watch in &builder.watches {
            let at = format!("`Watches` at {}:{}", file.path, watch.object.line);
            let Some(name) = self.import(&types.find(file, &watch.object), (&at, &watch.object.name)) else {
                continue;
            };
            self.ported.taken.push(format!("watches {}", watch.object.name));
            if watch.handler == "EnqueueRequestForOwner" {
                self.add_watch_of_owned(&name);
            } else {
                self.add_map(file, &watch.object.name, &name, &watch.handler);
            }
        }
        if let Some(number) = builder.concurrency {
            self.calls.push(format!(".concurrency({number})"));
            self.ported.taken.push(format!("{number} reconciles at a time"));
        }
        for other in &builder.others {
            self.left.push(Leftover::new(
                format!("`{}` at {}:{}", other.name, file.path, other.line),
                advise_on_call(other, &self.ported.rust_file),
            ));
        }
    }

    /// Watches objects with an owner of the kind, even if the owner isn't the controller.
    fn add_watch_of_owned(&mut self, name: &str) {
        let import = "use kube::core::PartialObjectMeta;".to_owned();
        if !self.imports.contains(&import) {
            self.imports.push(import);
        }
        self.text = self.text.replacen(", Result, rbac}", ", Result, Watch, rbac}", 1);
        self.calls.push(format!(
            ".watch(Watch::<PartialObjectMeta<{name}>>::owned().by_any_owner())"
        ));
    }

    /// Adds a watch with a map function for the user to port. It returns no objects until then.
    fn add_map(&mut self, file: &GoFile, shown: &str, name: &str, handler: &str) {
        let snake = crate::project::names::module_name(shown);
        let mut function = format!("map_{}", snake.trim_end_matches('_'));
        let base = function.clone();
        let mut number = 2;
        while self.functions.contains(&format!("fn {function}(")) {
            function = format!("{base}_{number}");
            number += 1;
        }
        let port = match handler {
            "" => "the function".to_owned(),
            handler => format!("`{handler}`"),
        };
        let kind = &self.kind;
        let parameters = [format!("_object: &{name}"), "_ctx: &Ctx<State>".to_owned()];
        let line = format!(
            "fn {function}({}) -> Vec<ObjectRef<{kind}>> {{",
            parameters.join(", ")
        );
        // rustfmt breaks longer lines like this.
        let head = match line.len() <= 100 {
            true => line,
            false => format!(
                "fn {function}(\n    {},\n) -> Vec<ObjectRef<{kind}>> {{",
                parameters.join(",\n    ")
            ),
        };
        self.functions.push_str(&format!(
            "\n/// Returns the objects to reconcile after a change of a {shown}.\n{head}\n    // Port {port} of {} here.\n    Vec::new()\n}}\n",
            file.path
        ));
        self.calls.push(format!(".watches({function})"));
        self.ported
            .maps
            .push((format!("{} ({})", handler, shown), function));
    }

    /// Imports a type and returns its name, or the full path if the name is taken. Unknown types
    /// are left to the user.
    fn import(&mut self, found: &Option<FoundType>, (at, shown): (&str, &str)) -> Option<String> {
        let Some(found) = found.as_ref().filter(|found| !found.path.is_empty()) else {
            self.left.push(Leftover::new(at, format!("`{shown}` is neither a kind of Kubernetes nor one of the project: add it with its crate in {}", self.ported.rust_file)));
            return None;
        };
        let name = found.kind.clone();
        let import = format!("use {};", found.path);
        if self.imports.contains(&import) || self.text.contains(&format!("{import}\n")) {
            return Some(name);
        }
        let is_taken = TAKEN.contains(&name.as_str())
            || name == self.kind
            || self
                .imports
                .iter()
                .any(|other| other.ends_with(&format!("::{name};")))
            || self.text.contains(&format!("::{name};\n"));
        if is_taken {
            return Some(found.path.clone());
        }
        self.imports.push(import);
        Some(name)
    }

    /// Replaces the scaffolded permissions with the original's, which are a superset.
    fn set_permissions(&mut self, rules: &[MarkedRule], (group, plural): (&str, &str)) {
        let target = Target::Resource {
            group: group.to_owned(),
            resource: plural.to_owned(),
            name: None,
        };
        let has_own = rules.iter().any(|MarkedRule { rule, .. }| {
            let grants = |verb| rule.granted.grants(verb, &target);
            rule.namespace.is_none() && grants("watch") && grants("list")
        });
        let Some(function) = self.text.find("pub async fn reconcile(") else {
            return;
        };
        // Otherwise keep the scaffolded permissions: a controller has to watch its own kind.
        let start = match (has_own, self.text[..function].find("#[rbac(")) {
            (true, Some(start)) => start,
            _ => function,
        };
        let markers: String = rules.iter().map(|rule| format!("{}\n", rule.marker)).collect();
        self.text.replace_range(start..function, &markers);
    }

    fn finish(mut self) -> (String, Ported<'a>, Vec<Leftover>) {
        self.set_chain();
        let mut lines = std::mem::take(&mut self.imports);
        if !self.functions.is_empty() {
            self.text = self.text.replacen(
                "Controller, Ctx, Result, ",
                "Controller, Ctx, ObjectRef, Result, ",
                1,
            );
            self.text.push_str(&self.functions);
        }
        if !lines.is_empty() {
            self.add_imports(&mut lines);
        }
        (self.text, self.ported, self.left)
    }

    fn set_chain(&mut self) {
        let Some(start) = self.text.find(CHAIN) else {
            return;
        };
        let Some(end) = self.text[start..].find("\n}").map(|end| start + end) else {
            return;
        };
        let there = self.text[start + CHAIN.len()..end]
            .lines()
            .map(|line| line.trim().to_owned());
        let mut calls: Vec<String> = there.filter(|line| !line.is_empty()).collect();
        let known = calls.concat();
        calls.extend(
            self.calls
                .iter()
                .filter(|call| !known.contains(call.as_str()))
                .cloned(),
        );
        let chain = rust::format_chain(CHAIN.trim_start(), &calls);
        self.text.replace_range(start..end, &format!("    {chain}"));
    }

    /// Adds imports: first from other crates, then from the project, each sorted.
    fn add_imports(&mut self, lines: &mut Vec<String>) {
        let there: Vec<String> = self
            .text
            .lines()
            .filter(|line| line.starts_with("use ") && line.ends_with(';'))
            .map(str::to_owned)
            .collect();
        let (Some(first), Some(last)) = (there.first(), there.last()) else {
            return;
        };
        let (Some(start), Some(end)) = (self.text.find(first.as_str()), self.text.find(last.as_str())) else {
            return;
        };
        let end = end + last.len();
        lines.extend(there.iter().cloned());
        let mut groups: [Vec<String>; 3] = Default::default();
        for line in lines.drain(..) {
            let rank = match () {
                () if line.starts_with("use std::") => 0,
                () if line.starts_with("use crate::") => 2,
                () => 1,
            };
            groups[rank].push(line);
        }
        for group in &mut groups {
            let path = |line: &String| line.trim_end_matches(';').to_owned();
            group.sort_by(|left, right| rust::compare_names(&path(left), &path(right)));
            group.dedup();
        }
        let groups: Vec<String> = groups
            .iter()
            .filter(|group| !group.is_empty())
            .map(|group| group.join("\n"))
            .collect();
        self.text.replace_range(start..end, &groups.join("\n\n"));
    }
}
