//! `rbuilder create api`: scaffolds a kind and its controller, and registers both in the project.

mod further;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{ApiContext, Rendered};
use toml_edit::Item;

use self::further::{CopiedParts, types_path};
use super::kubernetes_kind::BuiltinKind;
use super::{Outcome, execute, owners, scaffold};
use crate::edit::{Obstacle, kustomization, rust};
use crate::flags::{ApiFlags, Output};
use crate::plan::Plan;
use crate::project::{Api, Image, Project, Resource, names};
use crate::shell::Shell;
use crate::tree::Tree;

/// Module of the project's end-to-end test in `tests/`, which no test of a kind may have.
const END_TO_END_TEST: &str = "e2e";

pub(super) fn run(dir: &Path, flags: &ApiFlags, shell: &mut Shell) -> Result<u8> {
    check_flags(flags)?;
    let mut flags = flags.clone();
    ask(&mut flags, shell);
    execute("create api", dir, flags.plan, shell, &mut |tree| {
        plan_create_api(tree, &flags)
    })
}

/// Asks for the flags that were not passed, if the terminal is interactive. "Yes" leaves the flag unset, so that the
/// default depends on the project.
fn ask(flags: &mut ApiFlags, shell: &mut Shell) {
    // A controller for an image is scaffolded as a whole.
    if flags.plan.output == Output::Json || flags.image.name.is_some() {
        return;
    }
    let questions = [
        (&mut flags.resource, "Generate the API types?"),
        (&mut flags.controller, "Generate a controller?"),
    ];
    for (flag, question) in questions {
        if flag.is_none() && !shell.confirm(question, true) {
            *flag = Some(false);
        }
    }
}

/// Returns the changes that `create api` makes.
///
/// # Errors
/// Fails if a name is invalid or taken, if files conflict, or if a file cannot be edited.
pub fn plan_create_api(tree: &Tree, flags: &ApiFlags) -> Result<Outcome> {
    check_flags(flags)?;
    let mut project = scaffold::require_project(tree)?;
    let mut request = Request::new(&project, flags)?;
    let taken = request.read_previous(&project, tree, flags)?;
    request.check_free_names(&project, tree)?;
    let context = scaffold::project_context(&project);
    let mut api = request.context(&project);
    api.kube_arguments.clone_from(&taken.arguments);
    if read_crate_names(tree)?.contains(&api.module) {
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
    owners::check_file_owners(&project, &request.resource, &files)?;
    let wanted = if request.further && !flags.force {
        further::keep_existing_files(&mut plan, tree, &files, &api, request.known)?
    } else {
        files.clone()
    };
    scaffold::add_files(&mut plan, tree, &mut project, &wanted, flags.force)?;
    plan.check_conflicts()?;
    add_lines(&mut plan, tree, &files, &api)?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    let unbound = project.known.namespaced && api.controller && !api.namespaced;
    project.add_resource(request.resource.clone());
    project.write(&mut plan, tree)?;
    let mut outcome = found.into_outcome(plan).with_next(&next_steps(&api));
    taken.warn(&api, &mut outcome);
    if request.types {
        further::warn_unconverted(&project, &request.resource, &mut outcome);
    }
    if unbound {
        outcome.warn(
            &format!(
                "kind `{}` is cluster-scoped, but the manager of this project is bound to a Role only",
                api.kind
            ),
            "in config/rbac/, also bind the ServiceAccount `controller-manager` to the ClusterRole `manager-role`",
        );
    }
    Ok(outcome)
}

/// Returns the next steps: the files to edit, and the command that builds and tests them.
fn next_steps(api: &ApiContext) -> String {
    let mut files = Vec::new();
    if api.resource {
        files.push(types_path(api));
    }
    if api.controller {
        files.push(format!("src/{}.rs", api.controller_path.replace("::", "/")));
    }
    format!(
        "Next: edit {}, then run:\n  make manifests test\n",
        files.join(" and ")
    )
}

/// Checks that a module `a/mod.rs` to write does not exist as `a.rs`: Rust rejects both at once.
pub(super) fn check_module_place(tree: &Tree, path: &str) -> Result<()> {
    let Some(folder) = path.strip_suffix("/mod.rs") else {
        return Ok(());
    };
    if tree.read(&format!("{folder}.rs"))?.is_some() {
        bail!("{folder}.rs exists, but the module needs the directory {folder}/: move it to {path}");
    }
    Ok(())
}

/// Checks the rules that do not depend on the project.
fn check_flags(flags: &ApiFlags) -> Result<()> {
    let plural = flags.plural.as_deref().map_or(Ok(()), names::check_plural);
    scaffold::check_names([
        names::check_version(&flags.version),
        names::check_kind(&flags.kind),
        plural,
        Image::requested(&flags.image).map_or(Ok(()), |image| image.check()),
    ])?;
    let is_whole = flags.resource != Some(false) && flags.controller != Some(false);
    if flags.image.name.is_some() && !(is_whole && flags.namespaced != Some(false)) {
        bail!(
            "`--image` scaffolds the types and the controller of a namespaced kind: omit `--resource=false`, \
             `--controller=false` and `--namespaced=false`"
        );
    }
    Ok(())
}

/// A requested kind with all defaults applied.
struct Request {
    resource: Resource,
    /// True if the types are scaffolded.
    types: bool,
    /// True if a controller is scaffolded.
    controller: bool,
    /// True if another version of the kind came first.
    further: bool,
    /// True if PROJECT already has this version.
    known: bool,
    /// The version that a further version is copied from.
    before: Option<Resource>,
    namespaced: bool,
}

impl Request {
    fn new(project: &Project, flags: &ApiFlags) -> Result<Request> {
        let known = &project.known;
        scaffold::check_names([names::check_domain(&known.domain)])?;
        let group = names::check_group(&flags.group, &known.domain);
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
            bail!("nothing to scaffold: pass only one of `--resource=false` and `--controller=false`");
        }
        if controller && controlled {
            bail!(
                "kind `{}` already has a controller for another version: omit `--controller`",
                flags.kind
            );
        }
        if !types && own.is_none_or(|own| own.api.is_none()) {
            if let Some(known) = BuiltinKind::find(&flags.group, &flags.version, &flags.kind) {
                return Err(known.refuse_controller(project));
            }
            bail!(
                "kind `{}` has no API types in {}/{}: omit `--resource=false` to scaffold them",
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
                "kind `{}` already has the plural `{known}`, which all its versions must share (`--plural`)",
                flags.kind
            ),
            (Some(asked), _) => asked.clone(),
            (None, Some(known)) => known.clone(),
            (None, None) => names::plural_of(&flags.kind),
        };
        scaffold::check_names([names::check_plural(&resource.plural)])?;
        let recorded_scope = own
            .into_iter()
            .chain(&family)
            .find_map(|other| other.api.as_ref())
            .map(|api| api.namespaced);
        let namespaced = match (flags.namespaced, recorded_scope) {
            (Some(asked), Some(known)) if asked != known => bail!(
                "kind `{}` already exists with `--namespaced={known}`, and all its versions must have the same scope",
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
        resource.image = settle_image(Image::requested(&flags.image), own, &others, &flags.kind)?;
        // The first version is the storage version; requesting it again does not change that.
        let first = family.iter().find(|other| other.api.is_some());
        let further = first.is_some_and(|first| first.version != resource.version);
        let known = own.is_some_and(|own| own.api.is_some());
        let before = further::find_newest_version(&family, &resource.version).filter(|_| further && types);
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

    /// Reads the parts that a further version copies from the version before it; empty for a first version.
    fn read_previous(&mut self, project: &Project, tree: &Tree, flags: &ApiFlags) -> Result<CopiedParts> {
        let Some(before) = &self.before else {
            return Ok(CopiedParts::default());
        };
        let before = ApiPlaces::of(project, before).context();
        let taken = CopiedParts::read(tree, &before, &self.resource.version)?;
        if !self.known {
            taken.apply_defaults(self, flags);
        }
        Ok(taken)
    }

    /// Checks that no other kind of the project has the requested names.
    fn check_free_names(&self, project: &Project, tree: &Tree) -> Result<()> {
        let wanted = &self.resource;
        let known = &project.known;
        if let Some(other) = known.resources.iter().find(|other| other.group != wanted.group)
            && !known.multigroup
            && self.types
        {
            bail!(
                "multiple groups are not enabled: use group `{}` instead of `{}`, or initialize a project with `rbuilder init --multigroup`",
                other.group,
                wanted.group
            );
        }
        owners::check_group_directory(known, &wanted.group)?;
        let module = names::module_name(&wanted.kind);
        for other in known
            .resources
            .iter()
            .filter(|other| other.group == wanted.group && other.kind != wanted.kind)
        {
            let (kind, taken) = (&wanted.kind, &other.kind);
            if names::module_name(taken) == module || taken.to_lowercase() == kind.to_lowercase() {
                bail!(
                    "kind `{kind}` has the same file or object names as kind `{taken}`: choose another kind (`--kind`)"
                );
            }
            if other.plural == wanted.plural {
                bail!(
                    "kind `{taken}` already has the plural `{}`: choose another plural (`--plural`)",
                    other.plural
                );
            }
            for end in ["Spec", "Status"] {
                let both = std::cmp::max_by_key(kind, taken, |name| name.len());
                if *both == format!("{taken}{end}") || *both == format!("{kind}{end}") {
                    bail!(
                        "kind `{kind}` and kind `{taken}` would both define a type `{both}`: choose another kind (`--kind`)"
                    );
                }
            }
        }
        if self.controller {
            let folder = self.controller_path(project).replace("::", "/");
            if tree.read(&format!("src/{folder}/mod.rs"))?.is_some() {
                bail!(
                    "src/{folder}/ exists, but is the path of the module for the controller of `{}`: move it away",
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

/// Returns the image of a version: the recorded one, or for a new kind the requested one.
fn settle_image(
    asked: Option<Image>,
    own: Option<&&Resource>,
    others: &[&&Resource],
    kind: &str,
) -> Result<Option<Image>> {
    let recorded = own.and_then(|own| own.image.clone());
    match (asked, own) {
        (Some(asked), _) if recorded.as_ref() == Some(&asked) => Ok(recorded),
        (None, _) => Ok(recorded),
        (Some(asked), None) if others.is_empty() => Ok(Some(asked)),
        (Some(_), _) => bail!(
            "kind `{kind}` is already scaffolded, and `--image` is for a new kind: change the image in its controller"
        ),
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
        names::module_name(&resource.kind)
    )
}

/// A kind in one version, and the paths of everything that belongs to it.
pub(super) struct ApiPlaces<'a> {
    project: &'a Project,
    resource: &'a Resource,
    types: bool,
    controller: bool,
    further: bool,
    namespaced: bool,
}

impl<'a> ApiPlaces<'a> {
    /// Returns the paths of a kind in PROJECT.
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

    /// Includes the types and the controller that PROJECT records.
    pub(super) fn with_all(self) -> Self {
        ApiPlaces {
            types: self.resource.api.is_some(),
            controller: self.resource.controller,
            ..self
        }
    }

    /// Returns the template context.
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
        let module = names::module_name(kind);
        let group_path = group_path(project, self.resource);
        let qualified_group = format!("{group}.{domain}");
        let multigroup = project.known.multigroup;
        let mut test_module = format!("{}{module}", group_path.replace("::", "_"));
        if self.further || test_module == END_TO_END_TEST {
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
            sample_name: if self.further {
                format!("{singular}-sample-{version}")
            } else {
                format!("{singular}-sample")
            },
            kube_arguments: Vec::new(),
            image: self.resource.image.as_ref().map(Image::context),
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

/// Registers the new files in the files that list them.
fn add_lines(plan: &mut Plan, tree: &Tree, files: &[Rendered], api: &ApiContext) -> Result<()> {
    if api.resource {
        let parts: Vec<&str> = api.api_path.split("::").collect();
        add_modules(plan, tree, &parts)?;
        let version = format!("src/{}/mod.rs", parts.join("/"));
        edit_file(
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
            edit_file(plan, tree, &list, &format!("resources:\n- {name}"), |text| {
                kustomization::add_resource(text, name)
            })?;
        }
        edit_file(
            plan,
            tree,
            "config/default/kustomization.yaml",
            "resources:\n- ../crd",
            |text| kustomization::add_resource(text, "../crd"),
        )?;
    }
    if api.controller {
        let mut parts: Vec<&str> = api.controller_path.split("::").collect();
        add_modules(plan, tree, &parts)?;
        let call = format!("{}::controller()", parts.split_off(1).join("::"));
        edit_file(
            plan,
            tree,
            "src/controller/mod.rs",
            &format!("manager.controller({call})"),
            |text| rust::add_registration(text, "controller", &call),
        )?;
    }
    Ok(())
}

/// Returns the crates that the library of the project can name: a module with the same name needs `self::` before it.
fn read_crate_names(tree: &Tree) -> Result<BTreeSet<String>> {
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

/// Adds a `pub mod` line for each part of a module path to the file of its parent.
pub(super) fn add_modules(plan: &mut Plan, tree: &Tree, parts: &[&str]) -> Result<()> {
    for end in 1..parts.len() {
        let path = format!("src/{}/mod.rs", parts[..end].join("/"));
        let name = parts[end];
        edit_file(plan, tree, &path, &format!("pub mod {name};"), |text| {
            rust::add_module(text, name, true)
        })?;
    }
    Ok(())
}

/// Edits a file; fails with the lines to add by hand if that is not possible.
pub(super) fn edit_file<E: Into<Obstacle>>(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    lines: &str,
    change: impl Fn(&str) -> Result<String, E>,
) -> Result<()> {
    let unrecognised = |obstacle: Obstacle| anyhow!(obstacle.in_file(path, lines));
    let Some(text) = plan.read(tree, path)? else {
        return Err(unrecognised("the file does not exist".into()));
    };
    let edited = change(&text).map_err(|obstacle| unrecognised(obstacle.into()))?;
    if edited == text {
        plan.keep(path);
        return Ok(());
    }
    plan.edit(tree, path, &edited)
}
