//! `#[rbuilder::envtest::test]`: an async test against a real API server. Without a control plane,
//! the test is marked `#[ignore]`, with a reason.

use std::ffi::OsStr;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use rbuilder_reader::Span;
use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::token::lex;
use rbuilder_syntax::{Diagnostic, describe_malformed};

use crate::report::compile_error;
use crate::source::Source;

/// Groups of environment variables. A cluster is available if all variables of a group are set.
/// `rbuilder::envtest` reads the same variables when the test runs.
const ASSETS: [&[&str]; 3] = [
    &[EXISTING_CLUSTER],
    &["KUBEBUILDER_ASSETS"],
    &["TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER"],
];

/// Set to `true` to run tests on an existing cluster.
const EXISTING_CLUSTER: &str = "USE_EXISTING_CLUSTER";

const IGNORED: &str = "needs a control plane: set KUBEBUILDER_ASSETS";

/// The argument of tests that need controllers and nodes.
const CONTROLLERS: &str = "controllers";

/// Binaries that such a test also starts, from the folder of kube-apiserver.
const CONTROLLER_PROGRAMS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];

const IGNORED_CONTROLLERS: &str =
    "needs kube-controller-manager, kube-scheduler and kwok in the folder of KUBEBUILDER_ASSETS";

/// On errors, the item is emitted unchanged.
pub(crate) fn expand_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let needs_controllers = arguments.to_string() == CONTROLLERS;
    let arguments = if needs_controllers {
        TokenStream::new()
    } else {
        arguments
    };
    match parse(arguments, item.clone()) {
        Ok(function) => test(&function, find_missing(needs_controllers)),
        Err(error) => quote!(#error #item),
    }
}

/// Returns the reason why a test cannot run in the environment of this build.
fn find_missing(needs_controllers: bool) -> Option<&'static str> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| says(name, &value));
    if !has_assets(is_set) {
        return Some(IGNORED);
    }
    // An existing cluster runs its own controllers.
    let needs_programs = needs_controllers && !is_set(EXISTING_CLUSTER);
    let folder = std::env::var_os("KUBEBUILDER_ASSETS").unwrap_or_default();
    (needs_programs && !has_controllers(Path::new(&folder))).then_some(IGNORED_CONTROLLERS)
}

fn has_controllers(folder: &Path) -> bool {
    CONTROLLER_PROGRAMS
        .iter()
        .all(|program| folder.join(program).is_file())
}

struct TestFunction {
    attributes: Vec<TokenStream>,
    visibility: TokenStream,
    name: TokenStream,
    /// `async fn name(…) -> Output`
    signature: TokenStream,
    /// `-> Output`
    output: TokenStream,
    argument: Option<proc_macro2::Span>,
    body: TokenTree,
}

fn parse(arguments: TokenStream, item: TokenStream) -> Result<TestFunction, TokenStream> {
    if !arguments.is_empty() {
        let source = Source::of(arguments);
        let message = "`#[rbuilder::envtest::test]` takes no argument but `controllers`";
        return Err(compile_error(&Diagnostic::error(source.span(), message), &source));
    }
    // Leave out the body, which may be long: only the signature is parsed.
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
            let mut stand_in = Group::new(Delimiter::Brace, TokenStream::new());
            stand_in.set_span(body.span());
            tokens.push(stand_in.into());
            Some(TokenTree::from(body))
        }
        last => {
            tokens.extend(last);
            None
        }
    };
    let source = Source::of(tokens.into_iter().collect());
    take_apart(&source, body).map_err(|error| compile_error(&error, &source))
}

fn take_apart(source: &Source, body: Option<TokenTree>) -> Result<TestFunction, Diagnostic> {
    let tokens = lex(source.text()).map_err(describe_malformed)?;
    let item = Items::new(tokens.cursor(), None).read();
    let item = item.map_err(describe_malformed)?;
    let (
        Some(body),
        Some(Item {
            attrs,
            visibility,
            kind,
            ..
        }),
    ) = (body, item)
    else {
        return Err(Diagnostic::error(source.span(), NO_FUNCTION));
    };
    let ItemKind::Function(function) = kind else {
        return Err(Diagnostic::error(source.span(), NO_FUNCTION));
    };
    if !function.is_async {
        let message = "the test must be async: write `async fn`";
        return Err(Diagnostic::error(function.keyword, message));
    }
    if let Some(generics) = function.generics {
        return Err(Diagnostic::error(generics, "a test cannot be generic"));
    }
    let parameters = function.parameters().map_err(describe_malformed)?;
    if let Some(second) = parameters.get(1) {
        let message = "the test takes nothing, or one `rbuilder::envtest::Environment`";
        return Err(Diagnostic::error(second.span, message));
    }
    let first = parameters.first();
    if let Some(receiver) = first.filter(|parameter| parameter.ty.is_none()) {
        let message = "a test is a function of its own, without `self`";
        return Err(Diagnostic::error(receiver.span, message));
    }
    let part = |span: Option<Span>| span.map(|span| source.tokens(span)).unwrap_or_default();
    Ok(TestFunction {
        attributes: attrs.iter().map(|attr| source.tokens(attr.span())).collect(),
        visibility: part(visibility),
        name: source.tokens(function.ident.span),
        signature: source.tokens(function.signature),
        output: part(function.output),
        argument: first.map(|parameter| source.places(parameter.span).0),
        body,
    })
}

const NO_FUNCTION: &str = "the test must be a function";

/// Returns whether this value of the variable selects a control plane.
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

/// Wraps the user's function in one of the same name that libtest can call.
///
/// The expansion depends on environment variables. An `option_env!` for each of them makes cargo
/// rebuild the test when one changes.
fn test(function: &TestFunction, missing: Option<&str>) -> TokenStream {
    let TestFunction {
        attributes,
        visibility,
        name,
        signature,
        output,
        argument,
        body,
    } = function;
    let ignore = missing.map(|reason| quote!(#[ignore = #reason]));
    let variables = ASSETS.iter().copied().flatten();
    let call = match argument {
        None => quote!(#name().await),
        // Use the span of the parameter, where rustc should report a type other than `Environment`.
        Some(argument) => quote_spanned! {*argument=>
            match ::rbuilder::envtest::Environment::shared().await {
                ::core::result::Result::Ok(environment) => #name(environment).await,
                ::core::result::Result::Err(error) => ::core::panic!("{error}"),
            }
        },
    };
    quote! {
        #[::core::prelude::v1::test]
        #ignore
        #(#attributes)*
        #visibility fn #name() #output {
            #(const _: ::core::option::Option<&str> = ::core::option_env!(#variables);)*
            #signature #body
            ::rbuilder::envtest::run(async { #call })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(arguments: &str, item: &str, expected: &str) {
        let expanded = expand_test(arguments.parse().unwrap(), item.parse().unwrap()).to_string();
        let error = format!("compile_error ! {{ {expected:?} }}");
        assert!(expanded.contains(&error), "{expanded}");
        let item: TokenStream = item.parse().unwrap();
        assert!(expanded.ends_with(&item.to_string()), "{expanded}");
    }

    #[test]
    fn reports_unsupported_functions() {
        check_error(
            "shared",
            "async fn a() {}",
            "`#[rbuilder::envtest::test]` takes no argument but `controllers`",
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
        check_error("", "struct S;", "the test must be a function");
        check_error("", "async fn a();", "the test must be a function");
    }

    #[test]
    fn keeps_attributes_visibility_and_output() {
        let function = quote!(
            #[tokio::main]
            pub(crate) async fn a(mut env: Environment) -> Result<(), Vec<Error>> {
                let x = [1, 2];
                f(env, x).await
            }
        );
        let text = test(&parse(TokenStream::new(), function).ok().unwrap(), None).to_string();
        for part in [
            "# [tokio :: main] pub (crate) fn a () -> Result < () , Vec < Error >> {",
            "async fn a (mut env : Environment) -> Result < () , Vec < Error >> { let x = [1 , 2] ; f (env , x) . await }",
            "a (environment) . await",
        ] {
            assert!(text.contains(part), "`{part}` is missing from {text}");
        }
    }

    #[test]
    fn ignored_with_a_reason_without_binaries() {
        let function = quote!(
            async fn a(env: Environment) {}
        );
        let function = parse(TokenStream::new(), function).ok().unwrap();
        let ignored = quote!(#[ignore = #IGNORED]).to_string();
        assert!(test(&function, Some(IGNORED)).to_string().contains(&ignored));
        assert!(!test(&function, None).to_string().contains("ignore"));
    }

    #[test]
    fn controllers_require_all_binaries() {
        let folder = std::env::temp_dir().join(format!("rbuilder-derive-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for program in CONTROLLER_PROGRAMS {
            assert!(!has_controllers(&folder), "{program}");
            std::fs::write(folder.join(program), "").unwrap();
        }
        assert!(has_controllers(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
        let function: TokenStream = quote!(
            async fn a() {}
        );
        let text = expand_test("controllers".parse().unwrap(), function).to_string();
        assert!(!text.contains("compile_error"), "{text}");
    }

    #[test]
    fn one_complete_group_of_variables_is_enough() {
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
