//! Variables in patterns.

use rbuilder_reader::token::{Cursor, Delimiter, Kind};

use super::follow::Follower;
use super::ty::Ty;

impl Follower<'_, '_> {
    /// Binds the variables up to the end of the cursor, or until `is_end` returns true.
    pub(super) fn bind_pattern<'t>(
        &mut self,
        cursor: &mut Cursor<'t>,
        ty: &Ty,
        is_end: impl Fn(Cursor<'t>) -> bool + Copy,
    ) {
        while !cursor.is_end() && !is_end(*cursor) {
            if cursor.eat(b'|') || cursor.eat(b',') {
                continue;
            }
            self.bind_part(cursor, ty);
        }
    }

    fn bind_part(&mut self, cursor: &mut Cursor<'_>, ty: &Ty) {
        while cursor.eat(b'&') || cursor.eat_word("mut") || cursor.eat_word("ref") || cursor.eat_word("box") {
        }
        if let Some(inner) = cursor.group(Delimiter::Paren) {
            return self.bind_tuple(inner, ty);
        }
        if let Some(mut inner) = cursor.group(Delimiter::Bracket) {
            return self.bind_pattern(&mut inner, ty, |_| false);
        }
        if !matches!(cursor.kind(), Kind::Ident | Kind::RawIdent) {
            cursor.skip();
            return;
        }
        let mut names = Vec::new();
        loop {
            names.extend(cursor.any_ident().map(|ident| ident.text));
            if !cursor.eat_pair(b':', b':') {
                break;
            }
        }
        let last = names.last().copied().unwrap_or_default();
        if let Some(inner) = cursor.group(Delimiter::Paren) {
            // `Some`, `Ok` and the variants of kube's events hold values of the type parameter.
            let is_wrapper = matches!(
                last,
                "Some" | "Ok" | "Applied" | "Apply" | "InitApply" | "Left" | "Cleanup"
            );
            let ty = if is_wrapper { ty.clone() } else { Ty::Unknown };
            return self.bind_tuple(inner, &ty);
        }
        if let Some(inner) = cursor.group(Delimiter::Brace) {
            return self.bind_fields(inner, ty);
        }
        let is_variable = names.len() == 1 && last.starts_with(|c: char| c.is_lowercase() || c == '_');
        if is_variable && !matches!(last, "true" | "false") {
            self.variables.push((last.to_owned(), ty.clone()));
        }
        if cursor.eat(b'@') {
            self.bind_part(cursor, ty);
        }
    }

    fn bind_tuple(&mut self, mut inner: Cursor<'_>, ty: &Ty) {
        let is_comma = |cursor: Cursor<'_>| cursor.is_punct(b',');
        let mut position = 0;
        while !inner.is_end() {
            let part = match ty {
                Ty::Tuple(parts) => parts.get(position).cloned().unwrap_or_default(),
                other => other.clone(),
            };
            self.bind_pattern(&mut inner, &part, is_comma);
            inner.eat(b',');
            position += 1;
        }
    }

    fn bind_fields(&mut self, mut inner: Cursor<'_>, ty: &Ty) {
        let is_comma = |cursor: Cursor<'_>| cursor.is_punct(b',');
        while !inner.is_end() {
            while inner.eat_word("ref") || inner.eat_word("mut") {}
            let Some(name) = inner.any_ident() else {
                inner.skip();
                continue;
            };
            let field = self.field_type(ty, name.text);
            if inner.eat(b':') {
                self.bind_pattern(&mut inner, &field, is_comma);
            } else {
                self.variables.push((name.text.to_owned(), field));
            }
            inner.eat(b',');
        }
    }
}
