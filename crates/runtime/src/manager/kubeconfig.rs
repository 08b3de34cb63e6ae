//! Loads the configuration according to `--kubeconfig` and `--context`.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::args::ManagerArgs;
use crate::causes::describe_causes;
use crate::client::proxy::{find_proxy, ignore_environment, remove_marker};
use crate::error::ManagerError;

const NO_CURRENT_CONTEXT: &str = "the kubeconfig has no current context; choose one with --context";

/// Loads the cluster's configuration, either from the flags or from the environment. Empty flags
/// count as unset, as in controller-runtime.
///
/// Fails if a flag is set but can't be used, rather than fall back to a different cluster.
pub(super) async fn load_config(args: &ManagerArgs) -> Result<Config, ManagerError> {
    let path = args.kubeconfig.as_deref().filter(|path| *path != Path::new(""));
    let context = args.context.as_deref().filter(|name| !name.is_empty());
    if path.is_none() && context.is_none() {
        let config = match load_default_kubeconfig().await {
            Ok(config) => config,
            Err(of_kubeconfig) => load_of_pod().map_err(|of_pod| {
                let [of_kubeconfig, of_pod] = [describe_causes(&of_kubeconfig), describe_causes(&of_pod)];
                ManagerError::NoCluster(format!("kubeconfig: {of_kubeconfig}; pod: {of_pod}"))
            })?,
        };
        // An invalid proxy is a mistake in a variable or a kubeconfig, so report it as such.
        find_proxy(&config)?;
        return Ok(config);
    }
    let kubeconfig = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = kubeconfig.map_err(|error| new_flag_error(path, context, explain(&error)))?;
    if let Some(context) = context {
        check_context(&kubeconfig, context)?;
    }
    let config = load_context(kubeconfig, context).await;
    let config = config.map_err(|error| new_flag_error(path, context, explain(&error)))?;
    find_proxy(&config)?;
    Ok(config)
}

/// Fails if there's no usable kubeconfig, which is normal within a Pod.
async fn load_default_kubeconfig() -> Result<Config, KubeconfigError> {
    load_context(Kubeconfig::read()?, None).await
}

fn load_of_pod() -> Result<Config, InClusterError> {
    let mut config = Config::incluster()?;
    // Same as in `Config::infer`.
    config.apply_debug_overrides();
    Ok(config)
}

/// `context` defaults to the current context.
async fn load_context(mut kubeconfig: Kubeconfig, context: Option<&str>) -> Result<Config, KubeconfigError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let authority_file = find_authority_file(&kubeconfig, context);
    ignore_environment(&mut kubeconfig);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    remove_marker(&mut config);
    // Same as in `Config::infer`.
    config.apply_debug_overrides();
    config.root_cert_file = authority_file;
    Ok(config)
}

/// Returns the path of the CA file in the kubeconfig, if any.
///
/// kube reads the file only once, unless the configuration looks like a Pod's. Then it re-reads the
/// file every minute for new connections. (Recent versions of client-go re-read it every five
/// minutes in both cases.)
fn find_authority_file(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<PathBuf> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|context| context.name == name)?.context.as_ref()?;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == context.cluster)?;
    let cluster = cluster.cluster.as_ref()?;
    // Inline data takes precedence.
    match &cluster.certificate_authority_data {
        Some(_) => None,
        None => cluster.certificate_authority.as_ref().map(PathBuf::from),
    }
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
        error => describe_causes(error),
    }
}

/// If only `--context` is set, the error is about that flag.
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

    /// There are two contexts: `blue`, which is the current one, and `green`.
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

    #[test]
    fn ca_file_is_reread_unless_data_is_inline() {
        let (folder, path) = new_kubeconfig("blue");
        let text = fs::read_to_string(&path).unwrap();
        let with = |fields: &str| {
            let server = r#""server":"https://blue.example.com""#;
            fs::write(&path, text.replace(server, &format!("{server},{fields}"))).unwrap();
            Kubeconfig::read_from(&path).unwrap()
        };
        let file = r#""certificate-authority":"ca.crt""#;
        let found = find_authority_file(&with(file), None);
        assert_eq!(found, Some(folder.path().join("ca.crt")));
        assert_eq!(find_authority_file(&with(file), Some("green")), None);
        assert_eq!(find_authority_file(&with(file), Some("broken")), None);
        let both = with(&format!(r#"{file},"certificate-authority-data":"""#));
        assert_eq!(find_authority_file(&both, None), None);
    }

    #[tokio::test]
    async fn error_names_the_flag_and_its_value() {
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
