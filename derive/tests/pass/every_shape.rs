//! Shapes and paths that the derive must write correctly whatever the program around it is called.

#![deny(warnings)]
#![allow(dead_code)]

use std::collections::BTreeMap;

use rbuilder_derive::{CrdSchema, rbac};

mod hidden {
    // Names that the derive's code must not pick up.
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
