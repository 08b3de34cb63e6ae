//! The procedural macros of rbuilder; the `rbuilder` crate re-exports and documents them.

mod envtest;

use proc_macro::TokenStream;

/// `#[rbuilder::envtest::test]`; documented there.
#[proc_macro_attribute]
pub fn envtest_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    envtest::expand(arguments.into(), item.into()).into()
}
