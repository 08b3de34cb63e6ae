//! Recognizes expressions that contain CRDs.

use std::collections::BTreeSet;
use std::rc::Rc;

use rbuilder_reader::token::{Cursor, Delimiter};
use rbuilder_reader::{TypeKind, TypeRef};

use super::Finder;

/// Functions that return the CRD of their first argument, possibly converted or wrapped.
const WRAPPERS: [&str; 5] = ["to_value", "from_value", "merge_crds", "Ok", "Some"];

/// Methods that return the CRDs of their receiver, possibly as a copy.
const PASSING: [&str; 13] = [
    "unwrap",
    "expect",
    "unwrap_or_default",
    "unwrap_or_else",
    "context",
    "with_context",
    "map_err",
    "clone",
    "to_owned",
    "into",
    "iter",
    "into_iter",
    "to_vec",
];

#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The paths of the kinds, as written.
    pub(super) kinds: Rc<BTreeSet<Vec<String>>>,
    /// Changing a list itself does not change the CRDs in it.
    pub(super) is_list: bool,
}

impl<'a> Finder<'a> {
    /// Returns `None` if the expression contains no CRD.
    pub(super) fn held_by(&self, cursor: &mut Cursor<'a>) -> Option<Held> {
        while cursor.eat(b'&') || cursor.eat_word("mut") {}
        let held = if cursor.is_punct(b'<') {
            Held {
                kinds: Rc::new(BTreeSet::from([qualified_call(cursor)?])),
                is_list: false,
            }
        } else if let Some(items) = cursor.group(Delimiter::Bracket) {
            self.list(items)?
        } else {
            self.named(cursor)?
        };
        loop {
            if cursor.eat(b'?') {
                continue;
            }
            let mut ahead = *cursor;
            match method(&mut ahead) {
                Some(name) if PASSING.contains(&name) => *cursor = ahead,
                _ => return Some(held),
            }
        }
    }

    fn list(&self, mut items: Cursor<'a>) -> Option<Held> {
        let mut kinds = BTreeSet::new();
        while !items.is_end() {
            let mut ahead = items;
            // More tokens before the comma make it a larger expression, which could be anything.
            if let Some(held) = self.held_by(&mut ahead)
                && (ahead.is_end() || ahead.is_punct(b','))
            {
                kinds.extend(held.kinds.iter().cloned());
            }
            while !items.is_end() && !items.eat(b',') {
                items.skip();
            }
        }
        (!kinds.is_empty()).then(|| Held {
            kinds: Rc::new(kinds),
            is_list: true,
        })
    }

    fn named(&self, cursor: &mut Cursor<'a>) -> Option<Held> {
        let mut path = Vec::new();
        cursor.eat_pair(b':', b':');
        loop {
            path.push(cursor.any_ident()?.text);
            if !cursor.eat_pair(b':', b':') {
                break;
            }
        }
        if cursor.eat(b'!') {
            let items = cursor.any_group()?;
            return if path == ["vec"] { self.list(items) } else { None };
        }
        let Some(mut arguments) = cursor.group(Delimiter::Paren) else {
            return match path.as_slice() {
                [name] => self.held.get(name).cloned(),
                _ => None,
            };
        };
        let function = path.pop()?;
        if function == "crd" && arguments.is_end() && !path.is_empty() {
            let kind = path.into_iter().map(str::to_owned).collect();
            return Some(Held {
                kinds: Rc::new(BTreeSet::from([kind])),
                is_list: false,
            });
        }
        if !WRAPPERS.contains(&function) {
            return None;
        }
        let held = self.held_by(&mut arguments)?;
        Some(Held {
            is_list: held.is_list && function != "merge_crds",
            ..held
        })
    }
}

pub(super) fn path_of(ty: &TypeRef) -> Option<Vec<String>> {
    match &ty.kind {
        TypeKind::Path(segments, _) => Some(segments.clone()),
        _ => None,
    }
}

/// Parses `.name(…)` or `.name::<…>(…)`, and returns the name.
pub(super) fn method<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    if cursor.is_pair(b'.', b'.') || !cursor.eat(b'.') {
        return None;
    }
    let name = cursor.any_ident()?.text;
    while !cursor.is_end() && (cursor.is_punct(b':') || cursor.is_punct(b'<')) {
        cursor.skip();
    }
    cursor.group(Delimiter::Paren).map(|_| name)
}

/// Parses `<Kind as Trait>::crd()` and returns the path of `Kind`.
fn qualified_call(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    cursor.eat(b'<');
    let kind = path_of(&TypeRef::read(cursor).ok()?);
    while !cursor.is_end() && !cursor.is_punct(b'>') {
        cursor.skip();
    }
    let is_call = cursor.eat(b'>') && cursor.eat_pair(b':', b':') && cursor.eat_word("crd");
    cursor
        .group(Delimiter::Paren)
        .filter(|arguments| is_call && arguments.is_end())?;
    kind
}
