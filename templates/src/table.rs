//! The table of templates and their destinations. Each command has a directory in `files/`.
//!
//! `rbuilder delete` finds the files to remove in this table. Names in the table must not change,
//! because templates of older releases are recorded with them.
//!
//! # Adding a file
//!
//! 1. Add a template and a row. The condition of the row is `NewPackage` if an adopted package has
//!    such a file of its own. A new condition is a variant of [`When`] and an arm of its `holds`.
//! 2. Add the names of types that its Rust code uses to `names.rs`.
//! 3. If a kustomization must list it: for a file of `init`, add the entry to the
//!    `kustomization.yaml.tera` next to it; for a file of a kind, add a line in
//!    `crates/project/src/render/lines.rs`.
//! 4. Look at the tests that compare whole projects: `cli/tests/{member,adopted,kustomize}.rs`.
//!    docs/adopting.md describes what adopted packages get. A workflow also belongs in `WORKFLOWS`
//!    in `xtask/src/workflows.rs`, if it runs without a cluster.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{ApiContext, ProjectContext, WebhookContext};

/// A template: one row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Path in `files/`.
    pub name: Cow<'static, str>,
    /// Path in the project. It may contain template expressions.
    pub destination: Cow<'static, str>,
    /// The command that renders the template.
    pub command: Command,
    /// The condition under which the command renders it.
    pub when: When,
    /// What to do if the file exists.
    pub on_exists: OnExists,
    /// Text of the template.
    pub text: Cow<'static, str>,
}

/// A command that scaffolds files. The archive of releases contains these names, so they must not
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// `rbuilder init`
    Init,
    /// `rbuilder create api`
    CreateApi,
    /// `rbuilder create webhook`
    CreateWebhook,
    /// `rbuilder create webhook`, once for each spoke version
    CreateSpoke,
}

/// The condition under which a template is rendered. The archive of releases contains these names,
/// so they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Always.
    Always,
    /// The project has a new package.
    NewPackage,
    /// The project was added to an existing package.
    AdoptedPackage,
    /// The project uses the manager of rbuilder.
    RbuilderManager,
    /// API types are requested.
    Resource,
    /// API types are requested in a project with several groups.
    ResourceInGroup,
    /// API types are requested, without an image.
    PlainTypes,
    /// API types are requested, with an image.
    ImageTypes,
    /// API types are requested, without an image controller and without types from a CRD.
    PlainTest,
    /// API types from a CRD and a controller are requested.
    ImportedTest,
    /// API types and a controller for an image are requested.
    ImageTest,
    /// A controller is requested, with an example but without an image.
    PlainController,
    /// A controller for an image is requested.
    ImageController,
    /// A controller without an example is requested.
    BareController,
    /// A controller is requested for a kind whose types are defined outside the project.
    ForeignController,
    /// A controller is requested that needs cluster-wide permissions, in a project whose manager is
    /// restricted to one namespace.
    ClusterWideController,
    /// A controller is requested in a project with several groups.
    ControllerInGroup,
    /// The project has several groups.
    InGroup,
    /// A conversion is requested.
    Conversion,
    /// The types of the kind are defined in the project.
    Own,
    /// The types of the kind are defined outside the project.
    Foreign,
}

impl When {
    pub(crate) fn holds(
        self,
        project: &ProjectContext,
        api: Option<&ApiContext>,
        webhook: Option<&WebhookContext>,
    ) -> bool {
        let resource = api.is_some_and(|api| api.resource);
        let controller = api.is_some_and(|api| api.controller);
        let image = api.is_some_and(|api| api.image.is_some());
        let has = |flag: fn(&ApiContext) -> bool| api.is_some_and(|api| api.controller && flag(api));
        let in_group = project.multigroup && api.is_some_and(|api| !api.group.is_empty());
        match self {
            When::Always => true,
            When::NewPackage => !project.adopted,
            When::AdoptedPackage => project.adopted,
            When::RbuilderManager => project.manager,
            When::Resource => resource,
            When::ResourceInGroup => resource && in_group,
            When::PlainTypes => resource && !image,
            When::ImageTypes => resource && image,
            When::PlainTest => resource && !(image && has(|api| !api.bare)) && !has(|api| api.imported),
            When::ImportedTest => resource && has(|api| api.imported),
            When::ImageTest => resource && image && has(|api| !api.bare),
            When::PlainController => !image && has(|api| !api.bare),
            When::ImageController => image && has(|api| !api.bare),
            When::BareController => has(|api| api.bare),
            When::ForeignController => has(|api| api.foreign),
            When::ClusterWideController => project.namespaced && has(|api| api.cluster_wide),
            When::ControllerInGroup => controller && in_group,
            When::InGroup => in_group,
            When::Own => api.is_some_and(|api| !api.foreign),
            When::Foreign => api.is_some_and(|api| api.foreign),
            When::Conversion => webhook.is_some_and(|webhook| !webhook.spokes.is_empty()),
        }
    }
}

/// What to do if the file exists. The archive of releases contains these names, so they must not
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnExists {
    /// The command owns the file. If it differs, the command reports a conflict, or overwrites it
    /// with `--force`.
    Owned,
    /// Several commands edit the file. Keep and edit it.
    Shared,
    /// A repository may contain this file before it contains a project. Keep it.
    Kept,
    /// The file is a list with one entry per line. Keep it and append missing entries.
    Merged,
}

macro_rules! templates {
    ($($command:ident $when:ident $on_exists:ident $name:literal => $destination:literal,)*) => {
        /// Every template, in the order of their names.
        pub static TEMPLATES: &[Template] = &[$(Template {
            name: Cow::Borrowed($name),
            destination: Cow::Borrowed($destination),
            command: Command::$command,
            when: When::$when,
            on_exists: OnExists::$on_exists,
            text: Cow::Borrowed(include_str!(concat!("../files/", $name))),
        }),*];
    };
}

templates! {
    CreateApi Resource Owned "api/admin_role.yaml.tera" => "config/rbac/{{ api.role_prefix | replace(from=\"-\", to=\"_\") }}_admin_role.yaml",
    CreateApi Resource Owned "api/argocd_health.yaml.tera" => "config/argocd/{{ api.role_prefix | replace(from=\"-\", to=\"_\") }}_health.yaml",
    CreateApi BareController Owned "api/bare_controller.rs.tera" => "src/{{ api.controller_path | replace(from=\"::\", to=\"/\") }}.rs",
    CreateApi ClusterWideController Shared "api/cluster_role_binding.yaml.tera" => "config/rbac/cluster_role_binding.yaml",
    CreateApi PlainController Owned "api/controller.rs.tera" => "src/{{ api.controller_path | replace(from=\"::\", to=\"/\") }}.rs",
    CreateApi ControllerInGroup Shared "api/controller_group_mod.rs.tera" => "src/controller/{{ api.controller_path | split(pat=\"::\") | nth(n=1) }}/mod.rs",
    CreateApi Resource Owned "api/editor_role.yaml.tera" => "config/rbac/{{ api.role_prefix | replace(from=\"-\", to=\"_\") }}_editor_role.yaml",
    CreateApi ForeignController Owned "api/foreign_test.rs.tera" => "tests/{{ api.test_module }}.rs",
    CreateApi ResourceInGroup Shared "api/group_mod.rs.tera" => "src/api/{{ api.api_path | split(pat=\"::\") | nth(n=1) }}/mod.rs",
    CreateApi ImportedTest Owned "api/imported_test.rs.tera" => "tests/{{ api.test_module }}.rs",
    CreateApi PlainTypes Owned "api/sample.yaml.tera" => "{{ api.sample_file }}",
    CreateApi PlainTest Owned "api/test.rs.tera" => "tests/{{ api.test_module }}.rs",
    CreateApi PlainTypes Owned "api/types.rs.tera" => "src/{{ api.api_path | replace(from=\"::\", to=\"/\") }}/{{ api.module }}.rs",
    CreateApi Resource Shared "api/version_mod.rs.tera" => "src/{{ api.api_path | replace(from=\"::\", to=\"/\") }}/mod.rs",
    CreateApi Resource Owned "api/viewer_role.yaml.tera" => "config/rbac/{{ api.role_prefix | replace(from=\"-\", to=\"_\") }}_viewer_role.yaml",
    CreateApi ImageController Owned "image/controller.rs.tera" => "src/{{ api.controller_path | replace(from=\"::\", to=\"/\") }}.rs",
    CreateApi ImageController Owned "image/manager_image/kustomization.yaml.tera" => "config/manager/{{ api.group }}_{{ api.singular }}_image/kustomization.yaml",
    CreateApi ImageTypes Owned "image/sample.yaml.tera" => "{{ api.sample_file }}",
    CreateApi ImageTest Owned "image/test.rs.tera" => "tests/{{ api.test_module }}.rs",
    CreateApi ImageTypes Owned "image/types.rs.tera" => "src/{{ api.api_path | replace(from=\"::\", to=\"/\") }}/{{ api.module }}.rs",
    Init Always Kept "init/AGENTS.md.tera" => "AGENTS.md",
    Init NewPackage Owned "init/Cargo.toml.tera" => "Cargo.toml",
    Init Always Owned "init/Dockerfile.tera" => "Dockerfile",
    Init Always Owned "init/Makefile.tera" => "Makefile",
    Init NewPackage Kept "init/README.md.tera" => "README.md",
    Init Always Shared "init/config/crd/kustomization.yaml.tera" => "config/crd/kustomization.yaml",
    Init Always Shared "init/config/default/kustomization.yaml.tera" => "config/default/kustomization.yaml",
    Init Always Shared "init/config/manager/kustomization.yaml.tera" => "config/manager/kustomization.yaml",
    Init Always Owned "init/config/manager/manager.yaml.tera" => "config/manager/manager.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/certificate.yaml.tera" => "config/metrics-certificate/certificate.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/issuer.yaml.tera" => "config/metrics-certificate/issuer.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/kustomization.yaml.tera" => "config/metrics-certificate/kustomization.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/kustomizeconfig.yaml.tera" => "config/metrics-certificate/kustomizeconfig.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/manager_certificate_patch.yaml.tera" => "config/metrics-certificate/manager_certificate_patch.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/monitor_certificate_patch.yaml.tera" => "config/metrics-certificate/monitor_certificate_patch.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/names/kustomization.yaml.tera" => "config/metrics-certificate/names/kustomization.yaml",
    Init RbuilderManager Owned "init/config/metrics-certificate/names/replacements.yaml.tera" => "config/metrics-certificate/names/replacements.yaml",
    Init RbuilderManager Owned "init/config/metrics/kustomization.yaml.tera" => "config/metrics/kustomization.yaml",
    Init RbuilderManager Owned "init/config/metrics/manager_metrics_patch.yaml.tera" => "config/metrics/manager_metrics_patch.yaml",
    Init RbuilderManager Owned "init/config/metrics/metrics_auth_role.yaml.tera" => "config/metrics/metrics_auth_role.yaml",
    Init RbuilderManager Owned "init/config/metrics/metrics_auth_role_binding.yaml.tera" => "config/metrics/metrics_auth_role_binding.yaml",
    Init RbuilderManager Owned "init/config/metrics/metrics_reader_role.yaml.tera" => "config/metrics/metrics_reader_role.yaml",
    Init RbuilderManager Owned "init/config/metrics/metrics_service.yaml.tera" => "config/metrics/metrics_service.yaml",
    Init RbuilderManager Owned "init/config/network-policy/allow-metrics-traffic.yaml.tera" => "config/network-policy/allow-metrics-traffic.yaml",
    Init RbuilderManager Owned "init/config/network-policy/kustomization.yaml.tera" => "config/network-policy/kustomization.yaml",
    Init RbuilderManager Owned "init/config/prometheus/kustomization.yaml.tera" => "config/prometheus/kustomization.yaml",
    Init RbuilderManager Owned "init/config/prometheus/monitor.yaml.tera" => "config/prometheus/monitor.yaml",
    Init Always Shared "init/config/rbac/kustomization.yaml.tera" => "config/rbac/kustomization.yaml",
    Init RbuilderManager Owned "init/config/rbac/leader_election_role.yaml.tera" => "config/rbac/leader_election_role.yaml",
    Init RbuilderManager Owned "init/config/rbac/leader_election_role_binding.yaml.tera" => "config/rbac/leader_election_role_binding.yaml",
    Init Always Owned "init/config/rbac/role_binding.yaml.tera" => "config/rbac/role_binding.yaml",
    Init Always Owned "init/config/rbac/service_account.yaml.tera" => "config/rbac/service_account.yaml",
    Init Always Shared "init/config/samples/kustomization.yaml.tera" => "config/samples/kustomization.yaml",
    Init RbuilderManager Owned "init/config/sharding/autoscaler.yaml.tera" => "config/sharding/autoscaler.yaml",
    Init RbuilderManager Owned "init/config/sharding/delete_patch.yaml.tera" => "config/sharding/delete_patch.yaml",
    Init RbuilderManager Owned "init/config/sharding/kustomization.yaml.tera" => "config/sharding/kustomization.yaml",
    Init RbuilderManager Owned "init/config/sharding/manager_sharding_patch.yaml.tera" => "config/sharding/manager_sharding_patch.yaml",
    Init RbuilderManager Owned "init/config/sharding/pod_disruption_budget.yaml.tera" => "config/sharding/pod_disruption_budget.yaml",
    Init RbuilderManager Owned "init/config/sharding/sharding_role.yaml.tera" => "config/sharding/sharding_role.yaml",
    Init RbuilderManager Owned "init/config/sharding/sharding_role_binding.yaml.tera" => "config/sharding/sharding_role_binding.yaml",
    Init Always Owned "init/dockerignore.tera" => "{% if project.member %}Dockerfile{% endif %}.dockerignore",
    Init NewPackage Owned "init/github/dependabot.yml.tera" => ".github/dependabot.yml",
    Init Always Owned "init/github/workflows/api.yml.tera" => ".github/workflows/api.yml",
    Init Always Owned "init/github/workflows/lint.yml.tera" => ".github/workflows/lint.yml",
    Init Always Owned "init/github/workflows/release.yml.tera" => ".github/workflows/release.yml",
    Init Always Owned "init/github/workflows/test-e2e.yml.tera" => ".github/workflows/test-e2e.yml",
    Init Always Owned "init/github/workflows/test.yml.tera" => ".github/workflows/test.yml",
    Init Always Merged "init/gitignore.tera" => ".gitignore",
    Init NewPackage Shared "init/src/api/mod.rs.tera" => "src/api/mod.rs",
    Init NewPackage Shared "init/src/controller/mod.rs.tera" => "src/controller/mod.rs",
    Init NewPackage Owned "init/src/lib.rs.tera" => "src/lib.rs",
    Init NewPackage Owned "init/src/main.rs.tera" => "src/main.rs",
    Init AdoptedPackage Owned "init/tests/adopted_e2e.rs.tera" => "tests/e2e.rs",
    Init NewPackage Owned "init/tests/e2e.rs.tera" => "tests/e2e.rs",
    CreateWebhook Always Owned "webhook/config/certmanager/certificate.yaml.tera" => "config/certmanager/certificate.yaml",
    CreateWebhook Always Owned "webhook/config/certmanager/delete_patch.yaml.tera" => "config/certmanager/delete_patch.yaml",
    CreateWebhook Always Owned "webhook/config/certmanager/injection_patch.yaml.tera" => "config/certmanager/injection_patch.yaml",
    CreateWebhook Always Owned "webhook/config/certmanager/issuer.yaml.tera" => "config/certmanager/issuer.yaml",
    CreateWebhook Always Owned "webhook/config/certmanager/kustomization.yaml.tera" => "config/certmanager/kustomization.yaml",
    CreateWebhook Always Owned "webhook/config/certmanager/kustomizeconfig.yaml.tera" => "config/certmanager/kustomizeconfig.yaml",
    CreateWebhook Always Owned "webhook/config/certmanager/manager_certificate_patch.yaml.tera" => "config/certmanager/manager_certificate_patch.yaml",
    CreateWebhook Always Owned "webhook/config/network-policy/allow-webhook-traffic.yaml.tera" => "config/network-policy/allow-webhook-traffic.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/certificate_role.yaml.tera" => "config/webhook/certificate_role.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/certificate_role_binding.yaml.tera" => "config/webhook/certificate_role_binding.yaml",
    CreateWebhook Conversion Owned "webhook/config/webhook/conversion_role.yaml.tera" => "config/webhook/{{ api.role_prefix | replace(from=\"-\", to=\"_\") }}_conversion_role.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/disabled/kustomization.yaml.tera" => "config/webhook/disabled/kustomization.yaml",
    CreateWebhook Always Shared "webhook/config/webhook/kustomization.yaml.tera" => "config/webhook/kustomization.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/kustomizeconfig.yaml.tera" => "config/webhook/kustomizeconfig.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/manager_webhook_patch.yaml.tera" => "config/webhook/manager_webhook_patch.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/names/kustomization.yaml.tera" => "config/webhook/names/kustomization.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/names/replacements.yaml.tera" => "config/webhook/names/replacements.yaml",
    CreateWebhook Always Owned "webhook/config/webhook/service.yaml.tera" => "config/webhook/service.yaml",
    CreateWebhook Foreign Owned "webhook/foreign_test.rs.tera" => "tests/{{ webhook.test_module }}.rs",
    CreateSpoke Always Owned "webhook/src/conversion.rs.tera" => "src/{{ spoke.api_path | replace(from=\"::\", to=\"/\") }}/{{ api.module }}_conversion.rs",
    CreateWebhook InGroup Shared "webhook/src/group_mod.rs.tera" => "src/webhook/{{ webhook.path | split(pat=\"::\") | nth(n=1) }}/mod.rs",
    CreateWebhook Always Shared "webhook/src/mod.rs.tera" => "src/webhook/mod.rs",
    CreateWebhook Always Shared "webhook/src/version_mod.rs.tera" => "src/{{ webhook.folder }}/mod.rs",
    CreateWebhook Always Owned "webhook/src/webhook.rs.tera" => "src/{{ webhook.folder }}/{{ api.module }}.rs",
    CreateWebhook Own Owned "webhook/test.rs.tera" => "tests/{{ webhook.test_module }}.rs",
}
