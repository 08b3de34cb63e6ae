//! Documentation in the schema: `title`, `description` and `external_docs`.

use rbuilder_schema::ExternalDocs;

use super::{ANYWHERE, Marker};
use crate::Session;
use crate::args::{Arg, ReadArg as _};
use crate::table::{ArgDoc, ArgRow, Draft, describe_rows};

pub(super) const MARKERS: &[Marker] = &[
    Marker {
        name: "title",
        form: "title = \"…\"",
        doc: "Short title, for documentation.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            if let Some(text) = arg.text(session) {
                reading.markers.stated_mut().title = Some(text.into());
            }
        },
    },
    Marker {
        name: "description",
        form: "description = \"…\"",
        doc: "Description, instead of the doc comment; an empty string removes it.",
        places: ANYWHERE,
        repeatable: false,
        read: |arg, reading, session| {
            if let Some(text) = arg.text(session) {
                reading.markers.stated_mut().description = Some(text.into());
            }
        },
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
        read: |arg, reading, session| {
            if let Some(docs) = external_docs(arg, session) {
                reading.markers.stated_mut().external_docs = Some(docs.into());
            }
        },
    },
];

const DOCS_ARGS: &[ArgRow<ExternalDocs>] = &[
    ArgRow::once("url", "URL of the page. Required.", |arg, docs, session| {
        let Some(url) = arg.text(session) else { return };
        if !url.contains("://") {
            let message = format!("`{url}` is not a URL");
            session.error_help(arg.value_span(), message, "write the whole URL, `https://…`");
        }
        docs.url = url;
    }),
    ArgRow::once("description", "Description of the page.", |arg, docs, session| {
        docs.description = arg.text(session);
    }),
];

pub(crate) fn describe_external_docs_args() -> Vec<ArgDoc> {
    describe_rows(DOCS_ARGS)
}

fn external_docs(arg: &Arg, session: &mut Session) -> Option<ExternalDocs> {
    let draft = Draft::of_list(arg, DOCS_ARGS, session)?;
    let is_whole = draft.require(arg, &[("url", "https://…")], session);
    (is_whole && !draft.value.url.is_empty()).then_some(draft.value)
}
