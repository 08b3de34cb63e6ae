//! The procedural macros of rbuilder. The `rbuilder` crate re-exports and documents them.
//!
//! `rbuilder-syntax` parses the items; this crate turns the results into tokens. The emitted code
//! names the runtime by path (`::rbuilder`, or the path in `#[crd(crate = "…")]`), so that this
//! crate does not have to depend on it.

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

/// Declares the permissions that the item needs, for `rbuilder manifests` to read. The item is left
/// unchanged.
#[proc_macro_attribute]
pub fn rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {
    rbac::expand_rbac(arguments.into(), item.into()).into()
}

/// Declares how the API server calls the handler, for `rbuilder manifests` to read. The function is
/// left unchanged.
#[proc_macro_attribute]
pub fn webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {
    webhook::expand_webhook(arguments.into(), item.into()).into()
}

/// See `rbuilder::envtest::test`.
#[proc_macro_attribute]
pub fn envtest_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    envtest::expand_test(arguments.into(), item.into()).into()
}
