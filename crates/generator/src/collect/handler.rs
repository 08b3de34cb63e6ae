//! Reads the function under `#[webhook(…)]`, with the types of its parameters as written.

use rbuilder_reader::grammar::{Function, Implementation};
use rbuilder_reader::{TypeKind, TypeRef};
use rbuilder_syntax::{Diagnostic, Webhook};

use crate::package::{Handler, ModuleId};
use crate::place::FileId;

pub(super) fn read_handler(
    webhook: Webhook,
    function: &Function<'_>,
    around: Option<&Implementation<'_>>,
    (file, module): (FileId, ModuleId),
) -> Result<Handler, Diagnostic> {
    let receiver = || TypeRef {
        kind: TypeKind::Path(vec!["Self".into()], Vec::new()),
        span: function.ident.span,
    };
    let parameters = function
        .parameters()?
        .into_iter()
        .map(|parameter| parameter.ty.unwrap_or_else(receiver));
    Ok(Handler {
        file,
        module,
        function: function.ident.span,
        webhook,
        parameters: parameters.collect(),
        self_type: around.map(Implementation::self_type).transpose()?,
    })
}
