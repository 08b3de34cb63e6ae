//! `title` and `external_docs`: words for readers.

use rbuilder_schema::ExternalDocs;

use super::{ANYWHERE, Marker};
use crate::args::{Arg, ReadArg as _};
use crate::{Session, suggest};

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "title",
        form: "title = \"…\"",
        doc: "Short title, for documentation.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.title = arg.text(session),
    },
    Marker {
        name: "max_description_length",
        form: "max_description_length = 200",
        doc: "Maximum length of descriptions in bytes; longer ones are truncated, and 0 removes them.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            let most = arg
                .count(session)
                .map(|most| usize::try_from(most).unwrap_or(usize::MAX));
            reading.markers.max_description_length = most;
        },
    },
    Marker {
        name: "external_docs",
        form: "external_docs(url = \"…\", description = \"…\")",
        doc: "External documentation.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| reading.markers.external_docs = external_docs(arg, session),
    },
];

fn external_docs(arg: &Arg, session: &mut Session) -> Option<ExternalDocs> {
    let mut docs = ExternalDocs::default();
    for inner in arg.list(session)? {
        match inner.name {
            "url" => {
                docs.url = inner.text(session)?;
                if !docs.url.contains("://") {
                    let message = format!("`{}` is not a URL", docs.url);
                    session.error_help(inner.value_span(), message, "write it whole: `https://…`");
                }
            }
            "description" => docs.description = inner.text(session),
            name => {
                let help = suggest::help(name, ["url", "description"]);
                session.error_help(
                    inner.span,
                    format!("unknown argument `{name}` of `external_docs`"),
                    help,
                );
            }
        }
    }
    if docs.url.is_empty() {
        session.error_help(
            arg.span,
            "`external_docs` needs `url`",
            "add `url = \"https://…\"`",
        );
        return None;
    }
    Some(docs)
}
