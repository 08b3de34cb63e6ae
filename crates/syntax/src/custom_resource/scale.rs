//! `scale(…)`, in both notations that kube accepts.

use serde::Deserialize;

use super::keys::from_json;
use crate::args::{Arg, ArgValue, ReadArg as _};
use crate::table::{ArgDoc, ArgRow, Draft, describe_rows};
use crate::{Scale, Session, suggest};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonScale {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

#[derive(Default)]
struct Parts {
    spec_replicas_path: Option<String>,
    status_replicas_path: Option<String>,
    label_selector_path: Option<String>,
}

const ARGS: &[ArgRow<Parts>] = &[
    ArgRow::once(
        "spec_replicas_path",
        "JSON path of the desired number of replicas, below `.spec`. Required.",
        |arg, parts, session| {
            parts.spec_replicas_path = arg.text(session);
        },
    ),
    ArgRow::once(
        "status_replicas_path",
        "JSON path of the observed number of replicas, below `.status`. Required.",
        |arg, parts, session| {
            parts.status_replicas_path = arg.text(session);
        },
    ),
    ArgRow::once(
        "label_selector_path",
        "JSON path of the label selector of the pods, a string; HorizontalPodAutoscalers need it.",
        |arg, parts, session| {
            parts.label_selector_path = arg.text(session);
        },
    ),
];

pub(crate) fn describe_scale_args() -> Vec<ArgDoc> {
    describe_rows(ARGS)
}

pub(super) fn read_scale(arg: &Arg, session: &mut Session) -> Option<Scale> {
    let (json, path_spans): (JsonScale, _) = match &arg.value {
        ArgValue::Literal(_) => (from_json(arg, session)?, Vec::new()),
        _ => {
            let draft = Draft::of_list(arg, ARGS, session)?;
            let samples = [
                ("spec_replicas_path", ".spec.replicas"),
                ("status_replicas_path", ".status.replicas"),
            ];
            draft.require(arg, &samples, session);
            let json = JsonScale {
                spec_replicas_path: draft.value.spec_replicas_path?,
                status_replicas_path: draft.value.status_replicas_path?,
                label_selector_path: draft.value.label_selector_path,
            };
            (json, draft.seen.iter().collect())
        }
    };
    let scale = Scale {
        span: arg.span,
        spec_replicas_path: json.spec_replicas_path,
        status_replicas_path: json.status_replicas_path,
        label_selector_path: json.label_selector_path,
        path_spans,
    };
    check_scale(&scale, session);
    Some(scale)
}

fn check_scale(scale: &Scale, session: &mut Session) {
    let Scale {
        span: _,
        spec_replicas_path,
        status_replicas_path,
        label_selector_path,
        path_spans: _,
    } = scale;
    for (path, key, prefixes) in [
        (Some(spec_replicas_path), "spec_replicas_path", &[".spec."][..]),
        (
            Some(status_replicas_path),
            "status_replicas_path",
            &[".status."][..],
        ),
        (
            label_selector_path.as_ref(),
            "label_selector_path",
            &[".spec.", ".status."][..],
        ),
    ] {
        let Some(path) = path else { continue };
        if !prefixes
            .iter()
            .any(|prefix| path.len() > prefix.len() && path.starts_with(prefix))
        {
            let help = format!(
                "use a path below {}",
                suggest::list_names(prefixes.iter().copied())
            );
            session.error_help(scale.span_of(key), format!("invalid `{key}`: `{path}`"), help);
        }
    }
}
