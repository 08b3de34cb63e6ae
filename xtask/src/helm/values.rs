//! Checks that a chart's values have the expected effect on the objects.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Helm;
use crate::value::{parse_objects, text};

/// Values of the chart, and the fields that we expect with them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    set: Vec<String>,
    expected: BTreeMap<String, BTreeMap<String, Value>>,
}

/// Checks a chart's values. The project must have webhooks.
pub(super) fn check_values(helm: &Helm, chart: &Path) -> Result<()> {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("values.yaml"))?;
    for Case { set, expected } in cases {
        let values = set.join(",");
        let objects = helm.render(chart, "shop", &values)?;
        for (id, fields) in expected {
            let object = find(&objects, &id)?;
            for (path, value) in fields {
                let found = follow(object, &path);
                ensure!(
                    *found == value,
                    "with {values}, {path} of {id} is {found}, not {value}"
                );
            }
        }
    }
    check_budget(helm, chart)?;
    check_names(helm, chart)?;
    check_condition(helm, chart)
}

fn find<'a>(objects: &'a [Value], id: &str) -> Result<&'a Value> {
    let (kind, name) = id.split_once('/').context("expected a kind and a name")?;
    let is_it = |object: &&Value| object["kind"] == kind && text(object, "/metadata/name").ends_with(name);
    let found = objects.iter().find(is_it);
    found.with_context(|| format!("the chart has no {id}"))
}

fn follow<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('/').skip(1).fold(object, |value, part| {
        let is_named = |item: &&Value| item["name"] == part;
        let named = value.as_array().and_then(|items| items.iter().find(is_named));
        let found = named.or_else(|| value.pointer(&format!("/{part}")));
        found.unwrap_or(&Value::Null)
    })
}

/// Checks that there is never more than one PodDisruptionBudget for the manager. Otherwise it would
/// not be possible to evict its Pods.
fn check_budget(helm: &Helm, chart: &Path) -> Result<()> {
    for (values, expected) in [
        ("sharding.enabled=false", 0),
        ("sharding.enabled=true", 1),
        ("sharding.enabled=false,podDisruptionBudget.enabled=true", 1),
        ("sharding.enabled=true,podDisruptionBudget.enabled=true", 1),
    ] {
        let objects = helm.render(chart, "shop", values)?;
        let budgets = objects
            .iter()
            .filter(|object| object["kind"] == "PodDisruptionBudget");
        ensure!(
            budgets.count() == expected,
            "with `{values}`, expected {expected} PodDisruptionBudgets"
        );
    }
    Ok(())
}

/// Checks that the names of Services are valid (i.e. DNS labels that start with a letter), no
/// matter what the release is called.
fn check_names(helm: &Helm, chart: &Path) -> Result<()> {
    for release in ["shop.v1", "a.b", "1shop", &"a.".repeat(26)] {
        let release = release.trim_end_matches('.');
        let objects = helm.render(chart, release, "")?;
        for object in objects.iter().filter(|object| object["kind"] == "Service") {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let is_label = name.len() <= 63
                && name.starts_with(|first: char| first.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-');
            ensure!(is_label, "release {release} has a Service `{name}`");
        }
    }
    Ok(())
}

fn check_condition(helm: &Helm, chart: &Path) -> Result<()> {
    let parent = tempfile::Builder::new().prefix("rbuilder-parent-").tempdir()?;
    let dependency = json!([{ "name": "shop", "version": "0.1.0", "condition": "shop.enabled" }]);
    let file =
        json!({ "apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": dependency });
    fs_err::write(parent.path().join("Chart.yaml"), file.to_string())?;
    fs_err::create_dir(parent.path().join("charts"))?;
    helm.command("package --destination")
        .arg(parent.path().join("charts"))
        .arg(chart)
        .read()?;
    for (enabled, is_there) in [("true", true), ("false", false)] {
        let set = format!("shop.enabled={enabled}");
        let rendered = helm
            .command("template a --set")
            .arg(set)
            .arg(parent.path())
            .read()?;
        let objects = parse_objects(&rendered)?;
        ensure!(
            objects.is_empty() != is_there,
            "with `shop.enabled={enabled}`, the dependency has {} objects",
            objects.len()
        );
    }
    Ok(())
}
