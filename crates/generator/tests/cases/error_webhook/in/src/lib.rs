//! What is wrong with webhooks only together with other items.
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use rbuilder::webhook;

#[webhook(mutating)]
fn first(pod: &mut Pod) {}

#[webhook(mutating, path = "/elsewhere")]
fn same_name(pod: &mut Pod) {}

#[webhook(mutating, name = "other.example.com")]
fn same_path(pod: &mut Pod) {}

#[webhook(mutating, name = "a.example.com", path = "/a")]
fn no_kind(spec: &PodSpec, unknown: Unknown, (a, b): (Pod, Pod)) {}

#[webhook(validating)]
fn nothing() {}

#[webhook(mutating)]
#[webhook(validating)]
fn both_ways(pod: &mut Pod) {}

fn body() {
    #[webhook(mutating)]
    fn hidden(pod: &mut Pod) {}
}

macro_rules! make {
    () => {
        #[webhook(mutating)]
        fn made(pod: &mut Pod) {}
    };
}
