//! The cluster that the flags `--kubeconfig` and `--context` choose.

use std::path::Path;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::args::ManagerArgs;
use crate::error::ManagerError;

const NO_CURRENT_CONTEXT: &str = "the kubeconfig has no current context; choose one with --context";

/// Loads the configuration of the cluster that the flags choose, or else of the one that the environment does. As in
/// controller-runtime, an empty flag counts as absent.
///
/// # Errors
/// When a flag is set and its cluster cannot be used: the operator must not go on with another.
pub(super) async fn load_config(args: &ManagerArgs) -> Result<Config, ManagerError> {
    let path = args.kubeconfig.as_deref().filter(|path| *path != Path::new(""));
    let context = args.context.as_deref().filter(|name| !name.is_empty());
    if path.is_none() && context.is_none() {
        return Ok(Config::infer().await?);
    }
    let kubeconfig = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = kubeconfig.map_err(|error| new_flag_error(path, context, error.to_string()))?;
    if let Some(context) = context {
        check_context(&kubeconfig, context)?;
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| new_flag_error(path, context, explain(&error)))?;
    // As `Config::infer` does.
    config.apply_debug_overrides();
    Ok(config)
}

fn check_context(kubeconfig: &Kubeconfig, context: &str) -> Result<(), ManagerError> {
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|found| &*found.name).collect();
    if names.contains(&context) {
        return Ok(());
    }
    let reason = match names.is_empty() {
        true => "the kubeconfig has no contexts".to_owned(),
        false => format!(
            "expected a context of the kubeconfig, one of `{}`",
            names.join("`, `")
        ),
    };
    Err(new_flag_error(None, Some(context), reason))
}

fn explain(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::LoadContext(name) if name.is_empty() => NO_CURRENT_CONTEXT.to_owned(),
        KubeconfigError::CurrentContextNotSet => NO_CURRENT_CONTEXT.to_owned(),
        error => error.to_string(),
    }
}

/// Returns the error of `--kubeconfig`, or of `--context` if only that is set.
fn new_flag_error(path: Option<&Path>, context: Option<&str>, reason: String) -> ManagerError {
    let (flag, value) = match path {
        Some(path) => ("kubeconfig", path.display().to_string()),
        None => ("context", context.unwrap_or_default().to_owned()),
    };
    ManagerError::Flag { flag, value, reason }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A folder with a kubeconfig of the contexts `blue`, which is the current one, and `green`.
    fn new_kubeconfig(current: &str) -> (TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": current,
            "clusters": [
                { "name": "blue", "cluster": { "server": "https://blue.example.com" } },
                { "name": "green", "cluster": { "server": "https://green.example.com" } },
            ],
            "contexts": [
                { "name": "blue", "context": { "cluster": "blue", "user": "me", "namespace": "north" } },
                { "name": "green", "context": { "cluster": "green", "user": "me" } },
                { "name": "broken", "context": { "cluster": "none", "user": "me" } },
            ],
            "users": [{ "name": "me", "user": {} }],
        });
        fs::write(&path, text.to_string()).unwrap();
        (folder, path.display().to_string())
    }

    async fn load(path: &str, context: &str) -> Result<Config, String> {
        let args = ManagerArgs {
            kubeconfig: Some(path.into()),
            context: Some(context.to_owned()),
            ..ManagerArgs::default()
        };
        load_config(&args).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn flags_choose_the_kubeconfig_and_its_context() {
        let (_folder, path) = new_kubeconfig("blue");
        let blue = load(&path, "").await.unwrap();
        assert_eq!(blue.cluster_url, "https://blue.example.com");
        assert_eq!(blue.default_namespace, "north");
        let green = load(&path, "green").await.unwrap();
        assert_eq!(green.cluster_url, "https://green.example.com");
    }

    #[tokio::test]
    async fn an_error_names_the_flag_and_its_value() {
        let (_folder, path) = new_kubeconfig("");
        let check = async |path: &str, context: &str, expected: &str| {
            let error = load(path, context).await.unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
        check(
            &path,
            "grey",
            "invalid value `grey` for --context: expected a context of the kubeconfig, one of `blue`, `green`, `broken`",
        )
        .await;
        let flag = format!("invalid value `{path}` for --kubeconfig: ");
        check(
            &path,
            "broken",
            &format!("{flag}failed to load the cluster of context: none"),
        )
        .await;
        check(&path, "", &format!("{flag}{NO_CURRENT_CONTEXT}")).await;
        let start = "invalid value `/nowhere/config` for --kubeconfig: failed to read kubeconfig";
        check("/nowhere/config", "", start).await;
        check("/nowhere/config", "blue", start).await;
    }
}
