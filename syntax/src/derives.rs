//! Which derives an item asks for.

use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token};

/// Every path in `#[derive(…)]`, as segments without `r#`.
pub fn derives(attrs: &[Attribute]) -> Vec<Vec<String>> {
    let parse = Punctuated::<Path, Token![,]>::parse_terminated;
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("derive"))
        // A derive that cannot be read is for rustc to refuse.
        .filter_map(|attr| attr.parse_args_with(parse).ok())
        .flatten()
        .map(|path| {
            path.segments
                .iter()
                .map(|segment| segment.ident.unraw().to_string())
                .collect()
        })
        .collect()
}

/// Whether a derive of this name is asked for, whatever path leads to it.
pub fn derives_named(attrs: &[Attribute], name: &str) -> bool {
    derives(attrs)
        .iter()
        .any(|path| path.last().is_some_and(|last| last == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let item: syn::ItemStruct = syn::parse_quote!(
            #[derive(Clone, kube::CustomResource, Debug)]
            struct S;
        );
        assert_eq!(
            derives(&item.attrs),
            [vec!["Clone"], vec!["kube", "CustomResource"], vec!["Debug"]]
        );
        assert!(derives_named(&item.attrs, "CustomResource"));
        assert!(!derives_named(&item.attrs, "CrdSchema"));
    }
}
