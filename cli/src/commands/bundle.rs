//! `rbuilder bundle`: generates a bundle and a catalog for the Operator Lifecycle Manager, and
//! merges them with the existing ones.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_generator::{CsvMarkers, Diagnostic, Product as Manifests};
use rbuilder_yaml::read_documents;
use semver::Version;
use serde_json::Value;

use super::generated_merge::{BUNDLE, GeneratedMerge, check_product};
use super::{Outcome, execute, manifests, scaffold};
use crate::bundle::version::is_version;
use crate::bundle::{
    Base, BundleOptions, Catalog, CheckedRelease, Descriptions, FOLDER, add_release, check_csv, make_bundle,
};
use crate::plan::Plan;
use crate::render;
use crate::request::BundleRequest;
use crate::shell::Shell;
use crate::tree::{Tree, typed_path};

const PLACEHOLDER: &str = "controller:latest";

pub(super) fn run(dir: &Path, requested: &BundleRequest, shell: &mut Shell) -> Result<u8> {
    let make = &mut |tree: &Tree| plan_bundle(tree, requested);
    match requested.product.merge.check {
        true => check_product(BUNDLE, dir, requested.product.merge.mode.output, shell, make),
        false => execute("bundle", dir, requested.product.merge.mode, shell, make),
    }
}

/// Plans to create or update the bundle. The exit code is 1 on conflicts.
///
/// # Errors
/// Returns an error in any of these cases:
///
/// - The version replaces or skips itself, or both replaces and skips another version.
/// - The source has errors, or `config/` cannot be read or contains no CRD.
/// - Conflicts of an earlier run are unresolved, or there are new ones and `--no-conflicts` is set.
/// - The lifecycle manager would reject one of the catalog's channels.
pub fn plan_bundle(tree: &Tree, requested: &BundleRequest) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let context = render::project_context(&project);
    let mut plan = Plan::default();
    let (found, source) = add_manifests(&mut plan, tree, requested.product.manifests)?;
    let version = match &requested.version {
        Some(version) => version.clone(),
        None => read_version(&plan, tree)?.unwrap_or_else(|| "0.1.0".to_owned()),
    };
    let base = Base::read(&plan, tree, &context.name)?;
    let bundle_image = requested.bundle_image.clone();
    let manager = requested.image.as_deref().unwrap_or(&context.name);
    let mut options = BundleOptions {
        bundle_image: bundle_image.unwrap_or_else(|| format!("{}-bundle:v{version}", repository_of(manager))),
        provider: match context.owner.as_str() {
            "" => context.name.clone(),
            owner => owner.to_owned(),
        },
        name: context.name,
        version,
        image: requested.image.clone(),
        default_channel: requested
            .default_channel
            .as_ref()
            .unwrap_or(&requested.channels[0])
            .clone(),
        channels: unique(&requested.channels),
        replaces: requested.replaces.clone(),
        replaced: None,
        skip_range: requested.skip_range.clone().or_else(|| base.skip_range()),
        skips: unique(&requested.skips),
        icon: requested.icon.as_deref().map(typed_path),
        is_namespaced: context.namespaced,
        is_ours: context.manager,
    };
    check_edges(&options)?;
    let mut merge = GeneratedMerge::read(BUNDLE, &plan, tree, requested.product.merge.force)?;
    let present = read_catalog(&plan, tree, &merge, &options)?;
    // Stay with the catalog's default channel unless another one is requested.
    if let Some(channel) = present
        .default_channel()
        .filter(|_| requested.default_channel.is_none())
    {
        options.default_channel = channel.to_owned();
    }
    options.replaced = present.find_replaced(&options);
    let descriptions = Descriptions {
        base: &base,
        markers: &source.markers,
    };
    let bundle = make_bundle(&plan, tree, &options, &descriptions)?;
    merge.add(&mut plan, tree, bundle.files)?;
    add_catalog(&mut merge, &mut plan, tree, &options, (&present, &bundle.csv))?;
    merge.finish(&mut plan, tree)?;
    merge.check(requested.product.merge.no_conflicts)?;
    let refused = manifests::find_refused_before(&plan, tree)?;
    let mut outcome = found.into_outcome(plan);
    for said in refused {
        let help = said.help.unwrap_or_default();
        outcome.warn_of_file(&said.place.path, &said.message, &help);
    }
    for (message, help) in bundle.warnings {
        outcome.warn(&message, &help);
    }
    warn_of_downgrade(&mut outcome, &options);
    warn_of_release(&mut outcome, requested, &options, &present);
    if options.image.is_none() && bundle.csv["metadata"]["annotations"]["containerImage"] == PLACEHOLDER {
        outcome.warn(
            &format!("the image of the manager is the placeholder `{PLACEHOLDER}`"),
            "pass the image of the release with `--image`",
        );
    }
    if source.is_partial {
        outcome.warn(
            "the source has errors, so the bundle may lack descriptions from `#[csv(…)]`",
            "run `rbuilder manifests` to see the errors",
        );
    }
    let csv = options.csv_path();
    let next = format!("describe the operator in {}", base.found_path().unwrap_or(&csv));
    let check = match merge.has_conflict(&Catalog::path(&options.name)) {
        true => "opm validate catalog".to_owned(),
        false => format!("operator-sdk bundle validate ./{FOLDER}"),
    };
    merge.report(&mut outcome, &next, &check);
    Ok(outcome)
}

fn repository_of(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    match image.rsplit_once(':') {
        // A colon before a slash separates a registry's port.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// Checks that a release neither replaces nor skips itself, and doesn't replace a version that it
/// skips.
fn check_edges(options: &BundleOptions) -> Result<()> {
    let BundleOptions { version, skips, .. } = options;
    if options
        .replaces
        .iter()
        .chain(skips)
        .any(|passed| passed == version)
    {
        bail!(
            "version {version} cannot replace or skip itself\n  = help: leave it out of `--replaces` and `--skips`"
        );
    }
    match options
        .replaces
        .as_ref()
        .filter(|replaced| skips.contains(replaced))
    {
        Some(replaced) => bail!(
            "version {version} cannot both replace and skip {replaced}\n  = help: leave out `--replaces`, and it replaces the version below those that it skips"
        ),
        None => Ok(()),
    }
}

fn warn_of_downgrade(outcome: &mut Outcome, options: &BundleOptions) {
    let version = &options.version;
    let lower = |other: &&String| match (Version::parse(other), Version::parse(version)) {
        (Ok(other), Ok(version)) => other > version,
        _ => false,
    };
    if let Some(higher) = options.replaces.iter().chain(&options.skips).find(lower) {
        outcome.warn(
            &format!(
                "version {version} replaces or skips {higher}, which is higher: clusters would be downgraded"
            ),
            &format!("if that is not intended, remove {higher} from `--replaces` and `--skips`"),
        );
    }
}

/// Warns if the version wasn't requested and isn't the newest, or if no cluster would upgrade to
/// the release.
fn warn_of_release(
    outcome: &mut Outcome,
    requested: &BundleRequest,
    options: &BundleOptions,
    present: &Catalog,
) {
    let Ok(version) = Version::parse(&options.version) else {
        return;
    };
    let newest = present.highest_version(None).filter(|newest| *newest > version);
    if let (None, Some(newest)) = (&requested.version, newest) {
        outcome.warn(
            &format!(
                "the bundle has version {version} from Cargo.toml, and the catalog already has {newest}"
            ),
            "pass the version of the release with `--version`",
        );
    }
    let Some(lower) = present.highest_version(Some(&version)) else {
        return;
    };
    for channel in present.unreached_channels(options) {
        outcome.warn(
            &format!("clusters with version {lower} do not upgrade to {version} in channel `{channel}`"),
            &format!(
                "pass `--replaces {lower}`, or the range of versions to upgrade from with `--skip-range`"
            ),
        );
    }
}

struct SourceMarkers {
    markers: Vec<CsvMarkers>,
    is_partial: bool,
}

/// Generates the manifests unless `--manifests=false`, and reads the markers for the
/// ClusterServiceVersion.
fn add_manifests(
    plan: &mut Plan,
    tree: &Tree,
    asked: bool,
) -> Result<(manifests::RenderedDiagnostics, SourceMarkers)> {
    let mut request = scaffold::manifests_request();
    request.options.csv = true;
    if asked {
        let found = manifests::add_to_plan(plan, tree, &request)?;
        let source = SourceMarkers {
            markers: found.csv_markers().to_vec(),
            is_partial: false,
        };
        return Ok((found, source));
    }
    // The flag only keeps files from being written; the bundle still needs the markers. Make do
    // with the readable part of the source.
    request.options.keep_going = true;
    request.options.products = vec![Manifests::Crds];
    let (_, found) = manifests::generate_in_memory(plan, tree, &request, &mut |_| {})?;
    let source = SourceMarkers {
        is_partial: found.diagnostics.iter().any(Diagnostic::is_error),
        markers: found.csv,
    };
    Ok((manifests::RenderedDiagnostics::default(), source))
}

fn read_catalog(
    plan: &Plan,
    tree: &Tree,
    merge: &GeneratedMerge,
    options: &BundleOptions,
) -> Result<Catalog> {
    let path = Catalog::path(&options.name);
    let text = plan.read(tree, &path)?;
    // If the user deleted the catalog, fall back to the last one that we wrote, since its releases
    // are published.
    let text = text.as_deref().or(merge.base(&path)).unwrap_or_default();
    Catalog::parse(&options.name, text)
}

/// Adds the catalog. Fails if the ClusterServiceVersion belongs to another release, or if the
/// lifecycle manager would reject the catalog.
fn add_catalog(
    merge: &mut GeneratedMerge,
    plan: &mut Plan,
    tree: &Tree,
    options: &BundleOptions,
    (present, generated): (&Catalog, &Value),
) -> Result<()> {
    let path = Catalog::path(&options.name);
    let written = match merge.base(&path) {
        Some(text) => &Catalog::parse(&options.name, text)?,
        None => present,
    };
    let is_mergeable = plan.check_conflicts().is_ok();
    let merged_csv = match is_mergeable && !merge.has_conflict(&options.csv_path()) {
        true => read_csv(plan, tree, options)?,
        false => None,
    };
    // The merged one contains the user's edits.
    let csv = merged_csv.as_ref().unwrap_or(generated);
    let change = add_release(csv, options, written, present);
    merge.add_onto(plan, tree, &path, change)?;
    let is_whole = !merge.has_conflict(&path) && plan.check_conflicts().is_ok();
    match plan.read(tree, &path)? {
        Some(text) if is_whole => Catalog::parse(&options.name, &text)?.check(&CheckedRelease {
            options,
            csv,
            present,
        }),
        _ => Ok(()),
    }
}

fn read_csv(plan: &Plan, tree: &Tree, options: &BundleOptions) -> Result<Option<Value>> {
    let path = options.csv_path();
    let Some(text) = plan.read(tree, &path)? else {
        return Ok(None);
    };
    let documents = read_documents(&path, &text)?;
    let [document] = &*documents else {
        bail!(
            "expected one YAML document in {path}, found {}\n  = help: restore it, or delete it and run the command with `--force`",
            documents.len()
        );
    };
    check_csv(&document.value, options)?;
    Ok(Some(document.value.clone()))
}

fn unique(values: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    values
        .iter()
        .filter(|value| seen.insert(*value))
        .cloned()
        .collect()
}

fn read_version(plan: &Plan, tree: &Tree) -> Result<Option<String>> {
    let text = plan.read(tree, "Cargo.toml")?.unwrap_or_default();
    let manifest = text.parse::<toml_edit::DocumentMut>().unwrap_or_default();
    let version = manifest
        .get("package")
        .and_then(|package| package.get("version")?.as_str());
    Ok(version.filter(|version| is_version(version)).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_of_images() {
        for (image, expected) in [
            ("shop", "shop"),
            ("ghcr.io/x/shop:v1", "ghcr.io/x/shop"),
            ("localhost:5000/shop", "localhost:5000/shop"),
            ("localhost:5000/shop:v1@sha256:00", "localhost:5000/shop"),
        ] {
            assert_eq!(repository_of(image), expected);
        }
    }
}
