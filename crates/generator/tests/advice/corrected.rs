//! Examples of mistakes that `rbuilder manifests --fix` has corrected: see
//! `crates/generator/src/replacement/tests.rs`, which writes this file.

#![allow(dead_code, missing_docs, unreachable_pub, unused)]

pub mod items_1 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "get;watch; list")]
    fn reconcile() {}
}

pub mod items_2 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = ["get", "list"])]
    fn reconcile() {}
}

pub mod items_3 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "apps", resources = "deployments", verbs = "get")]
    fn reconcile() {}
}

pub mod items_4 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "apps", resources = "deployments", verbs = "get")]
    fn reconcile() {}
}

pub mod items_5 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "apps", resources = "deployments;deployments/status", verbs = "get")]
    fn reconcile() {}
}

pub mod items_6 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "apps;batch", resources = "deployments", verbs = "get")]
    fn reconcile() {}
}

pub mod items_7 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "get")]
    fn reconcile() {}
}

pub mod items_8 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "example.com", resources = "widgets/status", verbs = "get")]
    fn reconcile() {}
}

pub mod items_9 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods/log", verbs = "get")]
    fn reconcile() {}
}

pub mod items_10 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "secrets;configmaps", verbs = "get")]
    fn reconcile() {}
}

pub mod items_11 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods/log", verbs = "get")]
    fn reconcile() {}
}

pub mod items_12 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(urls = "/metrics", verbs = "get")]
    fn reconcile() {}
}

pub mod items_13 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "create;update")]
    fn reconcile() {}
}

pub mod items_14 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "get;list")]
    fn reconcile() {}
}

pub mod items_15 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "get;list")]
    fn reconcile() {}
}

pub mod items_16 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "apps", resources = "deployments", verbs = "get")]
    fn reconcile() {}
}

pub mod items_17 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "example.com", resources = "widgets", verbs = "get")]
    fn reconcile() {}
}

pub mod items_18 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "apps", resources = "deployments", verbs = "get")]
    fn reconcile() {}
}

pub mod items_19 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "nodes", verbs = "get")]
    fn reconcile() {}
}

pub mod items_20 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "get")]
    fn reconcile() {}
}

pub mod items_21 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[rbac(groups = "", resources = "pods", verbs = "get")]
    async fn run(pods: kube::Api<Pod>) {
        pods.get("a").await;
        Widget::remove(pods).await;
    }

    impl Widget {
        /// Removes a pod.
        #[rbac(groups = "", resources = "pods", verbs = ["delete"])]
        pub(crate) async fn remove(pods: kube::Api<Pod>) {
            pods.delete("a", &Default::default()).await;
        }
    }
}

pub mod items_22 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    /// Reconciles.
    #[rbac(groups = "apps", resources = "deployments", verbs = "get;list")]
    fn reconcile() {}
}

pub mod items_23 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating, operations = "*")]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_24 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating, operations = "create;update", versions = ["*"])]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_25 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating, groups = "example.com", resources = "widgets/*;widgets")]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_26 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating, admission_review_versions = "v1")]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_27 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating, path = "/validate")]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_28 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating, groups = "", versions = "v1", resources = "pods/exec", operations = "connect")]
    fn validate(pod: &Pod) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_29 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(
        validating,
    )]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_30 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating)]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod items_31 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }

    #[webhook(validating)]
    fn validate(widget: &Widget) -> Result<(), String> {
        Ok(())
    }
}

pub mod keys_32 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus",
        shortname = "wi"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod keys_33 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus",
        printcolumn(name = "Size", type_ = "string", json_path = ".metadata.name")
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod keys_34 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus",
        printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size")
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod keys_35 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus",
        printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size")
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod keys_36 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus",
        root = "Widget"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod keys_37 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus",
        shortname = "wi"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod kindchange_38 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "example.com", version = "v1", kind = "Widget")]
    #[crd(preserve_unknown_fields)]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod kindchange_39 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "example.com", version = "v1", kind = "Widget")]
    #[kube(shortname = "wi")]
    pub struct WidgetSpec {
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_40 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(validation(minimum = 1))]
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_41 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(validation(minimum = 1))]
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_42 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(validation(minimum = 1))]
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_43 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(validation(max_length = 9))]
        pub name: String,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_44 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(validation(min_length = 1))]
        pub name: String,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_45 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        /// The number of instances.
        #[kube(validation(minimum = 1))]
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_46 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub number: String,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_47 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(nullable)]
        pub number: Option<String>,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_48 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[serde(default)]
        pub number: Option<String>,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_49 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(list_map_keys = ["name"], list_type = "map")]
        pub items: Vec<ObjectMeta>,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_50 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(schema = { "type": "object" }, embedded_resource, preserve_unknown_fields)]
        pub object: serde_json::Value,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_51 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(validation(minimum = 1))]
        pub size: i32,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_52 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        pub names: Vec<String>,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_53 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub number: String,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod field_54 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(list_type = "map", list_map_keys = ["name"])]
        pub items: Vec<ObjectMeta>,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod types_55 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(list_type = "map", list_map_keys = ["name"])]
        pub parts: Vec<Part>,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct Part {
        pub name: String,
    }
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod types_56 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    #[crd(validation = "self.size > 1 && self.other > 2 && self.size < 9")]
    pub struct WidgetSpec {
        pub size: i32,
        pub other: i32,
    }
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod types_57 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    #[crd(validation = "self.a__underscores__b > 1")]
    pub struct WidgetSpec {
        #[serde(rename = "a__b")]
        pub size: i32,
    }
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod types_58 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    #[crd(validation = "self.__namespace__ == 'a' && self.__namespace__ == 'a'")]
    pub struct WidgetSpec {
        pub namespace: String,
    }
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod types_59 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        #[kube(cel(rule = "self.size > 1", message = "no", field_path = ".size"))]
        pub part: Part,
        #[kube(cel(rule = "self.size > 1", message = "no", field_path = ".size"))]
        pub other: Part,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct Part {
        pub size: i32,
    }
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}

pub mod types_60 {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::CustomResource;
    use rbuilder::{CrdSchema, rbac, webhook};
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Widget",
        namespaced,
        status = "WidgetStatus"
    )]
    #[serde(rename_all = "camelCase")]
    pub struct WidgetSpec {
        pub part: Part,
    }

    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[crd(validation(min_properties = 1))]
    pub struct Part {
        pub size: i32,
    }
    #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
    pub struct WidgetStatus {
        pub ready: bool,
        pub replicas: i32,
    }
}
