//! Records the file of each CEL rule and each `#[csv(…)]`. A rule ends up in schemas of types in
//! other files, but is to be reported at its own place.

use std::sync::Arc;

use rbuilder_reader::Span;
use rbuilder_schema::{Cel, Content, Field, Markers, Origin, Shape};
use rbuilder_syntax::Type;

use crate::package::Package;
use crate::place::{FileId, Place};

pub(crate) fn name_files(package: &mut Package) {
    for item in &mut package.types {
        if let Some(model) = &mut item.model {
            of_type(model, u32::try_from(item.file.0).unwrap_or_default());
        }
    }
}

/// Returns `None` for rules from markers other than `cel`, which have no place.
pub(crate) fn place_of(origin: Origin) -> Option<Place> {
    let (start, end) = origin.span?;
    Some(Place {
        file: FileId(origin.file as usize),
        span: Span { start, end },
    })
}

fn of_type(model: &mut Type, file: u32) {
    of_markers(&mut model.container.markers, file);
    if let Some(resource) = &mut model.custom_resource {
        of_rules(&mut resource.validations, file);
        for required in &mut resource.csv.required {
            required.origin.file = file;
        }
    }
    match &mut model.container.shape {
        Shape::Object(fields) => of_fields(fields, file),
        Shape::Transparent(_) => {}
        Shape::Enum { variants, .. } => {
            for variant in variants {
                of_markers(&mut variant.markers, file);
                if let Content::Object(fields) = &mut variant.content {
                    of_fields(fields, file);
                }
            }
        }
    }
}

fn of_fields(fields: &mut [Field], file: u32) {
    for field in fields {
        of_markers(&mut field.markers, file);
    }
}

fn of_markers(markers: &mut Markers, file: u32) {
    markers.origin.file = file;
    if let Some(descriptor) = &mut markers.descriptor {
        Arc::make_mut(descriptor).origin.file = file;
    }
    of_rules(&mut markers.cel, file);
    let inner = [&mut markers.items, &mut markers.keys, &mut markers.values];
    for markers in inner.into_iter().flatten() {
        of_markers(markers, file);
    }
}

fn of_rules(rules: &mut [Cel], file: u32) {
    for rule in rules {
        for origin in [
            &mut rule.origin,
            &mut rule.message_expression_origin,
            &mut rule.field_path_origin,
        ] {
            origin.file = file;
        }
    }
}
