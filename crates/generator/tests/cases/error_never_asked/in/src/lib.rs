//! Rules that allow nothing, and webhooks that are never asked or about what their handlers do not read.
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::CustomResource;
use rbuilder::{CrdSchema, rbac, webhook};
use serde::{Deserialize, Serialize};

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "cache.example.com", version = "v1", kind = "Memcached", namespaced)]
pub struct MemcachedSpec {}

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "cache.example.com", version = "v1", kind = "Pool")]
pub struct PoolSpec {}

#[rbac(groups = "cache.example.com", resources = "pools", verbs = "get", namespace = "here")]
fn reconcile() {}

#[webhook(validating, groups = "cache.example.org")]
fn other_group(memcached: &Memcached) {}

#[webhook(mutating, resources = "memcached")]
fn other_resource(memcached: &mut Memcached) {}

#[webhook(mutating, versions = "v1beta1", path = "/a", name = "a.example.com")]
fn other_version(memcached: &mut Memcached) {}

#[webhook(validating, groups = "extensions", path = "/b", name = "b.example.com")]
fn group_of_kubernetes(deployment: &Deployment) {}

#[webhook(validating, scope = "Namespaced", path = "/c", name = "c.example.com")]
fn scope_of_own(pool: &Pool) {}

#[webhook(validating, scope = "Cluster", path = "/d", name = "d.example.com")]
fn scope_of_kubernetes(pod: &Pod) {}

#[webhook(validating, resources = "pods/exec", path = "/e", name = "e.example.com")]
fn operations_of_a_subresource(pod: &Pod) {}

#[webhook(validating, resources = "pods;pods/exec", path = "/f", name = "f.example.com")]
fn operations_of_one_of_two(pod: &Pod) {}

#[webhook(validating, operations = "create;delete", resources = "memcacheds/status", path = "/g", name = "g.example.com")]
fn operations_of_own(memcached: &Memcached) {}

#[webhook(validating, operations = "connect", path = "/h", name = "h.example.com")]
fn operations_of_connections(node: &Node) {}

#[webhook(validating, resources = "memcacheds;pools", groups = "*", versions = "*", scope = "Namespaced", path = "/i", name = "i.example.com")]
fn right(memcached: &Memcached) {}

#[webhook(validating)]
fn health(status: &k8s_openapi::api::core::v1::ComponentStatus) {}
