//! `rbuilder create api`: scaffolds a kind and its controller, and registers both in the project.

mod family;
mod further;
mod imported;
mod request;

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_generator::{find_group_owner, is_kubernetes_group};
use rbuilder_importer::ImportedVersion;
use rbuilder_kubernetes::gvk;
use rbuilder_templates::{ApiContext, Rendered};

pub use self::imported::plan_create_api_from_crd;
pub(crate) use self::imported::{import_crd, plan_create_imported};

use self::request::Request;
use super::adopted::{Parts, check_places};
use super::edits::{add_lines, check_module_place};
use super::{Outcome, execute, foreign_kind, owners, scaffold};
use crate::engine::{Mode, Output};
use crate::plan::Plan;
use crate::project::{Image, Project, names};
use crate::render::{CopiedParts, Line, api_lines, crate_line, project_context, types_path};
use crate::request::ApiRequest;
use crate::shell::Shell;
use crate::tree::Tree;

/// Runs the command in a project. File paths on the command line are relative to `typed_in`.
pub(super) fn run(
    (dir, typed_in): (&Path, &Path),
    mode: Mode,
    mut requested: ApiRequest,
    shell: &mut Shell,
) -> Result<u8> {
    let asks = mode.output != Output::Json;
    if requested.from_crd.is_some() {
        let definition = imported::read_definition(typed_in, &requested)?;
        requested.resource = requested.resource.or(Some(true));
        if asks {
            ask(&mut requested, shell);
        }
        return execute("create api", dir, mode, shell, &mut |tree| {
            plan_create_api_from_crd(tree, &requested, &definition)
        });
    }
    check_flags(&requested)?;
    check_image_flags(&requested)?;
    if asks {
        ask(&mut requested, shell);
    }
    execute("create api", dir, mode, shell, &mut |tree| {
        check_doubled_domain(tree, &requested)?;
        check_is_own(tree, &requested)?;
        plan_create_api(tree, &requested)
    })
}

/// Rejects a group that ends with the project's domain, which would be appended a second time.
fn check_doubled_domain(tree: &Tree, requested: &ApiRequest) -> Result<()> {
    let Some(project) = scaffold::read_project(tree)? else {
        return Ok(());
    };
    let (group, domain) = (&requested.group, &project.known.domain);
    let short = match group.strip_suffix(domain.as_str()) {
        Some("") => "",
        Some(rest) => rest.strip_suffix('.').unwrap_or(group),
        None => group,
    };
    // kubebuilder doesn't check this, so PROJECT may already contain such a group.
    let is_recorded = project.known.resources.iter().any(|known| known.group == *group);
    if short == group || is_recorded || requested.resource == Some(false) {
        return Ok(());
    }
    let typed = if short.is_empty() { "\"\"" } else { short };
    bail!(
        "the API group would be `{group}.{domain}`: the domain of the project is added to `--group`; pass `--group {typed}`"
    )
}

/// Checks that the user means one of the project's kinds rather than one from Kubernetes or another
/// project, unless a flag says so. Ambiguous if the group belongs to a known project, or if a
/// controller is requested and the kind resembles a built-in one.
fn check_is_own(tree: &Tree, requested: &ApiRequest) -> Result<()> {
    let ApiRequest {
        group, version, kind, ..
    } = requested;
    let Some(project) = scaffold::read_project(tree)? else {
        return Ok(());
    };
    let mut own = project.known.resources.iter().filter(|known| known.api.is_some());
    let is_said = requested.resource.is_some()
        || requested.api_domain.is_some()
        || requested.external.path.is_some()
        || requested.image.is_some();
    // A group that contains some of the project's kinds is the project's own.
    if is_said || own.any(|known| known.group == *group) {
        return Ok(());
    }
    let asks_for_controller = requested.controller == Some(true) || requested.controller_name.is_some();
    let other = foreign_kind::find_other(&project, tree, group, version, kind)?;
    let domain = project.domain_of(group, kind, requested.api_domain.as_deref());
    let own_group = names::check_group(group, &domain).map(|()| format!("{group}.{domain}"));
    match (other, find_group_owner(group), own_group) {
        // The flags request a controller of exactly this kind.
        (Some(other), ..) if asks_for_controller || other.external => Ok(()),
        (Some(_), _, Ok(own_group)) if group.contains('.') => bail!(
            "the API group would be `{own_group}`: the domain of the project is added to `--group`\n  = help: for a controller of the \
             existing kind `{kind}`, pass `--controller`; for a kind of your own, pass `--resource`"
        ),
        (None, Some(owner), Ok(own_group)) => bail!(
            "the API group would be `{own_group}`: the domain of the project is added to `--group`\n  = help: for a kind of {owner}, pass \
             `--external-path` with its Rust type; for a kind of your own, pass `--resource`"
        ),
        (None, None, Ok(own_group)) if asks_for_controller && is_kubernetes_group(group) => {
            match foreign_kind::explain_unknown(tree, group, version, kind)?.as_str() {
                "" => Ok(()),
                help => bail!(
                    "there is no built-in kind `{kind}` in {}: to scaffold one of your own in `{own_group}`, pass `--resource`{help}",
                    gvk::api_version(group, version)
                ),
            }
        }
        _ => Ok(()),
    }
}

fn ask(requested: &mut ApiRequest, shell: &mut Shell) {
    // A controller for an image is always scaffolded together with its types.
    if requested.image.is_some() {
        return;
    }
    let questions = [
        (&mut requested.resource, "Generate the API types?"),
        (&mut requested.controller, "Generate a controller?"),
    ];
    for (flag, question) in questions {
        // "Yes" leaves the flag unset, so that the default still depends on the project.
        if flag.is_none() && !shell.confirm(question, true) {
            *flag = Some(false);
        }
    }
}

/// Plans the changes made by `create api`.
///
/// # Errors
/// Fails if a name is invalid or taken, if files conflict, or if a file cannot be edited.
pub fn plan_create_api(tree: &Tree, requested: &ApiRequest) -> Result<Outcome> {
    check_flags(requested)?;
    let mut creation = Creation::new(tree)?;
    creation.add_version(requested, Types::Scaffolded)?;
    creation.finish(requested.manifests)
}

#[derive(Clone, Copy)]
enum Types<'a> {
    /// The preceding version, or the template if there is none.
    Scaffolded,
    OfCrd(&'a ImportedVersion),
}

struct Creation<'a> {
    tree: &'a Tree,
    plan: Plan,
    /// The project, including the versions added so far.
    project: Project,
    added: Vec<Added>,
}

struct Added {
    request: Request,
    api: ApiContext,
    files: Vec<Rendered>,
    taken: CopiedParts,
}

impl<'a> Creation<'a> {
    fn new(tree: &'a Tree) -> Result<Self> {
        Ok(Creation {
            tree,
            plan: Plan::default(),
            project: scaffold::require_project(tree)?,
            added: Vec::new(),
        })
    }

    fn add_version(&mut self, requested: &ApiRequest, types: Types<'_>) -> Result<()> {
        let tree = self.tree;
        let is_imported = matches!(types, Types::OfCrd(_));
        let mut request = Request::new(&self.project, tree, requested, is_imported)?;
        let taken = match types {
            Types::Scaffolded => request.read_previous(&self.project, tree, requested)?,
            Types::OfCrd(_) => CopiedParts::default(),
        };
        request.check_free_names(&self.project, tree)?;
        let parts = Parts {
            types: request.types,
            controller: request.controller.is_some(),
            webhooks: false,
        };
        check_places(tree, &self.project, parts)?;
        let context = project_context(&self.project);
        let mut api = request.context(&self.project);
        taken.complete(&mut api, &tree.read("Cargo.toml")?.unwrap_or_default());
        let mut files = rbuilder_templates::api_files(&context, &api)?;
        match types {
            Types::Scaffolded => taken.replace(&mut files, &api),
            Types::OfCrd(version) => imported::replace_files(&mut files, &context, &api, version),
        }
        for file in &files {
            check_module_place(tree, &file.path)?;
        }
        owners::check_file_owners(&self.project, &request.resource, &files)?;
        let wanted = if request.further && !requested.force {
            let is_kept = request.known && !is_imported;
            further::keep_existing_files(&mut self.plan, tree, &files, &api, is_kept)?
        } else {
            files.clone()
        };
        scaffold::add_files(&mut self.plan, tree, &mut self.project, &wanted, requested.force)?;
        self.project.add_resource(request.resource.clone());
        self.added.push(Added {
            request,
            api,
            files,
            taken,
        });
        Ok(())
    }

    fn finish(mut self, has_manifests: bool) -> Result<Outcome> {
        self.plan.check_conflicts()?;
        for added in &self.added {
            let mut lines: Vec<Line> = crate_line(&added.request.resource)?.into_iter().collect();
            lines.extend(api_lines(&added.api, &added.files));
            add_lines(&mut self.plan, self.tree, &lines)?;
        }
        self.plan.write_project(&self.project, self.tree)?;
        let found = scaffold::add_manifests(&mut self.plan, self.tree, has_manifests)?;
        let next = next_steps(&self.added, self.project.test_command());
        let mut outcome = found.into_outcome(self.plan).with_next(&next);
        for Added {
            request, api, taken, ..
        } in &self.added
        {
            further::warn_uncopied(taken, api, &mut outcome);
            if request.types {
                further::warn_unconverted(&self.project, &request.resource, &mut outcome);
            }
        }
        Ok(outcome)
    }
}

fn next_steps(added: &[Added], test_command: &str) -> String {
    let mut files = Vec::new();
    for Added { api, .. } in added {
        // Code from a CRD is complete.
        if api.resource && !api.imported {
            files.push(types_path(api));
        }
        if api.controller {
            files.push(format!("src/{}.rs", api.controller_path.replace("::", "/")));
        }
    }
    if files.is_empty() {
        return format!("Next: run:\n  {test_command}\n");
    }
    format!(
        "Next: edit {}, then run:\n  {test_command}\n",
        files.join(" and ")
    )
}

/// Checks the flags for a controller that runs an image. It must be scaffolded together with its
/// types, even if parts of it are deleted later.
fn check_image_flags(requested: &ApiRequest) -> Result<()> {
    let is_whole = requested.resource != Some(false) && requested.controller != Some(false);
    if requested.image.is_some() && (requested.controller_name.is_some() || requested.external.path.is_some())
    {
        bail!(
            "`--image` scaffolds a kind of the project with one controller: omit `--controller-name` and `--external-path`"
        );
    }
    if requested.image.is_some() && !is_whole {
        bail!(
            "`--image` scaffolds the types and the controller of a kind: omit `--resource=false` and `--controller=false`"
        );
    }
    Ok(())
}

/// Checks flags as far as possible without the project.
fn check_flags(requested: &ApiRequest) -> Result<()> {
    let plural = requested.plural.as_deref().map_or(Ok(()), names::check_plural);
    let controller = requested.controller_name.as_deref();
    scaffold::check_names([
        names::check_version(&requested.version),
        names::check_kind(&requested.kind),
        plural,
        requested.image.as_ref().map_or(Ok(()), Image::check),
        controller.map_or(Ok(()), names::check_controller_name),
    ])?;
    if controller.is_some() && requested.controller == Some(false) {
        bail!("`--controller-name` names a controller: omit `--controller=false`");
    }
    if requested.external.path.is_some() && requested.resource == Some(true) {
        bail!("the types of a kind of another project are in its crate: omit `--resource`");
    }
    Ok(())
}
