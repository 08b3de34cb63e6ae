//! `rbuilder delete`: removes what `create` added.
//!
//! Unchanged scaffolded files are deleted, and the lines that register them are removed. A file
//! edited by the user belongs to the user, and nothing is written unless `--force` is set. If the
//! user rewrote the lines, the command fails and shows the lines to remove by hand. Finally,
//! manifests are generated from the remaining source.

mod webhooks;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_kubernetes::gvk;
use rbuilder_templates::{ApiContext, Archive, OnExists, Rendered};

pub use self::webhooks::plan_delete_webhook;
use super::edits::find_types;
use super::scaffold_merge::Written;
use super::{Outcome, execute, foreign_kind, manifests, scaffold};
use crate::edit::{Obstacle, rust, version::Definition};
use crate::engine::Mode;
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::{Project, RECORD, Resource};
use crate::render::{self, ApiPlaces, Line, Parts, WEBHOOK_LIST, project_context};
use crate::request::{DeleteControllerRequest, DeleteRequest, DeleteWebhookRequest};
use crate::shell::Shell;
use crate::tree::Tree;

const WEBHOOKS: &str = "src/webhook/mod.rs";

pub(super) fn run_api(dir: &Path, mode: Mode, requested: &DeleteRequest, shell: &mut Shell) -> Result<u8> {
    execute("delete api", dir, mode, shell, &mut |tree| {
        plan_delete_api(tree, requested)
    })
}

pub(super) fn run_controller(
    dir: &Path,
    mode: Mode,
    requested: &DeleteControllerRequest,
    shell: &mut Shell,
) -> Result<u8> {
    execute("delete controller", dir, mode, shell, &mut |tree| {
        plan_delete_controller(tree, requested)
    })
}

pub(super) fn run_webhook(
    dir: &Path,
    mode: Mode,
    requested: &DeleteWebhookRequest,
    shell: &mut Shell,
) -> Result<u8> {
    execute("delete webhook", dir, mode, shell, &mut |tree| {
        plan_delete_webhook(tree, requested)
    })
}

/// Plans the changes made by `delete api`.
///
/// # Errors
/// Fails if PROJECT does not list the API, if it is still needed, or if files were edited.
pub fn plan_delete_api(tree: &Tree, requested: &DeleteRequest) -> Result<Outcome> {
    let mut removal = Removal::new(tree, requested)?;
    let resource = removal.resource.clone();
    removal.check_unused_api()?;
    let before = removal.before.clone();
    let places = ApiPlaces::of(&before, &resource);
    let mut gone = Parts::of_api(&places.clone().with_types())?;
    for name in resource.controller_names() {
        match removal.find_heir(&name)? {
            Some(heir) => removal.hand_over_controller(&name, heir)?,
            None => gone.extend(Parts::of_api(&places.clone().with_controller(&name))?),
        }
    }
    removal.project.remove_resource(&resource);
    removal.remove(&gone)?;
    removal.finish()
}

/// Plans the changes made by `delete controller`.
///
/// # Errors
/// Fails if PROJECT does not list the controller, or if files were edited.
pub fn plan_delete_controller(tree: &Tree, requested: &DeleteControllerRequest) -> Result<Outcome> {
    let mut removal = Removal::new(tree, &requested.kind)?;
    let mut resource = removal.resource.clone();
    let names = resource.controller_names();
    let default = resource.default_controller();
    let name = match (&requested.controller_name, names.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [only]) => only.clone(),
        (None, _) => default.clone(),
    };
    if !names.contains(&name) {
        bail!(
            "kind `{}` has no controller `{name}`: {}",
            resource.kind,
            match names.as_slice() {
                [] => "PROJECT records none".to_owned(),
                names => format!("pass `--controller-name` with one of `{}`", names.join("`, `")),
            }
        );
    }
    let places = ApiPlaces::of(&removal.before, &removal.resource);
    let gone = Parts::of_api(&places.with_controller(&name))?;
    resource.controllers.retain(|known| known.name != name);
    resource.controller &= name != default;
    // PROJECT has a shorter form for a single controller with the default name.
    if resource.controllers.len() == 1 && resource.controllers[0].name == default {
        resource.controllers.clear();
        resource.controller = true;
    }
    if !resource.has_controller() && resource.api.is_some() {
        removal.replace_test(&resource)?;
    }
    removal.settle(resource);
    removal.remove(&gone)?;
    removal.finish()
}

struct Removal<'a> {
    tree: &'a Tree,
    plan: Plan,
    project: Project,
    resource: Resource,
    force: bool,
    /// Files to delete or rewrite that the user edited.
    changed: Vec<String>,
    /// Files to delete or rewrite that are neither recorded nor equal to the templates, so the user
    /// may have edited them.
    unrecorded: Vec<String>,
    /// The project before the command. Its scaffold is computed on demand.
    before: Project,
    scaffold: OnceCell<Option<Written>>,
    /// The scaffolded list in config/webhook, if no webhooks remain.
    webhook_list: Option<String>,
    /// The next step, unless it is to run the tests.
    next: Option<String>,
    outcome: Outcome,
}

impl<'a> Removal<'a> {
    fn new(tree: &'a Tree, requested: &DeleteRequest) -> Result<Removal<'a>> {
        let project = scaffold::require_project(tree)?;
        let resource = find_recorded(&project, requested)?.clone();
        Ok(Removal {
            tree,
            plan: Plan::default(),
            before: project.clone(),
            project,
            resource,
            force: requested.force,
            changed: Vec::new(),
            unrecorded: Vec::new(),
            scaffold: OnceCell::new(),
            webhook_list: None,
            next: None,
            outcome: Outcome::default(),
        })
    }

    fn check_unused_api(&self) -> Result<()> {
        let Resource { version, kind, .. } = &self.resource;
        let known = &self.project.known.resources;
        let others = || {
            known
                .iter()
                .filter(|other| other.same_kind(&self.resource) && other.api.is_some())
        };
        let spoke = others().find(|other| {
            let webhooks = other.webhooks.as_ref();
            webhooks.is_some_and(|webhooks| webhooks.spoke.contains(version))
        });
        if let Some(hub) = spoke {
            bail!(
                "version `{version}` of `{kind}` is a spoke version of the conversion: remove it from the conversion first with `rbuilder delete webhook {} --conversion --spoke {version}`",
                hub.naming_flags()
            );
        }
        if self.resource.webhooks.is_some() {
            bail!(
                "kind `{kind}` has webhooks that need version `{version}`: delete them first with `rbuilder delete webhook {}`",
                self.resource.naming_flags()
            );
        }
        if others().count() < 2 {
            return Ok(());
        }
        self.check_not_stored(&self.resource, "delete it")
    }

    fn check_not_stored(&self, resource: &Resource, purpose: &str) -> Result<()> {
        let Resource { version, kind, .. } = resource;
        let api = ApiPlaces::of(&self.project, resource).context();
        if self.is_stored(&api)? == Some(true) {
            let path = find_types(&self.plan, self.tree, &api)?;
            bail!(
                "version `{version}` of `{kind}` is the storage version: make another version the storage version by moving `storage = false` to {path}, and migrate all objects to it before you {purpose}"
            );
        }
        Ok(())
    }

    /// Whether a version is the storage version, or `None` if its types have an unsupported form.
    fn is_stored(&self, api: &ApiContext) -> Result<Option<bool>> {
        let path = find_types(&self.plan, self.tree, api)?;
        let text = self.plan.read(self.tree, &path)?.unwrap_or_default();
        let definition = Definition::find(&text, &api.kind, &api.version).ok();
        Ok(definition.map(|definition| definition.is_stored()))
    }

    fn find_heir(&self, controller: &str) -> Result<Option<Resource>> {
        let own = ApiPlaces::of(&self.project, &self.resource)
            .with_controller(controller)
            .context();
        let path = format!("src/{}.rs", own.controller_path.replace("::", "/"));
        let Some(text) = self.plan.read(self.tree, &path)? else {
            return Ok(None);
        };
        // The source of a controller refers to the controller's version.
        if rust::uses_module(&text, &own.api_path) {
            return Ok(None);
        }
        let mut others = self.project.known.resources.iter().filter(|other| {
            other.same_kind(&self.resource) && !other.same(&self.resource) && other.api.is_some()
        });
        let heir = others.find(|other| {
            let api = ApiPlaces::of(&self.project, other).context();
            rust::uses_module(&text, &api.api_path)
        });
        Ok(heir.cloned())
    }

    /// Records a controller for the version to which it was moved, and adds it to that version's
    /// test.
    fn hand_over_controller(&mut self, name: &str, mut heir: Resource) -> Result<()> {
        let is_default = name == heir.default_controller() && heir.controllers.is_empty();
        heir.add_controller(Some(name).filter(|_| !is_default));
        self.project.replace_resource(heir.clone());
        let api = ApiPlaces::of(&self.project, &heir)
            .with_types()
            .with_controller(name)
            .context();
        let test = format!("tests/{}.rs", api.test_module);
        for file in self.render_api(&api)? {
            let text = self.plan.read(self.tree, &file.path)?.unwrap_or_default();
            if file.on_exists == OnExists::Owned && is_same_text(&text, &file.text) {
                self.project.record(&file.path, &text);
            } else if file.path == test && is_default && self.project.recorded(&test, &text) {
                self.rewrite(&file)?;
            }
        }
        Ok(())
    }

    fn replace_test(&mut self, resource: &Resource) -> Result<()> {
        let api = ApiPlaces::of(&self.project, resource).with_types().context();
        let path = format!("tests/{}.rs", api.test_module);
        for file in self.render_api(&api)? {
            if file.path == path {
                self.rewrite(&file)?;
            }
        }
        Ok(())
    }

    /// Records the kind's remaining parts. A foreign kind without parts needs no entry.
    fn settle(&mut self, resource: Resource) {
        if resource.is_foreign() && !resource.has_controller() && resource.webhooks.is_none() {
            self.project.remove_resource(&resource);
        } else {
            self.project.replace_resource(resource);
        }
    }

    fn remove(&mut self, gone: &Parts) -> Result<()> {
        let kept = Parts::of_project(&self.project)?;
        let initial = render::init_files(&self.project)?;
        let is_initial = |line: &Line| {
            let mut files = initial.iter().filter(|file| file.path == line.path);
            files.any(|file| line.add_to(&file.text).is_ok_and(|text| text == file.text))
        };
        let lines = gone.lines.iter().rev();
        let lines = lines.filter(|line| !kept.lines.contains(line) && !is_initial(line));
        let (modules, lines): (Vec<&Line>, Vec<&Line>) =
            lines.partition(|line| line.inner_module().is_some());
        for line in lines {
            self.cut(&line.path, |text| line.remove_from(text))?;
        }
        for file in gone.files.iter().filter(|file| kept.find(&file.path).is_none()) {
            match file.on_exists {
                // `finish` deletes the list once it contains no webhooks.
                OnExists::Shared if file.path == WEBHOOK_LIST => self.webhook_list = Some(file.text.clone()),
                // See `remove_inner_module`.
                OnExists::Shared if file.path.ends_with(".rs") => {}
                OnExists::Shared => self.delete_shared(&file.path, &file.text)?,
                _ => self.delete(&file.path)?,
            }
        }
        for line in modules {
            // Remove its lines first: only then can we tell whether a module is empty.
            if self.remove_inner_module(line, gone)? {
                self.cut(&line.path, |text| line.remove_from(text))?;
            }
        }
        Ok(())
    }

    /// Removes the file of a declared module that is now empty. Returns whether the file is gone.
    fn remove_inner_module(&mut self, line: &Line, gone: &Parts) -> Result<bool> {
        let path = line.inner_module().unwrap_or_default();
        let Some(text) = self.plan.read(self.tree, &path)? else {
            return Ok(true);
        };
        if path == WEBHOOKS {
            let expected = gone.find(&path).map_or("", |file| file.text.as_str());
            self.delete_shared(&path, expected)?;
            return Ok(true);
        }
        let header = project_context(&self.project).rust_header;
        let is_bare = rust::is_bare_module(&text, &header);
        if is_bare {
            self.plan.delete(self.tree, &path)?;
        }
        Ok(is_bare)
    }

    fn finish(mut self) -> Result<Outcome> {
        self.check_unchanged()?;
        self.plan.write_project(&self.project, self.tree)?;
        let request = manifests::Request {
            removes_tracked: true,
            ..scaffold::manifests_request()
        };
        let found = manifests::add_to_plan(&mut self.plan, self.tree, &request)?;
        // Generating the manifests removed the webhooks from the list.
        if let Some(text) = self.webhook_list.take() {
            self.delete_shared(WEBHOOK_LIST, &text)?;
        }
        self.check_unchanged()?;
        let mut outcome = found.into_outcome(self.plan);
        outcome.warnings.push_str(&self.outcome.warnings);
        outcome.diagnostics.extend(self.outcome.diagnostics);
        let next = self.next.unwrap_or_else(|| {
            let test_command = self.project.test_command();
            format!("Next: review the changes, then run:\n  {test_command}\n")
        });
        Ok(outcome.with_next(&next))
    }

    fn check_unchanged(&self) -> Result<()> {
        let mut message = String::new();
        let mut remedies = Vec::new();
        for (paths, reason, remedy) in [
            (
                &self.changed,
                "these files were changed since they were scaffolded:".to_owned(),
                "undo the changes".to_owned(),
            ),
            (
                &self.unrecorded,
                format!(
                    "{RECORD} does not list these files, so they may have been changed since they were scaffolded:"
                ),
                format!("take {RECORD} from a commit that lists them"),
            ),
        ] {
            let paths: BTreeSet<&String> = paths.iter().collect();
            if !paths.is_empty() {
                let list: String = paths.iter().map(|path| format!("  {path}\n")).collect();
                message.push_str(&format!("{reason}\n{list}"));
                remedies.push(remedy);
            }
        }
        if message.is_empty() {
            return Ok(());
        }
        bail!(
            "{message}no files were written; {}, or delete them with `--force`",
            remedies.join(", ")
        )
    }

    fn render_api(&self, api: &ApiContext) -> Result<Vec<Rendered>> {
        let project = project_context(&self.project);
        Ok(rbuilder_templates::api_files(&project, api)?)
    }

    fn has_changes(&self, path: &str) -> Result<bool> {
        let text = self.plan.read(self.tree, path)?;
        Ok(text.is_some_and(|text| !self.is_scaffolded(path, &text)))
    }

    fn is_scaffolded(&self, path: &str, text: &str) -> bool {
        self.project.recorded(path, text) || self.is_as_rendered(path, text)
    }

    /// Whether we may delete or rewrite a scaffolded file. If not, remembers it for the error.
    fn is_untouched(&mut self, path: &str, text: &str) -> bool {
        let is_untouched = self.force || self.is_scaffolded(path, text);
        if !is_untouched && self.before.scaffolded_files().has(path) {
            self.changed.push(path.to_owned());
        } else if !is_untouched {
            self.unrecorded.push(path.to_owned());
        }
        is_untouched
    }

    /// Whether a file matches the templates, regardless of the record.
    fn is_as_rendered(&self, path: &str, text: &str) -> bool {
        let scaffold = self
            .scaffold
            .get_or_init(|| Written::find(self.tree, &self.before, Archive::embedded()).ok());
        let scaffolded = scaffold.as_ref().and_then(|scaffold| scaffold.files.get(path));
        scaffolded.is_some_and(|scaffolded| is_same_text(scaffolded, text))
    }

    fn delete(&mut self, path: &str) -> Result<()> {
        if let Some(text) = self.plan.read(self.tree, path)?
            && self.is_untouched(path, &text)
        {
            self.plan.delete(self.tree, path)?;
        }
        self.project.forget(path);
        Ok(())
    }

    /// Deletes a file to which several commands add, if it has the initial text.
    fn delete_shared(&mut self, path: &str, expected: &str) -> Result<()> {
        match self.plan.read(self.tree, path)? {
            Some(text) if is_same_text(&text, expected) || self.force => self.plan.delete(self.tree, path),
            Some(_) => {
                self.changed.push(path.to_owned());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn rewrite(&mut self, file: &Rendered) -> Result<()> {
        if let Some(text) = self.plan.read(self.tree, &file.path)?
            && self.is_untouched(&file.path, &text)
        {
            self.plan.replace(self.tree, &file.path, &file.text)?;
            self.project.record(&file.path, &file.text);
        }
        Ok(())
    }

    fn cut(&mut self, path: &str, change: impl Fn(&str) -> Result<String, Obstacle>) -> Result<()> {
        let Some(text) = self.plan.read(self.tree, path)? else {
            return Ok(());
        };
        let edited = change(&text).map_err(|obstacle| anyhow!(obstacle.in_file(path, "")))?;
        if edited == text {
            return Ok(());
        }
        self.plan.cut(self.tree, path, &edited)
    }
}

fn find_recorded<'p>(project: &'p Project, requested: &DeleteRequest) -> Result<&'p Resource> {
    let DeleteRequest {
        group,
        api_domain,
        version,
        kind,
        ..
    } = requested;
    let domain = project.domain_of(group, kind, api_domain.as_deref());
    let named = || {
        let resources = project.known.resources.iter();
        resources.filter(|known| known.version == *version && known.kind == *kind)
    };
    let own = named().find(|known| known.api.is_some() && known.group == *group && known.domain == domain);
    let foreign = named().find(|known| foreign_kind::is_of_group(known, group));
    own.or(foreign).ok_or_else(|| {
        let known = project.known.resources.iter().map(|known| {
            let shown = gvk::api_version(&known.group, &known.version);
            format!("`{}` of {shown}", known.kind)
        });
        let known: Vec<String> = known.collect();
        let known = match known.as_slice() {
            [] => "nothing".to_owned(),
            known => known.join(", "),
        };
        anyhow!(
            "PROJECT has no kind `{kind}` of {}: it lists {known}",
            gvk::api_version(group, version)
        )
    })
}
