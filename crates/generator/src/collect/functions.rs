//! Records functions and struct fields, which determine the required permissions.

use rbuilder_reader::grammar::{Body, Fields, Function, Implementation, TypeItem};

use super::file::FileReader;
use crate::package::{FunctionId, FunctionItem, ModuleId};

/// Longer bodies aren't followed.
const MAX_BODY: usize = 1 << 18;

impl FileReader<'_, '_> {
    pub(super) fn function(
        &mut self,
        function: &Function<'_>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) {
        let Some(body) = function.body.filter(|body| body.len() <= MAX_BODY) else {
            return;
        };
        if !self.follows_calls {
            return;
        }
        let span = function.signature;
        // A body that can't send requests isn't followed, but callers need the signature.
        let body = if self.may_send { body } else { "" };
        let package = &mut self.collector.package;
        let id = FunctionId(package.functions.len());
        package.functions.push(FunctionItem {
            file: self.id,
            module,
            name: function.ident.text.to_owned(),
            self_type: around.and_then(|around| around.self_type().ok()),
            signature: self.text[span.range()].into(),
            body: body.into(),
            start: function.body_start,
        });
        if around.is_none() {
            let functions = &mut package.modules[module.0].functions;
            functions.insert(function.ident.text.to_owned(), id);
        }
    }

    pub(super) fn fields(&mut self, item: &TypeItem<'_>, module: ModuleId) {
        let Body::Struct(Fields::Named(fields)) = &item.body else {
            return;
        };
        if !self.follows_calls || !self.may_send {
            return;
        }
        let named = fields
            .iter()
            .filter_map(|field| Some((field.ident?.text.to_owned(), field.ty.clone())));
        let key = (module, item.ident.text.to_owned());
        self.collector.package.fields.insert(key, named.collect());
    }
}
