//! Functions and constants whose value may be a default or a schema.

use rbuilder_reader::grammar::{Constant, Function, Implementation};
use rbuilder_reader::token::Cursor;

use super::file::FileReader;
use crate::package::{Associated, LocalItems, ModuleId, ValueId, ValueItem};
use crate::resolve::SCHEMA_FUNCTION;

/// Longer bodies are ignored: nobody writes such a default by hand.
const MAX_BODY: usize = 4096;

/// Functions that return a schema may be longer than those that return defaults.
const MAX_SCHEMA: usize = 1 << 16;

impl FileReader<'_, '_> {
    /// Records a function if it has no parameters (it may return a default) or a single one (it may
    /// be a predicate).
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
        let returns_schema = function.output_text().ends_with("Schema");
        let value = Found {
            name: function.ident.text,
            body,
            start: function.body_start,
            is_function: true,
            parameter,
            returns_schema,
            type_parameters: if returns_schema {
                function.type_parameters()
            } else {
                Vec::new()
            },
            longest: if returns_schema { MAX_SCHEMA } else { MAX_BODY },
        };
        self.add_value(value, around, module);
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
            let span = end.span_since(value);
            let value = Found {
                name: constant.ident.text,
                body: value.text_of(span),
                start: span.start,
                is_function: false,
                parameter: None,
                returns_schema: false,
                type_parameters: Vec::new(),
                longest: MAX_BODY,
            };
            self.add_value(value, around, module);
        }
    }

    /// Parses `lazy_static! { static ref NAME: Type = value; }`.
    pub(super) fn lazy_statics(&mut self, mut body: Cursor<'_>, module: ModuleId) {
        while !body.is_end() {
            let declared = body.eat_word("static") && body.eat_word("ref");
            let Some(name) = body.any_ident().filter(|_| declared) else {
                // E.g. an attribute or `pub`.
                body.skip();
                continue;
            };
            while !(body.is_end() || body.is_punct(b'=') || body.is_punct(b';')) {
                body.skip();
            }
            body.eat(b'=');
            let start = body;
            while !(body.is_end() || body.is_punct(b';')) {
                body.skip();
            }
            let span = body.span_since(start);
            let value = Found {
                name: name.text,
                body: start.text_of(span),
                start: span.start,
                is_function: false,
                parameter: None,
                returns_schema: false,
                type_parameters: Vec::new(),
                longest: MAX_BODY,
            };
            self.add_value(value, None, module);
        }
    }

    fn add_value(&mut self, value: Found<'_>, around: Option<&Implementation<'_>>, module: ModuleId) {
        let name = value.name;
        // If a condition can't be evaluated, another item with this name may be compiled instead.
        if !self.pending.is_empty() || value.body.len() > value.longest {
            return;
        }
        let Ok(self_type) = around.map(Implementation::self_type).transpose() else {
            return;
        };
        let returns_schema = value.returns_schema || name == SCHEMA_FUNCTION;
        let local = match returns_schema {
            true => self.local_items(value.body, value.start, &value.type_parameters, module),
            false => Some(LocalItems::None),
        };
        let package = &mut self.collector.package;
        let id = ValueId(package.values.len());
        match &self_type {
            Some(self_type) => {
                let of_trait = around.and_then(Implementation::trait_name);
                if name == SCHEMA_FUNCTION && of_trait == Some("JsonSchema") {
                    package.schema_functions.push(package.associated.len());
                }
                package.associated.push(Associated {
                    module,
                    self_type: self_type.clone(),
                    of_trait: of_trait.map(str::to_owned),
                    name: name.to_owned(),
                    value: id,
                });
            }
            None => {
                package.modules[module.0].values.insert(name.to_owned(), id);
            }
        }
        package.values.push(ValueItem {
            file: self.id,
            module,
            is_function: value.is_function,
            parameter: value.parameter,
            returns_schema,
            type_parameters: value.type_parameters,
            self_type,
            local,
            body: value.body.into(),
            start: value.start,
        });
    }
}

struct Found<'f> {
    name: &'f str,
    body: &'f str,
    start: u32,
    is_function: bool,
    parameter: Option<String>,
    returns_schema: bool,
    type_parameters: Vec<String>,
    longest: usize,
}
