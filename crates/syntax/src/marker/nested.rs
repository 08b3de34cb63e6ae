//! Markers one level down, in `items(…)`, `keys(…)` and `values(…)`.

use rbuilder_schema::Markers;

use super::{ANYWHERE, Kind, Marker, Place, Reading};
use crate::Session;
use crate::args::{Arg, ReadArg as _};

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "items",
        form: "items(validation(…), …)",
        doc: "Markers for the items of a list.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            let kind = match &reading.kind {
                Kind::List(item) => (**item).clone(),
                Kind::Unknown => Kind::Unknown,
                other => return wrong(arg, "the items of a list", other, session),
            };
            reading.markers.items = inner(arg, kind, session);
        },
    },
    Marker {
        name: "keys",
        form: "keys(validation(…), …)",
        doc: "Constraints on the keys of a map, implemented as a CEL rule.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| match &reading.kind {
            Kind::Map(_) | Kind::Unknown => reading.markers.keys = inner(arg, Kind::Text, session),
            other => wrong(arg, "the keys of a map", other, session),
        },
    },
    Marker {
        name: "values",
        form: "values(validation(…), …)",
        doc: "Markers for the values of a map.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            let kind = match &reading.kind {
                Kind::Map(value) => (**value).clone(),
                Kind::Unknown => Kind::Unknown,
                other => return wrong(arg, "the values of a map", other, session),
            };
            reading.markers.values = inner(arg, kind, session);
        },
    },
];

fn inner(arg: &Arg, kind: Kind, session: &mut Session) -> Option<Box<Markers>> {
    let args = arg.list(session)?;
    let mut reading = Reading::new(Place::Value, kind);
    reading.read(args, session);
    reading.markers.origin = arg.origin();
    reading.check(session);
    Some(Box::new(reading.markers))
}

fn wrong(arg: &Arg, wanted: &str, kind: &Kind, session: &mut Session) {
    session.error(
        arg.span,
        format!(
            "`{}` applies to {wanted}; this field is {}",
            arg.name,
            kind.noun()
        ),
    );
}
