//! The derives that an item asks for.

use crate::attribute::{Attribute, Form};

/// Returns every path in `#[derive(…)]`, as segments without `r#`.
pub fn read_derives<'a>(attrs: &[Attribute<'a>]) -> Vec<Vec<&'a str>> {
    let mut paths = Vec::new();
    each(attrs, |path| {
        paths.push(path.to_vec());
        true
    });
    paths
}

/// Returns true if a derive of this name is asked for, whatever path leads to it.
pub fn has_derive(attrs: &[Attribute<'_>], name: &str) -> bool {
    let mut found = false;
    each(attrs, |path| {
        found = path.last() == Some(&name);
        !found
    });
    found
}

/// Calls `visit` with the path of each derive for as long as it says to go on. A derive that cannot be read is for
/// rustc to refuse.
fn each<'a>(attrs: &[Attribute<'a>], mut visit: impl FnMut(&[&'a str]) -> bool) {
    let mut path = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.is("derive")) {
        let Form::List(mut list) = attr.form() else {
            continue;
        };
        while !list.is_end() {
            path.clear();
            list.eat_pair(b':', b':');
            while let Some(ident) = list.any_ident() {
                path.push(ident.text);
                list.eat_pair(b':', b':');
            }
            if !path.is_empty() && !visit(&path) {
                return;
            }
            while !list.is_end() && !list.eat(b',') {
                list.skip();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    #[test]
    fn paths() {
        let tokens = lex("#[derive(Clone, kube::CustomResource, Debug)] struct S;").expect("tokens");
        let attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
        assert_eq!(
            read_derives(&attrs),
            [vec!["Clone"], vec!["kube", "CustomResource"], vec!["Debug"]]
        );
        assert!(has_derive(&attrs, "CustomResource"));
        assert!(!has_derive(&attrs, "CrdSchema"));
    }
}
