//! Variants of enums.

use rbuilder_reader::grammar::{Fields, VariantItem};
use rbuilder_reader::token::Ident;
use rbuilder_reader::token::lex;
use rbuilder_reader::{Expr, Span};
use rbuilder_schema::{Content, Shape, Variant};

use super::field::ReadFields;
use super::{FieldRules, Reader, described};
use crate::allow::scope_of;
use crate::kubebuilder::Commented;
use crate::marker::{self, Place};
use crate::names::Case;
use crate::serde_attrs::{self, ContainerAttrs};
use crate::{Diagnostic, Session};

impl Reader<'_, '_> {
    pub(super) fn enumeration(
        &mut self,
        variants: Vec<VariantItem<'_>>,
        serde: &ContainerAttrs,
    ) -> Option<Shape> {
        let mut read = Vec::with_capacity(variants.len());
        for variant in variants {
            // Skipped variants have a discriminant as well, so count them.
            self.number(&variant);
            let attrs = serde_attrs::read_variant_attrs(&variant.attrs, self.session);
            if attrs.skip {
                continue;
            }
            if let Some(at) = attrs.output_only {
                report_unread_variant(variant.ident, at, self.session);
                continue;
            }
            if let Some(at) = attrs.input_only {
                report_unwritten_variant(variant.ident, at, self.session);
            }
            self.check_foreign(&attrs.foreign);
            self.check_foreign_name(
                &attrs.foreign,
                &attrs.rename,
                variant.ident.text,
                &serde.rename_all,
                Case::variant,
            );
            self.sites.push(variant.ident.span);
            if variant.attrs.iter().any(|attr| attr.is("default")) {
                self.default_variant = Some(read.len());
            }
            read.push(self.variant(variant, &attrs, serde)?);
        }
        Some(Shape::Enum {
            tagging: serde.tagging(),
            variants: read,
        })
    }

    /// Records the discriminant of a variant: the explicit one, or the successor of the previous
    /// variant's.
    fn number(&mut self, variant: &VariantItem<'_>) {
        let next = |numbers: &Vec<i64>| numbers.last().map_or(Some(0), |last| last.checked_add(1));
        let number = match (&self.numbers, variant.discriminant) {
            (None, _) => None,
            (Some(_), Some(written)) => lex(written).ok().and_then(|tokens| {
                let expr = Expr::read(&mut tokens.cursor()).ok()?;
                expr.value().ok()?.as_i64()
            }),
            (Some(numbers), None) => next(numbers),
        };
        let is_unit = matches!(variant.fields, Fields::Unit);
        self.numbers = self
            .numbers
            .take()
            .zip(number.filter(|_| is_unit))
            .map(|(mut numbers, number)| {
                numbers.push(number);
                numbers
            });
    }

    fn variant(
        &mut self,
        variant: VariantItem<'_>,
        attrs: &serde_attrs::VariantAttrs,
        serde: &ContainerAttrs,
    ) -> Option<Variant> {
        let ident = variant.ident.text.to_owned();
        let name = serde_attrs::wire_name(
            &ident,
            &attrs.rename,
            &serde.rename_all,
            Case::variant,
            self.session,
        );
        if let Some(at) = attrs.opaque {
            let help = "use a type with its own schema in the variant";
            self.session.error_help(
                at,
                "cannot determine the JSON that this function serializes",
                help,
            );
        }
        let types = variant.fields.list().iter().map(|field| &field.ty);
        let scope = scope_of(&variant.attrs, variant.ident.span, types);
        let (mut markers, seen) = marker::parse_variant(&variant.attrs, scope, self.session);
        self.keep_marker_spans(variant.ident.span, &seen);
        let (mut field_sites, mut field_values) = (Vec::new(), Vec::new());
        let content = match variant.fields {
            Fields::Unit => Content::Unit,
            Fields::Named(fields) => {
                let rules = FieldRules {
                    rename_all: attrs.rename_all.clone().or(&serde.rename_all_fields),
                    default: None,
                    shown_default: None,
                };
                let ReadFields {
                    fields,
                    sites,
                    values,
                } = self.fields(fields, &rules);
                (field_sites, field_values) = (sites, values);
                Content::Object(fields)
            }
            Fields::Unnamed(fields) if fields.len() == 1 => {
                let field = fields.into_iter().next()?;
                let attrs = serde_attrs::read_field_attrs(&field.attrs, self.session);
                if attrs.skip {
                    Content::Unit
                } else {
                    let read =
                        marker::parse_field(&field.attrs, &field.ty, Place::Newtype, scope, self.session);
                    let slot = self.slot(field.ty, &attrs, &read);
                    self.keep_marker_spans(variant.ident.span, &read.seen);
                    markers = markers.or(read.markers);
                    Content::Newtype(slot)
                }
            }
            Fields::Unnamed(_) => {
                let help = "name the fields, or put a struct into the variant";
                self.session.error_help(
                    variant.ident.span,
                    format!("variant `{ident}` is a tuple, which has no structural schema"),
                    help,
                );
                return None;
            }
        };
        self.variant_sites.push(field_sites);
        self.variant_values.push(field_values);
        let description = described(&variant.attrs, Commented::Member, self.session);
        Some(Variant {
            ident,
            name,
            description,
            content,
            markers,
            other: attrs.other,
            untagged: attrs.untagged,
        })
    }
}

fn report_unread_variant(ident: Ident<'_>, at: Span, session: &mut Session) {
    let message = format!(
        "serde serializes `{}` but never deserializes it, so the schema does not have it",
        ident.text
    );
    let help = "remove `skip_deserializing`, or write `#[serde(skip)]`: the API server rejects an object that has the field";
    session.report(Diagnostic::warning(at, message).help(help));
}

fn report_unwritten_variant(ident: Ident<'_>, at: Span, session: &mut Session) {
    let message = format!("serde deserializes `{}` but fails to serialize it", ident.text);
    let help = "remove `skip_serializing`, or only patch other fields of an object that has it";
    session.report(Diagnostic::warning(at, message).help(help));
}
