//! Which Kubernetes a build is told to take k8s-openapi's types from, where no feature says it.

use anyhow::{Context, Result, anyhow};
use rbuilder_generator::{Minor, Sources};
use toml_edit::{Document, Item};

const CONFIG: &str = ".cargo/config.toml";
const VARIABLE: &str = "K8S_OPENAPI_ENABLED_VERSION";

/// What the variable that k8s-openapi's build reads says: the environment's, else that of `[env]` in Cargo's
/// configuration. A version that rbuilder does not know counts as none: the variable may be meant for another project.
///
/// # Errors
/// The configuration cannot be read, or is not TOML.
pub(super) fn configured(sources: &dyn Sources) -> Result<Option<Minor>> {
    if let Some(minor) = in_environment(std::env::var(VARIABLE).ok().as_deref()) {
        return Ok(Some(minor));
    }
    let text = sources
        .text(CONFIG)
        .map_err(|reason| anyhow!("`{CONFIG}` cannot be read: {reason}"))?;
    match text {
        Some(text) => in_config(&text).with_context(|| format!("`{CONFIG}` is not TOML")),
        None => Ok(None),
    }
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
    fn the_variable_of_another_project_counts_as_none() {
        let minor = |value| in_environment(value).map(|minor| minor.to_string());
        assert_eq!(minor(Some("1.35")).as_deref(), Some("1.35"));
        for value in [None, Some(""), Some("1.20"), Some("v1_26"), Some("latest")] {
            assert_eq!(minor(value), None, "{value:?}");
        }
    }

    #[test]
    fn the_variable_in_cargos_configuration() {
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
