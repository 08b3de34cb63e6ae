//! A namespace on a server, and helpers for sending requests.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, Status};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::servers::Server;

/// `Jar` has a CRD that uses most of the features.
pub(crate) fn jar_kind(version: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("apiserver.example.com", version, "Jar"),
        "jars",
    )
}

pub(crate) struct Place {
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Place {
    pub(crate) async fn new(server: Server) -> Self {
        server.install_crds("tests/api_server/crds").await;
        Self {
            client: server.client(),
            namespace: server.namespace("api").await,
            server,
        }
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        self.api()
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn jars(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &jar_kind("v1"))
    }

    pub(crate) async fn jar(&self, name: &str, spec: Value) -> DynamicObject {
        self.jars()
            .create(&PostParams::default(), &jar(name, spec))
            .await
            .unwrap()
    }

    pub(crate) async fn map(&self, name: &str, data: Value) -> ConfigMap {
        self.maps()
            .create(&PostParams::default(), &map(name, data))
            .await
            .unwrap()
    }

    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let (code, _, text) = self.raw_with_warnings(method, path, headers, body).await;
        (code, text)
    }

    /// Like [`raw`](Self::raw), but also returns all warnings in sorted order.
    pub(crate) async fn raw_with_warnings(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, Vec<String>, String) {
        let path = path.replace("{ns}", &self.namespace);
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = kube::client::Body::from(body.as_bytes().to_vec());
        let response = self.client.send(request.body(body).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        let mut warnings: Vec<String> = warnings.collect();
        warnings.sort();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        (code, warnings, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

pub(crate) fn jar(name: &str, spec: Value) -> DynamicObject {
    DynamicObject::new(name, &jar_kind("v1")).data(json!({ "spec": spec }))
}

pub(crate) fn map(name: &str, data: Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": data })).unwrap()
}

pub(crate) async fn apply<K>(api: &Api<K>, name: &str, manager: &str, object: Value) -> kube::Result<K>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    api.patch(name, &PatchParams::apply(manager), &Patch::Apply(object))
        .await
}

/// Returns the status of a rejected request.
pub(crate) fn refusal<T: Debug>(answer: kube::Result<T>) -> Status {
    match answer {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("not refused: {other:?}"),
    }
}

/// Checks code, reason and message of a rejected request. In the message, `{ns}` matches anything.
#[track_caller]
pub(crate) fn refused<T: Debug>(answer: kube::Result<T>, code: u16, reason: &str, message: &str) {
    let status = refusal(answer);
    assert_eq!(
        (status.code, status.reason.as_str(), status.message.as_str()),
        (code, reason, message)
    );
}
