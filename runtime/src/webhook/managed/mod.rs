//! The certificate that an operator makes for its webhooks itself: no cert-manager, no files.
//!
//! A Secret holds it, so that all replicas serve the same one; whoever finds the Secret empty or the certificate due
//! writes a new one, and of two who do so at once the API server refuses one. Every replica follows the Secret, and
//! keeps the authority in the configurations that send the API server to this operator. What is to be in the Secret is
//! [`contents`]'s; where the authority goes is [`inject`]'s.

mod contents;
mod inject;
mod keeper;

use std::time::Duration;

use crate::args::ManagerArgs;
use crate::leader_election::pod_namespace;

pub(super) use inject::Targets;
pub(super) use keeper::{Injection, Keeper};

/// Name of the Secret unless said otherwise; kubebuilder's for cert-manager's.
const SECRET: &str = "webhook-server-cert";
/// cert-manager's.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A certificate that the manager makes for its webhooks, and renews, without any help from outside; see
/// [`Manager::webhook_certificate`](crate::Manager::webhook_certificate).
///
/// ```no_run
/// # use rbuilder::{Manager, webhook::ManagedCertificate};
/// # fn with(manager: Manager) -> Manager {
/// manager.webhook_certificate(ManagedCertificate::for_service("memcached-operator-webhook-service"))
/// # }
/// ```
///
/// It is kept in a Secret, so that all replicas serve the same. Its authority is written, as `caBundle`, into each
/// webhook configuration with a reference to the service, and into the CRDs of the kinds that are converted; again
/// whenever somebody takes it away, as a `kubectl apply` of manifests does. When two thirds of its life are over, it is
/// replaced: the new authority is trusted beside the old one until that has expired, and the new certificate is served
/// once the API server has had time to hear of it. No request fails, and nothing is restarted.
///
/// # Permissions
/// ```
/// # use rbuilder::rbac;
/// // In the namespace the operator runs in; `create` cannot be limited to a name.
/// #[rbac(groups = "", resources = "secrets", verbs = "create", namespace = "memcached-operator-system")]
/// #[rbac(
///     groups = "",
///     resources = "secrets",
///     resource_names = "webhook-server-cert",
///     verbs = "get;list;watch;update",
///     namespace = "memcached-operator-system"
/// )]
/// // With defaulters, validators or raw webhooks:
/// #[rbac(
///     groups = "admissionregistration.k8s.io",
///     resources = "mutatingwebhookconfigurations;validatingwebhookconfigurations",
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
/// Without `create`, the Secret has to be there: an empty one is filled in. One that holds what the manager did not
/// make is left alone, and the manager does not start.
#[derive(Clone, Debug)]
#[must_use = "hand it to `Manager::webhook_certificate`"]
pub struct ManagedCertificate {
    service: String,
    namespace: Option<String>,
    secret: String,
    lifetime: Duration,
}

impl ManagedCertificate {
    /// A certificate for the webhooks behind this service.
    pub fn for_service(name: impl Into<String>) -> Self {
        Self {
            service: name.into(),
            namespace: None,
            secret: SECRET.to_owned(),
            lifetime: LIFETIME,
        }
    }

    /// The namespace of the service and of the Secret; the one the process runs in unless said otherwise.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The name of the Secret; `webhook-server-cert` unless said otherwise.
    pub fn secret(mut self, name: impl Into<String>) -> Self {
        self.secret = name.into();
        self
    }

    /// For how long a certificate is valid; 90 days unless said otherwise. It is replaced after two thirds of that.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// What the flags ask for.
    pub(crate) fn from_args(args: &ManagerArgs) -> Option<Self> {
        let service = args
            .webhook_cert_service
            .as_deref()
            .filter(|name| !name.is_empty())?;
        Some(Self::for_service(service).secret(&args.webhook_cert_secret))
    }

    fn settle(self, default_namespace: &str) -> Settings {
        let namespace = self.namespace.or_else(pod_namespace);
        Settings {
            service: self.service,
            namespace: namespace.unwrap_or_else(|| default_namespace.to_owned()),
            secret: self.secret,
            lifetime: self.lifetime,
        }
    }
}

/// [`ManagedCertificate`] with nothing left open.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    service: String,
    /// Of the service and the Secret.
    namespace: String,
    secret: String,
    lifetime: Duration,
}

impl Settings {
    /// The name by which the API server asks.
    fn host(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }

    /// All names of the service.
    fn hosts(&self) -> Vec<String> {
        let (service, namespace) = (&self.service, &self.namespace);
        vec![
            self.host(),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            service.clone(),
        ]
    }

    /// How long the API server, all replicas of it, may take to hear of a new authority.
    fn spread(&self) -> Duration {
        (self.lifetime / 30).min(Duration::from_secs(60))
    }
}

/// Why the certificate, or its authority, is not where it should be.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error("failed to {verb} {what}: {reason}{}", advice(reason))]
    Request {
        verb: &'static str,
        what: String,
        reason: String,
    },
    #[error(
        "Secret {0} holds data that this manager did not write for its service, and was not changed; delete it, or use \
         another Secret"
    )]
    Foreign(String),
    #[error(
        "{0} has a `cert-manager.io/inject-…` annotation, so cert-manager injects its own CA bundle, and was not \
         changed; remove the annotation, or use cert-manager's certificate with --webhook-cert-path"
    )]
    Contested(String),
    #[error("repeated conflicts while updating Secret {0}")]
    RepeatedConflicts(String),
    #[error("failed to issue a certificate: {0}")]
    Make(String),
}

impl KeepError {
    /// Whether trying again can help without somebody's help.
    fn is_final(&self) -> bool {
        matches!(self, KeepError::Foreign(_) | KeepError::Make(_))
    }
}

fn advice(reason: &str) -> &'static str {
    if reason.contains("forbidden") {
        "; the documentation of `ManagedCertificate` lists the permissions it needs"
    } else {
        ""
    }
}
