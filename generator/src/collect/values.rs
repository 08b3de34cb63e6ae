//! Functions and constants that may be a single value, for defaults.

use rbuilder_reader::grammar::{Constant, Function, Implementation};

use super::file::FileReader;
use crate::package::{Associated, ModuleId, ValueId, ValueItem};

/// The longest body that is kept, in bytes: a value that people write out is shorter.
const MAX_BODY: usize = 4096;

impl FileReader<'_, '_> {
    /// Keeps a function without parameters, or a test of one value.
    pub(super) fn function_value(
        &mut self,
        function: &Function<'_>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) {
        let Some(body) = function
            .body
            .filter(|_| !function.is_async && function.output.is_some())
        else {
            return;
        };
        let parameter = match function.parameters().as_deref() {
            Ok([]) => None,
            Ok([only]) => only.name.clone(),
            _ => return,
        };
        self.add_value(function.ident.text, body, true, parameter, around, module);
    }

    pub(super) fn constant_value(
        &mut self,
        constant: &Constant<'_>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) {
        if let Some(value) = constant.value {
            let mut end = value;
            while !end.is_end() && !end.is_punct(b';') {
                end.skip();
            }
            let text = value.text_of(end.span_since(value));
            self.add_value(constant.ident.text, text, false, None, around, module);
        }
    }

    fn add_value(
        &mut self,
        name: &str,
        body: &str,
        is_function: bool,
        parameter: Option<String>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) {
        // Which of two that depend on the build is meant is not known.
        if !self.pending.is_empty() || body.len() > MAX_BODY {
            return;
        }
        let Ok(self_type) = around.map(Implementation::self_type).transpose() else {
            return;
        };
        let package = &mut self.collector.package;
        let id = ValueId(package.values.len());
        match &self_type {
            Some(self_type) => package.associated.push(Associated {
                module,
                self_type: self_type.clone(),
                of_trait: around.and_then(Implementation::trait_name).map(str::to_owned),
                name: name.to_owned(),
                value: id,
            }),
            None => {
                package.modules[module.0].values.insert(name.to_owned(), id);
            }
        }
        package.values.push(ValueItem {
            file: self.id,
            module,
            is_function,
            parameter,
            self_type,
            body: body.into(),
        });
    }
}
