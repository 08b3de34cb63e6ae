//! `rbuilder create api`: a kind, its controller, and their places in the project.

mod further;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{ApiContext, Rendered};
use toml_edit::Item;

use self::further::Taken;
use super::kubernetes_kind::Known;
use super::{Outcome, execute, owners, scaffold};
use crate::edit::{Obstacle, kustomization, rust};
use crate::flags::{ApiFlags, Output};
use crate::plan::Plan;
use crate::project::{Api, FILE, Project, Resource, names};
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, flags: &ApiFlags, shell: &mut Shell) -> Result<u8> {
    check_flags(flags)?;
    let mut flags = flags.clone();
    ask(&mut flags, shell);
    let next =
        "next, say what the kind means in its types and its controller, then:\n  make manifests test\n";
    execute("create api", dir, flags.plan, shell, &mut |tree| {
        Ok(plan(tree, &flags)?.with_next(next))
    })
}

/// Asks for what was not said, where somebody can answer. A yes leaves the default, which knows the project.
fn ask(flags: &mut ApiFlags, shell: &mut Shell) {
    if flags.plan.output == Output::Json {
        return;
    }
    let questions = [
        (&mut flags.resource, "Write the API types?"),
        (
            &mut flags.controller,
            "Write a controller, unless the kind has one?",
        ),
    ];
    for (flag, question) in questions {
        if flag.is_none() && !shell.confirm(question, true) {
            *flag = Some(false);
        }
    }
}

/// What `create api` would change.
///
/// # Errors
/// When a name is not sound or taken, a file is in the way, or a file is not laid out as an edit needs it.
pub fn plan(tree: &Tree, flags: &ApiFlags) -> Result<Outcome> {
    check_flags(flags)?;
    let mut project = scaffold::require_project(tree)?;
    let mut request = Request::new(&project, flags)?;
    let taken = request.take(&project, tree, flags)?;
    request.check_free(&project, tree)?;
    let context = scaffold::project_context(&project, tree.root());
    let mut api = request.context(&project);
    api.kube_arguments.clone_from(&taken.arguments);
    if crates(tree)?.contains(&api.module) {
        api.reexport = format!("self::{}", api.module);
    }
    if let Some(name) = taken.sample_name() {
        api.sample_name = name.to_owned();
    }
    let mut files = rbuilder_templates::api_files(&context, &api).map_err(anyhow::Error::new)?;
    taken.replace(&mut files, &api);

    let mut plan = Plan::default();
    for file in &files {
        check_module_place(tree, &file.path)?;
    }
    owners::check(&project, tree, &request.resource, &files)?;
    let wanted = if request.further && !flags.force {
        further::keep(&mut plan, tree, &files, &api, request.known)?
    } else {
        files.clone()
    };
    scaffold::put(&mut plan, tree, &mut project, &wanted, flags.force)?;
    plan.check_conflicts()?;
    add_lines(&mut plan, tree, &files, &api)?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    let unbound = project.known.namespaced && api.controller && !api.namespaced;
    project.add_resource(request.resource.clone());
    plan.edit(tree, FILE, &project.print())?;
    let mut outcome = found.into_outcome(plan);
    taken.warn(&api, &mut outcome);
    if request.types {
        further::warn_unconverted(&project, &request.resource, &mut outcome);
    }
    if unbound {
        outcome.warn(
            &format!(
                "`{}` lives in no namespace, and this project binds its manager to a Role only",
                api.kind
            ),
            "in config/rbac/, bind the ServiceAccount `controller-manager` to the ClusterRole `manager-role` too",
        );
    }
    Ok(outcome)
}

/// A module lives in `a.rs` or in `a/mod.rs`; Rust refuses both at once.
pub(super) fn check_module_place(tree: &Tree, path: &str) -> Result<()> {
    let Some(folder) = path.strip_suffix("/mod.rs") else {
        return Ok(());
    };
    if tree.read(&format!("{folder}.rs"))?.is_some() {
        bail!("{folder}.rs is there already, and new files go into {folder}/: move it to {path}");
    }
    Ok(())
}

/// Rules that need no project.
fn check_flags(flags: &ApiFlags) -> Result<()> {
    let plural = flags.plural.as_deref().map_or(Ok(()), names::plural);
    scaffold::check_names([names::version(&flags.version), names::kind(&flags.kind), plural])
}

/// A kind that is asked for, with every default settled.
struct Request {
    resource: Resource,
    /// Whether the types are written.
    types: bool,
    /// Whether a controller is written.
    controller: bool,
    /// Whether another version of the kind was there first.
    further: bool,
    /// Whether PROJECT has this version already.
    known: bool,
    /// The version that a further one begins as a copy of.
    before: Option<Resource>,
    namespaced: bool,
}

impl Request {
    fn new(project: &Project, flags: &ApiFlags) -> Result<Request> {
        let known = &project.known;
        scaffold::check_names([names::domain(&known.domain)])?;
        let group = names::group(&flags.group, &known.domain);
        let module = if known.multigroup {
            names::group_module(&flags.group).map(drop)
        } else {
            Ok(())
        };
        scaffold::check_names([group.and(module)])?;

        let mut resource = Resource {
            group: flags.group.clone(),
            domain: known.domain.clone(),
            version: flags.version.clone(),
            kind: flags.kind.clone(),
            ..Resource::default()
        };
        let family: Vec<&Resource> = known
            .resources
            .iter()
            .filter(|other| other.same_kind(&resource))
            .collect();
        let own = family.iter().find(|other| other.version == resource.version);
        let others: Vec<&&Resource> = family
            .iter()
            .filter(|other| other.version != resource.version && other.api.is_some())
            .collect();

        let types = flags.resource.unwrap_or(true);
        let controlled = others.iter().any(|other| other.controller);
        let controller = flags.controller.unwrap_or(!controlled);
        if !types && !controller {
            bail!("with `--resource=false` and `--controller=false` there is nothing to do");
        }
        if controller && controlled {
            bail!(
                "kind `{}` has a controller already, of another version: leave out `--controller`",
                flags.kind
            );
        }
        if !types && own.is_none_or(|own| own.api.is_none()) {
            if let Some(known) = Known::find(&flags.group, &flags.version, &flags.kind) {
                return Err(known.refuse_controller(project));
            }
            bail!(
                "there are no types of `{}` in {}/{} to control: leave out `--resource=false`",
                flags.kind,
                flags.group,
                flags.version
            );
        }

        let recorded_plural = own
            .into_iter()
            .chain(&family)
            .map(|other| &other.plural)
            .find(|plural| !plural.is_empty());
        resource.plural = match (&flags.plural, recorded_plural) {
            (Some(asked), Some(known)) if asked != known => bail!(
                "kind `{}` has the plural `{known}` already, and one plural serves all its versions (`--plural`)",
                flags.kind
            ),
            (Some(asked), _) => asked.clone(),
            (None, Some(known)) => known.clone(),
            (None, None) => names::plural_of(&flags.kind),
        };
        scaffold::check_names([names::plural(&resource.plural)])?;
        let recorded_scope = own
            .into_iter()
            .chain(&family)
            .find_map(|other| other.api.as_ref())
            .map(|api| api.namespaced);
        let namespaced = match (flags.namespaced, recorded_scope) {
            (Some(asked), Some(known)) if asked != known => bail!(
                "kind `{}` is there already with `--namespaced={known}`, and one scope serves all its versions",
                flags.kind
            ),
            (asked, known) => asked.or(known).unwrap_or(true),
        };
        if types || own.is_some_and(|own| own.api.is_some()) {
            resource.api = Some(Api {
                crd_version: "v1".into(),
                namespaced,
            });
        }
        resource.controller = controller;
        // The version that came first is stored; asking for it again does not change that.
        let first = family.iter().find(|other| other.api.is_some());
        let further = first.is_some_and(|first| first.version != resource.version);
        let known = own.is_some_and(|own| own.api.is_some());
        let before = further::newest(&family, &resource.version).filter(|_| further && types);
        Ok(Request {
            before: before.cloned(),
            resource,
            types,
            controller,
            further,
            known,
            namespaced,
        })
    }

    /// The parts that a further version takes from the one before it; nothing for a first one.
    fn take(&mut self, project: &Project, tree: &Tree, flags: &ApiFlags) -> Result<Taken> {
        let Some(before) = &self.before else {
            return Ok(Taken::default());
        };
        let before = ApiPlaces::of(project, before).context();
        let taken = Taken::read(tree, &before, &self.resource.version)?;
        if !self.known {
            taken.settle(self, flags);
        }
        Ok(taken)
    }

    /// Refuses names that others in the project have.
    fn check_free(&self, project: &Project, tree: &Tree) -> Result<()> {
        let wanted = &self.resource;
        let known = &project.known;
        if let Some(other) = known.resources.iter().find(|other| other.group != wanted.group)
            && !known.multigroup
            && self.types
        {
            bail!(
                "the project has the group `{}`, and a second one, `{}`, needs the layout with several groups: start with `rbuilder init --multigroup`",
                other.group,
                wanted.group
            );
        }
        owners::check_group(known, &wanted.group)?;
        let module = names::module(&wanted.kind);
        for other in known
            .resources
            .iter()
            .filter(|other| other.group == wanted.group && other.kind != wanted.kind)
        {
            let (kind, taken) = (&wanted.kind, &other.kind);
            if names::module(taken) == module || taken.to_lowercase() == kind.to_lowercase() {
                bail!(
                    "kind `{kind}` cannot be told from `{taken}` in file and object names: choose another (`--kind`)"
                );
            }
            if other.plural == wanted.plural {
                bail!(
                    "`{taken}` has the plural `{}` already: give another one (`--plural`)",
                    other.plural
                );
            }
            for end in ["Spec", "Status"] {
                let both = std::cmp::max_by_key(kind, taken, |name| name.len());
                if *both == format!("{taken}{end}") || *both == format!("{kind}{end}") {
                    bail!(
                        "kind `{kind}` and kind `{taken}` would both define a type `{both}`: choose another (`--kind`)"
                    );
                }
            }
        }
        if self.controller {
            let folder = self.controller_path(project).replace("::", "/");
            if tree.read(&format!("src/{folder}/mod.rs"))?.is_some() {
                bail!(
                    "src/{folder}/ is there already, where the controller of `{}` would go: move it away",
                    wanted.kind
                );
            }
        }
        Ok(())
    }

    fn controller_path(&self, project: &Project) -> String {
        controller_path(project, &self.resource)
    }

    fn context(&self, project: &Project) -> ApiContext {
        ApiPlaces {
            project,
            resource: &self.resource,
            types: self.types,
            controller: self.controller,
            further: self.further,
            namespaced: self.namespaced,
        }
        .context()
    }
}

fn group_path(project: &Project, resource: &Resource) -> String {
    let module = names::group_module(&resource.group);
    match module {
        Ok(module) if project.known.multigroup => format!("{module}::"),
        _ => String::new(),
    }
}

fn controller_path(project: &Project, resource: &Resource) -> String {
    format!(
        "controller::{}{}",
        group_path(project, resource),
        names::module(&resource.kind)
    )
}

/// A kind in one version, and where everything about it is.
pub(super) struct ApiPlaces<'a> {
    project: &'a Project,
    resource: &'a Resource,
    types: bool,
    controller: bool,
    further: bool,
    namespaced: bool,
}

impl<'a> ApiPlaces<'a> {
    /// The places of a kind that PROJECT has.
    pub(super) fn of(project: &'a Project, resource: &'a Resource) -> Self {
        let mut family = project
            .known
            .resources
            .iter()
            .filter(|other| other.same_kind(resource) && other.api.is_some());
        ApiPlaces {
            project,
            resource,
            types: false,
            controller: false,
            further: family
                .next()
                .is_some_and(|first| first.version != resource.version),
            namespaced: resource.api.as_ref().is_none_or(|api| api.namespaced),
        }
    }

    /// The same with everything that PROJECT says is there.
    pub(super) fn with_all(self) -> Self {
        ApiPlaces {
            types: self.resource.api.is_some(),
            controller: self.resource.controller,
            ..self
        }
    }

    /// The same for templates.
    pub(super) fn context(&self) -> ApiContext {
        let Resource {
            group,
            domain,
            version,
            kind,
            plural,
            ..
        } = self.resource;
        let project = self.project;
        let singular = kind.to_lowercase();
        let module = names::module(kind);
        let group_path = group_path(project, self.resource);
        let qualified_group = format!("{group}.{domain}");
        let multigroup = project.known.multigroup;
        let mut test_module = format!("{}{module}", group_path.replace("::", "_"));
        if self.further {
            test_module = format!("{test_module}_{version}");
        }
        let api_path = format!("api::{group_path}{version}");
        let (kind_path, kind_type) = names::kind_import(kind, version, &api_path);
        ApiContext {
            api_version: format!("{qualified_group}/{version}"),
            api_path,
            kind_path,
            kind_type,
            reexport: module.clone(),
            controller_path: controller_path(project, self.resource),
            test_module,
            role_prefix: if multigroup {
                format!("{}-{singular}", group.replace('.', "-"))
            } else {
                singular.clone()
            },
            namespaced: self.namespaced,
            resource: self.types,
            controller: self.controller,
            storage: !self.further,
            crd_file: format!("config/crd/bases/{qualified_group}_{plural}.yaml"),
            sample_file: format!("config/samples/{group}_{version}_{singular}.yaml"),
            sample_name: format!("{singular}-sample"),
            kube_arguments: Vec::new(),
            needs_approval: names::needs_approval(&qualified_group),
            group: group.clone(),
            qualified_group_yaml: scaffold::yaml_value(&qualified_group),
            qualified_group,
            version: version.clone(),
            kind: kind.clone(),
            kind_yaml: scaffold::yaml_value(kind),
            singular,
            plural: plural.clone(),
            plural_yaml: scaffold::yaml_value(plural),
            module,
        }
    }
}

/// Makes the new files known to the ones that list them.
fn add_lines(plan: &mut Plan, tree: &Tree, files: &[Rendered], api: &ApiContext) -> Result<()> {
    if api.resource {
        let parts: Vec<&str> = api.api_path.split("::").collect();
        add_modules(plan, tree, &parts)?;
        let version = format!("src/{}/mod.rs", parts.join("/"));
        edit(
            plan,
            tree,
            &version,
            &format!("mod {};\npub use {}::*;", api.module, api.reexport),
            |text| rust::add_reexport(&rust::add_module(text, &api.module, false)?, &api.reexport),
        )?;
        for file in files {
            let Some((folder @ ("config/samples" | "config/rbac"), name)) = file.path.rsplit_once('/') else {
                continue;
            };
            let list = format!("{folder}/kustomization.yaml");
            edit(plan, tree, &list, &format!("resources:\n- {name}"), |text| {
                kustomization::add(text, name)
            })?;
        }
        edit(
            plan,
            tree,
            "config/default/kustomization.yaml",
            "resources:\n- ../crd",
            |text| kustomization::add(text, "../crd"),
        )?;
    }
    if api.controller {
        let mut parts: Vec<&str> = api.controller_path.split("::").collect();
        add_modules(plan, tree, &parts)?;
        let call = format!("{}::controller()", parts.split_off(1).join("::"));
        edit(
            plan,
            tree,
            "src/controller/mod.rs",
            &format!("manager.controller({call})"),
            |text| rust::add_registration(text, "controller", &call),
        )?;
    }
    Ok(())
}

/// The crates that a path may begin with in the project's library: a module of the same name needs `self::` before it.
fn crates(tree: &Tree) -> Result<BTreeSet<String>> {
    let mut crates = BTreeSet::from(["core".to_owned(), "std".to_owned()]);
    let manifest = tree.read("Cargo.toml")?.unwrap_or_default();
    let Ok(manifest) = toml_edit::Document::parse(manifest) else {
        return Ok(crates);
    };
    let tables = ["dependencies", "dev-dependencies"].map(|table| manifest.get(table));
    let tables = tables.into_iter().flatten().filter_map(Item::as_table_like);
    for (name, _) in tables.flat_map(|table| table.iter()) {
        crates.insert(name.replace('-', "_"));
    }
    Ok(crates)
}

/// Adds `pub mod` for each part of a path to the file of the part before it.
pub(super) fn add_modules(plan: &mut Plan, tree: &Tree, parts: &[&str]) -> Result<()> {
    for end in 1..parts.len() {
        let path = format!("src/{}/mod.rs", parts[..end].join("/"));
        let name = parts[end];
        edit(plan, tree, &path, &format!("pub mod {name};"), |text| {
            rust::add_module(text, name, true)
        })?;
    }
    Ok(())
}

/// Edits one file, or stops with the lines to add.
pub(super) fn edit<E: Into<Obstacle>>(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    lines: &str,
    change: impl Fn(&str) -> Result<String, E>,
) -> Result<()> {
    let unrecognised = |obstacle: Obstacle| anyhow!(obstacle.in_file(path, lines));
    let Some(text) = plan.read(tree, path)? else {
        return Err(unrecognised("it is not there".into()));
    };
    let edited = change(&text).map_err(|obstacle| unrecognised(obstacle.into()))?;
    if edited == text {
        plan.keep(path);
        return Ok(());
    }
    plan.edit(tree, path, &edited)
}
