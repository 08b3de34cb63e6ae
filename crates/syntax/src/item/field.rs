//! Fields of structs and variants.

use rbuilder_reader::grammar::FieldItem;
use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::{Field, Markers, Presence};

use super::retype::{check_retyped, may_retype};
use super::{FieldRules, Reader, described};
use crate::allow::scope_of;
use crate::csv::report_misplaced_csv;
use crate::kubebuilder::Commented;
use crate::marker::{self, Kind, Place};
use crate::names::Case;
use crate::serde_attrs::{self, FieldAttrs};
use crate::{Diagnostic, FieldValue};

/// The fields of a struct or variant. Each list has one entry per field.
#[derive(Default)]
pub(super) struct ReadFields {
    pub(super) fields: Vec<Field>,
    pub(super) sites: Vec<Span>,
    pub(super) values: Vec<FieldValue>,
}

impl Reader<'_, '_> {
    pub(super) fn fields(&mut self, items: Vec<FieldItem<'_>>, rules: &FieldRules) -> ReadFields {
        let mut read = ReadFields {
            fields: Vec::with_capacity(items.len()),
            sites: Vec::with_capacity(items.len()),
            values: Vec::with_capacity(items.len()),
        };
        for item in items {
            if let Some((field, site, value)) = self.field(item, rules) {
                read.fields.push(field);
                read.sites.push(site);
                read.values.push(value);
            }
        }
        read
    }

    fn field(&mut self, field: FieldItem<'_>, rules: &FieldRules) -> Option<(Field, Span, FieldValue)> {
        let attrs = serde_attrs::read_field_attrs(&field.attrs, self.session);
        let place = field.ident?;
        let ident = place.text.to_owned();
        // serde always reads a flattened field from the other fields and never uses a default.
        let has_default = (attrs.default.is_some() || rules.default.is_some()) && !attrs.flatten;
        if let Some(at) = attrs.foreign.skip {
            self.check_hidden(at, &attrs, has_default, &field.ty);
        }
        if attrs.skip || attrs.foreign.skip.is_some() {
            report_misplaced_csv(
                &field.attrs,
                "a field that the schema does not have",
                self.session,
            );
            return None;
        }
        self.check_foreign_field(&attrs, &ident, rules);
        let name = serde_attrs::wire_name(
            &ident,
            &attrs.rename,
            &rules.rename_all,
            Case::field,
            self.session,
        );
        let scope = scope_of(&field.attrs, place.span, [&field.ty]);
        let mut read = marker::parse_field(&field.attrs, &field.ty, Place::Field, scope, self.session);
        if attrs.flatten {
            report_misplaced_csv(&field.attrs, "a flattened field", self.session);
        }
        let description = described(&field.attrs, Commented::Member, self.session);
        if has_default && marker::is_required_elsewhere(&field.attrs) {
            read.markers.optional = None;
        }
        self.check_written(&attrs, has_default, &field.ty, &read.markers);
        if attrs.opaque.is_none() && may_retype(&read.markers) {
            check_retyped(&Kind::of(&field.ty), &read, place.span, self.session);
        }
        let stated = read.schema_type.is_some() || read.markers.schemaless || read.markers.schema.is_some();
        // schemars' `with` does not affect serde: values still have the type of the field.
        let value_type = (read.is_with && !self.is_ours).then(|| field.ty.clone());
        let is_opaque = match attrs.opaque {
            Some(opaque) if !self.is_ours => opaque.writes,
            opaque => (stated || opaque.is_some()) && value_type.is_none(),
        };
        let stated = stated || attrs.opaque.is_some() || read.schema_function.is_some();
        let absent = self.absent_value(&attrs, rules, &field.ty, &read.markers);
        let value = FieldValue {
            // schemars serializes the default with serde, so it doesn't matter which function does
            // that.
            absent: absent.filter(|_| !is_opaque || attrs.opaque.is_some() && !self.is_ours),
            skip_if: attrs.skip_if.as_ref().map(|(path, _)| path.clone()),
            is_unwritten: attrs.input_only.is_some(),
            is_opaque,
        };
        // schemars does not treat the result of a function as an option, but serde does accept an
        // absent `Option`.
        let is_shown_optional =
            read.schema_function.is_some() && attrs.shown_default.is_some() && marker::is_option(&field.ty);
        let slot = self.slot(field.ty, &attrs, &read);
        self.keep_marker_spans(place.span, &read.seen);
        if let Some(value_type) = value_type {
            self.value_types.insert(slot, value_type);
        }
        let presence = match &attrs {
            _ if has_default || attrs.output_only || is_shown_optional => Presence::Defaulted,
            _ if attrs.read_by_function => Presence::Required,
            _ => Presence::ByType,
        };
        let flatten = attrs.flatten;
        Some((
            Field {
                ident,
                name,
                description,
                slot,
                flatten,
                presence,
                stated,
                markers: read.markers,
            },
            place.span,
            value,
        ))
    }

    /// Warns about a field that serde may omit when serializing, but requires when deserializing.
    /// The API server or the program itself would reject such an object.
    fn check_written(&mut self, attrs: &FieldAttrs, has_default: bool, ty: &TypeRef, markers: &Markers) {
        // An alias of `Option` is only recognizable by the name of the function.
        let is_option = |path: &str| marker::is_option(ty) || path.ends_with("is_none");
        if let Some((path, at)) = &attrs.skip_if
            && !(has_default || attrs.output_only || attrs.flatten)
            && (attrs.read_by_function || !is_option(path))
        {
            let message = "serde can skip this field when serializing but requires it when deserializing";
            let help = "add `default` to `#[serde(…)]`";
            self.session.report(Diagnostic::warning(*at, message).help(help));
        }
        let is_needed = !has_default && (attrs.read_by_function || !marker::is_option(ty));
        if let Some(at) = attrs.input_only
            && markers.optional.map_or(is_needed, |optional| !optional)
            && markers.default.is_none()
            && !attrs.flatten
        {
            let message = "serde never serializes this field, but the schema requires it: the API server rejects every whole object that the program writes";
            let help = "add `default` to `#[serde(…)]`, or only patch other fields of the object";
            self.session.report(Diagnostic::warning(at, message).help(help));
        }
    }

    /// Reports a required field that schemars skips but serde doesn't: it is missing from the
    /// schema, so the API server prunes it.
    fn check_hidden(&mut self, at: Span, attrs: &FieldAttrs, has_default: bool, ty: &TypeRef) {
        // A flattened map may be empty, and only the program knows whether it needs unknown fields.
        let takes_rest = attrs.flatten && marker::takes_rest(ty);
        let is_needed = attrs.read_by_function || !(marker::is_option(ty) || attrs.output_only || takes_rest);
        if is_needed && !has_default && self.reads_by_derive() {
            let message = "the schema does not have this field, but serde requires it when deserializing";
            let help = "write `#[serde(skip)]`, or add `default` to `#[serde(…)]`";
            self.session.error_help(at, message, help);
        }
    }

    fn check_foreign_field(&mut self, attrs: &FieldAttrs, ident: &str, rules: &FieldRules) {
        self.check_foreign(&attrs.foreign);
        self.check_foreign_name(
            &attrs.foreign,
            &attrs.rename,
            ident,
            &rules.rename_all,
            Case::field,
        );
    }
}
