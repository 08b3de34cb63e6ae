//! The parts of a kind (types, controllers and webhooks), each with its files and the lines that it
//! needs in other files.

use anyhow::Result;
use rbuilder_templates::Rendered;

use super::{
    ApiPlaces, Line, api_lines, crate_line, project_context, types_path, webhook_context, webhook_lines,
};
use crate::project::{Project, Resource, Webhooks};

/// The files for parts of kinds, and the lines that these parts need in other files.
#[derive(Debug, Default)]
pub struct Parts {
    /// The files. A file shared by several parts has the text of the first one.
    pub files: Vec<Rendered>,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Parts {
    /// Renders a kind's types, its controller, or both.
    ///
    /// # Errors
    /// Fails if a template does not render.
    pub fn of_api(places: &ApiPlaces<'_>) -> Result<Parts> {
        let api = places.context();
        let files = rbuilder_templates::api_files(&project_context(places.project), &api)?;
        let mut lines: Vec<Line> = crate_line(places.resource)?.into_iter().collect();
        lines.extend(api_lines(&api, &files));
        Ok(Parts { files, lines })
    }

    /// Renders the given webhooks of a kind. `types` is the path of the kind's types.
    ///
    /// # Errors
    /// Fails if a template does not render.
    pub fn of_webhooks(
        project: &Project,
        resource: &Resource,
        webhooks: &Webhooks,
        types: &str,
    ) -> Result<Parts> {
        if webhooks.is_empty() {
            return Ok(Parts::default());
        }
        let api = ApiPlaces::of(project, resource).context();
        let webhook = webhook_context(project, resource, webhooks, &api);
        let mut lines: Vec<Line> = crate_line(resource)?.into_iter().collect();
        lines.extend(webhook_lines(project, (&api, &webhook), types));
        let files = rbuilder_templates::webhook_files(&project_context(project), &api, &webhook)?;
        Ok(Parts { files, lines })
    }

    /// Renders all parts of a kind in PROJECT.
    ///
    /// # Errors
    /// Fails if a template does not render.
    pub fn of_kind(project: &Project, resource: &Resource) -> Result<Parts> {
        let mut parts = Parts::default();
        for places in ApiPlaces::each(project, resource) {
            parts.extend(Parts::of_api(&places)?);
        }
        if let Some(webhooks) = &resource.webhooks {
            let types = types_path(&ApiPlaces::of(project, resource).context());
            parts.extend(Parts::of_webhooks(project, resource, webhooks, &types)?);
        }
        Ok(parts)
    }

    /// Renders all parts of all kinds in PROJECT.
    ///
    /// # Errors
    /// Fails if a template does not render.
    pub fn of_project(project: &Project) -> Result<Parts> {
        let mut parts = Parts::default();
        for resource in &project.known.resources {
            parts.extend(Parts::of_kind(project, resource)?);
        }
        Ok(parts)
    }

    /// Adds other parts.
    pub fn extend(&mut self, other: Parts) {
        self.files.extend(other.files);
        self.lines.extend(other.lines);
    }

    /// Finds a file by its path.
    pub fn find(&self, path: &str) -> Option<&Rendered> {
        self.files.iter().find(|file| file.path == path)
    }
}
