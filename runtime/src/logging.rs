//! Log lines on standard error, unless the operator has set up its own.

use tracing_subscriber::EnvFilter;

use crate::args::{LogFormat, ManagerArgs};
use crate::error::ManagerError;

/// Installs the log subscriber that the arguments ask for; does nothing where there is one already.
///
/// `RUST_LOG` goes before `--log-level`. Besides tracing's directives, the flag takes what zap takes: level
/// names, and numbers for ever more detail.
pub(crate) fn init(args: &ManagerArgs) -> Result<(), ManagerError> {
    let filter = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(filter) if !filter.is_empty() => filter,
        _ => directives(&args.log_level),
    };
    let filter = EnvFilter::try_new(&filter).map_err(|error| ManagerError::Flag {
        flag: "log-level",
        value: filter.clone(),
        reason: format!("{error}; write a level such as `debug`, or a filter such as `info,kube=debug`"),
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that a subscriber is there; the operator's own choice stands.
    let _ = match args.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// What zap's level means to tracing.
fn directives(level: &str) -> String {
    match level {
        "panic" | "dpanic" | "fatal" => "error".to_owned(),
        "0" => "info".to_owned(),
        "1" => "debug".to_owned(),
        number if number.parse::<u8>().is_ok() => "trace".to_owned(),
        directives => directives.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::directives;

    #[test]
    fn zap_levels_are_understood() {
        let cases = [
            ("info", "info"),
            ("1", "debug"),
            ("5", "trace"),
            ("fatal", "error"),
            ("info,kube=off", "info,kube=off"),
        ];
        for (level, expected) in cases {
            assert_eq!(directives(level), expected);
        }
    }
}
