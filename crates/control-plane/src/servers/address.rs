//! Rewrites webhook configurations and CRDs so that the API server calls a program on this machine.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// Annotations that make cert-manager inject its own CA bundle.
const INJECTION: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// The address where a program serves its webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAddress {
    /// Host name or address under which the API server reaches this machine.
    pub host: String,
    /// Port on which the program serves webhooks.
    pub port: u16,
    /// PEM certificate of the CA that signed the program's certificate.
    pub authority: String,
}

impl WebhookAddress {
    /// The URL for a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        match self.host.contains(':') {
            true => format!("https://[{}]:{}{path}", self.host, self.port),
            false => format!("https://{}:{}{path}", self.host, self.port),
        }
    }

    /// A `clientConfig` that makes the API server call a path at this address.
    #[must_use]
    pub fn client_config(&self, path: &str) -> Value {
        json!({ "url": self.url(path), "caBundle": BASE64.encode(&self.authority) })
    }

    /// Replaces the Services in a webhook configuration with this address, keeping the paths.
    ///
    /// Also removes the condition that restricts webhooks to the manager's namespace, because
    /// programs outside the cluster have no namespace.
    pub fn redirect_webhooks(&self, configuration: &mut Value) {
        remove_injection(configuration);
        let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            remove_restriction(webhook);
            if let Some(client) = webhook.get_mut("clientConfig") {
                self.redirect(client, "/");
            }
        }
    }

    /// Replaces the Service in a CRD's conversion webhook with this address, keeping the path.
    /// Returns false if there's no conversion webhook, or if it's called by URL.
    pub fn redirect_conversion(&self, crd: &mut Value) -> bool {
        if crd["spec"]["conversion"]["strategy"] != "Webhook" {
            return false;
        }
        remove_injection(crd);
        self.redirect(
            &mut crd["spec"]["conversion"]["webhook"]["clientConfig"],
            "/convert",
        )
    }

    fn redirect(&self, client: &mut Value, default_path: &str) -> bool {
        if client["url"].is_string() {
            return false;
        }
        let path = client["service"]["path"].as_str().unwrap_or(default_path);
        *client = self.client_config(path);
        true
    }
}

/// Keeps cert-manager from overwriting our CA bundle.
fn remove_injection(object: &mut Value) {
    let annotations = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| !INJECTION.contains(&name.as_str()));
    }
}

/// Removes the restriction to the manager's namespace. A condition that excludes it (`!…`) is kept.
fn remove_restriction(webhook: &mut Value) {
    let Some(Value::Array(conditions)) = webhook.get_mut("matchConditions") else {
        return;
    };
    conditions.retain(|condition| {
        let expression = condition["expression"].as_str().unwrap_or_default();
        condition["name"] != "manager-namespace" || expression.starts_with('!')
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> WebhookAddress {
        WebhookAddress {
            host: "127.0.0.1".to_owned(),
            port: 9443,
            authority: "CA".to_owned(),
        }
    }

    #[test]
    fn redirects_services_but_keeps_urls() {
        let mut configuration = json!({
            "metadata": { "name": "a", "annotations": { "cert-manager.io/inject-ca-from": "n/c", "b": "c" } },
            "webhooks": [
                { "name": "a.b.c", "clientConfig": { "service": { "name": "s", "namespace": "n", "path": "/mutate" } } },
                { "name": "d.e.f", "clientConfig": { "service": { "name": "s", "namespace": "n" }, "caBundle": "eA==" } },
                { "name": "g.h.i", "clientConfig": { "url": "https://example.com/x" } },
            ],
        });
        address().redirect_webhooks(&mut configuration);
        let expected = json!({
            "metadata": { "name": "a", "annotations": { "b": "c" } },
            "webhooks": [
                { "name": "a.b.c", "clientConfig": { "url": "https://127.0.0.1:9443/mutate", "caBundle": "Q0E=" } },
                { "name": "d.e.f", "clientConfig": { "url": "https://127.0.0.1:9443/", "caBundle": "Q0E=" } },
                { "name": "g.h.i", "clientConfig": { "url": "https://example.com/x" } },
            ],
        });
        assert_eq!(configuration, expected);
    }

    #[test]
    fn removes_restriction_to_manager_namespace() {
        let condition = |name: &str, expression: &str| json!({ "name": name, "expression": expression });
        let kept = [
            condition("manager-namespace", "!(request.namespace in ['a'])"),
            condition("other", "true"),
        ];
        let restriction = condition("manager-namespace", "request.namespace in ['a']");
        let webhook = |conditions: &[Value]| json!({ "webhooks": [{ "matchConditions": conditions }] });
        let mut configuration = webhook(&[&[restriction], &kept[..]].concat());
        address().redirect_webhooks(&mut configuration);
        assert_eq!(configuration, webhook(&kept));
    }

    #[test]
    fn redirects_only_webhook_conversions() {
        let crd =
            |conversion: Value| json!({ "metadata": {}, "spec": { "group": "g", "conversion": conversion } });
        let webhook =
            |client: Value| crd(json!({ "strategy": "Webhook", "webhook": { "clientConfig": client } }));
        let check = |mut crd: Value, expected: Option<Value>| {
            let before = crd.clone();
            assert_eq!(address().redirect_conversion(&mut crd), expected.is_some());
            assert_eq!(crd, expected.unwrap_or(before));
        };
        let here = json!({ "url": "https://127.0.0.1:9443/convert", "caBundle": "Q0E=" });
        check(
            webhook(json!({ "service": { "name": "s", "namespace": "n", "path": "/convert" } })),
            Some(webhook(here)),
        );
        check(webhook(json!({ "url": "https://example.com/" })), None);
        check(crd(json!({ "strategy": "None" })), None);
        check(json!({ "metadata": {}, "spec": { "group": "g" } }), None);
    }

    #[test]
    fn malformed_configuration_is_kept() {
        for text in [
            "3",
            "{\"metadata\": 3, \"webhooks\": [3, {}]}",
            "{\"webhooks\": {}}",
        ] {
            let before: Value = serde_json::from_str(text).unwrap();
            let mut after = before.clone();
            address().redirect_webhooks(&mut after);
            assert!(!address().redirect_conversion(&mut after));
            assert_eq!(after, before);
        }
    }

    #[test]
    fn ipv6_address_is_in_brackets() {
        let address = WebhookAddress {
            host: "fd00::1".to_owned(),
            ..address()
        };
        assert_eq!(address.url("/x"), "https://[fd00::1]:9443/x");
    }
}
