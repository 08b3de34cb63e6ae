//! Loads kubeconfigs of additional clusters, and restricts what they may contain.
//!
//! A kubeconfig can specify a command to run, files to read, and a server to which credentials are
//! sent without verifying its certificate. That is fine for a file on the operator's disk, but not
//! for a Secret: anyone who can write it could run commands in the operator's Pod, or exfiltrate
//! its files. The Kubernetes documentation has a similar warning ("a specially-crafted kubeconfig
//! file could result in malicious code execution or file exposure").

use kube::Config;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};

use crate::causes::describe_causes;
use crate::client::proxy::{find_proxy, ignore_environment, remove_marker};

/// Risky features that are permitted in a kubeconfig.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) commands: bool,
    pub(super) files: bool,
    pub(super) proxy: bool,
    pub(super) insecure: bool,
}

impl Allowed {
    /// For a kubeconfig written by the operator's administrator.
    pub(super) const ALL: Self = Self {
        commands: true,
        files: true,
        proxy: true,
        insecure: true,
    };
}

/// A key that is only accepted if it was permitted explicitly.
struct Risk {
    key: &'static str,
    is_present: bool,
    is_allowed: bool,
    effect: &'static str,
    advice: &'static str,
}

/// Errors don't quote the input, which contains credentials.
pub(super) fn parse_kubeconfig(text: &[u8]) -> Result<Kubeconfig, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    Kubeconfig::from_yaml(text).map_err(|error| describe_causes(&error))
}

/// Loads a context of the kubeconfig, which defaults to the current one. Fails if the context
/// doesn't exist or contains anything that isn't permitted.
pub(super) async fn to_config(
    mut kubeconfig: Kubeconfig,
    context: Option<&str>,
    allowed: Allowed,
) -> Result<Config, String> {
    let (cluster, user) = select(&kubeconfig, context)?;
    refuse_risks(cluster, user, allowed)?;
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let authority_file = find_authority_file(cluster.1);
    ignore_environment(&mut kubeconfig);
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| describe_causes(&error))?;
    remove_marker(&mut config);
    config.root_cert_file = authority_file;
    // Report an invalid proxy URL as an error of the kubeconfig.
    find_proxy(&config).map_err(|error| error.to_string())?;
    Ok(config)
}

/// Returns the path of the CA file, so that kube can re-read it every minute. `None` for inline
/// data, which takes precedence.
fn find_authority_file(cluster: &Cluster) -> Option<std::path::PathBuf> {
    match &cluster.certificate_authority_data {
        Some(_) => None,
        None => cluster.certificate_authority.as_ref().map(Into::into),
    }
}

type Named<'a, T> = (&'a str, &'a T);

/// Returns the cluster and the user of a context, which defaults to the current one.
fn select<'a>(
    kubeconfig: &'a Kubeconfig,
    context: Option<&str>,
) -> Result<(Named<'a, Cluster>, Option<Named<'a, AuthInfo>>), String> {
    let current = kubeconfig
        .current_context
        .as_deref()
        .filter(|name| !name.is_empty());
    let name = context.or(current).ok_or("it has no `current-context`")?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|found| found.name == name);
    let context = context.and_then(|found| found.context.as_ref());
    let context = context.ok_or_else(|| format!("it has no context `{name}`"))?;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|found| found.name == context.cluster);
    let cluster = cluster.and_then(|found| Some((&*found.name, found.cluster.as_ref()?)));
    let cluster = cluster.ok_or_else(|| {
        let missing = &context.cluster;
        format!("its context `{name}` names the cluster `{missing}`, which it does not have")
    })?;
    let mut users = kubeconfig.auth_infos.iter();
    let user = users.find(|found| Some(&found.name) == context.user.as_ref());
    Ok((
        cluster,
        user.and_then(|found| Some((&*found.name, found.auth_info.as_ref()?))),
    ))
}

/// Rejects keys that aren't permitted. The error explains the risk and the alternative.
fn refuse_risks(
    (cluster_name, cluster): Named<'_, Cluster>,
    user: Option<Named<'_, AuthInfo>>,
    allowed: Allowed,
) -> Result<(), String> {
    let of_cluster = risks_of_cluster(cluster, allowed);
    let of_cluster = of_cluster
        .into_iter()
        .map(|risk| ("clusters", cluster_name, "cluster", risk));
    let of_user = user.map(|(name, user)| (name, risks_of_user(user, allowed)));
    let of_user = of_user
        .into_iter()
        .flat_map(|(name, risks)| risks.map(|risk| ("users", name, "user", risk)));
    let mut refused = of_cluster
        .chain(of_user)
        .filter(|(.., risk)| risk.is_present && !risk.is_allowed);
    let Some((list, name, part, risk)) = refused.next() else {
        return Ok(());
    };
    let Risk {
        key, effect, advice, ..
    } = risk;
    Err(format!(
        "`{list}[{name}].{part}.{key}` would {effect}, which is not allowed: {advice}"
    ))
}

fn risks_of_cluster(cluster: &Cluster, allowed: Allowed) -> [Risk; 4] {
    let server = cluster.server.as_deref().unwrap_or_default();
    [
        Risk {
            key: "server",
            // Schemes are case-insensitive.
            is_present: server
                .get(..5)
                .is_some_and(|start| start.eq_ignore_ascii_case("http:")),
            is_allowed: allowed.insecure,
            effect: "send credentials unencrypted",
            advice: "write an address with `https://`, or allow it with `ClusterConfig::allow_insecure`",
        },
        Risk {
            key: "insecure-skip-tls-verify",
            is_present: cluster.insecure_skip_tls_verify == Some(true),
            is_allowed: allowed.insecure,
            effect: "send credentials to any server",
            advice: "write `certificate-authority-data`, or allow it with `ClusterConfig::allow_insecure`",
        },
        Risk {
            key: "certificate-authority",
            is_present: is_set(cluster.certificate_authority.as_deref()),
            is_allowed: allowed.files,
            effect: "read a file of the operator",
            advice: "write `certificate-authority-data`, or allow it with `ClusterConfig::allow_files`",
        },
        Risk {
            key: "proxy-url",
            is_present: is_set(cluster.proxy_url.as_deref()),
            is_allowed: allowed.proxy,
            effect: "send all requests to another server",
            advice: "remove it, or allow it with `ClusterConfig::allow_proxy`",
        },
    ]
}

fn risks_of_user(user: &AuthInfo, allowed: Allowed) -> [Risk; 5] {
    const COMMAND: &str = "run a command in the operator's pod";
    const FILE: &str = "read a file of the operator and send it to the server";
    [
        Risk {
            key: "exec",
            is_present: user.exec.is_some(),
            is_allowed: allowed.commands,
            effect: COMMAND,
            advice: "write a `token` or a client certificate, or allow it with `ClusterConfig::allow_commands`",
        },
        Risk {
            key: "auth-provider",
            is_present: user.auth_provider.is_some(),
            is_allowed: allowed.commands,
            effect: COMMAND,
            advice: "write a `token` or a client certificate, or allow it with `ClusterConfig::allow_commands`",
        },
        Risk {
            key: "tokenFile",
            is_present: is_set(user.token_file.as_deref()),
            is_allowed: allowed.files,
            effect: FILE,
            advice: "write a `token`, or allow it with `ClusterConfig::allow_files`",
        },
        Risk {
            key: "client-certificate",
            is_present: is_set(user.client_certificate.as_deref()),
            is_allowed: allowed.files,
            effect: FILE,
            advice: "write `client-certificate-data`, or allow it with `ClusterConfig::allow_files`",
        },
        Risk {
            key: "client-key",
            is_present: is_set(user.client_key.as_deref()),
            is_allowed: allowed.files,
            effect: "read a file of the operator",
            advice: "write `client-key-data`, or allow it with `ClusterConfig::allow_files`",
        },
    ]
}

fn is_set(value: Option<&str>) -> bool {
    value.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kubeconfig(cluster: Value, user: Value) -> Kubeconfig {
        let mut all = json!({ "server": "https://edge.example.com" });
        let keys = cluster.as_object().cloned().unwrap_or_default();
        all.as_object_mut().unwrap().extend(keys);
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "edge", "cluster": all }],
            "contexts": [
                { "name": "it", "context": { "cluster": "edge", "user": "me" } },
                { "name": "lost", "context": { "cluster": "gone", "user": "me" } },
            ],
            "users": [{ "name": "me", "user": user }],
        });
        parse_kubeconfig(text.to_string().as_bytes()).unwrap()
    }

    async fn load(cluster: Value, user: Value, allowed: Allowed) -> Result<Config, String> {
        to_config(kubeconfig(cluster, user), None, allowed).await
    }

    #[tokio::test]
    async fn keys_that_run_commands_read_files_or_bypass_tls_need_consent() {
        let none = Allowed::default();
        let commands = Allowed {
            commands: true,
            ..none
        };
        let files = Allowed { files: true, ..none };
        let proxy = Allowed { proxy: true, ..none };
        let insecure = Allowed {
            insecure: true,
            ..none
        };
        let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true" });
        let cases = [
            (
                json!({ "server": "http://edge.example.com" }),
                json!({}),
                "clusters[edge].cluster.server",
                insecure,
            ),
            (
                json!({ "server": "HTTP://edge.example.com" }),
                json!({}),
                "clusters[edge].cluster.server",
                insecure,
            ),
            (
                json!({ "insecure-skip-tls-verify": true }),
                json!({}),
                "clusters[edge].cluster.insecure-skip-tls-verify",
                insecure,
            ),
            (
                json!({ "certificate-authority": "/etc/passwd" }),
                json!({}),
                "clusters[edge].cluster.certificate-authority",
                files,
            ),
            (
                json!({ "proxy-url": "http://elsewhere.example.com" }),
                json!({}),
                "clusters[edge].cluster.proxy-url",
                proxy,
            ),
            (
                json!({}),
                json!({ "exec": exec }),
                "users[me].user.exec",
                commands,
            ),
            (
                json!({}),
                json!({ "auth-provider": { "name": "gcp", "config": { "cmd-path": "/bin/true" } } }),
                "users[me].user.auth-provider",
                commands,
            ),
            (
                json!({}),
                json!({ "tokenFile": "/etc/passwd" }),
                "users[me].user.tokenFile",
                files,
            ),
            (
                json!({}),
                json!({ "client-certificate": "/etc/passwd" }),
                "users[me].user.client-certificate",
                files,
            ),
            (
                json!({}),
                json!({ "client-key": "/etc/passwd" }),
                "users[me].user.client-key",
                files,
            ),
        ];
        for (cluster, user, key, consent) in cases {
            let error = load(cluster.clone(), user.clone(), none).await.unwrap_err();
            assert!(error.starts_with(&format!("`{key}` would ")), "{error}");
            let others = Allowed {
                commands: !consent.commands,
                files: !consent.files,
                proxy: !consent.proxy,
                insecure: !consent.insecure,
            };
            let error = load(cluster.clone(), user.clone(), others).await.unwrap_err();
            assert!(error.starts_with(&format!("`{key}` would ")), "{error}");
            let kubeconfig = kubeconfig(cluster, user);
            let (cluster, user) = select(&kubeconfig, None).unwrap();
            assert_eq!(refuse_risks(cluster, user, consent), Ok(()), "{key}");
        }
    }

    #[tokio::test]
    async fn keys_without_a_value_are_absent_and_data_is_followed() {
        let empty = json!({ "tokenFile": "", "client-key": "", "token": "secret" });
        let cluster = json!({ "proxy-url": "", "insecure-skip-tls-verify": false });
        let config = load(cluster, empty, Allowed::default()).await.unwrap();
        assert_eq!(config.cluster_url, "https://edge.example.com");
        assert!(config.auth_info.token.is_some());
    }

    #[tokio::test]
    async fn only_the_selected_context_counts() {
        let found = kubeconfig(json!({}), json!({}));
        let load = async |context: &str| {
            let loaded = to_config(found.clone(), Some(context), Allowed::default()).await;
            loaded.map(|config| config.cluster_url.to_string())
        };
        assert_eq!(load("it").await.unwrap(), "https://edge.example.com/");
        assert_eq!(load("other").await.unwrap_err(), "it has no context `other`");
        let expected = "its context `lost` names the cluster `gone`, which it does not have";
        assert_eq!(load("lost").await.unwrap_err(), expected);
    }

    #[test]
    fn parse_error_does_not_quote_the_kubeconfig() {
        for text in [
            "users: [{ name: me, user: { token: s3cr3t } }",
            "token: s3cr3t\n\tx",
            "users: s3cr3t",
        ] {
            let error = parse_kubeconfig(text.as_bytes()).unwrap_err();
            assert!(!error.contains("s3cr3t"), "{error}");
        }
        assert_eq!(parse_kubeconfig(&[0xff]).unwrap_err(), "it is not UTF-8");
    }
}
