//! Checks on types while their schemas are built: invalid or unknown defaults, serde
//! implementations that differ from the fields, `null` that serde rejects, and recursion.

use std::ops::Range;

use rbuilder_reader::Span;
use rbuilder_schema::{Part, RECURSION, Shape, Site, Slot};
use rbuilder_syntax::{AbsentField, Type};

use super::{Instance, MAX_DEPTH, Schemas};
use crate::defaults;
use crate::nulls::{find_reached, list_read_slots};
use crate::package::{Direction, TypeId};
use crate::place::{FileId, Place};
use crate::resolve::{Scope, Ty};
use crate::serde_forms;

impl Schemas<'_> {
    pub(super) fn report_unknown_default(&mut self, id: TypeId, field: &AbsentField<'_>, reason: &str) {
        let item = self.package().item(id);
        let place = Place {
            file: item.file,
            span: field.span,
        };
        let help = defaults::help(item.is_ours, field);
        if field.value.is_shown_only {
            let message =
                "the default that schemars computes is unknown: rbuilder does not run the program".to_owned();
            return self.report().error(place, message, &help);
        }
        let message = format!(
            "the default of `{}` is unknown, so the schema has none: {reason}",
            field.field.ident
        );
        self.report().warning(place, message, &help);
    }

    pub(super) fn warn_of_refused(&mut self, id: TypeId, model: &Type, refused: Vec<(Site, String)>) {
        let file = self.package().item(id).file;
        for (site, reason) in refused {
            let place = Place {
                file,
                span: span_of(model, &site),
            };
            let message =
                format!("the schema refuses serde's default of this field, so it has none: {reason}");
            let help =
                "change the default or the constraint: the program reads a value that users cannot write";
            self.report().warning(place, message, help);
        }
    }

    /// Returns true if an attribute of the field or newtype already has an error: an error in the
    /// schema is usually a consequence.
    pub(super) fn is_reported(&mut self, model: &Type, site: &Site, file: FileId) -> bool {
        // A field's attributes are between it and the previous field.
        let before = match *site {
            Site::Field(0) => Site::Container,
            Site::Field(position) => Site::Field(position - 1),
            Site::VariantField(variant, 0) => Site::Variant(variant),
            Site::VariantField(variant, position) => Site::VariantField(variant, position - 1),
            // For other structs, an error in the schema need not be caused by an attribute.
            Site::Container if let Shape::Transparent(slot) = model.container.shape => {
                return self
                    .report()
                    .has_error_within(file, attributes_of_newtype(model, slot));
            }
            Site::Container | Site::Variant(_) => return false,
        };
        let attributes = span_of(model, &before).range().end..span_of(model, site).range().start;
        self.report().has_error_within(file, attributes)
    }

    /// Reports types whose JSON may differ from their fields, due to a handwritten serde
    /// implementation or another derive.
    pub(super) fn check_serde(&mut self, id: TypeId, model: &Type) -> Option<()> {
        let item = self.package().item(id);
        let is_stated = model.container.markers.schema.is_some() || model.container.transparent;
        if is_stated {
            return Some(());
        }
        if let Some(gap) = self
            .package()
            .gaps
            .iter()
            .find(|gap| gap.may_implement_for(&model.ident))
        {
            self.report().add_all(gap.file, [gap.reason.clone()]);
            return None;
        }
        let place = Place {
            file: item.file,
            span: model.span,
        };
        let help = "describe its JSON on the type: `#[crd(schema_type = \"String\")]` names a type with the same form, `#[crd(schema = { … })]` gives the schema itself";
        let derives = item.serde;
        if let Some(other) = derives.other {
            let numbers = model.numbers.as_ref().filter(|_| other.ends_with("_repr"));
            let of_numbers = numbers.map(|numbers| {
                format!("describe its JSON on the type: `#[crd(schema = {{ \"type\": \"integer\", \"enum\": {numbers:?} }})]`")
            });
            let help = of_numbers.as_deref().unwrap_or(help);
            let message =
                format!("`{other}` serializes the type in a form that differs from its fields and variants");
            return self.error(place, message, help);
        }
        let name = &model.ident;
        let by_hand = self.by_hand.get(&id).map_or(&[][..], Vec::as_slice);
        if by_hand.contains(&Direction::Read) && derives.writes {
            let message = format!(
                "`{name}` has a handwritten `Deserialize`; its schema describes what the derived `Serialize` writes"
            );
            self.report().warning(place, message, help);
        } else if !by_hand.is_empty() && !derives.reads && !derives.writes {
            let message =
                format!("`{name}` has a handwritten `Serialize`, so its fields do not describe its JSON");
            return self.error(place, message, help);
        }
        Some(())
    }

    pub(super) fn check_nulls(&mut self, id: TypeId, model: &Type, scope: Scope<'_>) {
        if self.need_option.is_empty() {
            return;
        }
        for (slot, has_place) in list_read_slots(&model.container) {
            let written = model
                .slots
                .get(slot)
                .filter(|_| !model.schema_functions.contains_key(&slot));
            let Some((ty, resolved)) = written.and_then(|ty| Some((ty, self.resolver.resolve(ty, scope)?)))
            else {
                continue;
            };
            let is_newtype = matches!(model.container.shape, Shape::Transparent(_));
            if is_newtype && matches!(&resolved, Ty::Item(inner, _) if self.need_option.contains(inner)) {
                self.need_option.insert(id);
            }
            let Some(reached) = find_reached(&resolved, !has_place, &self.need_option) else {
                continue;
            };
            let name = self.name(reached);
            let message = format!("the API server accepts `null` for `{name}` here, but serde does not");
            let help = format!("write `Option<{name}>`, or remove `nullable` from `{name}`");
            let place = Place {
                file: scope.file,
                span: ty.span,
            };
            self.report().warning(place, message, &help);
        }
    }

    /// Reports a type with just one of `from` and `into`: it reads something else than it writes,
    /// unless both types have the same fields.
    pub(super) fn check_one_way(&mut self, model: &Type, scope: Scope<'_>) -> Option<()> {
        let Some(one_way) = &model.one_way else {
            return Some(());
        };
        let place = Place {
            file: scope.file,
            span: one_way.span,
        };
        let other = match self.resolver.resolve(model.slots.first()?, scope)? {
            Ty::Item(id, _) => self.package().item(id).model.as_ref(),
            _ => None,
        };
        let fields = other.and_then(|other| serde_forms::field_names(&other.container.shape));
        if fields.is_some() && fields == one_way.fields {
            return Some(());
        }
        let name = &model.ident;
        if one_way.is_read {
            let message =
                format!("`{name}` is deserialized as another type but serialized by its own fields");
            let help =
                "add `into` with the same type to `#[serde(…)]`: the API server rejects what is serialized";
            self.report().warning(place, message, help);
            Some(())
        } else {
            let message =
                format!("`{name}` is serialized as another type but deserialized by its own fields");
            self.error(
                place,
                message,
                "add `from` or `try_from` with the same type to `#[serde(…)]`",
            )
        }
    }

    pub(super) fn refuse_recursion(&mut self, (id, _): &Instance, place: Place) -> Option<Slot> {
        let start = self.open.iter().position(|(open, _)| open == id).unwrap_or(0);
        let mut circle: Vec<TypeId> = self.open[start..].iter().map(|(open, _)| *open).collect();
        // As in `rbuilder-syntax`, a type that contains itself with other arguments is a single
        // step.
        circle.dedup();
        circle.push(*id);
        let names: Vec<&str> = circle.iter().map(|id| self.name(*id)).collect();
        let shown = if names.len() > 8 {
            &names[names.len() - 8..]
        } else {
            &names
        };
        let message = format!("the type contains itself: {}", shown.join(" → "));
        self.error(place, message, RECURSION)
    }

    pub(super) fn refuse_depth(&mut self, instance: &Instance, place: Place) -> Option<Slot> {
        // A type that contains itself with ever larger arguments ends up here as well.
        if self.open.iter().any(|(open, _)| *open == instance.0) {
            return self.refuse_recursion(instance, place);
        }
        let outermost = self.name(self.open[0].0);
        let message = format!(
            "types are nested more than {MAX_DEPTH} levels deep, from `{outermost}` to `{}`",
            self.name(instance.0)
        );
        let help = "reduce the nesting, or put `#[kube(schemaless, preserve_unknown_fields)]` on this field";
        self.error(place, message, help)
    }
}

fn attributes_of_newtype(model: &Type, slot: usize) -> Range<usize> {
    let end = model.slots.get(slot).map_or(model.span, |ty| ty.span);
    model.start as usize..end.range().start
}

/// Returns the span of a marker, or of its item if the marker isn't found there.
pub(super) fn span_of_part(model: &Type, part: &Part) -> Span {
    let owner = span_of(model, &part.site);
    let marker = part.marker.and_then(|name| model.marker_span(owner, name));
    marker.unwrap_or(owner)
}

pub(super) fn span_of(model: &Type, site: &Site) -> Span {
    let span = match site {
        Site::Container => None,
        Site::Field(field) | Site::Variant(field) => model.sites.get(*field),
        Site::VariantField(variant, field) => model
            .variant_sites
            .get(*variant)
            .and_then(|fields| fields.get(*field))
            .or(model.sites.get(*variant)),
    };
    span.copied().unwrap_or(model.span)
}
