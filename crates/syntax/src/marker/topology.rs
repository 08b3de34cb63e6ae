//! `list_type`, `list_map_keys`, `map_type` and `struct_type`: how server-side apply merges a
//! value.

use rbuilder_schema::{ListType, MapType};

use super::{ANYWHERE, Kind, Marker, Reading};
use crate::args::{Arg, ReadArg as _};
use crate::{Session, suggest};

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "list_type",
        form: "list_type = \"map\" | \"set\" | \"atomic\"",
        doc: "Merge strategy of server-side apply for a list.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            let types = &[
                ("map", ListType::Map),
                ("set", ListType::Set),
                ("atomic", ListType::Atomic),
            ];
            if applies(
                arg,
                reading,
                session,
                |kind| matches!(kind, Kind::List(_)),
                "a list",
            ) {
                reading.markers.topology.list_type = choose(arg, types, session);
            }
        },
    },
    Marker {
        name: "list_map_keys",
        form: "list_map_keys = [\"name\"]",
        doc: "Serialized names of the fields that identify an item of a list of type `map`.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            if applies(
                arg,
                reading,
                session,
                |kind| matches!(kind, Kind::List(_)),
                "a list",
            ) {
                reading.markers.topology.list_map_keys = arg.texts(session).unwrap_or_default();
            }
        },
    },
    Marker {
        name: "map_type",
        form: "map_type = \"granular\" | \"atomic\"",
        doc: "Merge strategy of server-side apply for a map.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            if applies(
                arg,
                reading,
                session,
                |kind| matches!(kind, Kind::Map(_) | Kind::Object),
                "a map",
            ) {
                reading.markers.topology.map_type = choose(arg, MAP_TYPES, session);
            }
        },
    },
    Marker {
        name: "struct_type",
        form: "struct_type = \"granular\" | \"atomic\"",
        doc: "Merge strategy of server-side apply for a struct.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            if applies(
                arg,
                reading,
                session,
                |kind| matches!(kind, Kind::Object),
                "a struct",
            ) {
                reading.markers.topology.map_type = choose(arg, MAP_TYPES, session);
            }
        },
    },
];

const MAP_TYPES: &[(&str, MapType)] = &[("granular", MapType::Granular), ("atomic", MapType::Atomic)];

fn applies(
    arg: &Arg,
    reading: &Reading,
    session: &mut Session,
    fits: fn(&Kind) -> bool,
    wanted: &str,
) -> bool {
    let applies = reading.kind == Kind::Unknown || fits(&reading.kind);
    if !applies {
        session.error(
            arg.span,
            format!(
                "`{}` applies to {wanted}; this field is {}",
                arg.name,
                reading.kind.noun()
            ),
        );
    }
    applies
}

fn choose<T: Copy>(arg: &Arg, choices: &[(&'static str, T)], session: &mut Session) -> Option<T> {
    let text = arg.text(session)?;
    let chosen = choices
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, value)| *value);
    if chosen.is_none() {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let help = suggest::describe_candidates(&text, names.iter().copied());
        session.error_help(
            arg.value_span(),
            format!("unknown value `{text}` of `{}`", arg.name),
            help,
        );
    }
    chosen
}
