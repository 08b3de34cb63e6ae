use rbuilder::CrdSchema;

#[derive(kube::CustomResource, CrdSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]
#[kube(group = "cache.example.com", version = "v1alpha1", kind = "Memcached", plural = "memcacheds", namespaced)]
pub struct MemcachedSpec {
    pub size: i32,
}

#[derive(kube::CustomResource, CrdSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]
#[kube(group = "cache.example.com", version = "v1", kind = "Proxy", root = "ProxyObject")]
pub struct ProxySpec {
    pub size: i32,
}

/// A generic alias around a kind.
pub type Shared<T> = std::sync::Arc<T>;
pub type Object = Shared<Memcached>;
