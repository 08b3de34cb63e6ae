//! `scale(…)`, in either of kube's spellings.

use serde::Deserialize;

use super::{from_json, named, optional, required};
use crate::args::{Arg, ArgValue};
use crate::{Scale, Session, suggest};

/// `scale` in kube's JSON form; the parenthesised form has the same fields in snake case.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonScale {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

pub(super) fn scale(arg: &Arg, session: &mut Session) -> Option<Scale> {
    let json: JsonScale = match &arg.value {
        ArgValue::Literal(_) => from_json(arg, session)?,
        _ => {
            let names = [
                "spec_replicas_path",
                "status_replicas_path",
                "label_selector_path",
            ];
            let args = named(arg, &names, session)?;
            JsonScale {
                spec_replicas_path: required(arg, args, names[0], session)?,
                status_replicas_path: required(arg, args, names[1], session)?,
                label_selector_path: optional(args, names[2], session),
            }
        }
    };
    let scale = Scale {
        span: arg.span,
        spec_replicas_path: json.spec_replicas_path,
        status_replicas_path: json.status_replicas_path,
        label_selector_path: json.label_selector_path,
    };
    check_scale(&scale, session);
    Some(scale)
}

fn check_scale(scale: &Scale, session: &mut Session) {
    let Scale {
        span,
        spec_replicas_path,
        status_replicas_path,
        label_selector_path,
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
            let help = format!("write a path under {}", suggest::list(prefixes.iter().copied()));
            session.error_help(*span, format!("`{path}` cannot be the {key}"), help);
        }
    }
}
