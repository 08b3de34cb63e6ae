//! Finds the markers that give a Rust type a certain schema.
//!
//! We don't try to predict the effect of markers. Instead, we propose markers for the difference
//! between two schemas and run the schema builder that both front ends use. If the result isn't the
//! desired schema, the schema is written out in source (`schema = { … }`); if that differs too or
//! has errors, the user gets a warning. So if the meaning of a marker changes, the output may
//! become longer, but never wrong.

use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;
use rbuilder_schema::{
    Container, Key, Markers, Role, Schema, Shape, Slot, Topology, assemble, check_literal, check_structural,
};

/// The result if no markers give the desired schema.
pub(crate) struct Misfit {
    pub(crate) markers: Markers,
    pub(crate) reason: String,
}

pub(crate) fn fit(wanted: &Schema, own: &Arc<Schema>) -> Result<Markers, Box<Misfit>> {
    if *wanted == **own {
        return Ok(Markers::default());
    }
    let markers = difference(wanted, own);
    if apply(&markers, own).is_some_and(|made| made == *wanted) {
        return Ok(markers);
    }
    let markers = literal(wanted, own);
    match apply(&markers, own) {
        Some(made) if made == *wanted && problem(wanted).is_none() => Ok(markers),
        made => {
            let reason = problem(wanted).unwrap_or_else(|| match made {
                Some(made) => first_difference(wanted, &made),
                None => "the schema is not accepted".to_owned(),
            });
            Err(Box::new(Misfit { markers, reason }))
        }
    }
}

fn problem(schema: &Schema) -> Option<String> {
    let diagnostics = check_structural(schema).into_iter().chain(check_literal(schema));
    let error = diagnostics.into_iter().find(Diagnostic::is_error)?;
    Some(match error.place.as_str() {
        "" => error.message,
        place => format!("{place}: {}", error.message),
    })
}

fn first_difference(wanted: &Schema, made: &Schema) -> String {
    let json = |schema: &Schema| serde_json::to_value(schema).unwrap_or_default();
    let (wanted, made) = (json(wanted), json(made));
    let keys = wanted
        .as_object()
        .into_iter()
        .chain(made.as_object())
        .flat_map(|keys| keys.keys());
    let mut differ = keys.filter(|key| wanted.get(*key) != made.get(*key));
    format!("`{}` cannot be written", differ.next().map_or("", String::as_str))
}

pub(crate) fn apply(markers: &Markers, own: &Arc<Schema>) -> Option<Schema> {
    let container = Container {
        shape: Shape::Transparent(0),
        markers: markers.clone(),
        ..Container::default()
    };
    let slot = Slot {
        schema: Arc::clone(own),
        optional: false,
    };
    assemble(&container, &[slot]).ok()
}

pub(crate) fn literal(wanted: &Schema, own: &Schema) -> Markers {
    let schema = Schema {
        description: None,
        ..wanted.clone()
    };
    Markers {
        schema: Some(Box::new(schema)),
        stated: state_description(described(wanted, own)),
        ..Markers::default()
    }
}

pub(crate) fn state_description(description: Option<Arc<str>>) -> Option<Box<Schema>> {
    let stated = Schema {
        description: Some(description?),
        ..Schema::default()
    };
    Some(Box::new(stated))
}

/// The description to set, if it differs. An empty one removes the type's description.
fn described(wanted: &Schema, own: &Schema) -> Option<Arc<str>> {
    let differs = wanted.description != own.description;
    differs.then(|| wanted.description.clone().unwrap_or_default())
}

fn difference(wanted: &Schema, own: &Schema) -> Markers {
    let is_stated = |key: &Key| match key.role {
        Role::Words => !key.is_same(wanted, own),
        // A field must have the type that the program reads.
        _ => !key.argument.is_empty() && key.name != "type" && !key.is_same(wanted, own),
    };
    let mut stated = wanted.only(is_stated);
    stated.description = described(wanted, own);
    let topology = Topology {
        list_type: changed(&wanted.list_type, &own.list_type),
        list_map_keys: if wanted.list_map_keys == own.list_map_keys {
            Vec::new()
        } else {
            wanted.list_map_keys.clone()
        },
        map_type: changed(&wanted.map_type, &own.map_type),
    };
    // The rules of a field precede those of its type.
    let before = wanted.validations.len().saturating_sub(own.validations.len());
    Markers {
        stated: (stated != Schema::default()).then(|| Box::new(stated)),
        items: inner(&wanted.items, &own.items),
        values: inner(&wanted.additional_properties, &own.additional_properties),
        cel: wanted.validations[..before].to_vec(),
        default: changed(&wanted.default, &own.default),
        nullable: wanted.nullable && !own.nullable,
        topology,
        embedded_resource: wanted.embedded_resource && !own.embedded_resource,
        preserve_unknown_fields: wanted.preserve_unknown_fields && !own.preserve_unknown_fields,
        ..Markers::default()
    }
}

fn changed<T: Clone + PartialEq>(wanted: &Option<T>, own: &Option<T>) -> Option<T> {
    if wanted == own { None } else { wanted.clone() }
}

fn inner(wanted: &Option<Arc<Schema>>, own: &Option<Arc<Schema>>) -> Option<Box<Markers>> {
    let (wanted, own) = (wanted.as_ref()?, own.as_ref()?);
    let markers = fit(wanted, own).unwrap_or_else(|misfit| misfit.markers);
    (markers != Markers::default()).then(|| Box::new(markers))
}
