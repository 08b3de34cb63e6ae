//! The scaffold of a project: a pure function from PROJECT to all scaffolded files.
//!
//! A scaffold consists of the files from `init`, then the files of each kind, then the files of its
//! webhooks, in PROJECT order. A file shared by several parts is rendered once, and each part then
//! adds its [`Line`]s. `update`, `edit` and `init` merge the difference between two scaffolds into
//! a project. `create` and `delete` render just the parts that they add or remove, with the same
//! lines.

mod check;
mod context;
mod copied;
mod lines;
mod managed;
mod parts;
mod places;
mod webhook_context;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow, bail};
use rbuilder_kubernetes::gvk;
use rbuilder_kubernetes::version;
use rbuilder_templates::{ApiContext, OnExists, ProjectContext, Release, Rendered};

use self::check::check_resource;
pub use self::check::{check_free_names, check_group_directory, find_other_group};
pub use self::context::{crate_ident, member_depth, project_context, yaml_value};
pub use self::copied::CopiedParts;
pub use self::lines::{Line, api_lines, crate_line, generated_lines, webhook_lines};
pub use self::parts::Parts;
pub use self::places::{ApiPlaces, controller_module, controller_path, sample_file};
pub use self::webhook_context::webhook_context;
use crate::edit::version::Definition;
use crate::project::{FILE, MAIN, Project, Resource, ScaffoldedFiles};

/// Binds the manager to its ClusterRole in a project restricted to a namespace.
pub(crate) const BINDING: &str = "config/rbac/cluster_role_binding.yaml";

pub(crate) const MANAGER_LIST: &str = "config/manager/kustomization.yaml";

/// The kustomization of the webhooks.
pub const WEBHOOK_LIST: &str = "config/webhook/kustomization.yaml";

/// The files of a scaffold as written by commands, without generated manifests.
#[derive(Debug, Default)]
pub struct Scaffold {
    /// Texts by path.
    pub files: BTreeMap<String, String>,
    /// Files owned by a single command.
    pub record: ScaffoldedFiles,
}

impl Scaffold {
    /// Lists the files below a directory.
    pub fn find_below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let is_below = move |path: &&String| {
            let rest = path.strip_prefix(folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.files.keys().filter(is_below).map(String::as_str)
    }

    /// Command that restores a file or the files in a directory. `None` if `path` isn't scaffolded.
    pub fn restore_command(&self, path: &str) -> Option<String> {
        let is_scaffolded = self.files.contains_key(path) || self.find_below(path).next().is_some();
        is_scaffolded.then(|| format!("`rbuilder update --restore {path}`"))
    }
}

/// Renders a project's scaffold with the templates of a release, or of this version if `None`.
/// Depends on PROJECT alone, not on the record of scaffolded files.
///
/// Files generated from a CRD, and files provided by an adopted package, aren't included.
///
/// # Errors
/// Fails if PROJECT contains an entry that no command would write, or if a template does not
/// render.
pub fn render(project: &Project, release: Option<&'static Release>) -> Result<Scaffold> {
    let project = project.as_new(release);
    let mut drawing = Drawing::new(&project)?;
    let resources = &project.known.resources;
    let share_names = check::share_names(&project);
    for resource in resources {
        check_resource(&project, resource, share_names)
            .and_then(|()| drawing.add_kind(resource))
            .with_context(|| cannot_render(resource))?;
    }
    for resource in resources {
        drawing
            .add_webhooks(resource)
            .with_context(|| cannot_render(resource))?;
    }
    drawing.finish()
}

fn cannot_render(resource: &Resource) -> String {
    format!(
        "cannot rebuild the scaffold of kind `{}` of {} in {FILE}",
        resource.kind,
        gvk::api_version(&resource.qualified_group(), &resource.version)
    )
}

/// Renders the files of a project without APIs.
///
/// # Errors
/// Fails if a template does not render.
pub fn init_files(project: &Project) -> Result<Vec<Rendered>> {
    let mut files = rbuilder_templates::init_files(&project_context(project))?;
    if let Some(package) = &project.known.rbuilder.package {
        files.retain(|file| !package.leaves_out(&file.path));
    } else if project.has_own_main() {
        files.retain(|file| file.path != MAIN);
    }
    Ok(files)
}

/// Renders stand-ins for the files that an adopted package provides, as scaffolded for a new
/// package, and for a root file that the user has moved. They are not part of the scaffold, but
/// other parts add lines to them.
///
/// # Errors
/// Fails if a template does not render.
pub fn render_stand_ins(project: &Project) -> Result<Vec<Rendered>> {
    if !project.has_own_main() {
        return Ok(Vec::new());
    }
    let own = init_files(project)?;
    let mut context = project_context(project);
    (context.adopted, context.manager) = (false, true);
    let mut files = rbuilder_templates::init_files(&context)?;
    for file in &mut files {
        if file.path == MAIN {
            project.main_file().clone_into(&mut file.path);
        }
    }
    files.retain(|file| own.iter().all(|own| own.path != file.path));
    Ok(files)
}

struct Drawing<'p> {
    project: &'p Project,
    context: ProjectContext,
    scaffold: Scaffold,
    stand_ins: BTreeSet<String>,
    owners: BTreeMap<String, &'p Resource>,
    /// Lines that are added at the end, in one edit for each file: an edit takes as long as the file
    /// is.
    pending: BTreeMap<String, Vec<Line>>,
}

impl<'p> Drawing<'p> {
    fn new(project: &'p Project) -> Result<Self> {
        let stand_ins = render_stand_ins(project)?;
        let mut drawing = Drawing {
            project,
            context: project_context(project),
            scaffold: Scaffold::default(),
            stand_ins: stand_ins.iter().map(|file| file.path.clone()).collect(),
            owners: BTreeMap::new(),
            pending: BTreeMap::new(),
        };
        for file in init_files(project)? {
            drawing.write(file);
        }
        let texts = stand_ins.into_iter().map(|file| (file.path, file.text));
        // Lines are added to these files as well; `finish` drops them again.
        drawing.scaffold.files.extend(texts);
        Ok(drawing)
    }

    fn write(&mut self, file: Rendered) {
        let Rendered {
            path,
            text,
            on_exists,
        } = file;
        if on_exists != OnExists::Shared {
            self.scaffold.record.record(&path, &text);
        }
        self.scaffold.files.insert(path, text);
    }

    /// Assigns a file to a kind. Fails if it already belongs to another one.
    fn claim(&mut self, file: &Rendered, resource: &'p Resource) -> Result<()> {
        if file.on_exists == OnExists::Shared {
            return Ok(());
        }
        match self.owners.insert(file.path.clone(), resource) {
            Some(other) if !other.same_kind(resource) => bail!(
                "{} belongs to kind `{}` of {} as well",
                file.path,
                other.kind,
                gvk::api_version(&other.qualified_group(), &other.version)
            ),
            _ => Ok(()),
        }
    }

    fn add_line(&mut self, line: &Line) -> Result<()> {
        if line.is_in_a_list() && self.scaffold.files.contains_key(&line.path) {
            let pending = self.pending.entry(line.path.clone()).or_default();
            pending.push(line.clone());
            return Ok(());
        }
        self.add_pending(&line.path)?;
        let files = &mut self.scaffold.files;
        let added = match files.get(&line.path) {
            Some(text) => line.add_to(text),
            None => Err("the file does not exist".into()),
        };
        let text = added.map_err(|obstacle| anyhow!(obstacle.in_file(&line.path, &line.shown())))?;
        files.insert(line.path.clone(), text);
        Ok(())
    }

    /// Adds the pending lines of a file.
    fn add_pending(&mut self, path: &str) -> Result<()> {
        let lines = self.pending.remove(path).unwrap_or_default();
        let Some(first) = lines.first() else {
            return Ok(());
        };
        let text = Line::add_all(&lines, self.text(path))
            .map_err(|obstacle| anyhow!(obstacle.in_file(path, &first.shown())))?;
        self.scaffold.files.insert(path.to_owned(), text);
        Ok(())
    }

    fn add_kind(&mut self, resource: &'p Resource) -> Result<()> {
        let places = ApiPlaces::of(self.project, resource);
        let mut names = resource.controller_names().into_iter();
        let first = match names.next() {
            Some(name) => places.clone().with_controller(&name),
            None if resource.api.is_none() => return Ok(()),
            None => places.clone(),
        };
        self.add_api(resource, &first.with_types())?;
        for name in names {
            self.add_api(resource, &places.clone().with_controller(&name))?;
        }
        let generated = generated_lines(self.project, resource);
        let crd = generated.iter().filter(|line| line.path != WEBHOOK_LIST);
        crd.into_iter().try_for_each(|line| self.add_line(line))
    }

    fn add_api(&mut self, resource: &'p Resource, places: &ApiPlaces<'_>) -> Result<()> {
        let mut api = places.context();
        let copied = self.copy_previous(resource, places)?;
        copied.complete(&mut api, self.text("Cargo.toml"));
        let mut files = rbuilder_templates::api_files(&self.context, &api)?;
        copied.replace(&mut files, &api);
        let mut lines: Vec<Line> = crate_line(resource)?.into_iter().collect();
        lines.extend(api_lines(&api, &files));
        for file in files {
            self.claim(&file, resource)?;
            // All versions of a kind share its roles.
            if !self.scaffold.files.contains_key(&file.path) {
                self.write(file);
            }
        }
        lines.iter().try_for_each(|line| self.add_line(line))
    }

    fn copy_previous(&self, resource: &Resource, places: &ApiPlaces<'_>) -> Result<CopiedParts> {
        if !places.has_types() || resource.is_imported() {
            return Ok(CopiedParts::default());
        }
        let known = self.project.known.resources.iter();
        let earlier = known.take_while(|other| !other.same(resource));
        let versions = earlier.filter(|other| other.same_kind(resource) && other.api.is_some());
        let Some(previous) = versions.max_by(|one, other| version::compare(&one.version, &other.version))
        else {
            return Ok(CopiedParts::default());
        };
        let read = |path: &str| Ok(self.scaffold.files.get(path).cloned());
        let previous = ApiPlaces::of(self.project, previous).context();
        CopiedParts::read(read, &previous, &resource.version)
    }

    fn add_webhooks(&mut self, resource: &'p Resource) -> Result<()> {
        let Some(webhooks) = resource.webhooks.as_ref().filter(|own| !own.is_empty()) else {
            return Ok(());
        };
        let api = ApiPlaces::of(self.project, resource).context();
        let webhook = webhook_context(self.project, resource, webhooks, &api);
        for file in rbuilder_templates::webhook_files(&self.context, &api, &webhook)? {
            // Files in config/ are shared by the webhooks of all kinds.
            if !file.path.starts_with("config/") {
                self.claim(&file, resource)?;
            }
            if file.on_exists != OnExists::Shared || !self.scaffold.files.contains_key(&file.path) {
                self.write(file);
            }
        }
        let mut lines: Vec<Line> = crate_line(resource)?.into_iter().collect();
        lines.extend(webhook_lines(self.project, (&api, &webhook), &types_path(&api)));
        lines.extend(generated_lines(self.project, resource));
        lines.iter().try_for_each(|line| self.add_line(line))?;
        if webhooks.conversion {
            self.store_hub(resource);
        }
        Ok(())
    }

    /// Makes the hub of a conversion the storage version. Unrecognized types are left alone.
    fn store_hub(&mut self, hub: &Resource) {
        let known = self.project.known.resources.iter();
        let versions = known.filter(|version| version.same_kind(hub) && version.api.is_some());
        let change = |version: &Resource| {
            let path = types_path(&ApiPlaces::of(self.project, version).context());
            let definition = Definition::find(self.text(&path), &version.kind, &version.version)?;
            let changed = definition.with_storage(version.version == hub.version)?;
            Ok::<_, String>(changed.map(|text| (path, text)))
        };
        let changed: Result<Vec<_>, String> = versions.map(change).collect();
        let changed = changed.into_iter().flatten().flatten();
        self.scaffold.files.extend(changed);
    }

    fn text(&self, path: &str) -> &str {
        self.scaffold.files.get(path).map_or("", String::as_str)
    }

    fn finish(mut self) -> Result<Scaffold> {
        let paths: Vec<String> = self.pending.keys().cloned().collect();
        paths.iter().try_for_each(|path| self.add_pending(path))?;
        let resources = self.project.known.resources.iter();
        for imported in resources.filter(|resource| resource.is_imported()) {
            let api = ApiPlaces::of(self.project, imported).context();
            self.stand_ins.extend([types_path(&api), api.sample_file]);
        }
        self.scaffold
            .files
            .retain(|path, _| !self.stand_ins.contains(path));
        Ok(self.scaffold)
    }
}

/// File with the API types.
pub fn types_path(api: &ApiContext) -> String {
    format!("src/{}/{}.rs", api.api_path.replace("::", "/"), api.module)
}

/// Names that a version's module re-exports from a kind's module. Only the kind itself for imported
/// types, whose other names may conflict with those of another kind.
fn reexported_names(api: &ApiContext) -> &str {
    if api.imported { &api.kind } else { "*" }
}

/// Name of the image component whose kustomization is at `path`.
fn image_component(path: &str) -> Option<&str> {
    let folder = path.strip_prefix("config/manager/")?;
    folder.strip_suffix("/kustomization.yaml")
}
