//! The `derive` attributes of an item.

use crate::attribute::{Attribute, Form};
use crate::token::Cursor;

/// All paths in `#[derive(…)]`, as segments without `r#`.
pub fn read_derives<'a>(attrs: &[Attribute<'a>]) -> Vec<Vec<&'a str>> {
    let mut paths = Vec::new();
    for mut list in lists(attrs) {
        while !list.is_end() {
            let mut path = Vec::new();
            read_path(&mut list, |segment| path.push(segment));
            if !path.is_empty() {
                paths.push(path);
            }
        }
    }
    paths
}

/// Returns true if the item derives a macro with this name, under any path.
pub fn has_derive(attrs: &[Attribute<'_>], name: &str) -> bool {
    lists(attrs).any(|mut list| {
        let mut found = false;
        while !found && !list.is_end() {
            let mut last = None;
            read_path(&mut list, |segment| last = Some(segment));
            found = last == Some(name);
        }
        found
    })
}

// Malformed derives are skipped, since rustc reports them.
fn lists<'a>(attrs: &[Attribute<'a>]) -> impl Iterator<Item = Cursor<'a>> {
    let derives = attrs.iter().filter(|attr| attr.is("derive"));
    derives.filter_map(|attr| match attr.form() {
        Form::List(list) => Some(list),
        _ => None,
    })
}

/// Reads a path and skips to the next one.
fn read_path<'a>(list: &mut Cursor<'a>, mut each: impl FnMut(&'a str)) {
    list.eat_pair(b':', b':');
    while let Some(ident) = list.any_ident() {
        each(ident.text);
        list.eat_pair(b':', b':');
    }
    while !list.is_end() && !list.eat(b',') {
        list.skip();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    #[test]
    fn reads_derive_paths() {
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
