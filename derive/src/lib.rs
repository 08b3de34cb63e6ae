//! The procedural macros of rbuilder; the `rbuilder` crate re-exports and documents them.
//!
//! What an item says is read by `rbuilder-syntax`; here it becomes tokens. The code that is emitted names the
//! runtime by path and this crate does not depend on it.

mod byte_string;
mod crd_schema;
mod defaults;
mod envtest;
mod rbac;
mod report;
mod source;
mod webhook;

use proc_macro::TokenStream;

/// Implements `schemars::JsonSchema` from the type, its serde attributes and its markers.
#[proc_macro_derive(CrdSchema, attributes(kube, crd, csv, schemars, x_kube))]
pub fn crd_schema(item: TokenStream) -> TokenStream {
    crd_schema::expand_crd_schema(item.into()).into()
}

/// Says which permissions the item needs; `rbuilder manifests` reads it. The item stays as it is.
#[proc_macro_attribute]
pub fn rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {
    rbac::expand_rbac(arguments.into(), item.into()).into()
}

/// Says where and about what the API server calls the handler; `rbuilder manifests` reads it. The function stays
/// as it is.
#[proc_macro_attribute]
pub fn webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {
    webhook::expand_webhook(arguments.into(), item.into()).into()
}

/// `#[rbuilder::envtest::test]`; documented there.
#[proc_macro_attribute]
pub fn envtest_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    envtest::expand_test(arguments.into(), item.into()).into()
}
