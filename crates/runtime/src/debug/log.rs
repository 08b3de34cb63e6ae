//! Shows and changes the level and the format of the log.

use http::{Method, StatusCode};

use super::{Answer, Query};

/// GET shows the settings, and PUT changes them.
#[cfg(feature = "logging")]
pub(super) fn answer(method: &Method, query: &Query, may_change: bool) -> Answer {
    use serde_json::json;

    use crate::args::LogFormat;
    use crate::logging::LogControl;

    let Some(control) = LogControl::of_process() else {
        return Answer::error(
            StatusCode::NOT_IMPLEMENTED,
            "the operator has installed a log subscriber of its own, which rbuilder cannot change",
        );
    };
    if method == Method::PUT {
        if !may_change {
            return Answer::error(
                StatusCode::FORBIDDEN,
                "with --metrics-secure=false everyone may send this request, so it changes nothing",
            );
        }
        if let Err(reason) = change(control, query) {
            return Answer::error(StatusCode::BAD_REQUEST, reason);
        }
    }
    let (level, format) = (
        control.level(),
        match control.format() {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        },
    );
    Answer::both(
        format!("level {level}\nformat {format}\n"),
        json!({ "level": level, "format": format }),
    )
}

#[cfg(not(feature = "logging"))]
pub(super) fn answer(_: &Method, _: &Query, _: bool) -> Answer {
    Answer::error(
        StatusCode::NOT_IMPLEMENTED,
        "the operator was built without rbuilder's feature `logging`",
    )
}

/// Changes the settings given in the query, or none of them if one is invalid.
#[cfg(feature = "logging")]
fn change(control: &crate::logging::LogControl, query: &Query) -> Result<(), String> {
    use crate::args::LogFormat;

    let format = match query.get("log-format") {
        None => None,
        Some("text" | "console") => Some(LogFormat::Text),
        Some("json") => Some(LogFormat::Json),
        Some(other) => {
            return Err(format!(
                "invalid value `{other}` for log-format: expected text or json"
            ));
        }
    };
    let level = query.get("log-level");
    if level.is_none() && format.is_none() {
        return Err("expected ?log-level=debug, ?log-format=json, or both".to_owned());
    }
    if let Some(level) = level {
        control
            .set_level(level)
            .map_err(|reason| format!("invalid value `{level}` for log-level: {reason}"))?;
        tracing::info!(level, "log level changed");
    }
    if let Some(format) = format {
        control.set_format(format);
        tracing::info!(?format, "log format changed");
    }
    Ok(())
}
