//! Shapes and paths for which the derive must emit valid code, whatever names are in scope.

#![deny(warnings)]
#![allow(dead_code)]

use std::collections::BTreeMap;

use rbuilder_derive::{CrdSchema, rbac};

mod hidden {
    // The emitted code must not resolve these names.
    pub struct Vec;
    pub struct Cow;
    pub struct String;
}
#[allow(unused_imports)]
use hidden::{Cow, String, Vec};

mod facade {
    pub use rbuilder as library;
}

#[derive(CrdSchema)]
struct Generic<'a, T: Clone>
where
    T: Default,
{
    r#type: &'a str,
    items: std::vec::Vec<T>,
}

#[derive(CrdSchema)]
#[crd(crate = "crate::facade::library")]
struct Elsewhere {
    #[crd(values(validation(minimum = 1)))]
    map: BTreeMap<std::string::String, i32>,
}

#[derive(CrdSchema)]
struct Empty {}

#[derive(CrdSchema)]
struct Wrapper(bool);

#[derive(CrdSchema)]
enum Choice {
    Left { a: bool },
    Right(Wrapper),
}

#[rbac(groups = "", resources = "pods", verbs = ["get", "list"])]
#[rbac(urls = "/metrics", verbs = "get")]
fn main() {}
