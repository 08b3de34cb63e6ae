//! The request of `create api`, combined from flags, PROJECT and defaults.

use anyhow::{Result, bail};
use rbuilder_templates::ApiContext;

use super::family::{Family, Parts};
use crate::commands::foreign_kind::{self, NamedKind, find_foreign_kind};
use crate::commands::scaffold;
use crate::project::{Api, Project, Resource, describe_scope, names};
use crate::render::{
    ApiPlaces, CopiedParts, check_free_names, check_group_directory, controller_module, controller_path,
    find_other_group,
};
use crate::request::ApiRequest;
use crate::tree::Tree;

pub(super) struct Request {
    pub(super) resource: Resource,
    pub(super) types: bool,
    pub(super) controller: Option<String>,
    /// Set if another version of the kind came first. File names then include the version.
    pub(super) further: bool,
    /// Set if a new version becomes the storage version because it is the only one.
    pub(super) stored: bool,
    pub(super) known: bool,
    pub(super) before: Option<Resource>,
    pub(super) namespaced: bool,
}

impl Request {
    /// Reads the request for one version. `is_imported` is set if its types come from a CRD.
    pub(super) fn new(
        project: &Project,
        tree: &Tree,
        requested: &ApiRequest,
        is_imported: bool,
    ) -> Result<Request> {
        match find_foreign(project, tree, requested)? {
            Some(resource) => Request::for_foreign(project, requested, resource),
            None => Request::for_own(project, tree, requested, is_imported),
        }
    }

    fn for_foreign(project: &Project, requested: &ApiRequest, resource: Resource) -> Result<Request> {
        let kind = &resource.kind;
        if requested.controller == Some(false) {
            bail!(
                "nothing to scaffold for `{kind}`, whose types belong to another project: omit `--controller=false`"
            );
        }
        if let Some(plural) = requested
            .plural
            .as_ref()
            .filter(|plural| **plural != resource.plural)
        {
            bail!(
                "kind `{kind}` has the plural `{}`, not `{plural}`: omit `--plural`",
                resource.plural
            );
        }
        let namespaced = resource.is_namespaced();
        if requested.namespaced.is_some_and(|asked| asked != namespaced) {
            bail!(
                "kind `{kind}` is {}: omit `--namespaced`",
                describe_scope(namespaced)
            );
        }
        foreign_kind::check_is_watchable(&resource)?;
        let known = &project.known;
        let family = known.resources.iter().filter(|other| other.same_kind(&resource));
        let controller = choose_controller(requested, &resource, &family.collect::<Vec<_>>())?;
        let mut resource = resource;
        resource.add_controller(requested.controller_name.as_deref());
        Ok(Request {
            resource,
            types: false,
            controller: Some(controller),
            further: false,
            stored: true,
            known: false,
            before: None,
            namespaced,
        })
    }

    fn for_own(project: &Project, tree: &Tree, requested: &ApiRequest, is_imported: bool) -> Result<Request> {
        let known = &project.known;
        let domain = project.domain_of(&requested.group, &requested.kind, requested.api_domain.as_deref());
        scaffold::check_names([names::check_domain(&known.domain)])?;
        check_own_names(&domain, requested)?;
        let mut resource = Resource {
            group: requested.group.clone(),
            domain,
            version: requested.version.clone(),
            kind: requested.kind.clone(),
            ..Resource::default()
        };
        let family = Family::of(known, &resource, requested);
        let Parts { types, controller } = family.choose_parts(tree)?;
        let is_scaffolded = family.scaffolded().is_some();
        resource.plural = family.choose_plural()?;
        let namespaced = family.choose_scope()?;
        if types || is_scaffolded {
            resource.api = Some(Api {
                crd_version: "v1".into(),
                namespaced,
                imported: is_imported || family.is_imported(),
            });
        }
        let controller = match controller {
            true => Some(add_controller(requested, &mut resource, &family)?),
            false => None,
        };
        resource.image = family.choose_image()?;
        let stored = family.is_first();
        // Go by the files, because the first version may have been deleted.
        let places = family.scaffolded().map(|own| ApiPlaces::of(project, own));
        let further = !stored || places.is_some_and(|places| places.further);
        let before = family.newest().filter(|_| further && types);
        Ok(Request {
            before: before.cloned(),
            resource,
            types,
            controller,
            further,
            stored,
            known: is_scaffolded,
            namespaced,
        })
    }

    /// Reads the parts that a further version copies from the preceding one. Empty for a first
    /// version.
    pub(super) fn read_previous(
        &mut self,
        project: &Project,
        tree: &Tree,
        requested: &ApiRequest,
    ) -> Result<CopiedParts> {
        let Some(before) = &self.before else {
            return Ok(CopiedParts::default());
        };
        let before = ApiPlaces::of(project, before).context();
        let taken = CopiedParts::read(|path| tree.read(path), &before, &self.resource.version)?;
        if !self.known {
            self.apply_defaults(&taken, requested);
        }
        Ok(taken)
    }

    fn apply_defaults(&mut self, taken: &CopiedParts, asked: &ApiRequest) {
        if let Some(plural) = &taken.plural
            && asked.plural.is_none()
            && names::check_plural(plural).is_ok()
        {
            self.resource.plural.clone_from(plural);
        }
        if let Some(namespaced) = taken.namespaced
            && asked.namespaced.is_none()
        {
            self.namespaced = namespaced;
            if let Some(api) = &mut self.resource.api {
                api.namespaced = namespaced;
            }
        }
    }

    pub(super) fn check_free_names(&self, project: &Project, tree: &Tree) -> Result<()> {
        let wanted = &self.resource;
        if let Some(other) = find_other_group(project, wanted)
            && self.types
        {
            let Resource {
                group, version, kind, ..
            } = wanted;
            let remedy = match (other.group.as_str(), group.as_str()) {
                ("", group) => format!("omit `--group` instead of passing `{group}`"),
                (other, "") => format!("use group `{other}` instead of none"),
                (other, group) => format!("use group `{other}` instead of `{group}`"),
            };
            let help = match foreign_kind::find_other(project, tree, group, version, kind)? {
                Some(_) => format!(
                    "\n  = help: for a controller of the existing kind `{kind}`, which needs no group of its own, pass `--controller`"
                ),
                None => String::new(),
            };
            bail!(
                "multiple groups are not enabled: {remedy}, or run `rbuilder edit --multigroup` first, which moves each group to directories of its own{help}"
            );
        }
        check_group_directory(project, wanted)?;
        check_free_names(project, wanted)?;
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

    pub(super) fn context(&self, project: &Project) -> ApiContext {
        ApiPlaces {
            project,
            resource: &self.resource,
            types: self.types,
            controller: self.controller.clone(),
            further: self.further,
            stored: self.stored,
            namespaced: self.namespaced,
        }
        .context()
    }
}

fn check_own_names(domain: &str, requested: &ApiRequest) -> Result<()> {
    scaffold::check_names([names::check_domain(domain)])?;
    scaffold::check_names([names::check_group(&requested.group, domain)])
}

fn add_controller(requested: &ApiRequest, resource: &mut Resource, family: &Family<'_>) -> Result<String> {
    let name = choose_controller(requested, family.own.unwrap_or(resource), &family.all)?;
    if let Some(own) = family.own {
        resource.controller = own.controller;
        resource.controllers.clone_from(&own.controllers);
    }
    resource.add_controller(requested.controller_name.as_deref());
    // PROJECT contains either `controller: true` or a list of names.
    if !resource.controllers.is_empty() {
        resource.controller = false;
    }
    Ok(name)
}

/// The entry for a foreign kind, if the flags refer to one: either explicitly, or by requesting the
/// controller of a kind that only Kubernetes has.
fn find_foreign(project: &Project, tree: &Tree, requested: &ApiRequest) -> Result<Option<Resource>> {
    let mut resources = project.known.resources.iter().filter(|own| own.api.is_some());
    let is_external = requested.external.path.is_some();
    let is_own = |own: &&Resource| own.group == requested.group && own.kind == requested.kind;
    if requested.resource == Some(true) || (!is_external && resources.clone().any(|own| is_own(&own))) {
        return Ok(None);
    }
    let asks_for_controller = requested.controller == Some(true) || requested.controller_name.is_some();
    let asks_for_types = requested.resource.is_none() && !asks_for_controller;
    let kind = NamedKind {
        group: &requested.group,
        version: &requested.version,
        kind: &requested.kind,
        plural: requested.plural.as_deref(),
        namespaced: requested.namespaced,
        external: &requested.external,
    };
    let Some(found) = find_foreign_kind(project, tree, kind)? else {
        return Ok(None);
    };
    if found.external {
        return Ok(Some(found));
    }
    let is_recorded = project.known.resources.iter().any(|known| known.same(&found));
    // A project may define a kind of the same name as a built-in one.
    if asks_for_types && !is_recorded {
        return Ok(None);
    }
    let has_group = resources.any(|own| own.group == requested.group);
    if has_group && requested.resource.is_none() && !is_recorded {
        bail!(
            "group `{0}` can be `{0}.{1}` of this project or the built-in group: pass `--resource=false` for a controller of the built-in kind `{2}`, or `--resource` for a kind of your own",
            requested.group,
            project.known.domain,
            requested.kind
        );
    }
    Ok(Some(found))
}

/// Chooses the name of the controller to scaffold. Must be specified if the kind's other
/// controllers are named, or if another version has the controller.
fn choose_controller(requested: &ApiRequest, resource: &Resource, family: &[&Resource]) -> Result<String> {
    let own = family.iter().find(|other| other.version == resource.version);
    let names = own.map(|own| own.controller_names()).unwrap_or_default();
    let default = resource.default_controller();
    let Some(name) = &requested.controller_name else {
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
