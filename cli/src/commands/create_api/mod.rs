//! `rbuilder create api`: scaffolds a kind and its controller, and registers both in the project.

mod further;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{ApiContext, Rendered};
use toml_edit::Item;

use self::further::{CopiedParts, types_path};
use super::foreign_kind::{self, KindFlags, find_foreign_kind};
use super::{Outcome, execute, owners, scaffold};
use crate::edit::{Obstacle, kustomization, rust};
use crate::flags::{ApiFlags, Output};
use crate::plan::Plan;
use crate::project::{Api, Image, Project, Resource, names};
use crate::shell::Shell;
use crate::tree::Tree;

/// Module of the project's end-to-end test in `tests/`, which no test of a kind may have.
const END_TO_END_TEST: &str = "e2e";

/// The binding of the manager to the ClusterRole, in a project whose manager is restricted to a namespace.
pub(super) const BINDING: &str = "config/rbac/cluster_role_binding.yaml";

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
    let mut request = Request::new(&project, tree, flags)?;
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
    foreign_kind::add_crate(&mut plan, tree, &request.resource)?;
    add_lines(&mut plan, tree, &files, &api)?;
    project.add_resource(request.resource.clone());
    project.write(&mut plan, tree)?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    let mut outcome = found.into_outcome(plan).with_next(&next_steps(&api));
    taken.warn(&api, &mut outcome);
    if request.types {
        further::warn_unconverted(&project, &request.resource, &mut outcome);
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
    let controller = flags.controller_name.as_deref();
    scaffold::check_names([
        names::check_version(&flags.version),
        names::check_kind(&flags.kind),
        plural,
        Image::requested(&flags.image).map_or(Ok(()), |image| image.check()),
        controller.map_or(Ok(()), names::check_controller_name),
    ])?;
    let is_whole = flags.resource != Some(false) && flags.controller != Some(false);
    if flags.image.name.is_some() && (controller.is_some() || flags.external.path.is_some()) {
        bail!(
            "`--image` scaffolds a kind of the project with one controller: omit `--controller-name` and `--external-path`"
        );
    }
    if flags.image.name.is_some() && !(is_whole && flags.namespaced != Some(false)) {
        bail!(
            "`--image` scaffolds the types and the controller of a namespaced kind: omit `--resource=false`, \
             `--controller=false` and `--namespaced=false`"
        );
    }
    if controller.is_some() && flags.controller == Some(false) {
        bail!("`--controller-name` names a controller: omit `--controller=false`");
    }
    if flags.external.path.is_some() && flags.resource == Some(true) {
        bail!("the types of another project's kind are in its crate: omit `--resource`");
    }
    Ok(())
}

/// A requested kind with all defaults applied.
struct Request {
    resource: Resource,
    /// True if the types are scaffolded.
    types: bool,
    /// Name of the controller to scaffold, if one is.
    controller: Option<String>,
    /// True if another version of the kind came first.
    further: bool,
    /// True if PROJECT already has this version.
    known: bool,
    /// The version that a further version is copied from.
    before: Option<Resource>,
    namespaced: bool,
}

impl Request {
    fn new(project: &Project, tree: &Tree, flags: &ApiFlags) -> Result<Request> {
        match find_foreign(project, tree, flags)? {
            Some(resource) => Request::for_foreign(project, flags, resource),
            None => Request::for_own(project, tree, flags),
        }
    }

    /// Returns the request of a controller for a kind whose types are not the project's.
    fn for_foreign(project: &Project, flags: &ApiFlags, resource: Resource) -> Result<Request> {
        let kind = &resource.kind;
        if flags.controller == Some(false) {
            bail!(
                "nothing to scaffold for `{kind}`, whose types are not this project's: omit `--controller=false`"
            );
        }
        if let Some(plural) = flags.plural.as_ref().filter(|plural| **plural != resource.plural) {
            bail!(
                "kind `{kind}` has the plural `{}`, not `{plural}`: omit `--plural`",
                resource.plural
            );
        }
        let namespaced = resource.is_namespaced();
        if flags.namespaced.is_some_and(|asked| asked != namespaced) {
            let scope = if namespaced {
                "namespaced"
            } else {
                "cluster-scoped"
            };
            bail!("kind `{kind}` is {scope}: omit `--namespaced`");
        }
        foreign_kind::check_is_stored(&resource)?;
        let known = &project.known;
        if known.multigroup {
            scaffold::check_names([names::group_module(&resource.group).map(drop)])?;
        }
        let family = known.resources.iter().filter(|other| other.same_kind(&resource));
        let controller = choose_controller(flags, &resource, &family.collect::<Vec<_>>())?;
        let mut resource = resource;
        resource.add_controller(flags.controller_name.as_deref());
        Ok(Request {
            resource,
            types: false,
            controller: Some(controller),
            further: false,
            known: false,
            before: None,
            namespaced,
        })
    }

    fn for_own(project: &Project, tree: &Tree, flags: &ApiFlags) -> Result<Request> {
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

        let is_named = flags.controller_name.is_some();
        let is_scaffolded = own.is_some_and(|own| own.api.is_some());
        let types = flags.resource.unwrap_or(!(is_named && is_scaffolded));
        let controlled = others.iter().any(|other| other.has_controller());
        let has_others = own.is_some_and(|own| {
            let names = own.controller_names();
            !names.is_empty() && !names.contains(&own.default_controller())
        });
        let controller = flags
            .controller
            .unwrap_or(is_named || !(controlled || has_others));
        if !types && !controller {
            bail!("nothing to scaffold: pass only one of `--resource=false` and `--controller=false`");
        }
        if controller && controlled && !is_named {
            bail!(
                "kind `{}` already has a controller for another version: omit `--controller`, or name another one with `--controller-name`",
                flags.kind
            );
        }
        if !types && !is_scaffolded {
            bail!(
                "kind `{}` has no API types in {}: omit `--resource=false` to scaffold them{}",
                flags.kind,
                shown_version(&flags.group, &flags.version),
                foreign_kind::explain_unknown(tree, &flags.group, &flags.version, &flags.kind)?
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
        if types || is_scaffolded {
            resource.api = Some(Api {
                crd_version: "v1".into(),
                namespaced,
            });
        }
        let mut name = None;
        if controller {
            name = Some(choose_controller(
                flags,
                own.map_or(&resource, |own| *own),
                &family,
            )?);
            if let Some(own) = own {
                resource.controller = own.controller;
                resource.controllers.clone_from(&own.controllers);
            }
            resource.add_controller(flags.controller_name.as_deref());
            if !resource.controllers.is_empty() {
                resource.controller = false;
            }
        }
        resource.image = settle_image(Image::requested(&flags.image), own, &others, &flags.kind)?;
        // The first version is the storage version; requesting it again does not change that.
        let first = family.iter().find(|other| other.api.is_some());
        let further = first.is_some_and(|first| first.version != resource.version);
        let before = further::find_newest_version(&family, &resource.version).filter(|_| further && types);
        Ok(Request {
            before: before.cloned(),
            resource,
            types,
            controller: name,
            further,
            known: is_scaffolded,
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
        let is_of_another_group = |other: &&Resource| other.api.is_some() && other.group != wanted.group;
        if let Some(other) = known.resources.iter().find(is_of_another_group)
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
            .filter(|other| (&other.group, &other.domain) == (&wanted.group, &wanted.domain))
            .filter(|other| other.kind != wanted.kind)
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
        if let Some(name) = &self.controller {
            let folder = controller_path(project, wanted, name).replace("::", "/");
            if tree.read(&format!("src/{folder}/mod.rs"))?.is_some() {
                bail!(
                    "src/{folder}/ exists, but is the path of the module for the controller of `{}`: move it away",
                    wanted.kind
                );
            }
        }
        Ok(())
    }

    fn context(&self, project: &Project) -> ApiContext {
        ApiPlaces {
            project,
            resource: &self.resource,
            types: self.types,
            controller: self.controller.clone(),
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

/// Returns the entry for a kind that is not the project's, if the flags are about one: they say so, or they ask for the
/// controller of a kind that only Kubernetes has.
fn find_foreign(project: &Project, tree: &Tree, flags: &ApiFlags) -> Result<Option<Resource>> {
    let mut resources = project.known.resources.iter().filter(|own| own.api.is_some());
    let is_external = flags.external.path.is_some();
    let is_own = |own: &&Resource| own.group == flags.group && own.kind == flags.kind;
    if flags.resource == Some(true) || (!is_external && resources.clone().any(|own| is_own(&own))) {
        return Ok(None);
    }
    let asks_for_controller = flags.controller == Some(true) || flags.controller_name.is_some();
    let asks_for_types = flags.resource.is_none() && !asks_for_controller;
    let kind = KindFlags {
        group: &flags.group,
        version: &flags.version,
        kind: &flags.kind,
        plural: flags.plural.as_deref(),
        namespaced: flags.namespaced,
        external: &flags.external,
    };
    let Some(found) = find_foreign_kind(project, tree, kind)? else {
        return Ok(None);
    };
    if found.external {
        return Ok(Some(found));
    }
    let is_recorded = project.known.resources.iter().any(|known| known.same(&found));
    if asks_for_types && !is_recorded {
        return Ok(None);
    }
    let has_group = resources.any(|own| own.group == flags.group);
    if has_group && flags.resource.is_none() && !is_recorded {
        bail!(
            "group `{0}` is one of this project, `{0}.{1}`, and one of Kubernetes: pass `--resource=false` for a controller of the built-in kind `{2}`, or `--resource` for a kind of your own",
            flags.group,
            project.known.domain,
            flags.kind
        );
    }
    Ok(Some(found))
}

/// Returns the name of the controller to scaffold.
///
/// # Errors
/// Fails if a name is needed, because the kind has controllers with others, or if another version has it.
fn choose_controller(flags: &ApiFlags, resource: &Resource, family: &[&Resource]) -> Result<String> {
    let own = family.iter().find(|other| other.version == resource.version);
    let names = own.map(|own| own.controller_names()).unwrap_or_default();
    let default = resource.default_controller();
    let Some(name) = &flags.controller_name else {
        if !names.is_empty() && !names.contains(&default) {
            bail!(
                "kind `{}` already has the controller `{}`: name another one with `--controller-name`",
                resource.kind,
                names.join("`, `")
            );
        }
        let others = family.iter().filter(|other| other.version != resource.version);
        if let Some(other) = others
            .into_iter()
            .find(|other| other.controller_names().contains(&default))
        {
            bail!(
                "kind `{}` already has a controller for version `{}`: name another one with `--controller-name`",
                resource.kind,
                other.version
            );
        }
        return Ok(default);
    };
    let module = |name: &String| controller_module(resource, name);
    let others = family.iter().filter(|other| other.version != resource.version);
    let others = others.flat_map(|other| other.controller_names());
    let clash = names.iter().filter(|known| *known != name).cloned().chain(others);
    if let Some(taken) = clash.into_iter().find(|taken| module(taken) == module(name)) {
        bail!(
            "controller name `{name}` conflicts with the existing controller `{taken}` of kind `{}`: choose another name (`--controller-name`)",
            resource.kind
        );
    }
    Ok(name.clone())
}

/// Returns group and version as people write them.
pub(super) fn shown_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

fn group_path(project: &Project, resource: &Resource) -> String {
    match names::group_module(&resource.group) {
        Ok(module) if project.known.multigroup && !module.is_empty() => format!("{module}::"),
        _ => String::new(),
    }
}

/// Returns the module of a controller: that of its name, or of its kind if it was given none.
fn controller_module(resource: &Resource, name: &str) -> String {
    if name == resource.default_controller() {
        names::module_name(&resource.kind)
    } else {
        names::controller_module(name)
    }
}

fn controller_path(project: &Project, resource: &Resource, name: &str) -> String {
    format!(
        "controller::{}{}",
        group_path(project, resource),
        controller_module(resource, name)
    )
}

/// A kind in one version, and the paths of everything that belongs to it.
#[derive(Clone)]
pub(super) struct ApiPlaces<'a> {
    project: &'a Project,
    resource: &'a Resource,
    types: bool,
    controller: Option<String>,
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
        let is_first = family
            .next()
            .is_none_or(|first| first.version == resource.version);
        let mut places = ApiPlaces {
            project,
            resource,
            types: false,
            controller: None,
            further: !is_first,
            namespaced: resource.is_namespaced(),
        };
        // The version that came first may be gone: the files of this one keep their names.
        if is_first && resource.api.is_some() {
            places.further = true;
            let test = format!("tests/{}.rs", places.context().test_module);
            places.further = project.has_scaffolded(&test);
        }
        places
    }

    /// Returns the paths of the types and of each controller that PROJECT records: one for each controller, or one
    /// without.
    pub(super) fn each(project: &'a Project, resource: &'a Resource) -> Vec<Self> {
        let first = ApiPlaces {
            types: resource.api.is_some(),
            ..ApiPlaces::of(project, resource)
        };
        let names = resource.controller_names();
        if names.is_empty() {
            return vec![first];
        }
        let place = |name: String| first.clone().with_controller(&name);
        names.into_iter().map(place).collect()
    }

    /// Includes the types.
    pub(super) fn with_types(self) -> Self {
        ApiPlaces {
            types: self.resource.api.is_some(),
            ..self
        }
    }

    /// Includes a controller.
    pub(super) fn with_controller(self, name: &str) -> Self {
        ApiPlaces {
            controller: Some(name.to_owned()),
            ..self
        }
    }

    /// Returns the template context.
    pub(super) fn context(&self) -> ApiContext {
        let Resource {
            group,
            version,
            kind,
            plural,
            ..
        } = self.resource;
        let project = self.project;
        let singular = kind.to_lowercase();
        let module = names::module_name(kind);
        let group_path = group_path(project, self.resource);
        let qualified_group = self.resource.qualified_group();
        let is_grouped = !group_path.is_empty();
        let api_path = format!("api::{group_path}{version}");
        let controller = self.controller_parts();
        let is_foreign = self.resource.is_foreign();
        let mut test_module = if is_foreign && self.controller.is_some() {
            format!("{}{}", group_path.replace("::", "_"), controller.module)
        } else {
            format!("{}{module}", group_path.replace("::", "_"))
        };
        if self.further || test_module == END_TO_END_TEST {
            test_module = format!("{test_module}_{version}");
        }
        let imported = self.import(&api_path);
        let mut controller_imports = vec![format!("{}{}", imported.src_root, imported.path)];
        let owned = foreign_kind::managed_kind(self.resource);
        controller_imports.extend(owned.as_ref().map(|owned| owned.path.to_owned()));
        controller_imports.sort_by(|left, right| rust::compare_names(left, right));
        let mut test_imports = vec![format!("{}::controller", scaffold::crate_ident(project))];
        if !imported.test_root.is_empty() {
            test_imports.push(format!("{}{}", imported.test_root, imported.path));
            test_imports.sort_by(|left, right| rust::compare_names(left, right));
        }
        let role_prefix = if is_grouped {
            format!("{}-{singular}", group.replace('.', "-"))
        } else {
            singular.clone()
        };
        let group_file = if group.is_empty() {
            String::new()
        } else {
            format!("{group}_")
        };
        let api_version = if qualified_group.is_empty() {
            version.clone()
        } else {
            format!("{qualified_group}/{version}")
        };
        ApiContext {
            api_version,
            version_path: format!("{group_path}{version}"),
            api_path,
            kind_path: imported.path,
            kind_type: imported.name,
            src_root: imported.src_root,
            test_root: imported.test_root,
            foreign: is_foreign,
            core: self.resource.core,
            served_by_fake: is_foreign && foreign_kind::is_served_by_fake(self.resource),
            reexport: module.clone(),
            controller_path: controller_path(project, self.resource, &controller.name),
            test_module,
            role_prefix,
            namespaced: self.namespaced,
            resource: self.types,
            controller: self.controller.is_some(),
            bare: controller.is_bare,
            controller_chain: controller.chain,
            controller_name: controller.shown,
            controller_module: controller.module,
            controller_imports,
            test_imports,
            owned_group: owned.as_ref().map_or("", |owned| owned.group).to_owned(),
            owned_plural: owned.as_ref().map_or("", |owned| owned.plural).to_owned(),
            cluster_wide: !self.namespaced,
            storage: !self.further,
            crd_file: format!("config/crd/bases/{qualified_group}_{plural}.yaml"),
            sample_file: format!("config/samples/{group_file}{version}_{singular}.yaml"),
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

    /// Returns the import of the kind's type.
    fn import(&self, api_path: &str) -> ImportedKind {
        let Resource {
            kind, version, path, ..
        } = self.resource;
        let crate_ident = scaffold::crate_ident(self.project);
        let own_roots = ("crate::".to_owned(), format!("{crate_ident}::"));
        let ((path, name), (src_root, test_root)) = match path.strip_prefix("crate::") {
            _ if !self.resource.is_foreign() => (names::kind_import(kind, version, api_path), own_roots),
            Some(_) => {
                let (path, name) = names::foreign_import(path);
                let path = path.strip_prefix("crate::").unwrap_or(&path).to_owned();
                ((path, name), own_roots)
            }
            None => (names::foreign_import(path), (String::new(), String::new())),
        };
        ImportedKind {
            path,
            name,
            src_root,
            test_root,
        }
    }

    /// Returns the parts of the context that depend on the name of the controller.
    fn controller_parts(&self) -> ControllerParts {
        let resource = self.resource;
        let default = resource.default_controller();
        let name = self.controller.clone().unwrap_or_else(|| default.clone());
        let names = resource.controller_names();
        let is_first = names.first().is_none_or(|first| *first == name);
        let is_bare = resource.is_foreign() || !is_first;
        let mut calls = Vec::new();
        // Kinds of the same name in several groups would have controllers of the same name.
        let mut shown = name.clone();
        let has_namesake = |other: &&Resource| {
            !other.same_kind(resource) && other.has_controller() && other.kind.to_lowercase() == default
        };
        let mut before = self.project.known.resources.iter();
        let mut before = before.by_ref().take_while(|other| !other.same_kind(resource));
        if name == default && before.any(|other| has_namesake(&other)) {
            shown = format!("{}-{name}", resource.qualified_group().replace('.', "-"));
            shown = shown.trim_start_matches('-').to_owned();
            if resource.qualified_group().is_empty() {
                shown = format!("core-{name}");
            }
        }
        if shown != default {
            calls.push(format!(".named(\"{shown}\")"));
        }
        match foreign_kind::managed_kind(resource) {
            Some(owned) => {
                let (_, kind) = owned.path.rsplit_once("::").unwrap_or(("", owned.path));
                calls.push(format!(".owns::<{kind}>()"));
            }
            None if !is_bare => calls.push(".owns::<ConfigMap>()".to_owned()),
            None => {}
        }
        ControllerParts {
            module: controller_module(resource, &name),
            name,
            shown,
            is_bare,
            chain: rust::format_chain("Controller::new(reconcile, State::default())", &calls),
        }
    }
}

/// The import of a kind's type, relative to a crate, and its name where it is imported.
struct ImportedKind {
    path: String,
    name: String,
    src_root: String,
    test_root: String,
}

/// The parts of a context that depend on the name of the controller.
struct ControllerParts {
    name: String,
    /// The name in logs and metrics.
    shown: String,
    module: String,
    is_bare: bool,
    chain: String,
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
    if !api.resource && files.iter().any(|file| file.path == BINDING) {
        let list = "config/rbac/kustomization.yaml";
        edit_file(
            plan,
            tree,
            list,
            "resources:\n- cluster_role_binding.yaml",
            |text| kustomization::add_resource(text, "cluster_role_binding.yaml"),
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
