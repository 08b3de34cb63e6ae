//! Kubeconfigs that impersonate a service account.

use anyhow::{Context as _, Result};
use rbuilder_yaml::parse_values;
use serde_json::{Value, json};

use super::rendered::ServiceAccount;

/// A kubeconfig for the same cluster, restricted to the permissions of a service account. As in a
/// Pod, its namespace is that of the account, where the operator may write Leases.
pub(super) fn impersonate(kubeconfig: &str, account: &ServiceAccount) -> Result<String> {
    let ServiceAccount { namespace, name } = account;
    let documents = parse_values(kubeconfig).ok().unwrap_or_default();
    let mut config = documents.into_iter().next().unwrap_or_default();
    let users = config["users"].as_array_mut().context("expected a kubeconfig")?;
    for user in users {
        let user: &mut Value = &mut user["user"];
        user["as"] = format!("system:serviceaccount:{namespace}:{name}").into();
        // Every service account is in these groups.
        user["as-groups"] = json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated",
        ]);
    }
    for context in config["contexts"].as_array_mut().into_iter().flatten() {
        context["context"]["namespace"] = namespace.as_str().into();
    }
    // JSON is valid YAML.
    Ok(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_users_of_a_kubeconfig_impersonate() {
        let account = ServiceAccount {
            namespace: "shop-system".to_owned(),
            name: "manager".to_owned(),
        };
        let text = "kind: Config\nusers:\n- name: admin\n  user:\n    token: abc\n\
                    contexts:\n- name: a\n  context: { cluster: c, user: admin }\n";
        let config = impersonate(text, &account).expect("a kubeconfig");
        let config: Value = serde_json::from_str(&config).expect("JSON");
        let user = &config["users"][0]["user"];
        assert_eq!(user["token"], "abc");
        assert_eq!(user["as"], "system:serviceaccount:shop-system:manager");
        assert_eq!(user["as-groups"][1], "system:serviceaccounts:shop-system");
        let context = &config["contexts"][0]["context"];
        assert_eq!(
            (&context["cluster"], &context["namespace"]),
            (&json!("c"), &json!("shop-system"))
        );
        assert!(impersonate("a: 1", &account).is_err());
    }
}
