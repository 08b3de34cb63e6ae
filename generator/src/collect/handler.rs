//! The function under a `#[webhook(…)]`: its parameters' types, as written.

use rbuilder_syntax::{Session, TypeKind, TypeRef, Webhook, parse_type_ref};
use syn::{FnArg, Signature, Type};

use crate::package::{FileId, Handler, ModuleId};

/// Reads what the webhook's kind can be told from.
pub(super) fn read(
    webhook: Webhook,
    signature: &Signature,
    self_type: Option<&Type>,
    (file, module): (FileId, ModuleId),
    session: &mut Session,
) -> Handler {
    let function = session.spans.add(&signature.ident);
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        parameters.push(match input {
            FnArg::Receiver(_) => TypeRef {
                kind: TypeKind::Path(vec!["Self".into()], Vec::new()),
                span: function,
            },
            FnArg::Typed(input) => parse_type_ref(&input.ty, session),
        });
    }
    Handler {
        file,
        module,
        function,
        webhook,
        parameters,
        self_type: self_type.map(|ty| parse_type_ref(ty, session)),
    }
}
