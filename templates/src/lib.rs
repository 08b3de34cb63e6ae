//! The files that rbuilder scaffolds: templates, their contexts and their destinations.
//!
//! A template is a file in `files/` and a row in [`TEMPLATES`]. The suffix `.tera` prevents git and
//! Cargo from interpreting the files in this repository. The template language is tera (`{{ }}`,
//! `{% %}`); workflows that contain `${{ }}` wrap it in `{% raw %}`. This crate knows nothing about
//! Kubernetes and does no I/O: it renders contexts to text.

mod archive;
mod context;
mod names;
pub mod objects;
mod set;
mod table;

use tera::Context;

pub use archive::{Archive, ArchiveError, Release, Versions};
pub use context::{ApiContext, ImageContext, ProjectContext, SpokeContext, WebhookContext};
pub use names::USED_NAMES;
pub use set::{TemplateError, TemplateSet};
pub use table::{Command, OnExists, TEMPLATES, Template, When};

/// A rendered file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Path in the project, separated by `/`.
    pub path: String,
    /// Content of the file.
    pub text: String,
    /// What to do if the file exists.
    pub on_exists: OnExists,
}

/// Renders the files of `init`, in the order of the table.
///
/// # Errors
/// Returns an error if a template uses a name that is not in [`ProjectContext`].
pub fn init_files(project: &ProjectContext) -> Result<Vec<Rendered>, TemplateError> {
    let mut context = Context::new();
    context.insert("project", project);
    render(Command::Init, project, (None, None), &context)
}

/// Renders the files of `create api`, in the order of the table.
///
/// # Errors
/// Returns an error if a template uses a name that is not in the contexts.
pub fn api_files(project: &ProjectContext, api: &ApiContext) -> Result<Vec<Rendered>, TemplateError> {
    let mut context = Context::new();
    context.insert("project", project);
    context.insert("api", api);
    render(Command::CreateApi, project, (Some(api), None), &context)
}

/// Renders the files of `create webhook`, in the order of the table, then the files of each
/// conversion.
///
/// # Errors
/// Returns an error if a template uses a name that is not in the contexts.
pub fn webhook_files(
    project: &ProjectContext,
    api: &ApiContext,
    webhook: &WebhookContext,
) -> Result<Vec<Rendered>, TemplateError> {
    let mut context = Context::new();
    context.insert("project", project);
    context.insert("api", api);
    context.insert("webhook", webhook);
    let requested = (Some(api), Some(webhook));
    let mut files = render(Command::CreateWebhook, project, requested, &context)?;
    for spoke in &webhook.spokes {
        context.insert("spoke", spoke);
        files.extend(render(Command::CreateSpoke, project, requested, &context)?);
    }
    Ok(files)
}

fn render(
    command: Command,
    project: &ProjectContext,
    requested: (Option<&ApiContext>, Option<&WebhookContext>),
    context: &Context,
) -> Result<Vec<Rendered>, TemplateError> {
    let (api, webhook) = requested;
    let holds =
        |template: &Template| template.command == command && template.when.holds(project, api, webhook);
    let mut files = project.templates.render(holds, context)?;
    for file in &mut files {
        project.objects.apply(project, file);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The lint bans I/O in this crate, but the tests may do it.
    #[allow(clippy::disallowed_methods)]
    fn listing(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("templates are in the package") {
            let entry = entry.expect("a readable folder");
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                listing(&entry.path(), &format!("{name}/"), names);
            } else {
                names.insert(name);
            }
        }
    }

    #[test]
    fn table_lists_all_files() {
        let mut files = BTreeSet::new();
        listing(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("files"),
            "",
            &mut files,
        );
        let rows: BTreeSet<String> = TEMPLATES
            .iter()
            .map(|template| template.name.to_string())
            .collect();
        assert_eq!(rows.len(), TEMPLATES.len(), "a template has two rows");
        assert_eq!(rows, files);
    }

    #[test]
    fn unknown_name_is_error() {
        let mut engine = tera::Tera::new();
        engine
            .add_raw_template("x", "{{ project.nmae }}")
            .expect("it is well formed");
        let mut context = Context::new();
        context.insert("project", &std::collections::BTreeMap::from([("name", "a")]));
        assert!(engine.render("x", &context).is_err());
    }

    #[test]
    fn all_templates_render() {
        for flag in [false, true] {
            let (project, api) = contexts(flag);
            let init = init_files(&project).expect("init renders");
            let create = api_files(&project, &api).expect("create api renders");
            let webhooks = webhook_files(&project, &api, &webhooks(flag)).expect("create webhook renders");
            let image = ApiContext {
                image: Some(image(flag)),
                ..api
            };
            let image = api_files(&project, &image).expect("create api --image renders");
            for file in init.iter().chain(&create).chain(&webhooks).chain(&image) {
                assert!(!file.path.contains("{{"), "{}", file.path);
                assert!(
                    file.text.ends_with('\n') && !file.text.ends_with("\n\n"),
                    "end of {}",
                    file.path
                );
                assert!(
                    !file.text.contains("\t\t\t") || file.path == "Makefile",
                    "{}",
                    file.path
                );
            }
        }
    }

    #[test]
    fn released_templates_render_with_current_contexts() {
        for release in Archive::embedded().releases() {
            for flag in [false, true] {
                let (mut project, api) = contexts(flag);
                project.templates = &release.templates;
                let version = &release.versions.rbuilder;
                let files = [
                    init_files(&project),
                    api_files(&project, &api),
                    webhook_files(&project, &api, &webhooks(flag)),
                ];
                for file in files {
                    assert!(!file.expect(version).is_empty(), "{version}");
                }
            }
        }
    }

    fn webhooks(flag: bool) -> WebhookContext {
        let spoke = SpokeContext {
            version: "v2".into(),
            api_path: "api::v2".into(),
            imports: vec![
                "crate::api::v1::CronJob as Hub".into(),
                "crate::api::v2::CronJob".into(),
            ],
            hub_type: "Hub".into(),
            kind_type: "CronJob".into(),
            sample_file: "config/samples/batch_v2_cronjob.yaml".into(),
        };
        WebhookContext {
            defaulting: flag,
            validation: flag,
            admission: flag,
            spokes: if flag { Vec::new() } else { vec![spoke] },
            about: "defaults".into(),
            chain: "Webhook::new()".into(),
            defaulting_marker: "#[webhook(mutating)]".into(),
            validation_marker: "#[webhook(validating)]".into(),
            path: "webhook::batch::v1::cron_job".into(),
            folder: "webhook/batch/v1".into(),
            test_module: "cron_job_webhook".into(),
        }
    }

    fn image(flag: bool) -> ImageContext {
        ImageContext {
            name: "registry:5000/app".into(),
            variable: "RELATED_IMAGE_CACHE_MEMCACHED".into(),
            command: if flag {
                vec!["app".into(), "-v".into()]
            } else {
                Vec::new()
            },
            port: flag.then_some(8080),
            run_as_user: flag.then_some(1001),
        }
    }

    pub(crate) fn contexts(flag: bool) -> (ProjectContext, ApiContext) {
        let project = ProjectContext {
            templates: TemplateSet::current(),
            name: "shop".into(),
            name_yaml: "shop".into(),
            package: "shop".into(),
            crate_ident: "shop".into(),
            domain: "example.com".into(),
            owner: if flag { "The Authors".into() } else { String::new() },
            license: if flag { "apache2".into() } else { "none".into() },
            license_spdx: if flag { "Apache-2.0".into() } else { String::new() },
            rust_header: if flag {
                "// Copyright The Authors.\n\n".into()
            } else {
                String::new()
            },
            workspace: flag,
            member: if flag { "crates/shop".into() } else { String::new() },
            workspace_root: if flag { "../..".into() } else { String::new() },
            directory_prefix: if flag {
                "crates/shop/".into()
            } else {
                String::new()
            },
            build_directory: ".".into(),
            adopted: false,
            manager: true,
            binary: "manager".into(),
            namespaced: flag,
            multigroup: flag,
            leader_election_id: "1fc6f0d8.example.com".into(),
            rbuilder_source: "package = \"rbuilder-runtime\", version = \"0.1.0\"".into(),
            rbuilder_version: "0.1.0".into(),
            rust_version: "1.89".into(),
            kube_version: "5.0".into(),
            k8s_openapi_version: "0.29".into(),
            kubernetes_version: "1.37".into(),
            k8s_openapi_feature: "v1_37".into(),
            apps_spec_is_required: true,
            objects: objects::OtherNames::default(),
        };
        let api = ApiContext {
            group: "batch".into(),
            qualified_group: "batch.example.com".into(),
            qualified_group_yaml: "batch.example.com".into(),
            version: "v1".into(),
            api_version: "batch.example.com/v1".into(),
            kind: "CronJob".into(),
            kind_yaml: "CronJob".into(),
            singular: "cronjob".into(),
            plural: "cronjobs".into(),
            plural_yaml: "cronjobs".into(),
            module: "cron_job".into(),
            api_path: "api::v1".into(),
            kind_path: "api::v1::CronJob".into(),
            kind_type: "CronJob".into(),
            version_path: "v1".into(),
            src_root: "crate::".into(),
            test_root: "shop::".into(),
            foreign: flag,
            core: flag,
            served_by_fake: flag,
            reexport: "cron_job".into(),
            controller_path: "controller::cron_job".into(),
            test_module: "cron_job".into(),
            role_prefix: "cronjob".into(),
            namespaced: flag,
            resource: true,
            imported: flag,
            controller: true,
            bare: flag,
            controller_name: "cronjob".into(),
            controller_module: "cron_job".into(),
            controller_chain: "Controller::new(reconcile, State::default())".into(),
            controller_imports: vec!["crate::api::v1::CronJob".into()],
            test_imports: vec!["shop::controller".into()],
            owned_group: String::new(),
            owned_plural: if flag { "jobs".into() } else { String::new() },
            cluster_wide: flag,
            storage: flag,
            crd_file: "config/crd/bases/batch.example.com_cronjobs.yaml".into(),
            sample_file: "config/samples/batch_v1_cronjob.yaml".into(),
            sample_name: "cronjob-sample".into(),
            kube_arguments: Vec::new(),
            needs_approval: flag,
            image: None,
        };
        (project, api)
    }
}
