//! `impl` blocks.

use super::{body, pass_header};
use crate::token::{Cursor, Delimiter, Kind};
use crate::{Diagnostic, TypeRef, types};

/// `impl Trait for Type { … }` or `impl Type { … }`.
#[derive(Debug)]
pub struct Implementation<'a> {
    /// Positioned after `impl` and its parameters.
    head: Cursor<'a>,
    /// The content of the braces.
    pub content: Cursor<'a>,
}

impl<'a> Implementation<'a> {
    /// Reads the `Self` type.
    pub fn self_type(&self) -> Result<TypeRef, Diagnostic> {
        TypeRef::read(&mut self.parts().1)
    }

    /// Returns the last segment of the trait's path, if this is a trait impl.
    pub fn trait_name(&self) -> Option<&'a str> {
        self.parts().0
    }

    /// The trait's name, and a cursor at the self type.
    fn parts(&self) -> (Option<&'a str>, Cursor<'a>) {
        let mut start = self.head;
        let (mut name, mut trait_name) = (None, None);
        let mut cursor = self.head;
        let mut angles = 0usize;
        while !(cursor.is_end() || angles == 0 && ends_head(cursor)) {
            match cursor.kind() {
                Kind::Punct(b'-') if cursor.is_pair(b'-', b'>') => cursor.skip(),
                Kind::Punct(b'<') => angles += 1,
                Kind::Punct(b'>') => angles = angles.saturating_sub(1),
                _ => {}
            }
            let parts = angles == 0 && cursor.is_word("for");
            if angles == 0 && !parts && cursor.kind() == Kind::Ident {
                name = Some(cursor.text());
            }
            cursor.skip();
            // Ignore the `for` in bounds such as `for<'a> Fn(&'a T)`.
            if parts && !cursor.is_punct(b'<') {
                start = cursor;
                trait_name = name;
            }
        }
        (trait_name, start)
    }
}

fn ends_head(cursor: Cursor<'_>) -> bool {
    cursor.is_group(Delimiter::Brace) || cursor.is_word("where")
}

pub(super) fn read_impl<'a>(cursor: &mut Cursor<'a>) -> Result<Implementation<'a>, Diagnostic> {
    cursor.skip();
    if cursor.is_punct(b'<') {
        types::pass_angles(cursor);
    }
    let head = *cursor;
    pass_header(cursor);
    Ok(Implementation {
        head,
        content: body(cursor)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TypeKind;
    use crate::token::lex;

    #[test]
    fn reads_trait_names() {
        for (source, expected) in [
            ("impl S {}", None),
            (
                "impl<'de> serde::Deserialize<'de> for S<T> where T: Copy {}",
                Some("Deserialize"),
            ),
            ("impl Serialize for a::S {}", Some("Serialize")),
        ] {
            let tokens = lex(source).expect("tokens");
            let read = read_impl(&mut tokens.cursor()).expect("an impl");
            assert_eq!(read.trait_name(), expected, "{source}");
        }
    }

    fn check(source: &str, expected: &str) {
        let tokens = lex(source).expect("tokens");
        let read = read_impl(&mut tokens.cursor()).expect("an impl");
        let name = match read.self_type().expect("a type").kind {
            TypeKind::Path(segments, _) => segments.join("::"),
            other => format!("{other:?}"),
        };
        assert_eq!(name, expected, "{source}");
    }

    #[test]
    fn reads_self_types() {
        check("impl S {}", "S");
        check("impl<T: Fn(u8) -> Vec<T>> a::S<T> where T: Copy {}", "a::S");
        check("impl<const N: usize> Trait<{ N }> for S<N> {}", "S");
        check("impl Fn(u8) -> u8 for S {}", "S");
        check("impl !Send for S {}", "S");
        check("impl Trait for ! {}", "Other(\"!\")");
        check("impl<T> Trait for T where for<'a> T: Fn(&'a u8) {}", "T");
    }
}
