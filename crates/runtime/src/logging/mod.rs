//! Sets up logging to stderr, unless the operator has installed its own subscriber.

mod control;
mod lines;
mod panics;

use std::io::IsTerminal;

use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterFn, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::ManagerArgs;
use crate::error::ManagerError;

pub(crate) use control::LogControl;
use lines::{CurrentFormat, Lines, SpanFields};

/// Installs a subscriber, and a panic hook that logs panics. No-op if there already is a
/// subscriber.
///
/// `RUST_LOG` is used as is, and takes precedence over `--log-level`. The flag accepts tracing's
/// directives, as well as zap's level names and numbers. A plain level suppresses debug messages of
/// network libraries and, up to `info`, kube's messages about failed requests, since we log those
/// ourselves.
pub(crate) fn init_logging(args: &ManagerArgs) -> Result<(), ManagerError> {
    let (level, filter) = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(value) if !value.is_empty() => {
            let filter = parse_filter(&value).map_err(|reason| ManagerError::Environment {
                variable: EnvFilter::DEFAULT_ENV,
                value: value.clone(),
                reason,
            })?;
            (value, filter)
        }
        _ => (level_of_flags(args).to_owned(), filter_from_flags(args)?),
    };
    let format = CurrentFormat::new(args.log_format);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Log collectors can't handle escape codes.
        .with_ansi(std::io::stderr().is_terminal() && no_color_is_unset())
        .fmt_fields(SpanFields(format.clone()))
        .event_format(Lines::new(format.clone()))
        .with_filter_reloading();
    let control = LogControl::new(level, lines.reload_handle(), format);
    let installed = lines.finish().with(body_filter()).try_init();
    // On failure, another subscriber is already installed. Don't touch the panic hook then.
    if installed.is_ok() {
        control.install();
        panics::log_panics();
    }
    Ok(())
}

/// See <https://no-color.org>.
fn no_color_is_unset() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn level_of_flags(args: &ManagerArgs) -> &str {
    let given = args.log_level.as_deref().filter(|level| !level.is_empty());
    match (given, args.zap_devel) {
        (Some(level), _) => level,
        (None, true) => "debug",
        (None, false) => "info",
    }
}

fn filter_from_flags(args: &ManagerArgs) -> Result<EnvFilter, ManagerError> {
    let level = level_of_flags(args);
    parse_filter(&expand_level(level)).map_err(|reason| ManagerError::Flag {
        flag: "log-level",
        value: level.to_owned(),
        reason,
    })
}

/// Targets of network libraries that log every single packet, as prefixes.
const NETWORK_TARGETS: [&str; 6] = ["h2", "hyper", "mio", "rustls", "tower", "want"];

/// Targets where kube logs each attempt of a failed request or watch, without its causes.
const KUBE_TARGETS: [&str; 2] = ["kube_client::client", "kube_runtime::watcher"];
/// Not suppressed despite the common prefix: it warns when a CA bundle can't be reloaded.
const KUBE_TLS: &str = "kube_client::client::tls";

/// Drops messages that quote an entire undecodable response. Since that could be a list of Secrets,
/// these messages can't be enabled.
fn body_filter() -> FilterFn {
    filter_fn(|metadata: &Metadata<'_>| {
        !(metadata.target() == "kube_client::client" && *metadata.level() == Level::WARN)
    })
}

/// Converts a level (possibly one of zap's) to tracing directives.
fn expand_level(level: &str) -> String {
    let level = match level {
        "panic" | "dpanic" | "fatal" => "error",
        "0" => "info",
        "1" => "debug",
        number if number.parse::<u8>().is_ok() => "trace",
        directives => directives,
    };
    match level.parse::<LevelFilter>() {
        // At these levels, network libraries log every single packet.
        Ok(parsed) if parsed > LevelFilter::INFO => {
            let quiet = NETWORK_TARGETS.map(|target| format!(",{target}=info")).concat();
            format!("{level}{quiet}")
        }
        // We log failed requests ourselves, with their causes.
        Ok(parsed) if parsed > LevelFilter::OFF => {
            let quiet = KUBE_TARGETS.map(|target| format!(",{target}=off")).concat();
            format!("{level}{quiet},{KUBE_TLS}={level}")
        }
        _ => level.to_owned(),
    }
}

/// Parses a log filter. The error describes what would be valid.
fn parse_filter(filter: &str) -> Result<EnvFilter, String> {
    const EXPECTED: &str =
        "expected error, warn, info, debug, trace or off, or a filter such as `info,kube=debug`";
    // tracing interprets a single word that isn't a level as the name of a crate, so a typo in the
    // level would disable all logging.
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if filter.chars().all(is_word) && filter.parse::<LevelFilter>().is_err() {
        return Err(format!("unknown level; {EXPECTED}"));
    }
    EnvFilter::try_new(filter).map_err(|error| format!("{error}; {EXPECTED}"))
}

#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct LogBuffer(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl LogBuffer {
    /// Collects what this thread logs at level `INFO`, until the guard is dropped.
    pub(crate) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_env_filter("rbuilder=info")
            .with_writer(log.writers())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// For `with_writer`.
    pub(crate) fn writers(&self) -> impl Fn() -> Self + Send + Sync + use<> {
        let buffer = self.clone();
        move || buffer.clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[cfg(test)]
impl std::io::Write for LogBuffer {
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
    use crate::args::LogFormat;

    /// The subscriber writes to a buffer.
    fn controlled(
        level: &str,
        format: LogFormat,
    ) -> (LogBuffer, LogControl, impl tracing::Subscriber + Send + Sync) {
        let (log, format) = (LogBuffer::default(), CurrentFormat::new(format));
        let lines = tracing_subscriber::fmt()
            .with_env_filter(parse_filter(level).unwrap())
            .with_writer(log.writers())
            .with_ansi(false)
            .fmt_fields(SpanFields(format.clone()))
            .event_format(Lines::new(format.clone()))
            .with_filter_reloading();
        let control = LogControl::new(level.to_owned(), lines.reload_handle(), format);
        (log, control, lines.finish())
    }

    #[test]
    fn level_changes_while_the_process_runs() {
        let (log, control, subscriber) = controlled("info", LogFormat::Text);
        tracing::subscriber::with_default(subscriber, || {
            let line = |number: u32| {
                tracing::debug!(target: "operator", number, "debug");
                tracing::info!(target: "operator", number, "info");
                tracing::debug!(target: "hyper::proto", number, "packet");
            };
            line(1);
            control.set_level("debug").unwrap();
            line(2);
            let error = control.set_level("loud").unwrap_err();
            assert!(
                error.starts_with("unknown level; expected error, warn"),
                "{error}"
            );
            assert_eq!(control.level(), "debug");
            control.set_level("operator=off").unwrap();
            line(3);
        });
        let log = log.text();
        let logged: Vec<&str> = log
            .lines()
            .filter_map(|line| line.split("operator: ").nth(1))
            .collect();
        assert_eq!(
            logged,
            ["info number=1", "debug number=2", "info number=2"],
            "{log}"
        );
    }

    #[test]
    fn format_changes_within_a_span() {
        let (log, control, subscriber) = controlled("info", LogFormat::Text);
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("reconcile", object = "a", late = tracing::field::Empty);
            span.in_scope(|| {
                tracing::info!("one");
                control.set_format(LogFormat::Json);
                tracing::info!("two");
                span.record("late", 7);
                tracing::info_span!("inner", step = "{").in_scope(|| tracing::info!("three"));
                control.set_format(LogFormat::Text);
                tracing::info!("four");
            });
        });
        let log = log.text();
        let lines: Vec<&str> = log.lines().collect();
        let json = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        assert_eq!(lines.len(), 4, "{log}");
        assert!(lines[0].contains(r#"reconcile{object="a"}"#), "{log}");
        let (two, three) = (json(lines[1]), json(lines[2]));
        let old = serde_json::json!({ "name": "reconcile", "fields": r#"object="a""# });
        assert_eq!(
            (&two["message"], &two["spans"][0]),
            (&"two".into(), &old),
            "{log}"
        );
        assert_eq!(three["spans"][0]["late"], 7, "{log}");
        assert_eq!(
            three["spans"][1],
            serde_json::json!({ "name": "inner", "step": "{" }),
            "{log}"
        );
        assert!(lines[3].ends_with(": four"), "{log}");
    }

    fn check(level: Option<&str>, zap_devel: bool, expected: Result<&str, &str>) {
        let args = ManagerArgs {
            log_level: level.map(str::to_owned),
            zap_devel,
            ..ManagerArgs::default()
        };
        let found = filter_from_flags(&args)
            .map(|filter| filter.to_string())
            .map_err(|error| error.to_string());
        match (&found, expected) {
            (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{level:?}: {found}"),
            _ => assert_eq!(found.as_deref().map_err(String::as_str), expected, "{level:?}"),
        }
    }

    /// The expected filter for a level above `info`.
    fn quiet(level: &str) -> String {
        format!("rustls=info,tower=info,hyper=info,want=info,mio=info,h2=info,{level}")
    }

    /// The expected filter for a level up to `info`.
    fn without_kube(level: &str) -> String {
        format!("kube_client::client::tls={level},kube_runtime::watcher=off,kube_client::client=off,{level}")
    }

    fn check_events(level: &str, expected: &[(&str, bool)]) {
        let args = ManagerArgs {
            log_level: Some(level.to_owned()),
            ..ManagerArgs::default()
        };
        let log = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter_from_flags(&args).unwrap())
            .with_ansi(false)
            .with_writer(log.writers())
            .finish()
            .with(body_filter());
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!(target: "kube_client::client::builder", "failed with error");
            tracing::warn!(target: "kube_client::client", "a list of Secrets");
            tracing::warn!(target: "kube_client::client::tls", "keeping stale roots");
            tracing::warn!(target: "kube_runtime::watcher", "watch list error");
            tracing::debug!(target: "memcached_operator", "operator");
            tracing::debug!(target: "rbuilder::controller", "rbuilder");
            tracing::debug!(target: "kube_client::client", "of kube");
            tracing::debug!(target: "hyper_util::client::legacy::pool", "pool");
            tracing::debug!(target: "rustls::client::hs", "handshake");
            tracing::info!(target: "rustls::client::hs", "alert");
        });
        let log = log.text();
        for (text, logged) in expected {
            assert_eq!(log.contains(text), *logged, "{level}: {text} in {log}");
        }
    }

    #[test]
    fn debug_excludes_network_libraries() {
        let all = ["operator", "rbuilder", "of kube", "pool", "handshake", "alert"];
        let check = |level: &str, logged: &[&str]| {
            let expected: Vec<_> = all.iter().map(|text| (*text, logged.contains(text))).collect();
            check_events(level, &expected);
        };
        check("debug", &["operator", "rbuilder", "of kube", "alert"]);
        check("info", &["alert"]);
        check("debug,hyper_util=debug", &all);
        check("info,rustls=debug", &["handshake", "alert"]);
    }

    /// We log failed requests ourselves, just once and with their causes.
    #[test]
    fn kubes_messages_about_failed_requests_are_off_by_default() {
        let kube = ["failed with error", "watch list error"];
        for level in ["info", "warn", "0"] {
            check_events(level, &kube.map(|text| (text, false)));
            check_events(level, &[("keeping stale roots", true)]);
        }
        for level in ["debug", "info,kube=info", "kube_client=error,kube_runtime=warn"] {
            check_events(level, &kube.map(|text| (text, true)));
        }
    }

    #[test]
    fn response_bodies_are_never_logged() {
        for level in [
            "info",
            "warn",
            "debug",
            "trace",
            "kube_client=trace",
            "warn,kube=debug",
        ] {
            check_events(level, &[("a list of Secrets", false)]);
        }
    }

    #[test]
    fn levels_of_tracing_and_zap_are_accepted() {
        check(None, false, Ok(&without_kube("info")));
        check(Some(""), false, Ok(&without_kube("info")));
        check(Some("debug"), false, Ok(&quiet("debug")));
        check(Some("WARN"), false, Ok(&without_kube("warn")));
        check(Some("off"), false, Ok("off"));
        check(Some("1"), false, Ok(&quiet("debug")));
        check(Some("5"), false, Ok(&quiet("trace")));
        check(Some("fatal"), false, Ok(&without_kube("error")));
        check(Some("kube=debug,info"), false, Ok("kube=debug,info"));
    }

    #[test]
    fn zap_devel_means_debug_unless_a_level_is_set() {
        check(None, true, Ok(&quiet("debug")));
        check(Some("error"), true, Ok(&without_kube("error")));
    }

    #[test]
    fn mistyped_level_is_an_error() {
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
