use rbuilder_derive::webhook;

struct Memcached;

#[webhook(mutating, side_effects = "Some")]
fn side_effects(_: &mut Memcached) {}

#[webhook(validating, timeout_seconds = 40)]
fn timeout(_: &Memcached) {}

#[webhook(validating, path = "validate")]
fn relative_path(_: &Memcached) {}

#[webhook(validating, path = "/a", url = "https://example.com/a")]
fn path_and_url(_: &Memcached) {}

#[webhook(validating, name = "short.name")]
fn short_name(_: &Memcached) {}

#[webhook(validating, operations = "create;upadte")]
fn operation(_: &Memcached) {}

#[webhook(validating, reinvocation_policy = "Never")]
fn reinvocation(_: &Memcached) {}

#[webhook(validating, admission_review_versions = "v1beta1")]
fn review_version(_: &Memcached) {}

#[webhook(validating, match_condition(name = "empty", expression = ""))]
fn condition(_: &Memcached) {}

#[webhook(validating, object_selector(match_expression(key = "a", operator = "In")))]
fn selector(_: &Memcached) {}

fn main() {}
