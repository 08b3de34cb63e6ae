//! Settings from environment variables, named as in controller-runtime's envtest.

use std::time::Duration;

use crate::Error;

const START_TIMEOUT: &str = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT";
const STOP_TIMEOUT: &str = "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT";
const ATTACH_OUTPUT: &str = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT";

/// Settings for starting and stopping a control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Timeout for starting. Defaults to 60 s, three times the default of controller-runtime,
    /// because a busy two-core machine needs 14 s.
    pub start_timeout: Duration,
    /// Timeout for stopping.
    pub stop_timeout: Duration,
    /// Whether the servers write to the output of this process instead of log files.
    pub attach_output: bool,
    /// Additional arguments for etcd. They're appended to the default arguments, and the last
    /// occurrence of a flag wins.
    pub etcd_args: Vec<String>,
    /// Additional arguments for kube-apiserver, appended in the same way.
    pub apiserver_args: Vec<String>,
    /// Whether to also start kube-controller-manager.
    pub controllers: bool,
    /// Number of simulated nodes. If not 0, kube-controller-manager, kube-scheduler and kwok are
    /// started as well.
    pub nodes: usize,
}

impl Settings {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    ///
    /// Returns an error if a timeout isn't a valid duration.
    pub fn from_env() -> Result<Self, Error> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(var: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let duration = |name: &str, default: u64| match var(name).filter(|text| !text.is_empty()) {
            None => Ok(Duration::from_secs(default)),
            Some(text) => parse_duration(&text).ok_or_else(|| {
                Error::new(format!(
                    "{name} is `{text}`: write a duration such as `60s`, `1m30s` or `500ms`"
                ))
            }),
        };
        Ok(Self {
            start_timeout: duration(START_TIMEOUT, 60)?,
            stop_timeout: duration(STOP_TIMEOUT, 20)?,
            attach_output: var(ATTACH_OUTPUT).is_some_and(|text| is_true(&text)),
            etcd_args: Vec::new(),
            apiserver_args: Vec::new(),
            controllers: false,
            nodes: 0,
        })
    }
}

/// Accepts the same strings as Go's `strconv.ParseBool`.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Parses a duration in Go's notation, e.g. `1m30s`.
fn parse_duration(text: &str) -> Option<Duration> {
    let nanoseconds = rbuilder_kubernetes::go::parse_duration(text)?;
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_go_durations() {
        let check = |text: &str, millis: Option<u64>| {
            assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text}");
        };
        check("20s", Some(20_000));
        check("1m30s", Some(90_000));
        check("1h", Some(3_600_000));
        check("1.5s", Some(1_500));
        check("500ms", Some(500));
        check("2000us", Some(2));
        check("", None);
        check("20", None);
        check("s", None);
        check("-1s", None);
        check("1d", None);
        check("1..s", None);
        check("99999999999999999999999h", None);
    }

    #[test]
    fn error_names_variable_of_invalid_timeout() {
        let found = Settings::from_lookup(|name| (name == START_TIMEOUT).then(|| "soon".to_owned()));
        let message = found.unwrap_err().to_string();
        assert!(
            message.starts_with("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT is `soon`: write"),
            "{message}"
        );
    }

    #[test]
    fn empty_environment_gives_defaults() {
        let found = Settings::from_lookup(|_| None).unwrap();
        let expected = Settings {
            start_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(20),
            attach_output: false,
            etcd_args: Vec::new(),
            apiserver_args: Vec::new(),
            controllers: false,
            nodes: 0,
        };
        assert_eq!(found, expected);
    }
}
