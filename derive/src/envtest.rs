//! `#[rbuilder::envtest::test]`: an async test against a real API server, ignored by name where there is
//! none.

use std::ffi::OsStr;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn};

/// Each group is enough to find a cluster. `rbuilder::envtest` looks at the same variables when the test
/// runs.
const ASSETS: [&[&str]; 3] = [
    &[EXISTING_CLUSTER],
    &["KUBEBUILDER_ASSETS"],
    &["TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER"],
];

/// Says `true` where tests are to run on a cluster that is there.
const EXISTING_CLUSTER: &str = "USE_EXISTING_CLUSTER";

const IGNORED: &str = "needs a control plane: set KUBEBUILDER_ASSETS";

/// The test that `item` asks for, or the item as it is with an error beside it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match parse(arguments, item.clone()) {
        Ok(function) => test(
            &function,
            has_assets(|name| std::env::var_os(name).is_some_and(|value| says(name, &value))),
        ),
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #item)
        }
    }
}

fn parse(arguments: TokenStream, item: TokenStream) -> Result<ItemFn, Error> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(
            arguments,
            "`#[rbuilder::envtest::test]` takes no arguments",
        ));
    }
    let function: ItemFn = syn::parse2(item)?;
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            "the test must be async: write `async fn`",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "a test cannot be generic",
        ));
    }
    if let Some(second) = signature.inputs.iter().nth(1) {
        return Err(Error::new_spanned(
            second,
            "the test takes nothing, or one `rbuilder::envtest::Environment`",
        ));
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        return Err(Error::new_spanned(
            receiver,
            "a test is a function of its own, without `self`",
        ));
    }
    Ok(function)
}

/// Whether a variable says something with this value.
fn says(variable: &str, value: &OsStr) -> bool {
    if variable == EXISTING_CLUSTER {
        value.eq_ignore_ascii_case("true")
    } else {
        !value.is_empty()
    }
}

fn has_assets(is_set: impl Fn(&str) -> bool) -> bool {
    ASSETS.iter().any(|group| group.iter().all(|name| is_set(name)))
}

/// The user's function moves into one of the same name that libtest can call. Naming the variables in
/// `option_env!` makes cargo build the test anew when one of them changes, and with it the choice made
/// here.
fn test(function: &ItemFn, has_assets: bool) -> TokenStream {
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
        modifiers: _,
    } = function;
    let (name, output) = (&sig.ident, &sig.output);
    let ignore = (!has_assets).then(|| quote!(#[ignore = #IGNORED]));
    let variables = ASSETS.iter().copied().flatten();
    let call = match sig.inputs.first() {
        None => quote!(#name().await),
        // Spanned at the argument, so that another type than `Environment` is reported there.
        Some(argument) => quote_spanned! {argument.span()=>
            match ::rbuilder::envtest::Environment::shared().await {
                ::core::result::Result::Ok(environment) => #name(environment).await,
                ::core::result::Result::Err(error) => ::core::panic!("{error}"),
            }
        },
    };
    quote! {
        #[::core::prelude::v1::test]
        #ignore
        #(#attrs)*
        #vis fn #name() #output {
            #(const _: ::core::option::Option<&str> = ::core::option_env!(#variables);)*
            #sig #block
            ::rbuilder::envtest::run(async { #call })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(arguments: &str, item: &str, expected: &str) {
        let found = parse(arguments.parse().unwrap(), item.parse().unwrap())
            .err()
            .unwrap();
        assert_eq!(found.to_string(), expected);
        let expanded = expand(arguments.parse().unwrap(), item.parse().unwrap()).to_string();
        assert!(expanded.contains("compile_error"), "{expanded}");
    }

    #[test]
    fn misuse_is_an_error_in_words() {
        check_error(
            "shared",
            "async fn a() {}",
            "`#[rbuilder::envtest::test]` takes no arguments",
        );
        check_error("", "fn a() {}", "the test must be async: write `async fn`");
        check_error("", "async fn a<T>() {}", "a test cannot be generic");
        check_error(
            "",
            "async fn a(x: Environment, y: u8) {}",
            "the test takes nothing, or one `rbuilder::envtest::Environment`",
        );
        check_error(
            "",
            "async fn a(&self) {}",
            "a test is a function of its own, without `self`",
        );
    }

    #[test]
    fn without_the_binaries_the_test_is_ignored_with_the_reason() {
        let function: ItemFn = syn::parse_quote!(
            async fn a(env: Environment) {}
        );
        let ignored = quote!(#[ignore = #IGNORED]).to_string();
        assert!(test(&function, false).to_string().contains(&ignored));
        assert!(!test(&function, true).to_string().contains("ignore"));
    }

    #[test]
    fn either_group_of_variables_names_the_binaries() {
        let check =
            |set: &[&str], expected: bool| assert_eq!(has_assets(|name| set.contains(&name)), expected);
        check(&["KUBEBUILDER_ASSETS"], true);
        check(&["TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER"], true);
        check(&["TEST_ASSET_ETCD"], false);
        check(&["USE_EXISTING_CLUSTER"], true);
        check(&[], false);
        assert!(says("USE_EXISTING_CLUSTER", OsStr::new("True")));
        assert!(!says("USE_EXISTING_CLUSTER", OsStr::new("false")));
        assert!(says("KUBEBUILDER_ASSETS", OsStr::new("/somewhere")));
    }
}
