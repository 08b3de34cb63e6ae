//! Deployment features: the components listed in `config/default`, and their requirements.
//!
//! Features are only recorded in the kustomization, so commenting out a line by hand works just as
//! well.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};

use super::Outcome;
use super::edits::edit_file;
use super::manifests::ROLE_NAMESPACES;
use super::sharding::{self, SHARDING};
use crate::edit::Obstacle;
use crate::edit::kustomization::webhooks::{CERTIFICATE, WEBHOOKS, disable_webhooks, enable_webhooks};
use crate::edit::kustomization::{self, COMPONENTS, TRANSFORMERS};
use crate::flags::{Feature, SettingFlags};
use crate::overlay::DEPLOYMENT;
use crate::plan::Plan;
use crate::project::{Project, Resource};
use crate::tree::Tree;

/// Transformer for the component with the metrics certificate.
const METRICS_NAMES: &str = "../metrics-certificate/names";

/// Features that require another one, without which they have no effect or break the deployment.
const NEEDS: &[(Feature, Feature, &str)] = &[
    (Feature::Prometheus, Feature::Metrics, "scrapes the metrics"),
    (
        Feature::MetricsCertificate,
        Feature::Metrics,
        "issues the certificate of their server",
    ),
    (
        Feature::CertManager,
        Feature::Webhooks,
        "issues the certificate of the webhooks",
    ),
];

fn component(feature: Feature) -> &'static str {
    match feature {
        Feature::Metrics => "../metrics",
        Feature::Prometheus => "../prometheus",
        Feature::MetricsCertificate => "../metrics-certificate",
        Feature::NetworkPolicy => "../network-policy",
        Feature::CertManager => CERTIFICATE,
        Feature::Webhooks => WEBHOOKS,
        Feature::Sharding => SHARDING,
    }
}

pub(super) fn check_features(settings: &SettingFlags) -> Result<()> {
    let both = settings
        .enable
        .iter()
        .find(|feature| settings.disable.contains(feature));
    match both {
        Some(feature) => bail!(
            "`{}` is in `--enable` and in `--disable`: remove it from one of them",
            feature.name()
        ),
        None => Ok(()),
    }
}

/// Enables and disables features. Fails if a required feature is disabled, if the project lacks
/// what a feature enables, or if the list of components has an unsupported form.
pub(super) fn add_features(
    outcome: &mut Outcome,
    tree: &Tree,
    project: &Project,
    settings: &SettingFlags,
) -> Result<()> {
    let Some(text) = outcome.plan.read(tree, DEPLOYMENT)? else {
        bail!("{DEPLOYMENT} does not exist: run `rbuilder update --restore {DEPLOYMENT}`");
    };
    let before = Features::read(&text);
    let after = before.with(settings);
    check_project(project, &before, settings)?;
    after.check_needs(settings)?;
    for feature in &settings.enable {
        let folder = component(*feature).trim_start_matches("../");
        check_component(&outcome.plan, tree, folder, *feature)?;
        if *feature == Feature::Sharding {
            sharding::check_arguments(&outcome.plan, tree)?;
        }
        let lines = format!("components:\n- {}", component(*feature));
        edit_file(&mut outcome.plan, tree, DEPLOYMENT, &lines, |text| {
            enable(text, *feature)
        })?;
    }
    for feature in &settings.disable {
        if *feature == Feature::Webhooks {
            if !has_webhooks(project) {
                continue;
            }
            check_component(&outcome.plan, tree, "webhook/disabled", *feature)?;
        }
        edit_file(&mut outcome.plan, tree, DEPLOYMENT, "", |text| {
            disable(text, *feature)
        })?;
    }
    let text = outcome.plan.read(tree, DEPLOYMENT)?.unwrap_or_default();
    check_order(&text)?;
    if before.0.contains(&Feature::Webhooks) && settings.disable.contains(&Feature::Webhooks) {
        warn_configurations(project, outcome);
    }
    if before.0.contains(&Feature::Sharding) && settings.disable.contains(&Feature::Sharding) {
        sharding::warn_replicas(project, outcome);
    }
    Ok(())
}

/// Lists in a scaffolded `config/default` what commands list in the project's own one: the enabled
/// features, and the transformers of `manifests`. A list that can't be edited stays as it is.
pub(super) fn with_entries_of(scaffolded: &str, own: &str) -> String {
    let (before, after) = (Features::read(scaffolded), Features::read(own));
    let mut text = scaffolded.to_owned();
    for feature in after.0.difference(&before.0) {
        text = enable(&text, *feature).unwrap_or(text);
    }
    for feature in before.0.difference(&after.0) {
        text = disable(&text, *feature).unwrap_or(text);
    }
    for entry in [ROLE_NAMESPACES, METRICS_NAMES] {
        let is_listed = kustomization::entries(own, TRANSFORMERS)
            .iter()
            .any(|known| known == entry);
        if is_listed {
            text = kustomization::enable(&text, TRANSFORMERS, entry).unwrap_or(text);
        }
    }
    text
}

struct Features(BTreeSet<Feature>);

impl Features {
    fn read(text: &str) -> Features {
        use clap::ValueEnum as _;
        let listed = kustomization::entries(text, COMPONENTS);
        let all = Feature::value_variants().iter().copied();
        Features(
            all.filter(|feature| listed.iter().any(|entry| entry == component(*feature)))
                .collect(),
        )
    }

    fn with(&self, settings: &SettingFlags) -> Features {
        let mut features = self.0.clone();
        features.extend(&settings.enable);
        features.retain(|feature| !settings.disable.contains(feature));
        Features(features)
    }

    fn check_needs(&self, settings: &SettingFlags) -> Result<()> {
        for (feature, needed, reason) in NEEDS {
            if !self.0.contains(feature) || self.0.contains(needed) {
                continue;
            }
            let (feature_name, needed_name) = (feature.name(), needed.name());
            if settings.disable.contains(needed) {
                bail!(
                    "`{feature_name}` requires `{needed_name}`, because it {reason}: disable both with `--disable {feature_name},{needed_name}`"
                );
            }
            if settings.enable.contains(feature) {
                bail!(
                    "`{feature_name}` requires `{needed_name}`, because it {reason}: enable both with `--enable {needed_name},{feature_name}`"
                );
            }
        }
        Ok(())
    }
}

fn has_webhooks(project: &Project) -> bool {
    let mut resources = project.known.resources.iter();
    resources.any(|resource| resource.webhooks.as_ref().is_some_and(|own| !own.is_empty()))
}

fn check_project(project: &Project, before: &Features, settings: &SettingFlags) -> Result<()> {
    let of_webhooks = [Feature::Webhooks, Feature::CertManager];
    let asked = settings
        .enable
        .iter()
        .find(|feature| of_webhooks.contains(feature));
    if let Some(feature) = asked
        && !has_webhooks(project)
    {
        bail!(
            "the project has no webhooks, so `{}` has no effect: scaffold one with `rbuilder create webhook`",
            feature.name()
        );
    }
    let converts = |resource: &&Resource| resource.webhooks.as_ref().is_some_and(|own| own.conversion);
    if let Some(resource) = project.known.resources.iter().find(converts)
        && settings.disable.contains(&Feature::Webhooks)
        && before.0.contains(&Feature::Webhooks)
    {
        bail!(
            "without its webhook the API server can serve only one version of kind `{}`: delete the conversion first, with `rbuilder delete webhook {} --conversion`",
            resource.kind,
            resource.naming_flags()
        );
    }
    Ok(())
}

fn check_component(plan: &Plan, tree: &Tree, folder: &str, feature: Feature) -> Result<()> {
    let path = format!("config/{folder}/kustomization.yaml");
    if plan.read(tree, &path)?.is_some() {
        return Ok(());
    }
    bail!(
        "the component of `{}`, {path}, does not exist: run `rbuilder update --restore config/{folder}`",
        feature.name()
    )
}

fn enable(text: &str, feature: Feature) -> Result<String, Obstacle> {
    match feature {
        Feature::Webhooks => enable_webhooks(text),
        Feature::MetricsCertificate => {
            let text = kustomization::enable(text, COMPONENTS, component(feature))?;
            Ok(kustomization::enable(&text, TRANSFORMERS, METRICS_NAMES)?)
        }
        _ => Ok(kustomization::enable(text, COMPONENTS, component(feature))?),
    }
}

fn disable(text: &str, feature: Feature) -> Result<String, Obstacle> {
    let entry = component(feature);
    let edited = match feature {
        Feature::Webhooks => return disable_webhooks(text),
        Feature::MetricsCertificate => {
            let text = kustomization::disable(text, COMPONENTS, entry)
                .map_err(|reason| Obstacle::unlisted(reason, entry))?;
            return kustomization::remove_transformer(&text, METRICS_NAMES)
                .map_err(|reason| Obstacle::unlisted(reason, METRICS_NAMES));
        }
        // Scaffolds never contain this line as a comment.
        Feature::CertManager => kustomization::remove_component(text, entry),
        _ => kustomization::disable(text, COMPONENTS, entry),
    };
    edited.map_err(|reason| Obstacle::unlisted(reason, entry))
}

/// Components that change objects of other components. They must be listed below those, because
/// kustomize applies components in order.
const BELOW: &[(Feature, Feature)] = &[
    (Feature::CertManager, Feature::Webhooks),
    (Feature::MetricsCertificate, Feature::Metrics),
    (Feature::MetricsCertificate, Feature::Prometheus),
];

fn check_order(text: &str) -> Result<()> {
    let listed = kustomization::entries(text, COMPONENTS);
    let place = |feature| listed.iter().position(|entry| entry == component(feature));
    for (lower, upper) in BELOW {
        let (Some(below), Some(above)) = (place(*lower), place(*upper)) else {
            continue;
        };
        if below > above {
            continue;
        }
        let (lower, upper) = (component(*lower), component(*upper));
        return Err(anyhow!(
            Obstacle::new(format!("`{lower}` is above `{upper}`, whose objects it changes"))
                .with_lines(
                    "move the first line below the second",
                    format!("- {lower}\n- {upper}")
                )
                .in_file(DEPLOYMENT, "")
        ));
    }
    Ok(())
}

fn warn_configurations(project: &Project, outcome: &mut Outcome) {
    let prefix = project.name_prefix();
    outcome.warn(
        "deployed webhook configurations stay in the cluster, and the API server keeps calling the webhooks",
        &format!(
            "after the next `make deploy`, run `kubectl delete --ignore-not-found mutatingwebhookconfiguration/{prefix}mutating-webhook-configuration validatingwebhookconfiguration/{prefix}validating-webhook-configuration`"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "resources:\n- ../crd\n\ncomponents:\n- ../metrics\n# - ../prometheus\n- ../webhook\n\ntransformers:\n- ../webhook/names\n";

    #[test]
    fn enables_and_disables_each_feature() {
        for feature in [
            Feature::Metrics,
            Feature::Prometheus,
            Feature::MetricsCertificate,
            Feature::CertManager,
            Feature::Webhooks,
            Feature::Sharding,
        ] {
            let on = enable(LISTED, feature).expect("a list");
            assert!(Features::read(&on).0.contains(&feature));
            let off = disable(&on, feature).expect("a list");
            assert!(!Features::read(&off).0.contains(&feature), "{off}");
            assert_eq!(enable(&off, feature), Ok(on.clone()));
            assert_eq!(disable(&off, feature), Ok(off.clone()));
            assert_eq!(enable(&on, feature), Ok(on));
        }
    }
}
