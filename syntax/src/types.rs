//! Types as written, from `syn` to the model.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, ExprLit, GenericArgument, Lit, PathArguments, Type};

use crate::{Session, TypeKind, TypeRef};

/// Reads a type as written.
pub(crate) fn read(ty: &Type, session: &mut Session) -> TypeRef {
    let span = session.place(ty);
    TypeRef {
        kind: kind(ty, session),
        span,
    }
}

fn kind(ty: &Type, session: &mut Session) -> TypeKind {
    match ty {
        Type::Paren(inner) => kind(&inner.elem, session),
        Type::Group(inner) => kind(&inner.elem, session),
        // `&'static str` and `Box<[T]>` are on the wire what they refer to.
        Type::Reference(inner) => kind(&inner.elem, session),
        Type::Slice(inner) => TypeKind::Array(Box::new(read(&inner.elem, session)), None),
        Type::Array(inner) => match length(&inner.len) {
            Some(length) => TypeKind::Array(Box::new(read(&inner.elem, session)), Some(length)),
            None => TypeKind::Other(text(ty)),
        },
        Type::Tuple(inner) => TypeKind::Tuple(inner.elems.iter().map(|elem| read(elem, session)).collect()),
        Type::Path(inner) if inner.qself.is_none() && !has_const_argument(&inner.path) => {
            path(&inner.path, session)
        }
        other => TypeKind::Other(text(other)),
    }
}

/// Reads a path as a type.
pub(crate) fn path(path: &syn::Path, session: &mut Session) -> TypeKind {
    let mut segments: Vec<String> = Vec::with_capacity(path.segments.len() + 1);
    if path.leading_colon.is_some() {
        segments.push(String::new());
    }
    segments.extend(
        path.segments
            .iter()
            .map(|segment| segment.ident.unraw().to_string()),
    );
    let args = match path.segments.last().map(|segment| &segment.arguments) {
        Some(PathArguments::AngleBracketed(args)) => args
            .args
            .iter()
            .filter_map(|arg| match arg {
                GenericArgument::Type(ty) => Some(read(ty, session)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    TypeKind::Path(segments, args)
}

fn length(len: &Expr) -> Option<u64> {
    match len {
        Expr::Lit(ExprLit {
            lit: Lit::Int(int), ..
        }) => int.base10_parse().ok(),
        _ => None,
    }
}

/// `Ring<4>`: a value as an argument cannot be followed by name alone.
fn has_const_argument(path: &syn::Path) -> bool {
    path.segments.iter().any(|segment| match &segment.arguments {
        PathArguments::AngleBracketed(args) => args
            .args
            .iter()
            .any(|arg| !matches!(arg, GenericArgument::Type(_) | GenericArgument::Lifetime(_))),
        PathArguments::Parenthesized(_) => true,
        PathArguments::None => false,
    })
}

fn text(ty: &Type) -> String {
    ty.to_token_stream().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short form of the model, for the cases.
    fn shown(ty: &TypeRef) -> String {
        let list = |types: &[TypeRef]| types.iter().map(shown).collect::<Vec<_>>().join(",");
        match &ty.kind {
            TypeKind::Path(segments, args) => format!("{}<{}>", segments.join("::"), list(args)),
            TypeKind::Array(item, length) => format!("[{};{length:?}]", shown(item)),
            TypeKind::Tuple(types) => format!("({})", list(types)),
            TypeKind::Other(text) => format!("other {text}"),
        }
    }

    fn check(ty: &str, expected: &str) {
        let parsed = syn::parse_str(ty).expect("a type");
        assert_eq!(shown(&read(&parsed, &mut Session::default())), expected, "{ty}");
    }

    #[test]
    fn forms() {
        check("i32", "i32<>");
        check("::std::string::String", "::std::string::String<>");
        check("r#type::T", "type::T<>");
        check("Option<Vec<a::B>>", "Option<Vec<a::B<>>>");
        check("Cow<'static, str>", "Cow<str<>>");
        check("&'static str", "str<>");
        check("(i32)", "i32<>");
        check("[u8; 4]", "[u8<>;Some(4)]");
        check("Box<[u8]>", "Box<[u8<>;None]>");
        check("()", "()");
        check("(A, B)", "(A<>,B<>)");
        check("[u8; N]", "other [u8 ; N]");
        check("Ring<4>", "other Ring < 4 >");
        check("<T as X>::Y", "other < T as X > :: Y");
        check("fn()", "other fn ()");
    }
}
