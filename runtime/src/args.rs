//! The manager's flags, with kubebuilder's names, so that its manifests and patches fit.
//!
//! Each flag can also be given as the environment variable named in its help. Flatten [`ManagerArgs`] into the
//! operator's own arguments:
//!
//! ```
//! #[derive(clap::Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     manager: rbuilder::ManagerArgs,
//! }
//! ```

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use crate::error::ManagerError;

/// How the manager runs: addresses, certificates, leader election, namespaces, logs.
///
/// `Default` is what an empty command line gives, whatever the environment says.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Manager")]
pub struct ManagerArgs {
    /// Run controllers in one process at a time, the one that holds the lease.
    #[arg(long, env, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set)]
    pub leader_elect: bool,

    /// Namespace of the lease; by default the one the process runs in.
    #[arg(long, env, value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,

    /// Namespaces to watch, separated by commas; all of them when empty.
    #[arg(
        long,
        env = "WATCH_NAMESPACE",
        value_name = "NAMESPACES",
        default_value = "",
        hide_default_value = true
    )]
    pub watch_namespace: String,

    /// Address of the metrics endpoint, such as `:8443`; `0` for none.
    #[arg(long, env, value_name = "ADDRESS", default_value = "0")]
    pub metrics_bind_address: String,

    /// Serve metrics over HTTPS, to clients that Kubernetes lets read them.
    #[arg(long, env, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set)]
    pub metrics_secure: bool,

    /// Folder with the metrics endpoint's certificate; without one it signs its own.
    #[arg(long, env, value_name = "FOLDER")]
    pub metrics_cert_path: Option<PathBuf>,

    /// File name of the metrics endpoint's certificate.
    #[arg(long, env, value_name = "FILE", default_value = "tls.crt")]
    pub metrics_cert_name: String,

    /// File name of the metrics endpoint's key.
    #[arg(long, env, value_name = "FILE", default_value = "tls.key")]
    pub metrics_cert_key: String,

    /// Address of the health probes, such as `:8081`; `0` for none.
    #[arg(long, env, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,

    /// Serve the operator's webhooks. Without them it runs where nobody can reach it, such as on a developer's machine.
    #[arg(long, env = "ENABLE_WEBHOOKS", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set)]
    pub enable_webhooks: bool,

    /// Folder with the webhook server's certificate.
    #[arg(long, env, value_name = "FOLDER")]
    pub webhook_cert_path: Option<PathBuf>,

    /// File name of the webhook server's certificate.
    #[arg(long, env, value_name = "FILE", default_value = "tls.crt")]
    pub webhook_cert_name: String,

    /// File name of the webhook server's key.
    #[arg(long, env, value_name = "FILE", default_value = "tls.key")]
    pub webhook_cert_key: String,

    /// Service of the webhooks; with it, the manager makes their certificate itself.
    #[arg(long, env, value_name = "SERVICE")]
    pub webhook_cert_service: Option<String>,

    /// Secret in which the manager keeps a certificate that it makes itself.
    #[arg(long, env, value_name = "SECRET", default_value = "webhook-server-cert")]
    pub webhook_cert_secret: String,

    /// Port of the webhook server.
    #[arg(long, env, value_name = "PORT", default_value_t = 9443)]
    pub webhook_port: u16,

    /// Offer HTTP/2 on the metrics and webhook servers, for which rbuilder's feature `http2` has to be turned on.
    #[arg(long, env = "ENABLE_HTTP2", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set)]
    pub enable_http2: bool,

    /// What to log: a level, or a filter such as `info,kube=debug`; `info` by default. `RUST_LOG` goes first.
    #[arg(long, alias = "zap-log-level", env, value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// How to log: lines for people, or JSON.
    #[arg(
        long,
        alias = "zap-encoder",
        env,
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    pub log_format: LogFormat,

    /// Makes `debug` the level where none is given. For manifests that were written for zap.
    #[arg(long, hide = true, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set)]
    pub zap_devel: bool,

    /// Accepted for manifests that were written for zap, and without effect: errors come with their causes.
    #[arg(long, hide = true, value_name = "LEVEL")]
    pub zap_stacktrace_level: Option<String>,

    /// Accepted for manifests that were written for zap, and without effect: times are RFC 3339.
    #[arg(long, hide = true, value_name = "FORMAT")]
    pub zap_time_encoding: Option<String>,
}

/// The shape of log lines.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    #[value(alias = "console")]
    Text,
    /// One JSON object per line.
    Json,
}

impl ManagerArgs {
    /// The namespaces to watch; empty for all.
    pub fn namespaces(&self) -> Vec<String> {
        let names = self
            .watch_namespace
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Refuses what this build cannot do.
    pub(crate) fn check(&self, has_http2: bool) -> Result<(), ManagerError> {
        if self.enable_http2 && !has_http2 {
            return Err(ManagerError::Flag {
                flag: "enable-http2",
                value: "true".to_owned(),
                reason:
                    "the operator was built without HTTP/2; enable rbuilder's feature `http2` in Cargo.toml"
                        .to_owned(),
            });
        }
        Ok(())
    }

    /// The defaults, with nothing bound to a port: several managers can run side by side in a test.
    pub fn for_tests() -> Self {
        Self {
            health_probe_bind_address: "0".to_owned(),
            ..Self::default()
        }
    }
}

impl Default for ManagerArgs {
    // `tests::defaults_are_those_of_an_empty_command_line` holds this to the attributes above.
    fn default() -> Self {
        Self {
            leader_elect: false,
            leader_election_namespace: None,
            watch_namespace: String::new(),
            metrics_bind_address: "0".to_owned(),
            metrics_secure: true,
            metrics_cert_path: None,
            metrics_cert_name: "tls.crt".to_owned(),
            metrics_cert_key: "tls.key".to_owned(),
            health_probe_bind_address: ":8081".to_owned(),
            enable_webhooks: true,
            webhook_cert_path: None,
            webhook_cert_name: "tls.crt".to_owned(),
            webhook_cert_key: "tls.key".to_owned(),
            webhook_cert_service: None,
            webhook_cert_secret: "webhook-server-cert".to_owned(),
            webhook_port: 9443,
            enable_http2: false,
            log_level: None,
            log_format: LogFormat::Text,
            zap_devel: false,
            zap_stacktrace_level: None,
            zap_time_encoding: None,
        }
    }
}

#[cfg(feature = "envtest")]
impl crate::envtest::WebhookArgs for ManagerArgs {
    fn serving_webhooks(self, port: u16, certificates: &std::path::Path) -> Self {
        Self {
            webhook_port: port,
            webhook_cert_path: Some(certificates.to_owned()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Operator {
        #[command(flatten)]
        manager: ManagerArgs,
    }

    fn parse(line: &str) -> ManagerArgs {
        let words = std::iter::once("manager").chain(line.split_whitespace());
        Operator::try_parse_from(words)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .manager
    }

    #[test]
    fn defaults_are_those_of_an_empty_command_line() {
        assert_eq!(parse(""), ManagerArgs::default());
    }

    fn check(line: &str, change: impl FnOnce(&mut ManagerArgs)) {
        let mut expected = ManagerArgs::default();
        change(&mut expected);
        assert_eq!(parse(line), expected, "{line}");
    }

    #[test]
    fn flags_are_written_as_in_kubebuilders_manifests() {
        check("--leader-elect", |args| args.leader_elect = true);
        check("--leader-elect=true", |args| args.leader_elect = true);
        check("--leader-elect=false", |_| {});
        check("--metrics-bind-address=:8443", |args| {
            args.metrics_bind_address = ":8443".to_owned()
        });
        check("--metrics-bind-address :8443", |args| {
            args.metrics_bind_address = ":8443".to_owned()
        });
        check("--metrics-bind-address=0", |_| {});
        check("--metrics-secure", |_| {});
        check("--metrics-secure=false", |args| args.metrics_secure = false);
        check(
            "--metrics-cert-path=/tmp/k8s-metrics-server/metrics-certs",
            |args| {
                args.metrics_cert_path = Some("/tmp/k8s-metrics-server/metrics-certs".into());
            },
        );
        check(
            "--metrics-cert-name=a.crt --metrics-cert-key=a.key --webhook-cert-name=b.crt --webhook-cert-key=b.key",
            |args| {
                args.metrics_cert_name = "a.crt".to_owned();
                args.metrics_cert_key = "a.key".to_owned();
                args.webhook_cert_name = "b.crt".to_owned();
                args.webhook_cert_key = "b.key".to_owned();
            },
        );
        check("--health-probe-bind-address=:8081", |_| {});
        check("--health-probe-bind-address=0", |args| {
            args.health_probe_bind_address = "0".to_owned()
        });
        check(
            "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs",
            |args| {
                args.webhook_cert_path = Some("/tmp/k8s-webhook-server/serving-certs".into());
            },
        );
        check(
            "--webhook-cert-service=webhook-service --webhook-cert-secret=certificate",
            |args| {
                args.webhook_cert_service = Some("webhook-service".to_owned());
                args.webhook_cert_secret = "certificate".to_owned();
            },
        );
        check("--enable-webhooks=false", |args| args.enable_webhooks = false);
        check("--webhook-port=9444", |args| args.webhook_port = 9444);
        check("--enable-http2", |args| args.enable_http2 = true);
        check("--enable-http2=false", |_| {});
        check(
            "--leader-elect --health-probe-bind-address=:8081 --metrics-bind-address=:8443",
            |args| {
                args.leader_elect = true;
                args.metrics_bind_address = ":8443".to_owned();
            },
        );
    }

    #[test]
    fn zaps_flags_are_understood() {
        for level in ["debug", "info", "error", "panic", "1", "5"] {
            for flag in ["--zap-log-level", "--log-level"] {
                check(&format!("{flag}={level}"), |args| {
                    args.log_level = Some(level.to_owned())
                });
            }
        }
        check("--zap-encoder=json", |args| args.log_format = LogFormat::Json);
        check("--zap-encoder=console", |_| {});
        check("--zap-devel", |args| args.zap_devel = true);
        check("--zap-devel=true", |args| args.zap_devel = true);
        check("--zap-devel=false --leader-elect", |args| {
            args.leader_elect = true
        });
        check(
            "--zap-stacktrace-level=error --zap-time-encoding=rfc3339nano",
            |args| {
                args.zap_stacktrace_level = Some("error".to_owned());
                args.zap_time_encoding = Some("rfc3339nano".to_owned());
            },
        );
    }

    #[test]
    fn a_bad_value_is_refused_with_its_flag() {
        for line in [
            "--leader-elect=yes please",
            "--webhook-port=70000",
            "--log-format=xml",
            "--leader-elec",
        ] {
            let words = ["manager", line];
            let error = Operator::try_parse_from(words)
                .err()
                .map(|error| error.to_string());
            let flag = line.split('=').next().unwrap_or_default();
            assert!(
                error.as_deref().is_some_and(|error| error.contains(flag)),
                "{line}: {error:?}"
            );
        }
    }

    #[test]
    fn http2_is_refused_by_a_build_without_it() {
        assert!(parse("--enable-http2=false").check(false).is_ok());
        assert!(parse("--enable-http2").check(true).is_ok());
        assert_eq!(
            parse("--enable-http2").check(false).unwrap_err().to_string(),
            "invalid value `true` for --enable-http2: the operator was built without HTTP/2; enable rbuilder's feature \
             `http2` in Cargo.toml"
        );
    }

    #[test]
    fn a_switch_does_not_swallow_the_next_word() {
        assert_eq!(
            parse("--metrics-secure --leader-elect=false"),
            ManagerArgs::default()
        );
    }

    #[test]
    fn namespaces_are_none_one_or_several() {
        for (flag, expected) in [("", vec![]), ("a", vec!["a"]), ("b,a,,a", vec!["a", "b"])] {
            assert_eq!(
                parse(&format!("--watch-namespace={flag}")).namespaces(),
                expected,
                "{flag:?}"
            );
        }
    }
}
