//! Evaluates serde's defaults: literals, constants, variants, lists, structs of these, and
//! functions that return such values.
//!
//! No code is run, and nothing is guessed. A value that can't be found by looking up names is
//! unknown, which is reported where the default is written. `derive(CrdSchema)` calls the same
//! functions, and the twin test compares the results.
//!
//! Packages are never loaded from a registry for a value. Since an unknown value is only a warning,
//! the result would otherwise depend on what a machine happens to have downloaded.

mod evaluate;
mod leaf;
mod object;
mod predicate;

pub(crate) use evaluate::{bound, calculate};

use rbuilder_reader::TypeKind;
use rbuilder_schema::Site;
use rbuilder_syntax::{AbsentField, DefaultSource, Type};
use serde_json::Value;

use crate::advice;
use crate::package::{Package, TypeId};
use crate::resolve::{Associated, Bindings, Owner, Resolver, SCHEMA_FUNCTION, Scope, Ty, find_owner};

const MAX_DEPTH: usize = 32;

/// Maximum number of values evaluated for the defaults of one type. A value can contain itself
/// several times, so evaluation might never end without a limit.
const MAX_STEPS: usize = 10_000;

pub(crate) fn index_associated(package: &Package) -> Associated {
    let mut index = Associated::new();
    let mut doubtful = Vec::new();
    for item in &package.associated {
        let TypeKind::Path(segments, _) = &item.self_type.kind else {
            continue;
        };
        let of_trait = item.of_trait.as_deref();
        // Another trait may have a function of this name.
        let is_other = match item.name.as_str() {
            "default" => of_trait.is_some_and(|name| name != "Default"),
            SCHEMA_FUNCTION => of_trait != Some("JsonSchema"),
            _ => false,
        };
        if !is_other && let Some(owner) = find_owner(package, item.module, segments) {
            let key = (owner, item.name.clone());
            // If a type implements the trait for several sets of type arguments, it's unclear which
            // one to use.
            if index.insert(key.clone(), item.value).is_some() && item.name == SCHEMA_FUNCTION {
                doubtful.push(key);
            }
        }
    }
    for key in doubtful {
        index.remove(&key);
    }
    index
}

fn describe_unread(source: &DefaultSource, model: &Type) -> String {
    match (source, &model.whole_default) {
        (DefaultSource::Function(path), _)
        | (DefaultSource::Container, Some(DefaultSource::Function(path))) => {
            format!("`{path}` cannot be evaluated without running the program")
        }
        (DefaultSource::Container, _) => {
            format!(
                "the `Default` of `{}` cannot be evaluated without running the program",
                model.ident
            )
        }
        (DefaultSource::Type, _) => {
            "the `Default` of its type cannot be evaluated without running the program".into()
        }
    }
}

pub(crate) fn help(is_ours: bool, field: &AbsentField<'_>) -> String {
    let marker = if is_ours {
        "write it as `#[kube(default = …)]`"
    } else {
        "write it as `#[schemars(extend(\"default\" = …))]`"
    };
    if field.said.is_opaque {
        return advice::JSON_OF_DEFAULT.to_owned();
    }
    format!("make the default a literal, a constant, a variant, or a list or struct of these, or {marker}")
}

/// Evaluates the defaults of a single type.
///
/// Callers must discard its reports. Errors in a type are reported where its schema is needed, and
/// a type whose values have another schema may not need one.
pub(crate) struct Evaluator<'e, 'a> {
    pub(crate) resolver: &'e mut Resolver<'a>,
    pub(crate) associated: &'e Associated,
    depth: usize,
    steps: usize,
}

/// The scope of an expression.
#[derive(Clone, Copy)]
struct Frame<'f> {
    scope: Scope<'f>,
    /// The type behind `Self`.
    owner: Option<&'f Owner>,
    /// The parameter of the enclosing function, as (name, value, type).
    parameter: Option<(&'f str, &'f Value, &'f Ty)>,
}

impl<'e, 'a> Evaluator<'e, 'a> {
    pub(crate) fn new(resolver: &'e mut Resolver<'a>, associated: &'e Associated) -> Self {
        Evaluator {
            resolver,
            associated,
            depth: 0,
            steps: 0,
        }
    }

    fn package(&self) -> &'a Package {
        self.resolver.package
    }

    fn step<T>(&mut self, run: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.steps += 1;
        if self.depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        self.depth += 1;
        let made = run(self);
        self.depth -= 1;
        made
    }

    /// Returns the value that serde uses for each absent field: `null` if the schema gets no
    /// default, `None` if the value is unknown.
    pub(crate) fn absent_values(
        &mut self,
        id: TypeId,
        args: &[Ty],
        fields: &[AbsentField<'_>],
    ) -> Vec<(Site, Option<Value>)> {
        let is_of_whole = |field: &AbsentField<'_>| field.value.source == DefaultSource::Container;
        let whole = fields.iter().any(is_of_whole).then(|| self.whole(id, args));
        let values = fields.iter().map(|field| {
            let value = match &whole {
                // A field that serde omits from the container's default has no default either.
                Some(whole) if is_of_whole(field) => whole
                    .as_ref()
                    .map(|whole| whole.get(&field.field.name).cloned().unwrap_or_default()),
                _ => self.absent_value(id, args, field),
            };
            (field.site(), value)
        });
        values.collect()
    }

    fn whole(&mut self, id: TypeId, args: &[Ty]) -> Option<Value> {
        let model = self.package().item(id).model.as_ref()?;
        let ty = Ty::Item(id, args.to_vec());
        match model.whole_default.as_ref()? {
            DefaultSource::Function(path) => {
                self.in_type(id, args, |this, frame| this.call_path(path, &ty, frame))
            }
            DefaultSource::Type | DefaultSource::Container => self.zero(&ty),
        }
    }

    fn absent_value(&mut self, id: TypeId, args: &[Ty], field: &AbsentField<'_>) -> Option<Value> {
        let Some(ty) = self.type_of(id, args, field.field.slot) else {
            return self.absent_option(id, field);
        };
        let value = self.default_value(id, args, field, &ty)?;
        let is_skipped = match &field.said.skip_if {
            Some(path) => self.in_type(id, args, |this, frame| this.test_path(path, &value, &ty, frame))?,
            None => false,
        };
        match is_skipped {
            true => Some(Value::Null),
            false if field.said.is_opaque && !value.is_null() => None,
            false => Some(value),
        }
    }

    /// Evaluates the default of a field, even one that serde would not write.
    fn default_value(&mut self, id: TypeId, args: &[Ty], field: &AbsentField<'_>, ty: &Ty) -> Option<Value> {
        match &field.value.source {
            DefaultSource::Function(path) => {
                self.in_type(id, args, |this, frame| this.call_path(path, ty, frame))
            }
            DefaultSource::Type | DefaultSource::Container => self.zero(ty),
        }
    }

    pub(crate) fn describe_unread(&mut self, id: TypeId, args: &[Ty], field: &AbsentField<'_>) -> String {
        if field.said.is_opaque {
            return "a function serializes it, which rbuilder does not run".into();
        }
        if let Some(test) = &field.said.skip_if
            && let Some(ty) = self.type_of(id, args, field.field.slot)
            && self.default_value(id, args, field, &ty).is_some()
        {
            return format!("`{test}`, which says whether serde writes it, is more than a comparison");
        }
        let model = self.package().item(id).model.as_ref();
        model.map_or(String::new(), |model| describe_unread(&field.value.source, model))
    }

    fn absent_option(&self, id: TypeId, field: &AbsentField<'_>) -> Option<Value> {
        let model = self.package().item(id).model.as_ref()?;
        let TypeKind::Path(segments, _) = &model.value_type(field.field.slot)?.kind else {
            return None;
        };
        let is_option = segments.last().is_some_and(|name| name == "Option");
        (is_option && field.value.source == DefaultSource::Type).then_some(Value::Null)
    }

    fn type_of(&mut self, id: TypeId, args: &[Ty], slot: usize) -> Option<Ty> {
        let model = self.package().item(id).model.as_ref()?;
        self.in_type(id, args, |this, frame| this.value_type(model, slot, frame))
    }

    fn value_type(&mut self, model: &Type, slot: usize, frame: Frame<'_>) -> Option<Ty> {
        self.resolver.resolve(model.value_type(slot)?, frame.scope)
    }

    fn in_type<T>(
        &mut self,
        id: TypeId,
        args: &[Ty],
        run: impl FnOnce(&mut Self, Frame<'_>) -> Option<T>,
    ) -> Option<T> {
        let item = self.package().item(id);
        let model = item.model.as_ref()?;
        let names = model.generics.iter().map(|(name, _)| name.clone());
        let bindings: Bindings = names.zip(args.iter().cloned()).collect();
        let frame = Frame {
            scope: Scope {
                file: item.file,
                module: item.module,
                bindings: &bindings,
            },
            owner: None,
            parameter: None,
        };
        run(self, frame)
    }
}
