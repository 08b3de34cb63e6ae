//! Names and paths of a kind's parts in a single version.

use rbuilder_kubernetes::gvk;
use rbuilder_templates::ApiContext;

use super::context::{crate_ident, yaml_value};
use super::managed;
use crate::edit::rust;
use crate::project::{Project, Resource, names};

/// The project's end-to-end test in `tests/`, whose name tests of kinds must not use.
const END_TO_END_TEST: &str = "e2e";

fn group_path(project: &Project, resource: &Resource) -> String {
    let module = names::group_module(&resource.group);
    if project.known.multigroup && !module.is_empty() {
        format!("{module}::")
    } else {
        String::new()
    }
}

/// Path of a kind's sample.
pub fn sample_file(group: &str, version: &str, kind: &str) -> String {
    let group = match group {
        "" => String::new(),
        group => format!("{group}_"),
    };
    format!("config/samples/{group}{version}_{}.yaml", kind.to_lowercase())
}

/// Module of a controller, named after the controller or, if it is unnamed, after the kind.
pub fn controller_module(resource: &Resource, name: &str) -> String {
    if name == resource.default_controller() {
        names::module_name(&resource.kind)
    } else {
        names::controller_module(name)
    }
}

/// The Rust path of a controller.
pub fn controller_path(project: &Project, resource: &Resource, name: &str) -> String {
    format!(
        "controller::{}{}",
        group_path(project, resource),
        controller_module(resource, name)
    )
}

/// A kind in a single version, and the paths of its parts.
#[derive(Clone)]
pub struct ApiPlaces<'a> {
    /// The project.
    pub project: &'a Project,
    /// The kind in a single version.
    pub resource: &'a Resource,
    /// Whether the types are included.
    pub types: bool,
    /// Name of the included controller.
    pub controller: Option<String>,
    /// Whether this is not the kind's first version. File names then include the version.
    pub further: bool,
    /// Whether there is no earlier version.
    pub stored: bool,
    /// Whether objects are namespaced.
    pub namespaced: bool,
}

impl<'a> ApiPlaces<'a> {
    /// The paths for a kind in PROJECT.
    pub fn of(project: &'a Project, resource: &'a Resource) -> Self {
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
            stored: is_first,
            namespaced: resource.is_namespaced(),
        };
        // The first version may have been deleted; this version's files keep their names.
        if is_first && resource.api.is_some() {
            places.further = true;
            let test = format!("tests/{}.rs", places.context().test_module);
            places.further = project.has_scaffolded(&test);
        }
        places
    }

    /// Paths for the types and each recorded controller. One entry per controller, or a single
    /// entry if there is none.
    pub fn each(project: &'a Project, resource: &'a Resource) -> Vec<Self> {
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

    /// The same parts in a variant of the project, e.g. with another layout.
    pub fn in_project<'b>(self, project: &'b Project) -> ApiPlaces<'b>
    where
        'a: 'b,
    {
        ApiPlaces { project, ..self }
    }

    pub(crate) fn has_types(&self) -> bool {
        self.types
    }

    /// Includes the types.
    pub fn with_types(self) -> Self {
        ApiPlaces {
            types: self.resource.api.is_some(),
            ..self
        }
    }

    /// Includes a controller.
    pub fn with_controller(self, name: &str) -> Self {
        ApiPlaces {
            controller: Some(name.to_owned()),
            ..self
        }
    }

    /// The kind's template context.
    pub fn context(&self) -> ApiContext {
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
        let owned = managed::managed_kind(self.resource);
        controller_imports.extend(owned.as_ref().map(|owned| owned.path.to_owned()));
        controller_imports.sort_by(|left, right| rust::compare_names(left, right));
        let mut test_imports = vec![format!("{}::controller", crate_ident(project))];
        if !imported.test_root.is_empty() {
            test_imports.push(format!("{}{}", imported.test_root, imported.path));
            test_imports.sort_by(|left, right| rust::compare_names(left, right));
        }
        let role_prefix = if is_grouped {
            format!("{}-{singular}", group.replace('.', "-"))
        } else {
            singular.clone()
        };
        ApiContext {
            api_version: gvk::api_version(&qualified_group, version),
            version_path: format!("{group_path}{version}"),
            api_path,
            kind_path: imported.path,
            kind_type: imported.name,
            src_root: imported.src_root,
            test_root: imported.test_root,
            foreign: is_foreign,
            core: self.resource.core,
            served_by_fake: is_foreign && managed::is_served_by_fake(self.resource),
            reexport: module.clone(),
            controller_path: controller_path(project, self.resource, &controller.name),
            test_module,
            role_prefix,
            namespaced: self.namespaced,
            resource: self.types,
            imported: self.resource.is_imported(),
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
            storage: self.stored,
            crd_file: format!("config/crd/bases/{qualified_group}_{plural}.yaml"),
            sample_file: sample_file(group, version, kind),
            sample_name: if self.further {
                format!("{singular}-sample-{version}")
            } else {
                format!("{singular}-sample")
            },
            kube_arguments: Vec::new(),
            image: self
                .resource
                .image
                .as_ref()
                .map(|image| image.context(&self.resource.group, &singular)),
            needs_approval: names::needs_approval(&qualified_group),
            group: group.clone(),
            qualified_group_yaml: yaml_value(&qualified_group),
            qualified_group,
            version: version.clone(),
            kind: kind.clone(),
            kind_yaml: yaml_value(kind),
            singular,
            plural: plural.clone(),
            plural_yaml: yaml_value(plural),
            module,
        }
    }

    fn import(&self, api_path: &str) -> ImportedKind {
        let Resource {
            kind, version, path, ..
        } = self.resource;
        let library = crate_ident(self.project);
        let own_roots = ("crate::".to_owned(), format!("{library}::"));
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

    fn controller_parts(&self) -> ControllerParts {
        let resource = self.resource;
        let default = resource.default_controller();
        let name = self.controller.clone().unwrap_or_else(|| default.clone());
        let names = resource.controller_names();
        let is_first = names.first().is_none_or(|first| *first == name);
        let is_bare = resource.is_foreign() || resource.is_imported() || !is_first;
        let mut calls = Vec::new();
        // Kinds of the same name in different groups would have controllers of the same name.
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
        match managed::managed_kind(resource) {
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

struct ImportedKind {
    path: String,
    name: String,
    src_root: String,
    test_root: String,
}

struct ControllerParts {
    name: String,
    /// Name in logs and metrics.
    shown: String,
    module: String,
    is_bare: bool,
    chain: String,
}
