//! Log lines on standard error, unless the operator has set up its own.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::args::{LogFormat, ManagerArgs};
use crate::error::ManagerError;

/// Installs the log subscriber that the arguments ask for; does nothing where there is one already.
///
/// `RUST_LOG` goes before `--log-level`, and is taken as it is. Besides tracing's directives, the flag takes what zap
/// takes: level names, and numbers for ever more detail; these are about the operator and what it is built on, but not
/// about each packet.
pub(crate) fn init(args: &ManagerArgs) -> Result<(), ManagerError> {
    let filter = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(value) if !value.is_empty() => parse(&value).map_err(|reason| ManagerError::Environment {
            variable: EnvFilter::DEFAULT_ENV,
            value,
            reason,
        })?,
        _ => from_flags(args)?,
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log collector would keep the colours as noise.
        .with_ansi(std::io::stderr().is_terminal() && no_color_is_unset());
    // An error means that a subscriber is there; the operator's own choice stands.
    let _ = match args.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            // The list has the reconcile also where the operator opened spans of its own in it.
            lines.with_current_span(false).with_span_list(true).try_init()
        }
    };
    Ok(())
}

/// See <https://no-color.org>.
fn no_color_is_unset() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn from_flags(args: &ManagerArgs) -> Result<EnvFilter, ManagerError> {
    let given = args.log_level.as_deref().filter(|level| !level.is_empty());
    let level = match (given, args.zap_devel) {
        (Some(level), _) => level,
        (None, true) => "debug",
        (None, false) => "info",
    };
    parse(&directives(level)).map_err(|reason| ManagerError::Flag {
        flag: "log-level",
        value: level.to_owned(),
        reason,
    })
}

/// What carries bytes, and writes down what it does with each of them. A name stands for all that begin with it.
const WIRE: [&str; 6] = ["h2", "hyper", "mio", "rustls", "tower", "want"];

/// What a level means to tracing: zap's words for levels are known, and what is more than `info` is not meant for
/// every packet.
fn directives(level: &str) -> String {
    let level = match level {
        "panic" | "dpanic" | "fatal" => "error",
        "0" => "info",
        "1" => "debug",
        number if number.parse::<u8>().is_ok() => "trace",
        directives => directives,
    };
    if level
        .parse::<LevelFilter>()
        .is_ok_and(|level| level > LevelFilter::INFO)
    {
        let quiet = WIRE.map(|target| format!(",{target}=info")).concat();
        return format!("{level}{quiet}");
    }
    level.to_owned()
}

/// # Errors
/// What is wrong with the filter, and what to write instead.
fn parse(filter: &str) -> Result<EnvFilter, String> {
    const EXPECTED: &str =
        "expected error, warn, info, debug, trace or off, or a filter such as `info,kube=debug`";
    // To tracing, a single word that is no level names a crate: a mistyped level would silence everything.
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if filter.chars().all(is_word) && filter.parse::<LevelFilter>().is_err() {
        return Err(format!("unknown level; {EXPECTED}"));
    }
    EnvFilter::try_new(filter).map_err(|error| format!("{error}; {EXPECTED}"))
}

/// Keeps what is logged, for tests to read.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct Kept(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl Kept {
    /// What a subscriber's `with_writer` takes.
    pub(crate) fn writers(&self) -> impl Fn() -> Self + Send + Sync + 'static {
        let kept = self.clone();
        move || kept.clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[cfg(test)]
impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(level: Option<&str>, zap_devel: bool, expected: Result<&str, &str>) {
        let args = ManagerArgs {
            log_level: level.map(str::to_owned),
            zap_devel,
            ..ManagerArgs::default()
        };
        let found = from_flags(&args)
            .map(|filter| filter.to_string())
            .map_err(|error| error.to_string());
        match (&found, expected) {
            (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{level:?}: {found}"),
            _ => assert_eq!(found.as_deref().map_err(String::as_str), expected, "{level:?}"),
        }
    }

    /// The filter of a level that would be too much everywhere.
    fn quiet(level: &str) -> String {
        format!("rustls=info,tower=info,hyper=info,want=info,mio=info,h2=info,{level}")
    }

    /// Which texts are logged at a level.
    fn check_events(level: &str, expected: &[(&str, bool)]) {
        let args = ManagerArgs {
            log_level: Some(level.to_owned()),
            ..ManagerArgs::default()
        };
        let log = Kept::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(from_flags(&args).unwrap())
            .with_ansi(false)
            .with_writer(log.writers())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!(target: "memcached_operator", "operator");
            tracing::debug!(target: "rbuilder::controller", "rbuilder");
            tracing::debug!(target: "kube_client::client", "kube");
            tracing::debug!(target: "hyper_util::client::legacy::pool", "pool");
            tracing::debug!(target: "rustls::client::hs", "handshake");
            tracing::info!(target: "rustls::client::hs", "alert");
        });
        let said = log.text();
        for (text, logged) in expected {
            assert_eq!(said.contains(text), *logged, "{level}: {text} in {said}");
        }
    }

    #[test]
    fn debug_is_about_the_operator_and_not_about_packets() {
        let all = ["operator", "rbuilder", "kube", "pool", "handshake", "alert"];
        let check = |level: &str, logged: &[&str]| {
            let expected: Vec<_> = all.iter().map(|text| (*text, logged.contains(text))).collect();
            check_events(level, &expected);
        };
        check("debug", &["operator", "rbuilder", "kube", "alert"]);
        check("info", &["alert"]);
        check("debug,hyper_util=debug", &all);
        check("info,rustls=debug", &["handshake", "alert"]);
    }

    #[test]
    fn levels_are_tracings_and_zaps() {
        check(None, false, Ok("info"));
        check(Some(""), false, Ok("info"));
        check(Some("debug"), false, Ok(&quiet("debug")));
        check(Some("WARN"), false, Ok("warn"));
        check(Some("off"), false, Ok("off"));
        check(Some("1"), false, Ok(&quiet("debug")));
        check(Some("5"), false, Ok(&quiet("trace")));
        check(Some("fatal"), false, Ok("error"));
        check(Some("kube=debug,info"), false, Ok("kube=debug,info"));
    }

    #[test]
    fn development_means_debug_unless_a_level_is_given() {
        check(None, true, Ok(&quiet("debug")));
        check(Some("error"), true, Ok("error"));
    }

    #[test]
    fn a_mistyped_level_is_an_error_and_not_silence() {
        check(
            Some("verbose"),
            false,
            Err("invalid value `verbose` for --log-level: unknown level; expected error, warn, info,"),
        );
        check(
            Some("info,kube=loud"),
            false,
            Err("invalid value `info,kube=loud` for --log-level: error parsing level filter"),
        );
    }
}
