//! Webhook certificates that are issued and rotated by the operator itself, without cert-manager or
//! files.
//!
//! All replicas serve the same certificate, since it's stored in a Secret. If the Secret is empty
//! or the certificate is due for renewal, the first replica to notice writes a new one. If two
//! replicas try concurrently, one gets a conflict. Each replica also watches the Secret, and
//! maintains the CA bundle in webhook configurations and CRDs that refer to the operator's service.
//!
//! [`contents`] determines the contents of the Secret, [`inject`] updates CA bundles, and
//! [`keeper`] runs both.

mod contents;
mod inject;
mod keeper;

use std::time::Duration;

use kube::api::PostParams;

use crate::args::ManagerArgs;
use crate::leader_election::pod_namespace;

pub(super) use inject::{ConfigurationKind, Targets};
pub(super) use keeper::{Injection, Keeper};

/// Same name as kubebuilder uses with cert-manager.
const SECRET: &str = "webhook-server-cert";
const FIELD_MANAGER: &str = "rbuilder-webhook-certificate";
/// Same default as in cert-manager.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A webhook certificate that is issued and rotated by the manager. See
/// [`Manager::webhook_certificate`](crate::Manager::webhook_certificate).
///
/// ```no_run
/// # use rbuilder::{Manager, webhook::ManagedCertificate};
/// # fn with(manager: Manager) -> Manager {
/// manager.webhook_certificate(ManagedCertificate::for_service("memcached-operator-webhook-service"))
/// # }
/// ```
///
/// All replicas serve the same certificate, since it's stored in a Secret. The manager sets its CA
/// as the `caBundle` of all webhook configurations that refer to the service, and of CRDs with
/// conversions. A lost bundle is restored, e.g. after `kubectl apply` of the manifests. While an
/// object is missing or doesn't refer to the service, `/readyz` fails with its name.
///
/// The certificate is rotated after two thirds of its lifetime, without any failed requests or
/// restarts. From then on, the new CA is trusted in addition to the old one, until the old one
/// expires. The new certificate is not served immediately, because it takes some time until all API
/// servers have picked up the new CA.
///
/// # Permissions
///
/// ```
/// # use rbuilder::rbac;
/// // In the operator's namespace; `create` cannot be restricted to a name.
/// #[rbac(groups = "", resources = "secrets", verbs = "create", namespace = "memcached-operator-system")]
/// #[rbac(
///     groups = "",
///     resources = "secrets",
///     resource_names = "webhook-server-cert",
///     verbs = "get;list;watch;update",
///     namespace = "memcached-operator-system"
/// )]
/// // With defaulters or raw webhooks; `resource_names` only with `mutating_configuration`:
/// #[rbac(
///     groups = "admissionregistration.k8s.io",
///     resources = "mutatingwebhookconfigurations",
///     resource_names = "memcached-operator-mutating-webhook-configuration",
///     verbs = "get;list;watch;update"
/// )]
/// // With validators or raw webhooks; `resource_names` only with `validating_configuration`:
/// #[rbac(
///     groups = "admissionregistration.k8s.io",
///     resources = "validatingwebhookconfigurations",
///     resource_names = "memcached-operator-validating-webhook-configuration",
///     verbs = "get;list;watch;update"
/// )]
/// // With conversions:
/// #[rbac(
///     groups = "apiextensions.k8s.io",
///     resources = "customresourcedefinitions",
///     resource_names = "memcacheds.cache.example.com",
///     verbs = "get;list;watch;update"
/// )]
/// # fn rights() {}
/// ```
///
/// Without the permission for `create`, the Secret must exist, and may be empty. If it contains
/// data that was not written by the manager, it's not modified and the manager does not start.
#[derive(Clone, Debug)]
#[must_use = "pass it to `Manager::webhook_certificate`"]
pub struct ManagedCertificate {
    service: String,
    namespace: Option<String>,
    secret: String,
    lifetime: Duration,
    configurations: Configurations,
}

/// `None` means all configurations that refer to the service.
#[derive(Clone, Debug, Default)]
struct Configurations {
    mutating: Option<String>,
    validating: Option<String>,
}

impl ManagedCertificate {
    /// Creates a certificate for webhooks that are called through the given service.
    pub fn for_service(name: impl Into<String>) -> Self {
        Self {
            service: name.into(),
            namespace: None,
            secret: SECRET.to_owned(),
            lifetime: LIFETIME,
            configurations: Configurations::default(),
        }
    }

    /// Sets the name of the `MutatingWebhookConfiguration`. By default, the manager maintains all
    /// configurations that refer to the service. With a name, it needs no permissions for others.
    pub fn mutating_configuration(mut self, name: impl Into<String>) -> Self {
        self.configurations.mutating = Some(name.into());
        self
    }

    /// Sets the name of the `ValidatingWebhookConfiguration`. By default, the manager maintains all
    /// configurations that refer to the service. With a name, it needs no permissions for others.
    pub fn validating_configuration(mut self, name: impl Into<String>) -> Self {
        self.configurations.validating = Some(name.into());
        self
    }

    /// Sets the namespace of the service and of the Secret. Defaults to the namespace in which the
    /// process is running.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the Secret's name. Defaults to `webhook-server-cert`.
    pub fn secret(mut self, name: impl Into<String>) -> Self {
        self.secret = name.into();
        self
    }

    /// Sets the lifetime of certificates. Defaults to 90 days. They are rotated after two thirds of
    /// their lifetime.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Returns the certificate requested by the flags, if any.
    pub(crate) fn from_args(args: &ManagerArgs) -> Option<Self> {
        let service = args
            .webhook_cert_service
            .as_deref()
            .filter(|name| !name.is_empty())?;
        let name = |flag: &Option<String>| flag.clone().filter(|name| !name.is_empty());
        Some(Self {
            configurations: Configurations {
                mutating: name(&args.mutating_webhook_configuration),
                validating: name(&args.validating_webhook_configuration),
            },
            ..Self::for_service(service).secret(&args.webhook_cert_secret)
        })
    }

    fn into_settings(self, default_namespace: &str) -> Settings {
        let namespace = self.namespace.or_else(pod_namespace);
        Settings {
            service: self.service,
            namespace: namespace.unwrap_or_else(|| default_namespace.to_owned()),
            secret: self.secret,
            lifetime: self.lifetime,
            configurations: self.configurations,
        }
    }
}

fn post_params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A [`ManagedCertificate`] with all defaults filled in.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    service: String,
    namespace: String,
    secret: String,
    lifetime: Duration,
    configurations: Configurations,
}

impl Settings {
    /// `None` means all configurations that refer to the service.
    fn configuration(&self, kind: ConfigurationKind) -> Option<&str> {
        match kind {
            ConfigurationKind::Mutating => self.configurations.mutating.as_deref(),
            ConfigurationKind::Validating => self.configurations.validating.as_deref(),
        }
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.service)
    }

    /// Host name that the API server uses.
    fn host(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }

    fn hosts(&self) -> Vec<String> {
        let (service, namespace) = (&self.service, &self.namespace);
        vec![
            self.host(),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            service.clone(),
        ]
    }

    /// Delay until all replicas of the API server have picked up a new CA bundle.
    fn propagation_delay(&self) -> Duration {
        (self.lifetime / 30).min(Duration::from_secs(60))
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum KeeperError {
    #[error("failed to {verb} {what}: {reason}{}", permission_hint(reason))]
    Request {
        verb: &'static str,
        what: String,
        reason: String,
        /// Set if the API server was unreachable, which the client has already logged.
        is_unreachable: bool,
    },
    #[error(
        "Secret {0} holds data that this manager did not write for its service, and was not changed; delete it, or use \
         another Secret"
    )]
    ForeignData(String),
    #[error(
        "{0} has a `cert-manager.io/inject-…` annotation, so cert-manager injects its own CA bundle, and was not \
         changed; remove the annotation, or use cert-manager's certificate with --webhook-cert-path"
    )]
    ManagedByCertManager(String),
    #[error("repeated conflicts while updating Secret {0}")]
    RepeatedConflicts(String),
    #[error("failed to issue a certificate: {0}")]
    Issue(String),
}

impl KeeperError {
    /// Returns `true` if the API server was unreachable, which the client has already logged.
    fn is_unreachable(&self) -> bool {
        matches!(
            self,
            KeeperError::Request {
                is_unreachable: true,
                ..
            }
        )
    }

    /// Retrying these errors is pointless without manual intervention.
    fn is_terminal(&self) -> bool {
        matches!(self, KeeperError::ForeignData(_) | KeeperError::Issue(_))
    }
}

/// Empty unless the reason is a missing permission.
fn permission_hint(reason: &str) -> &'static str {
    if reason.contains("forbidden") {
        "; the documentation of `ManagedCertificate` lists the permissions it needs"
    } else {
        ""
    }
}
