//! `rbuilder bundle`: makes a bundle and a catalog for the Operator Lifecycle Manager, and merges them with those that are there.

use std::path::Path;

use anyhow::Result;

use super::generated_merge::{GeneratedMerge, Product, check_product, read_base};
use super::{Outcome, execute, scaffold};
use crate::bundle::{BundleOptions, Catalog, FOLDER, make_bundle};
use crate::flags::{BundleFlags, is_version};
use crate::plan::Plan;
use crate::shell::Shell;
use crate::tree::{Tree, typed_path};

const BUNDLE: Product = Product {
    noun: "bundle",
    command: "bundle",
    base: ".rbuilder/bundle.txt",
};

pub(super) fn run(dir: &Path, flags: &BundleFlags, shell: &mut Shell) -> Result<u8> {
    let make = &mut |tree: &Tree| plan_bundle(tree, flags);
    match flags.product.merge.check {
        true => check_product(BUNDLE, dir, flags.product.merge.plan.output, shell, make),
        false => execute("bundle", dir, flags.product.merge.plan, shell, make),
    }
}

/// Returns the changes that make or update the bundle. Its exit code is 1 if there are conflicts.
///
/// # Errors
/// Fails if the source has errors, if `config/` cannot be read or has no CRD, if conflicts of an earlier run are unresolved,
/// or with `--no-conflicts` if there are any.
pub fn plan_bundle(tree: &Tree, flags: &BundleFlags) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let context = scaffold::project_context(&project);
    let mut plan = Plan::default();
    let found = scaffold::add_manifests(&mut plan, tree, flags.product.manifests)?;
    let version = match &flags.version {
        Some(version) => version.clone(),
        None => read_version(&plan, tree)?.unwrap_or_else(|| "0.1.0".to_owned()),
    };
    let bundle_image = flags.bundle_image.clone();
    let mut options = BundleOptions {
        bundle_image: bundle_image.unwrap_or_else(|| format!("{}-bundle:v{version}", context.name)),
        provider: match context.owner.as_str() {
            "" => context.name.clone(),
            owner => owner.to_owned(),
        },
        name: context.name,
        version,
        image: flags.image.clone(),
        channels: flags.channels.clone(),
        replaces: flags.replaces.clone(),
        skips: flags.skips.clone(),
        icon: flags.icon.as_deref().map(typed_path),
        is_namespaced: context.namespaced,
        is_ours: context.manager,
    };
    let (written, present) = read_catalogs(&plan, tree, &options.name)?;
    if options.replaces.is_none() {
        options.replaces = present.find_replaced(&options);
    }
    let bundle = make_bundle(&plan, tree, &options, &written)?;
    let mut merge = GeneratedMerge::new(BUNDLE, bundle.files, flags.product.merge.force);
    merge.add_to(&mut plan, tree)?;
    merge.check(flags.product.merge.no_conflicts)?;
    let mut outcome = found.into_outcome(plan);
    for (message, help) in bundle.warnings {
        outcome.warn(&message, &help);
    }
    let next = format!(
        "describe the operator in {FOLDER}/manifests/{}.clusterserviceversion.yaml",
        options.name
    );
    merge.report(
        &mut outcome,
        &next,
        &format!("operator-sdk bundle validate ./{FOLDER}"),
    );
    Ok(outcome)
}

/// Reads the catalog as it was last written, to which a release is added, and as it is now: what people have changed in it
/// comes by the merge.
fn read_catalogs(plan: &Plan, tree: &Tree, package: &str) -> Result<(Catalog, Catalog)> {
    let path = Catalog::path(package);
    let present = plan.read(tree, &path)?.unwrap_or_default();
    let written = read_base(BUNDLE, plan, tree)?.remove(&path);
    let parse = |text: &str| Catalog::parse(package, text);
    Ok((parse(written.as_ref().unwrap_or(&present))?, parse(&present)?))
}

/// Reads the version of the package, if it is one that bundles can have.
fn read_version(plan: &Plan, tree: &Tree) -> Result<Option<String>> {
    let text = plan.read(tree, "Cargo.toml")?.unwrap_or_default();
    let manifest = text.parse::<toml_edit::DocumentMut>().unwrap_or_default();
    let version = manifest
        .get("package")
        .and_then(|package| package.get("version")?.as_str());
    Ok(version.filter(|version| is_version(version)).map(str::to_owned))
}
