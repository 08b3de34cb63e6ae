//! Adds `#[csv(…)]` to fields. Descriptors refer to these by path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rbuilder_schema::{CsvMarkers, Descriptor, Markers};

use crate::classes::{Body, Classes, Ty};
use crate::structs::{FieldText, Finished};

type FieldId = (usize, usize);

/// The struct with the fields of `spec` or `status`, and their path prefix in it.
pub(crate) type PartRoot = (Option<usize>, &'static str);

/// Adds descriptors to fields. Returns descriptors without a field, as `spec` or `status` and the
/// path.
pub(crate) fn place_descriptors(
    csv: &CsvMarkers,
    (spec, status): (PartRoot, PartRoot),
    classes: &Classes<'_>,
    finished: &mut BTreeMap<usize, Finished>,
) -> BTreeSet<(&'static str, String)> {
    let mut found: BTreeMap<FieldId, Vec<(&'static str, &String, &Descriptor)>> = BTreeMap::new();
    let mut unplaced = BTreeSet::new();
    for (part, (root, prefix), described) in [("spec", spec, &csv.spec), ("status", status, &csv.status)] {
        for (path, descriptor) in described {
            let full = format!("{prefix}{path}");
            match root.and_then(|root| find_field(root, &full, classes, finished)) {
                Some(field) => found.entry(field).or_default().push((part, path, descriptor)),
                None => {
                    unplaced.insert((part, path.clone()));
                }
            }
        }
    }
    for ((class, at), described) in found {
        let field = finished
            .get_mut(&class)
            .and_then(|class| class.fields.get_mut(at));
        match (field, described.as_slice()) {
            // Several paths may lead to the same field of a type, which can only have a descriptor
            // if all of them have the same one.
            (Some(field), [(_, _, first), rest @ ..]) if rest.iter().all(|(_, _, other)| other == first) => {
                field.markers.descriptor = Some(Arc::new(Descriptor::clone(first)));
            }
            _ => unplaced.extend(described.iter().map(|(part, path, _)| (*part, (*path).clone()))),
        }
    }
    unplaced
}

fn find_field(
    root: usize,
    path: &str,
    classes: &Classes<'_>,
    finished: &BTreeMap<usize, Finished>,
) -> Option<FieldId> {
    let mut class = root;
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let name = segment.trim_end_matches("[0]");
        let Body::Struct(members) = &classes.list.get(class)?.body else {
            return None;
        };
        let at = members.iter().position(|member| *member.wire == *name)?;
        let texts = finished.get(&class)?;
        // The schema is written out in source, so markers within the type have no effect.
        if texts.markers.schema.is_some() {
            return None;
        }
        if segments.peek().is_none() {
            return (name == segment).then_some((class, at));
        }
        let lists = (segment.len() - name.len()) / "[0]".len();
        class = class_of(texts.fields.get(at)?, lists)?;
    }
    None
}

fn class_of(field: &FieldText, lists: usize) -> Option<usize> {
    let mut markers: Option<&Markers> = Some(&field.markers);
    let mut ty = &field.ty;
    for level in 0..=lists {
        if markers.is_some_and(|markers| markers.schema.is_some()) {
            return None;
        }
        while let Ty::Nullable(inner) = ty {
            ty = inner;
        }
        if level < lists {
            let Ty::List(items) = ty else { return None };
            ty = items;
            markers = markers.and_then(|markers| markers.items.as_deref());
        }
    }
    match ty {
        Ty::Class(id) => Some(*id),
        _ => None,
    }
}
