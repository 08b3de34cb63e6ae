//! `create api --from-crd`: scaffolds a kind from its CRD, with all versions.
//!
//! The importer's types and sample replace those of the templates. The kind is recorded as
//! `imported` in PROJECT, so that `update` doesn't treat these files as scaffolded.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use rbuilder_generator::CsvMarkers;
use rbuilder_importer::{ImportedKind, ImportedVersion, import_kind};
use rbuilder_kubernetes::version;
use rbuilder_templates::{ApiContext, ProjectContext, Rendered};
use serde_json::{Value, json};

use super::{Creation, Types, check_flags};
use crate::commands::types::{help, message, read_definitions};
use crate::commands::{Outcome, kubernetes};
use crate::project::{describe_scope, naming_flags, strip_domain};
use crate::render::types_path;
use crate::request::ApiRequest;
use crate::tree::Tree;

/// Reads the CRD named by the flags. Paths are relative to `dir`. If the files contain several
/// CRDs, the flags must select one.
pub(super) fn read_definition(dir: &Path, requested: &ApiRequest) -> Result<Value> {
    let file = requested.from_crd.clone().unwrap_or_default();
    let shown = file.display();
    let mut skipped = Vec::new();
    let mut documents = read_definitions(dir, std::slice::from_ref(&file), &mut skipped)?;
    let kind_of = |document: &Value| {
        document["spec"]["names"]["kind"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let kinds: Vec<String> = documents.iter().map(kind_of).collect();
    let list = kinds.join("`, `");
    if !requested.kind.is_empty() {
        documents.retain(|document| kind_of(document) == requested.kind);
    }
    match (documents.len(), documents.pop()) {
        (1, Some(document)) => Ok(document),
        (0, _) => bail!(
            "{shown} has no CRD of the kind `{}`: it has `{list}`",
            requested.kind
        ),
        _ if requested.kind.is_empty() => {
            bail!("{shown} has several CRDs: pass one of the kinds `{list}` with `--kind`")
        }
        _ => bail!(
            "{shown} has several CRDs of the kind `{}`: pass a file with one of them",
            requested.kind
        ),
    }
}

/// Plans the changes made by `create api --from-crd`. For each version, these are the changes made
/// by `create api`, with types from the CRD and a sample that matches its schema.
///
/// # Errors
/// Fails if a flag contradicts the CRD, and for the same reasons as
/// [`plan_create_api`](super::plan_create_api).
pub fn plan_create_api_from_crd(tree: &Tree, requested: &ApiRequest, document: &Value) -> Result<Outcome> {
    let kind = import_crd(document, tree, &[])?;
    plan_create_imported(tree, requested, &kind)
}

pub(crate) fn plan_create_imported(
    tree: &Tree,
    requested: &ApiRequest,
    kind: &ImportedKind,
) -> Result<Outcome> {
    let mut creation = Creation::new(tree)?;
    check_against(requested, kind)?;
    if kind.object != kind.kind {
        bail!(
            "kind `{}` cannot be scaffolded, because its Rust type has to have another name: generate the types with `rbuilder types`",
            kind.kind
        );
    }
    let group = creation.own_group(&kind.group, requested.api_domain.as_deref())?;
    let mut versions: Vec<&ImportedVersion> = kind.versions.iter().collect();
    // The storage version comes first and has the controller.
    versions.sort_by(|one, other| {
        let by_name = || version::compare(&other.name, &one.name);
        other.is_stored.cmp(&one.is_stored).then_with(by_name)
    });
    for (at, &version) in versions.iter().enumerate() {
        let is_first = at == 0;
        let requested = ApiRequest {
            group: group.clone(),
            version: version.name.clone(),
            kind: kind.kind.clone(),
            plural: Some(kind.plural.clone()),
            namespaced: Some(kind.is_namespaced),
            resource: Some(true),
            controller: if is_first {
                requested.controller
            } else {
                Some(false)
            },
            controller_name: requested.controller_name.clone().filter(|_| is_first),
            ..requested.clone()
        };
        check_flags(&requested)?;
        creation.add_version(&requested, Types::OfCrd(version))?;
    }
    let mut outcome = creation.finish(requested.manifests)?;
    for diagnostic in &kind.warnings {
        outcome.warn(&message(diagnostic), help(diagnostic));
    }
    if kind.is_converted {
        outcome.warn(
            &format!(
                "the CRD of `{}` refers to the conversion webhook of its current operator",
                kind.kind
            ),
            &advise_on_conversion(&group, &kind.kind, &versions),
        );
    }
    Ok(outcome)
}

/// Explains how the manager can convert a kind whose CRD refers to another operator's webhook.
/// `versions` starts with the storage version, which becomes the hub.
fn advise_on_conversion(group: &str, kind: &str, versions: &[&ImportedVersion]) -> String {
    let names: Vec<&str> = versions.iter().map(|version| version.name.as_str()).collect();
    match names.as_slice() {
        [hub, spokes @ ..] if !spokes.is_empty() => format!(
            "run `rbuilder create webhook {} --conversion --spoke {}`, and replace `conversion(…)` above the struct of the kind with `conversion`",
            naming_flags(group, hub, kind),
            spokes.join(",")
        ),
        _ => "remove `conversion(…)` above the struct of the kind, which has one version".to_owned(),
    }
}

pub(crate) fn import_crd(document: &Value, tree: &Tree, csv: &[CsvMarkers]) -> Result<ImportedKind> {
    import_kind(document, kubernetes::find_project_minor(tree), csv).map_err(|found| {
        let errors = found.iter().filter(|found| found.is_error()).map(message);
        anyhow!(
            "cannot import the CRD:\n  {}",
            errors.collect::<Vec<_>>().join("\n  ")
        )
    })
}

fn check_against(requested: &ApiRequest, kind: &ImportedKind) -> Result<()> {
    let ImportedKind {
        group,
        kind: name,
        plural,
        ..
    } = kind;
    if !requested.group.is_empty()
        && *group != requested.group
        && !group.starts_with(&format!("{}.", requested.group))
    {
        bail!(
            "the CRD of `{name}` has the group `{group}`, not `{}`: omit `--group`",
            requested.group
        );
    }
    if !requested.version.is_empty()
        && kind
            .versions
            .iter()
            .any(|version| version.name != requested.version)
    {
        let versions: Vec<&str> = kind
            .versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        bail!(
            "the CRD of `{name}` has the versions `{}`, and all of them are scaffolded: omit `--version`",
            versions.join("`, `")
        );
    }
    if let Some(asked) = requested.plural.as_ref().filter(|asked| *asked != plural) {
        bail!("the CRD of `{name}` has the plural `{plural}`, not `{asked}`: omit `--plural`");
    }
    if requested
        .namespaced
        .is_some_and(|asked| asked != kind.is_namespaced)
    {
        let scope = describe_scope(kind.is_namespaced);
        bail!("the CRD of `{name}` is {scope}: omit `--namespaced`");
    }
    if requested.resource == Some(false) {
        bail!("`--from-crd` generates API types: omit `--resource=false`");
    }
    Ok(())
}

impl Creation<'_> {
    fn own_group(&self, group: &str, asked: Option<&str>) -> Result<String> {
        let domain = asked.unwrap_or(&self.project.known.domain);
        let parent = group.split_once('.').map_or(group, |(_, parent)| parent);
        strip_domain(group, domain).map(str::to_owned).with_context(|| {
            format!(
                "the CRD has the group `{group}`, which is not in the domain `{domain}`{}: pass `--domain {parent}`",
                match asked {
                    Some(_) => "",
                    None => " of the project",
                }
            )
        })
    }
}

pub(super) fn replace_files(
    files: &mut [Rendered],
    project: &ProjectContext,
    api: &ApiContext,
    version: &ImportedVersion,
) {
    let types = types_path(api);
    for file in files {
        if file.path == types {
            file.text = format!("{}{}", project.rust_header, version.text);
        } else if file.path == api.sample_file {
            file.text = print_sample(project, api, version);
        }
    }
}

fn print_sample(project: &ProjectContext, api: &ApiContext, version: &ImportedVersion) -> String {
    let mut object = version.sample.clone();
    object.insert("apiVersion".into(), json!(api.api_version));
    object.insert("kind".into(), json!(api.kind));
    let labels =
        json!({ "app.kubernetes.io/name": project.name, "app.kubernetes.io/managed-by": "kustomize" });
    object.insert(
        "metadata".into(),
        json!({ "labels": labels, "name": api.sample_name }),
    );
    let text = rbuilder_generator::yaml::to_string(&Value::Object(object));
    text.strip_prefix("---\n").unwrap_or(&text).to_owned()
}
