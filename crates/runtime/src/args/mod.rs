//! Command-line flags of the manager. They have the same names as in kubebuilder, so existing
//! manifests and patches keep working.
//!
//! Each flag can also be set with an environment variable, which is shown in its help. If the
//! feature `args` is disabled, there are no flags and the settings can only be changed in code.
//!
//! To use them, flatten [`ManagerArgs`] into the arguments of your operator:
//!
//! ```
//! #[derive(clap::Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     manager: rbuilder::ManagerArgs,
//! }
//! ```

#[cfg(feature = "args")]
mod port;

use std::path::PathBuf;

#[cfg(feature = "args")]
use clap::{ArgAction, Args, ValueEnum};

use crate::error::ManagerError;
use crate::shards::Sharding;

/// Configuration of the manager, e.g. bind addresses, certificates, leader election, watched
/// namespaces and logging.
///
/// With the feature `args` (enabled by default) this implements clap's `Args`. Otherwise, set the
/// fields directly. The log settings need the feature `logging`.
///
/// `Default` is equivalent to parsing an empty command line without any environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "args", derive(Args))]
#[cfg_attr(feature = "args", command(next_help_heading = "Manager"))]
pub struct ManagerArgs {
    /// Path of the kubeconfig; defaults to the files in KUBECONFIG, then `~/.kube/config`, then the pod's service account.
    // Don't read this from the environment variable `KUBECONFIG`, which may contain several paths.
    #[cfg_attr(feature = "args", arg(long, value_name = "PATH"))]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig; defaults to its current context.
    #[cfg_attr(feature = "args", arg(long, env = "KUBE_CONTEXT", value_name = "NAME"))]
    pub context: Option<String>,

    /// Enable leader election; only the process that holds the lease runs controllers.
    #[cfg_attr(feature = "args", arg(long, env, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set))]
    pub leader_elect: bool,

    /// Namespace of the leader election lease; defaults to the namespace the process runs in.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "NAMESPACE"))]
    pub leader_election_namespace: Option<String>,

    /// Let all replicas work, each on its own part of the objects: `auto`, or into how many parts to cut them.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "auto|N"))]
    pub shards: Option<Sharding>,

    /// Namespaces to watch, separated by commas; all namespaces when empty.
    #[cfg_attr(
        feature = "args",
        arg(
            long,
            env = "WATCH_NAMESPACE",
            value_name = "NAMESPACES",
            default_value = "",
            hide_default_value = true
        )
    )]
    pub watch_namespace: String,

    /// Address the metrics endpoint binds to, such as `:8443`; `0` disables it.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "ADDRESS", default_value = "0"))]
    pub metrics_bind_address: String,

    /// Serve metrics over HTTPS, with authentication and authorization by the API server.
    #[cfg_attr(feature = "args", arg(long, env, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set))]
    pub metrics_secure: bool,

    /// Directory of the metrics server certificate; a self-signed one is generated when unset.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "FOLDER"))]
    pub metrics_cert_path: Option<PathBuf>,

    /// File name of the metrics server certificate.
    #[cfg_attr(
        feature = "args",
        arg(long, env, value_name = "FILE", default_value = "tls.crt")
    )]
    pub metrics_cert_name: String,

    /// File name of the metrics server key.
    #[cfg_attr(
        feature = "args",
        arg(long, env, value_name = "FILE", default_value = "tls.key")
    )]
    pub metrics_cert_key: String,

    /// Serve the contents of queues, the state of the runtime, and the log level under /debug of the metrics endpoint.
    #[cfg_attr(feature = "args", arg(long, env, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set))]
    pub enable_debug_endpoints: bool,

    /// Address the health probe endpoint binds to, such as `:8081`; `0` disables it.
    #[cfg_attr(
        feature = "args",
        arg(long, env, value_name = "ADDRESS", default_value = ":8081")
    )]
    pub health_probe_bind_address: String,

    /// Serve the operator's webhooks; set to false where the API server cannot reach the process, such as in development.
    #[cfg_attr(feature = "args", arg(long, env = "ENABLE_WEBHOOKS", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set))]
    pub enable_webhooks: bool,

    /// Directory of the webhook server certificate.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "FOLDER"))]
    pub webhook_cert_path: Option<PathBuf>,

    /// File name of the webhook server certificate.
    #[cfg_attr(
        feature = "args",
        arg(long, env, value_name = "FILE", default_value = "tls.crt")
    )]
    pub webhook_cert_name: String,

    /// File name of the webhook server key.
    #[cfg_attr(
        feature = "args",
        arg(long, env, value_name = "FILE", default_value = "tls.key")
    )]
    pub webhook_cert_key: String,

    /// Service in front of the webhooks; when set, the manager issues and rotates their certificate itself.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "SERVICE"))]
    pub webhook_cert_service: Option<String>,

    /// Secret that stores the certificate issued by the manager.
    #[cfg_attr(
        feature = "args",
        arg(long, env, value_name = "SECRET", default_value = "webhook-server-cert")
    )]
    pub webhook_cert_secret: String,

    /// MutatingWebhookConfiguration that the manager injects its CA bundle into; all that refer to the Service when unset.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "NAME"))]
    pub mutating_webhook_configuration: Option<String>,

    /// ValidatingWebhookConfiguration that the manager injects its CA bundle into; all that refer to the Service when
    /// unset.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "NAME"))]
    pub validating_webhook_configuration: Option<String>,

    /// Port the webhook server binds to.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "PORT", default_value_t = WEBHOOK_PORT, value_parser = port::PortParser))]
    pub webhook_port: u16,

    /// Host name or address the webhook server binds to, such as `127.0.0.1`; all interfaces when unset.
    #[cfg_attr(feature = "args", arg(long, env, value_name = "HOST"))]
    pub webhook_host: Option<String>,

    /// Enable HTTP/2 on the metrics and webhook servers; requires rbuilder's feature `http2`.
    #[cfg_attr(feature = "args", arg(long, env = "ENABLE_HTTP2", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set))]
    pub enable_http2: bool,

    /// Requests per second to the API server; unlimited when 0 or negative.
    #[cfg_attr(
        feature = "args",
        arg(
            long,
            env,
            value_name = "NUMBER",
            default_value_t = 0,
            allow_negative_numbers = true
        )
    )]
    pub kube_api_qps: i32,

    /// Maximum burst of requests to the API server, with --kube-api-qps; twice that rate when 0.
    #[cfg_attr(
        feature = "args",
        arg(
            long,
            env,
            value_name = "NUMBER",
            default_value_t = 0,
            allow_negative_numbers = true
        )
    )]
    pub kube_api_burst: i32,

    /// Log level, or a filter such as `info,kube=debug`; defaults to `info`. `RUST_LOG` takes precedence.
    #[cfg_attr(
        feature = "args",
        arg(long, alias = "zap-log-level", env, value_name = "LEVEL")
    )]
    pub log_level: Option<String>,

    /// Log format.
    #[cfg_attr(
        feature = "args",
        arg(
            long,
            alias = "zap-encoder",
            env,
            value_name = "FORMAT",
            value_enum,
            default_value_t
        )
    )]
    pub log_format: LogFormat,

    /// Defaults the log level to `debug`. Accepted for compatibility with zap's flags.
    #[cfg_attr(feature = "args", arg(long, hide = true, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = ArgAction::Set))]
    pub zap_devel: bool,

    /// Has no effect: errors are logged with their causes. Accepted for compatibility with zap's flags.
    #[cfg_attr(feature = "args", arg(long, hide = true, value_name = "LEVEL"))]
    pub zap_stacktrace_level: Option<String>,

    /// Has no effect: timestamps are RFC 3339. Accepted for compatibility with zap's flags.
    #[cfg_attr(feature = "args", arg(long, hide = true, value_name = "FORMAT"))]
    pub zap_time_encoding: Option<String>,
}

/// Same as in controller-runtime.
const WEBHOOK_PORT: u16 = 9443;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "args", derive(ValueEnum))]
pub enum LogFormat {
    /// Human-readable text.
    #[default]
    #[cfg_attr(feature = "args", value(alias = "console"))]
    Text,
    /// One JSON object per line.
    Json,
}

impl ManagerArgs {
    /// Returns the namespaces to watch. The list is empty if all namespaces should be watched.
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

    /// Rejects flags that this build doesn't support, or that need another flag.
    pub(crate) fn check(&self, has_http2: bool) -> Result<(), ManagerError> {
        let mut names = self.watch_namespace.split(',');
        // An empty name is usually caused by an unset variable, as in
        // `--watch-namespace=$(A),$(B)`. If we ignored it and the other name were empty as well,
        // we'd watch the entire cluster.
        if !self.watch_namespace.is_empty() && names.any(|name| name.trim().is_empty()) {
            return Err(ManagerError::Flag {
                flag: "watch-namespace",
                value: self.watch_namespace.clone(),
                reason: "the name of a namespace is empty (WATCH_NAMESPACE); omit the value to watch all namespaces"
                    .to_owned(),
            });
        }
        if self.enable_debug_endpoints && matches!(&*self.metrics_bind_address, "" | "0") {
            return Err(ManagerError::Flag {
                flag: "enable-debug-endpoints",
                value: "true".to_owned(),
                reason:
                    "they are served by the metrics endpoint, which is disabled; set --metrics-bind-address"
                        .to_owned(),
            });
        }
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

    /// Returns the defaults with all servers disabled, so that a test process can run multiple
    /// managers.
    pub fn for_tests() -> Self {
        Self {
            health_probe_bind_address: "0".to_owned(),
            ..Self::default()
        }
    }
}

impl Default for ManagerArgs {
    // Keep this in sync with the attributes above, see
    // `tests::defaults_match_an_empty_command_line`.
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            leader_elect: false,
            leader_election_namespace: None,
            shards: None,
            watch_namespace: String::new(),
            metrics_bind_address: "0".to_owned(),
            metrics_secure: true,
            metrics_cert_path: None,
            metrics_cert_name: "tls.crt".to_owned(),
            metrics_cert_key: "tls.key".to_owned(),
            enable_debug_endpoints: false,
            health_probe_bind_address: ":8081".to_owned(),
            enable_webhooks: true,
            webhook_cert_path: None,
            webhook_cert_name: "tls.crt".to_owned(),
            webhook_cert_key: "tls.key".to_owned(),
            webhook_cert_service: None,
            webhook_cert_secret: "webhook-server-cert".to_owned(),
            mutating_webhook_configuration: None,
            validating_webhook_configuration: None,
            webhook_port: WEBHOOK_PORT,
            webhook_host: None,
            enable_http2: false,
            kube_api_qps: 0,
            kube_api_burst: 0,
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

#[cfg(all(test, feature = "args"))]
mod tests {
    use std::ffi::OsStr;

    use clap::builder::TypedValueParser;
    use clap::parser::ValueSource;
    use clap::{CommandFactory, Parser};

    use super::port::PortParser;
    use super::*;

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
    fn defaults_match_an_empty_command_line() {
        assert_eq!(parse(""), ManagerArgs::default());
    }

    fn check(line: &str, change: impl FnOnce(&mut ManagerArgs)) {
        let mut expected = ManagerArgs::default();
        change(&mut expected);
        assert_eq!(parse(line), expected, "{line}");
    }

    #[test]
    fn flags_of_kubebuilders_manifests_are_accepted() {
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
        check(
            "--mutating-webhook-configuration=a --validating-webhook-configuration=b",
            |args| {
                args.mutating_webhook_configuration = Some("a".to_owned());
                args.validating_webhook_configuration = Some("b".to_owned());
            },
        );
        check("--kubeconfig=/home/me/.kube/config --context kind-dev", |args| {
            args.kubeconfig = Some("/home/me/.kube/config".into());
            args.context = Some("kind-dev".to_owned());
        });
        check("--kube-api-qps=50 --kube-api-burst=100", |args| {
            args.kube_api_qps = 50;
            args.kube_api_burst = 100;
        });
        check("--kube-api-qps=-1", |args| args.kube_api_qps = -1);
        check("--enable-debug-endpoints", |args| {
            args.enable_debug_endpoints = true
        });
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
    fn zap_flags_are_accepted() {
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
    fn invalid_value_is_an_error_that_names_the_flag() {
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

    /// Kubernetes sets these for each Service unless `enableServiceLinks` is disabled. A Service
    /// named `webhook` must not accidentally set one of our flags.
    #[test]
    fn service_variables_do_not_set_flags() {
        let mut command = Operator::command();
        command.build();
        for variable in command.get_arguments().filter_map(clap::Arg::get_env) {
            let variable = variable.to_str().unwrap();
            let is_link = ["_SERVICE_HOST", "_PROTO", "_ADDR", "_TCP", "_UDP", "_SCTP"]
                .iter()
                .any(|end| variable.ends_with(end))
                || variable.contains("_SERVICE_PORT")
                || variable.ends_with("_PORT");
            assert!(!is_link || variable == "WEBHOOK_PORT", "{variable}");
        }
        let parsed = |value: &str, source| {
            let argument = command
                .get_arguments()
                .find(|argument| argument.get_id() == "webhook_port");
            PortParser.parse_ref_(&command, argument, OsStr::new(value), source)
        };
        let (environment, line) = (ValueSource::EnvVariable, ValueSource::CommandLine);
        assert_eq!(parsed("tcp://10.0.0.1:443", environment).unwrap(), 9443);
        assert_eq!(parsed("udp://10.0.0.1:53", environment).unwrap(), 9443);
        assert_eq!(parsed("9444", environment).unwrap(), 9444);
        assert!(parsed("tcp", environment).is_err());
        assert!(parsed("tcp://10.0.0.1:443", line).is_err());
    }

    #[test]
    fn http2_requires_the_feature() {
        assert!(parse("--enable-http2=false").check(false).is_ok());
        assert!(parse("--enable-http2").check(true).is_ok());
        assert_eq!(
            parse("--enable-http2").check(false).unwrap_err().to_string(),
            "invalid value `true` for --enable-http2: the operator was built without HTTP/2; enable rbuilder's feature \
             `http2` in Cargo.toml"
        );
    }

    #[test]
    fn debug_endpoints_require_the_metrics_endpoint() {
        let valid = "--enable-debug-endpoints --metrics-bind-address=:8443";
        assert!(parse(valid).check(true).is_ok());
        assert_eq!(
            parse("--enable-debug-endpoints")
                .check(true)
                .unwrap_err()
                .to_string(),
            "invalid value `true` for --enable-debug-endpoints: they are served by the metrics endpoint, which is \
             disabled; set --metrics-bind-address"
        );
    }

    #[test]
    fn empty_namespace_name_is_an_error() {
        for valid in ["", "a", "a,b", "a, b"] {
            assert!(parse_namespaces(valid).check(true).is_ok(), "{valid:?}");
        }
        for invalid in [",", " ", "a,", "a,,b", ",a"] {
            let error = parse_namespaces(invalid).check(true).unwrap_err().to_string();
            let start =
                format!("invalid value `{invalid}` for --watch-namespace: the name of a namespace is empty");
            assert!(error.starts_with(&start), "{error}");
        }
    }

    fn parse_namespaces(value: &str) -> ManagerArgs {
        let flag = format!("--watch-namespace={value}");
        Operator::try_parse_from(["manager", &flag]).unwrap().manager
    }

    #[test]
    fn boolean_flag_does_not_consume_the_next_argument() {
        assert_eq!(
            parse("--metrics-secure --leader-elect=false"),
            ManagerArgs::default()
        );
    }

    #[test]
    fn namespaces_are_parsed_from_a_list() {
        for (flag, expected) in [("", vec![]), ("a", vec!["a"]), ("b,a,,a", vec!["a", "b"])] {
            assert_eq!(
                parse(&format!("--watch-namespace={flag}")).namespaces(),
                expected,
                "{flag:?}"
            );
        }
    }
}
