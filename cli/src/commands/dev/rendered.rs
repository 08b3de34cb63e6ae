//! The rendered manifests that an operator needs when running outside of the cluster.

use anyhow::Result;
use rbuilder_control_plane::WebhookAddress;
use serde_json::{Value, json};

use super::super::conversions::is_converted;
use super::super::local::LABEL;
use crate::cluster::{Kubectl, parse_documents};

/// Kustomization to render. Its objects have the project's prefix, as when deployed.
const ALL: &str = "config/default";

#[derive(Debug, Default, PartialEq)]
pub(super) struct Rendered {
    pub(super) crds: Vec<Value>,
    pub(super) configurations: Vec<Value>,
    pub(super) roles: Vec<Value>,
    /// The manager's service account, or `None` if the project deploys no manager.
    pub(super) account: Option<ServiceAccount>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceAccount {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ServiceAccount {
    fn of_deployment(deployment: &Value) -> Option<ServiceAccount> {
        let name = deployment.pointer("/spec/template/spec/serviceAccountName")?;
        Some(ServiceAccount {
            namespace: deployment["metadata"]["namespace"].as_str()?.to_owned(),
            name: name.as_str()?.to_owned(),
        })
    }
}

impl Rendered {
    pub(super) fn read(kubectl: &Kubectl) -> Result<Rendered> {
        Ok(Rendered::select(parse_documents(&kubectl.render(ALL)?)?))
    }

    fn select(objects: Vec<Value>) -> Rendered {
        let mut rendered = Rendered::default();
        for object in objects {
            match object["kind"].as_str() {
                Some("CustomResourceDefinition") => rendered.crds.push(object),
                Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
                    rendered.configurations.push(object);
                }
                Some("ClusterRole" | "ClusterRoleBinding" | "Namespace" | "Role" | "RoleBinding") => {
                    rendered.roles.push(object);
                }
                Some("Deployment") => {
                    let account = ServiceAccount::of_deployment(&object);
                    rendered.account = rendered.account.or(account);
                }
                _ => {}
            }
        }
        rendered
    }

    pub(super) fn has_webhooks(&self) -> bool {
        !self.configurations.is_empty() || self.crds.iter().any(is_converted)
    }

    pub(super) fn redirect(&mut self, address: &WebhookAddress) {
        for crd in &mut self.crds {
            address.redirect_conversion(crd);
        }
        for configuration in &mut self.configurations {
            address.redirect_webhooks(configuration);
            if let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut) {
                let labels = metadata.entry("labels").or_insert_with(|| json!({}));
                if let Some(labels) = labels.as_object_mut() {
                    labels.insert(LABEL.0.to_owned(), LABEL.1.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manager_has_the_service_account_of_its_deployment() {
        let deployment = json!({
            "kind": "Deployment", "metadata": { "namespace": "shop-system" },
            "spec": { "template": { "spec": { "serviceAccountName": "shop-controller-manager" } } },
        });
        let role = json!({ "kind": "ClusterRole", "metadata": { "name": "shop-manager-role" } });
        let rendered = Rendered::select(vec![role.clone(), deployment]);
        assert_eq!(rendered.roles, [role]);
        let expected = ServiceAccount {
            namespace: "shop-system".to_owned(),
            name: "shop-controller-manager".to_owned(),
        };
        assert_eq!(rendered.account, Some(expected));
    }

    #[test]
    fn redirects_webhooks_and_conversions_to_this_machine() {
        let crd = |conversion: Value| json!({ "kind": "CustomResourceDefinition", "metadata": {}, "spec": { "conversion": conversion } });
        let service = json!({ "service": { "name": "s", "namespace": "n", "path": "/x" } });
        let converted = crd(json!({ "strategy": "Webhook", "webhook": { "clientConfig": service } }));
        let plain = crd(json!({ "strategy": "None" }));
        let configuration = |client: &Value| json!({ "kind": "MutatingWebhookConfiguration", "metadata": { "name": "a" }, "webhooks": [{ "clientConfig": client }] });
        let deployment = json!({ "kind": "Deployment" });
        let mut rendered = Rendered::select(vec![
            deployment,
            plain.clone(),
            converted.clone(),
            configuration(&service),
        ]);
        assert!(rendered.has_webhooks());
        assert!(Rendered::select(vec![converted]).has_webhooks());
        assert!(!Rendered::select(vec![plain.clone()]).has_webhooks());
        let address = WebhookAddress {
            host: "127.0.0.1".to_owned(),
            port: 1,
            authority: "CA".to_owned(),
        };
        rendered.redirect(&address);
        let client = address.client_config("/x");
        let mut expected = configuration(&client);
        expected["metadata"]["labels"] = json!({ "rbuilder.dev/local": "true" });
        assert_eq!(rendered.configurations, [expected]);
        let converted = crd(json!({ "strategy": "Webhook", "webhook": { "clientConfig": client } }));
        assert_eq!(rendered.crds, [plain, converted]);
    }
}
