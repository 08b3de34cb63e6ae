//! Values of our packages' own types, as serde writes them.

use std::collections::BTreeMap;

use rbuilder_reader::Expr;
use rbuilder_schema::{Content, Field, Shape, Tagging};
use rbuilder_syntax::{FieldValue, Type};
use serde_json::{Map, Value};

use super::{Evaluator, Frame, leaf};
use crate::package::TypeId;
use crate::resolve::{Owner, Ty};

/// Where fields without an explicit value come from.
pub(super) enum Rest<'r> {
    /// All fields must be explicit.
    None,
    /// Each field has the default of its type.
    Zero,
    /// From another, already serialized value, as in `..base`.
    Of(&'r Map<String, Value>),
}

impl<'a> Evaluator<'_, 'a> {
    /// Returns the model of a type that serde serializes by its fields and variants.
    pub(super) fn plain_model(&self, id: TypeId) -> Option<&'a Type> {
        let item = self.package().item(id);
        let is_plain = item.serde.writes && item.serde.other.is_none();
        item.model.as_ref().filter(|model| is_plain && !model.is_replaced)
    }

    /// Returns the model of an enum that `serde_repr` serializes as integers.
    pub(super) fn numbered_model(&self, id: TypeId) -> Option<&'a Type> {
        let item = self.package().item(id);
        let is_repr = item.serde.other.is_some_and(|other| other.ends_with("_repr")) && !item.is_ours;
        item.model
            .as_ref()
            .filter(|model| is_repr && model.numbers.is_some())
    }

    pub(super) fn zero(&mut self, ty: &Ty) -> Option<Value> {
        let Ty::Item(id, args) = ty else {
            return leaf::zero(ty, self.package());
        };
        self.step(|this| this.zero_of_item(*id, args, ty))
    }

    fn zero_of_item(&mut self, id: TypeId, args: &[Ty], ty: &Ty) -> Option<Value> {
        if let Some(function) = self.associated.get(&(Owner::Type(id), "default".to_owned())) {
            return self.in_body(*function, None, |this, expr, frame| this.value(expr, ty, frame));
        }
        let model = self.plain_model(id).or_else(|| self.numbered_model(id))?;
        if !self.package().item(id).derives_default {
            return None;
        }
        match &model.container.shape {
            Shape::Object(fields) => {
                let object = self.in_type(id, args, |this, frame| {
                    this.fields(
                        model,
                        fields,
                        &model.values,
                        &BTreeMap::new(),
                        &Rest::Zero,
                        frame,
                        frame,
                    )
                })?;
                Some(tagged(model, object))
            }
            Shape::Transparent(slot) => {
                let inner = self.type_of(id, args, *slot)?;
                self.zero(&inner)
            }
            Shape::Enum { .. } => self.variant(id, model, model.default_variant?, None),
        }
    }

    pub(super) fn structure(
        &mut self,
        id: TypeId,
        args: &[Ty],
        given: &BTreeMap<&str, &Expr<'_>>,
        rest: &Rest<'_>,
        at: Frame<'_>,
    ) -> Option<Value> {
        let model = self.plain_model(id)?;
        let Shape::Object(fields) = &model.container.shape else {
            return None;
        };
        let object = self.in_type(id, args, |this, frame| {
            this.fields(model, fields, &model.values, given, rest, at, frame)
        })?;
        Some(tagged(model, object))
    }

    pub(super) fn variant_fields(
        &mut self,
        id: TypeId,
        args: &[Ty],
        position: usize,
        given: &BTreeMap<&str, &Expr<'_>>,
        at: Frame<'_>,
    ) -> Option<Value> {
        let model = self.plain_model(id)?;
        let Shape::Enum { variants, .. } = &model.container.shape else {
            return None;
        };
        let Content::Object(fields) = &variants.get(position)?.content else {
            return None;
        };
        let values = model.variant_values.get(position)?;
        let object = self.in_type(id, args, |this, frame| {
            this.fields(model, fields, values, given, &Rest::None, at, frame)
        })?;
        self.variant(id, model, position, Some(Value::Object(object)))
    }

    /// Evaluates the fields that serde writes. Explicit values are looked up at `at`, defaults
    /// where the type is (`of_type`).
    #[allow(clippy::too_many_arguments)] // shared by structs, variants and defaults
    fn fields(
        &mut self,
        model: &Type,
        fields: &[Field],
        values: &[FieldValue],
        given: &BTreeMap<&str, &Expr<'_>>,
        rest: &Rest<'_>,
        at: Frame<'_>,
        of_type: Frame<'_>,
    ) -> Option<Map<String, Value>> {
        let mut object = Map::new();
        for (field, said) in fields.iter().zip(values) {
            if said.is_unwritten {
                continue;
            }
            let ty = self.value_type(model, field.slot, of_type)?;
            let value = match (given.get(field.ident.as_str()), rest) {
                (Some(expr), _) => self.value(expr, &ty, at)?,
                (None, Rest::Zero) => self.zero(&ty)?,
                // It's unclear which keys of the other value belong to this field.
                (None, Rest::Of(_)) if field.flatten => return None,
                (None, Rest::Of(other)) => {
                    // serde omitted the field from the other value, so omit it here as well.
                    let kept = other.get(&field.name).cloned();
                    object.extend(kept.map(|value| (field.name.clone(), value)));
                    continue;
                }
                (None, Rest::None) => return None,
            };
            // A function serializes the field, with an unknown result.
            if said.is_opaque && !value.is_null() {
                return None;
            }
            if let Some(path) = &said.skip_if
                && self.test_path(path, &value, &ty, of_type)?
            {
                continue;
            }
            match value {
                // serde writes nothing for a flattened `None`.
                Value::Null if field.flatten => {}
                Value::Object(inner) if field.flatten => object.extend(inner),
                _ if field.flatten => return None,
                value => drop(object.insert(field.name.clone(), value)),
            }
        }
        Some(object)
    }

    pub(super) fn variant(
        &self,
        id: TypeId,
        model: &Type,
        position: usize,
        content: Option<Value>,
    ) -> Option<Value> {
        let Shape::Enum { tagging, variants } = &model.container.shape else {
            return None;
        };
        if let Some(numbers) = self.numbered_model(id).and_then(|model| model.numbers.as_ref()) {
            // `numbers` includes variants that serde skips, which would shift the positions.
            let is_counted = numbers.len() == variants.len() && content.is_none();
            return numbers
                .get(position)
                .filter(|_| is_counted)
                .map(|number| (*number).into());
        }
        self.plain_model(id)?;
        let variant = variants.get(position)?;
        let is_unit = variant.content == Content::Unit;
        if is_unit != content.is_none() {
            return None;
        }
        let name = Value::String(variant.name.clone());
        let of = |pairs: Vec<(&String, Value)>| {
            Value::Object(
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.clone(), value))
                    .collect(),
            )
        };
        Some(match (tagging, content) {
            _ if variant.untagged => return None,
            (Tagging::External, None) => name,
            (Tagging::External, Some(content)) => of(vec![(&variant.name, content)]),
            (Tagging::Internal(tag) | Tagging::Adjacent(tag, _), None) => of(vec![(tag, name)]),
            (Tagging::Internal(tag), Some(Value::Object(mut fields))) => {
                fields.insert(tag.clone(), name);
                Value::Object(fields)
            }
            (Tagging::Adjacent(tag, key), Some(content)) => of(vec![(tag, name), (key, content)]),
            (Tagging::Untagged, Some(content)) => content,
            (Tagging::Internal(_), Some(_)) | (Tagging::Untagged, None) => return None,
        })
    }
}

fn tagged(model: &Type, mut object: Map<String, Value>) -> Value {
    if let Some((tag, name)) = &model.container.tag {
        object.insert(tag.clone(), name.as_str().into());
    }
    Value::Object(object)
}
