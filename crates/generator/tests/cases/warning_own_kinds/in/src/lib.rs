//! Rules about the package's own kinds that most likely say something else than was meant.
use kube::CustomResource;
use rbuilder::{CrdSchema, rbac};
use serde::{Deserialize, Serialize};

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "Memcached",
    shortname = "mc",
    namespaced,
    status = "MemcachedStatus"
)]
pub struct MemcachedSpec {}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct MemcachedStatus {}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "cache.example.com", version = "v1", kind = "Pool")]
pub struct PoolSpec {}

// What is right.
#[rbac(groups = "cache.example.com", resources = "memcacheds;pools", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "memcacheds/status;memcacheds/finalizers", verbs = "update")]
#[rbac(groups = "*", resources = "memcached", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "*", verbs = "get")]
#[rbac(groups = "other.org", resources = "pools", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "others", verbs = "get")]
fn right() {}

// What is not.
#[rbac(groups = "cache.example.com", resources = "memcached", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "mc", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "memcahceds", verbs = "get")]
#[rbac(groups = "cache.exmaple.com", resources = "memcacheds", verbs = "get")]
#[rbac(groups = "example.com", resources = "memcacheds", verbs = "get")]
#[rbac(groups = "apps", resources = "memcacheds", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "memcacheds/stats", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "memcacheds/scale", verbs = "get")]
#[rbac(groups = "cache.example.com", resources = "pools/status", verbs = "get")]
fn wrong() {}

// Kubernetes' own.
#[rbac(groups = "app", resources = "deployments", verbs = "get")]
#[rbac(groups = "", resources = "pods/logs", verbs = "get")]
#[rbac(groups = "", resources = "pods/exec", verbs = "list;watch")]
#[rbac(urls = "/metrics", verbs = "get;list")]
fn kubernetes() {}
