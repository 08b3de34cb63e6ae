//! The Kubernetes version that a build selects for k8s-openapi with an environment variable instead
//! of a feature.

use anyhow::{Context, Result, anyhow};
use rbuilder_generator::{Minor, Options, Sources, find_kubernetes_minor, versions};
use toml_edit::{Document, Item};

use crate::tree::Tree;

const CONFIG: &str = ".cargo/config.toml";
const VARIABLE: &str = "K8S_OPENAPI_ENABLED_VERSION";

/// The version in the variable read by k8s-openapi's build script, from the environment or `[env]`
/// in Cargo's configuration. Unsupported versions are ignored, because the variable may be meant
/// for another project.
pub(super) fn find_configured_version(sources: &dyn Sources) -> Result<Option<Minor>> {
    if let Some(minor) = in_environment(std::env::var(VARIABLE).ok().as_deref()) {
        return Ok(Some(minor));
    }
    let text = sources
        .text(CONFIG)
        .map_err(|reason| anyhow!("cannot read `{CONFIG}`: {reason}"))?;
    match text {
        Some(text) => in_config(&text).with_context(|| format!("cannot parse `{CONFIG}` as TOML")),
        None => Ok(None),
    }
}

/// Kubernetes minor version that the project's k8s-openapi is compiled for. Defaults to the version
/// for new projects.
pub(super) fn find_project_minor(tree: &Tree) -> Minor {
    let sources = tree.sources([]);
    let options = Options {
        kubernetes: find_configured_version(&sources).unwrap_or_default(),
        ..Options::default()
    };
    find_kubernetes_minor(&sources, &options).unwrap_or(versions::KUBERNETES)
}

fn in_environment(value: Option<&str>) -> Option<Minor> {
    Minor::from_version(value?)
}

fn in_config(text: &str) -> Result<Option<Minor>> {
    let document = Document::parse(text)?;
    let variable = document.get("env").and_then(|env| env.get(VARIABLE));
    let value = variable.and_then(|variable| variable.get("value").or(Some(variable)));
    Ok(value.and_then(Item::as_str).and_then(Minor::from_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_unsupported_versions() {
        let minor = |value| in_environment(value).map(|minor| minor.to_string());
        assert_eq!(minor(Some("1.35")).as_deref(), Some("1.35"));
        for value in [None, Some(""), Some("1.20"), Some("v1_26"), Some("latest")] {
            assert_eq!(minor(value), None, "{value:?}");
        }
    }

    #[test]
    fn reads_the_variable_from_cargo_configuration() {
        let check = |text: &str, expected: Option<&str>| {
            let found = in_config(text).expect("TOML").map(|minor| minor.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("", None);
        check("[env]\nK8S_OPENAPI_ENABLED_VERSION = \"1.34\"", Some("1.34"));
        check(
            "[env]\nK8S_OPENAPI_ENABLED_VERSION = { value = \"1.35\", force = true }",
            Some("1.35"),
        );
        check("[env]\nK8S_OPENAPI_ENABLED_VERSION = \"1.20\"", None);
        assert!(in_config("[env").is_err());
    }
}
