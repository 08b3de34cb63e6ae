//! Error types.
//!
//! [`Error`] can hold any other error, so you can use `?` on everything that a reconcile function
//! calls. To access the cause, use [`Error::downcast_ref`]. `Error` also determines whether a
//! controller retries: terminal errors (see [`Error::terminal`]) are not retried, and conflicts are
//! not reported as errors unless they persist.
//!
//! Errors of the library itself have their own types, namely [`ManagerError`], [`OwnershipError`]
//! and [`FieldManagerConflict`].

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::Action;
use crate::causes::{causes_of, describe, describe_causes, is_refused};

/// Result of reconcile functions and of most functions in this library.
///
/// Thanks to the default type parameters, you can usually write `async fn reconcile(…) -> Result`.
pub type Result<T = Action, E = Error> = std::result::Result<T, E>;

/// A boxed error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// An error of any type, either terminal or retryable.
///
/// Every `std::error::Error` can be converted with `?`. Because of this conversion, `Error` cannot
/// implement `std::error::Error` itself, but `?` still converts it to a `Box<dyn Error>`.
///
/// The `Debug` output, which is shown if the error is returned from `main`, includes all causes.
pub struct Error {
    cause: BoxError,
    terminal: bool,
}

impl Error {
    /// Creates an error from another error, a string, or a boxed error like `anyhow::Error`.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        let cause = cause.into();
        match cause.downcast::<Carried>() {
            Ok(carried) => carried.0,
            Err(cause) => Self {
                cause,
                terminal: false,
            },
        }
    }

    /// Creates an error that retrying will not fix. The object isn't reconciled again until it
    /// changes.
    pub fn terminal(cause: impl Into<BoxError>) -> Self {
        Self {
            terminal: true,
            ..Self::new(cause)
        }
    }

    /// Returns `true` if this was created by [`Error::terminal`].
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns `true` if one of the causes is a 409 Conflict from the API server ("the object has
    /// been modified").
    ///
    /// Usually the cache was stale, and the next attempt will use the updated object. Controllers
    /// therefore retry up to four consecutive conflicts of an object without logging an error. From
    /// the fifth on, conflicts are handled like any other error.
    ///
    /// This includes [conflicts of field managers](Self::is_field_manager_conflict).
    pub fn is_conflict(&self) -> bool {
        self.conflicts().next().is_some()
    }

    /// Returns `true` if one of the causes is a server-side apply that was rejected because a field
    /// is owned by another field manager. The API server reports this as a 409 Conflict whose
    /// causes are `FieldManagerConflict`.
    ///
    /// Retrying does not help until the other manager gives up the field, so controllers log this
    /// as an error right away. It cannot happen for applies with `force`, which a
    /// [`Ctx`](crate::Ctx) uses unless you call [`without_force`](crate::Ctx::without_force). To
    /// find out the managers and fields, downcast to [`FieldManagerConflict`].
    pub fn is_field_manager_conflict(&self) -> bool {
        self.conflicts()
            .any(|status| field_conflicts_of(status).next().is_some())
    }

    /// Returns `true` if the API server rejected a request as malformed or invalid (400 or 422).
    pub(crate) fn is_refused(&self) -> bool {
        is_refused(self.cause.as_ref())
    }

    fn conflicts(&self) -> impl Iterator<Item = &Status> {
        let statuses = self.causes().filter_map(|cause| {
            let conflict = cause.downcast_ref::<FieldManagerConflict>();
            match cause.downcast_ref() {
                Some(kube::Error::Api(status)) => Some(&**status),
                _ => conflict.map(|conflict| &*conflict.status),
            }
        });
        statuses.filter(|status| status.is_conflict() && !status.is_already_exists())
    }

    /// Returns `true` if an owner is gone or being deleted, i.e. for
    /// [`OwnershipError::OwnerTerminating`] and [`OwnershipError::OwnerGone`].
    ///
    /// If the owner is the object being reconciled, just return the error with `?`. Controllers
    /// neither count it as a failure nor retry, because a deletion event will follow.
    pub fn is_owner_terminating(&self) -> bool {
        self.terminating_owners().next().is_some()
    }

    /// UIDs of the owners that are gone or being deleted according to this error.
    pub(crate) fn terminating_owners(&self) -> impl Iterator<Item = &str> {
        self.causes().filter_map(|cause| match cause.downcast_ref()? {
            OwnershipError::OwnerTerminating { uid, .. } | OwnershipError::OwnerGone { uid, .. } => {
                Some(&**uid)
            }
            _ => None,
        })
    }

    /// Returns the cause, if it's a `T`.
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        self.cause.downcast_ref()
    }

    fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        causes_of(self.cause.as_ref())
    }
}

impl fmt::Display for Error {
    /// Writes the message. The alternate form `{:#}` appends the messages of all causes that it
    /// doesn't already contain.
    ///
    /// A response of the API server is written as its message alone, unlike by [`kube::Error`],
    /// which adds a dump of all fields. Credentials that kube's own messages quote from a
    /// kubeconfig are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => f.write_str(&describe_causes(self.cause.as_ref())),
            false => f.write_str(&describe(self.cause.as_ref())),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Self::new(cause)
    }
}

impl From<Error> for BoxError {
    fn from(error: Error) -> Self {
        Box::new(Carried(error))
    }
}

impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Self {
        Box::new(Carried(error))
    }
}

/// Carries an [`Error`] inside a `Box<dyn Error>`, from which [`Error::new`] unwraps it.
struct Carried(Error);

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for Carried {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.source()
    }
}

/// Reasons for a manager to stop, or not to start in the first place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The name of a controller is used more than once, or is a former name of another one. Names are
    /// used as field managers and as labels of metrics, so they must be unique.
    #[error("duplicate controller name `{0}`; rename one of them with `.named(…)`")]
    DuplicateController(String),

    /// The value of a flag is invalid.
    #[error("invalid value `{value}` for --{flag}: {reason}")]
    Flag {
        /// Long name of the flag.
        flag: &'static str,
        /// The value.
        value: String,
        /// What's wrong with the value, and what was expected.
        reason: String,
    },

    /// The value of an environment variable is invalid.
    #[error("invalid value `{value}` for environment variable {variable}: {reason}")]
    Environment {
        /// Name of the variable.
        variable: &'static str,
        /// The value.
        value: String,
        /// What's wrong with the value, and what was expected.
        reason: String,
    },

    /// There is neither a kubeconfig nor a service account.
    #[error(
        "no cluster configuration found; set KUBECONFIG to the path of a kubeconfig, or run in a pod: {0}"
    )]
    NoCluster(
        /// Why neither can be used.
        String,
    ),

    /// The API server did not respond when the manager was started outside of a Pod. Within a Pod,
    /// the caches keep trying until [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
    #[error("{0}")]
    Unreachable(
        /// Address of the API server and all causes, e.g. `Connection refused`.
        String,
    ),

    /// The selection of a controller is invalid: it doesn't contain any namespaces (see
    /// [`Selection::namespaces`](crate::Selection::namespaces)), or there is a finalizer on objects
    /// that can leave the selection (see
    /// [`Controller::when_unselected`](crate::Controller::when_unselected)).
    #[error("invalid selection of {kind}: {reason}")]
    Selection {
        /// Kind and API version, e.g. `Memcached (cache.example.com/v1alpha1)`.
        kind: String,
        /// The problem, and how to fix it.
        reason: &'static str,
    },

    /// A controller is sharded by namespace, but its kind is cluster-scoped (see
    /// [`Controller::shard_by`](crate::Controller::shard_by)).
    #[error("cannot divide {0} by namespace, because it has none; remove `.shard_by(…)` from the controller")]
    ShardBy(
        /// Kind and API version, e.g. `Cluster (infra.example.com/v1)`.
        String,
    ),

    /// One of the servers could not be started.
    #[error("failed to start {server}: {reason}")]
    Server {
        /// Server name, e.g. `the metrics server`.
        server: &'static str,
        /// The cause. Includes the flag, and the address or file.
        reason: String,
    },

    /// The webhooks of the manager are invalid (e.g. there is a duplicate path or a contradictory
    /// conversion).
    #[error("{0}")]
    Webhook(String),

    /// A cache didn't sync in time. No controllers were started.
    #[error(
        "timed out after {} s waiting for the cache of {kind} to sync; last error: {last_error}",
        timeout.as_secs()
    )]
    CacheSync {
        /// Kind and API version, e.g. `Memcached (cache.example.com/v1alpha1)`.
        kind: String,
        /// The timeout that was exceeded, see
        /// [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
        timeout: Duration,
        /// Most recent error of the watch, e.g. because of a missing CRD or permission.
        last_error: String,
    },

    /// A [required](crate::ClusterConfig::required) cluster was not connected in time, or its
    /// caches didn't sync in time. No controllers were started.
    #[error("timed out after {} s waiting for the cluster `{cluster}`: {reason}", timeout.as_secs())]
    ClusterSync {
        /// Cluster name.
        cluster: String,
        /// The timeout that was exceeded, see
        /// [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
        timeout: Duration,
        /// Most recent error (e.g. that the kubeconfig is not readable).
        reason: String,
    },

    /// A cluster name is used more than once. Names are used as labels of metrics, so they must
    /// be unique.
    #[error("duplicate cluster name `{0}`; give one of them another name")]
    DuplicateCluster(String),

    /// Part of the manager failed, panicked, or exited unexpectedly.
    #[error("{part} stopped: {reason}")]
    Part {
        /// Name of the part, e.g. `controller memcached` or `cache of Deployment (apps/v1)`.
        part: String,
        /// The error message or panic message.
        reason: String,
    },

    /// Some reconciles or tasks did not finish within the grace period, and were cancelled.
    #[error("{parts} did not stop within the grace period of {} s", grace.as_secs())]
    GracePeriod {
        /// Names of the parts that the reconciles or tasks belong to, separated by commas.
        parts: String,
        /// The grace period, see [`grace_period`](crate::Manager::grace_period).
        grace: Duration,
    },

    /// The durations for leader election contradict each other.
    #[error("invalid leader election settings: {0}")]
    LeaseTimes(String),

    /// The lease was not renewed in time, or was acquired by another process.
    #[error("leader election lost: {0}")]
    LeaderElectionLost(String),

    /// Both sharding and leader election are enabled.
    #[error(
        "`--shards` and `--leader-elect` exclude each other: with shards, every replica works; remove `--leader-elect`"
    )]
    ShardsWithLeader,

    /// The lease of this replica was lost, so another replica may have taken over its ranges.
    #[error("shards lost: {0}")]
    ShardsLost(String),
}

/// Errors when applying or creating an object with an owner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnershipError {
    /// The object has another controller.
    #[error("{object} is already owned by {owner}; it was not changed")]
    AlreadyOwned {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind and name of its current controller.
        owner: String,
    },

    /// The object is owned by a deleted object with the same kind and name as the owner, but a
    /// different UID. Retrying succeeds once the garbage collector has deleted the object.
    #[error(
        "{object} is owned by a deleted {owner} with uid {uid}; it was not changed, and can be created again once the \
         garbage collector has deleted it"
    )]
    OwnedByNamesake {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner, which the deleted owner has in common.
        owner: String,
        /// UID in the object's owner reference.
        uid: String,
    },

    /// The object exists and is not controlled by the owner. It may not have a controller at all.
    #[error(
        "{object} already exists and is not controlled by {owner}; it was not changed. If it has no controller, a \
         single `ctx.apply_owned` makes the owner its controller; otherwise delete it or choose another name"
    )]
    NotOwned {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
    },

    /// The scopes do not match: the owner is in a different namespace, or it's namespaced while the
    /// object is cluster-scoped.
    #[error("{owner} cannot own {object}: an owner must be cluster-scoped or in the same namespace")]
    Scope {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
    },

    /// The set of another controller with the same owner contains the object. See
    /// [`Ctx::apply_set`](crate::Ctx::apply_set).
    #[error(
        "{object} is in the set of the controller `{other}` of {owner}, and was not changed by `{controller}`; remove it \
         from one of the sets, or add `.renamed_from(\"{other}\")` if that is a former name of the controller"
    )]
    InOtherSet {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// Name of the controller that failed to apply the object.
        controller: String,
        /// Name of the controller whose set contains the object.
        other: String,
    },

    /// The object needs a namespace, and its owner is cluster-scoped.
    #[error("{object} needs a namespace, and its owner {owner} has none; set `metadata.namespace`")]
    NoNamespace {
        /// Kind and name of the object.
        object: String,
        /// Kind and name of the owner.
        owner: String,
    },

    /// The owner is being deleted.
    ///
    /// The garbage collector will delete its dependents, or orphan them with `kubectl delete
    /// --cascade=orphan`. No new dependents may be added, nor orphaned ones adopted.
    #[error("{owner} is being deleted and cannot own {object}, which was not changed")]
    OwnerTerminating {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// UID of the owner.
        uid: String,
    },

    /// The owner no longer exists, but the caches haven't caught up yet. Another object with the
    /// same name may already exist.
    #[error("{owner} with uid {uid} was deleted and cannot own {object}, which was not changed")]
    OwnerGone {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// Owner UID.
        uid: String,
    },

    /// The owner doesn't have `apiVersion` and `kind`. This only applies to kinds known at runtime.
    #[error(
        "`{0}` has no API version and kind and cannot be an owner; use the object that the API server returned"
    )]
    NoKind(String),

    /// The owner is in another cluster.
    ///
    /// The garbage collector would not find such an owner, conclude that it is gone, and delete the
    /// object.
    #[error(
        "{owner} of {owner_cluster} cannot own {object} in {cluster}: owner references do not reach other clusters; apply \
         it without an owner and with a label or an annotation that names {owner}, map it back with `Watch::in_cluster`, \
         and delete it in a finalizer"
    )]
    OtherCluster {
        /// Kind, namespace and name of the object.
        object: String,
        /// Cluster that contains the object.
        cluster: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// Cluster that contains the owner.
        owner_cluster: String,
    },

    /// The owner has no UID, which means that it was not read from the API server.
    #[error("{0} has no uid and cannot be an owner; use the object that the API server returned")]
    NoUid(String),
}

/// A server-side apply was rejected because some of its fields are owned by other field managers.
/// The object was not modified.
///
/// Only occurs without `force`. It is the same error that `kubectl apply --server-side` reports
/// without `--force-conflicts`.
#[derive(Debug, thiserror::Error)]
#[error("{object} was not applied, other field managers own its fields: {}", describe_fields(.fields))]
#[non_exhaustive]
pub struct FieldManagerConflict {
    /// Kind, namespace and name of the object.
    pub object: String,
    /// Fields with a conflict and their managers, in the order of the API server's response. If a
    /// field has several managers, there is an entry for each of them.
    pub fields: Vec<OwnedField>,
    /// Response of the API server.
    pub status: Box<Status>,
}

/// A field, and a field manager that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedField {
    /// Field path, e.g. `.spec.replicas` or `.spec.containers[name="web"].image`.
    pub field: String,
    /// Name of the field manager, e.g. `kubectl-client-side-apply`.
    pub manager: String,
}

impl FieldManagerConflict {
    /// `status` is the response to an apply of `object`. Returns `None` unless it is a conflict of
    /// field managers.
    pub(crate) fn find(object: String, status: &Status) -> Option<Self> {
        let fields: Vec<OwnedField> = field_conflicts_of(status).collect();
        (!fields.is_empty()).then(|| Self {
            object,
            fields,
            status: Box::new(status.clone()),
        })
    }
}

fn field_conflicts_of(status: &Status) -> impl Iterator<Item = OwnedField> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    causes.map(|cause| OwnedField {
        field: cause.field.clone(),
        manager: parse_manager(&cause.message).unwrap_or_else(|| cause.message.clone()),
    })
}

/// Parses the manager in a message like `conflict with "kubectl" using v1`.
fn parse_manager(message: &str) -> Option<String> {
    let quoted = message.strip_prefix("conflict with ")?;
    // Go quotes with `%q`, which looks like JSON here.
    let mut strings = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
    strings.next()?.ok()
}

fn describe_fields(fields: &[OwnedField]) -> String {
    let fields = fields
        .iter()
        .map(|OwnedField { field, manager }| format!("`{field}` (`{manager}`)"));
    fields.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict() -> kube::Error {
        kube::Error::Api(
            kube::core::Status::failure("it changed", "Conflict")
                .with_code(409)
                .boxed(),
        )
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot scale")]
    struct Wrapped(#[source] kube::Error);

    #[test]
    fn question_mark_converts_any_error_and_keeps_its_type() {
        fn fails() -> Result<()> {
            Err(serde_json::from_str::<u8>("x").unwrap_err())?
        }
        let error = fails().unwrap_err();
        assert!(error.downcast_ref::<serde_json::Error>().is_some());
        assert!(!error.is_terminal());
    }

    #[test]
    fn terminal_survives_boxing() {
        let boxed: BoxError = Error::terminal("deployment name must be specified").into();
        assert_eq!(boxed.to_string(), "deployment name must be specified");
        assert!(Error::new(boxed).is_terminal());
    }

    #[test]
    fn conflicts_are_found_in_the_causes_of_custom_errors() {
        let gone = kube::Error::Api(
            kube::core::Status::failure("gone", "NotFound")
                .with_code(404)
                .boxed(),
        );
        let exists = kube::Error::Api(
            kube::core::Status::failure("there", "AlreadyExists")
                .with_code(409)
                .boxed(),
        );
        let cases = [
            (Error::from(conflict()), true),
            (Error::from(Wrapped(conflict())), true),
            (Error::from(gone), false),
            (Error::from(exists), false),
            (Error::new("text"), false),
        ];
        for (error, expected) in cases {
            assert_eq!(error.is_conflict(), expected, "{error:?}");
        }
    }

    #[test]
    fn field_manager_conflicts_are_distinguished_from_others() {
        // Response of kube-apiserver.
        let refused = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409,
            "message": "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.text",
            "reason": "Conflict",
            "details": { "causes": [{
                "reason": "FieldManagerConflict",
                "message": "conflict with \"kubectl\" using v1",
                "field": ".data.text",
            }] },
        });
        let refused: Status = serde_json::from_value(refused).unwrap();
        let error = Error::from(Wrapped(kube::Error::Api(refused.boxed())));
        assert!(error.is_field_manager_conflict() && error.is_conflict());
        assert!(!Error::from(conflict()).is_field_manager_conflict());
        assert!(!Error::new("text").is_field_manager_conflict());
    }

    #[test]
    fn field_manager_conflict_names_fields_and_managers() {
        let causes = [
            (".data.text", "conflict with \"kubectl\" using v1"),
            (
                ".data.b",
                "conflict with \"the \\\"other\\\" one\" with subresource \"status\" using v1 at 2026-01-02T03:04:05Z",
            ),
            (".data.c", "a message of another form"),
        ];
        let causes = causes.map(|(field, message)| {
            serde_json::json!({ "reason": "FieldManagerConflict", "field": field, "message": message })
        });
        let status = serde_json::json!({
            "status": "Failure", "code": 409, "reason": "Conflict", "message": "Apply failed",
            "details": { "causes": causes },
        });
        let status: Status = serde_json::from_value(status).unwrap();
        let error = FieldManagerConflict::find("ConfigMap a/b".to_owned(), &status).unwrap();
        assert_eq!(
            error.to_string(),
            "ConfigMap a/b was not applied, other field managers own its fields: `.data.text` (`kubectl`), \
             `.data.b` (`the \"other\" one`), `.data.c` (`a message of another form`)"
        );
        let error = Error::from(error);
        assert!(error.is_field_manager_conflict() && error.is_conflict());
        let modified = Status::failure("the object has been modified", "Conflict").with_code(409);
        assert!(FieldManagerConflict::find(String::new(), &modified).is_none());
    }

    #[test]
    fn alternate_display_contains_each_cause_once() {
        let error = Error::from(Wrapped(conflict()));
        assert_eq!(format!("{error}"), "cannot scale");
        let long = format!("{error:#}");
        assert_eq!(long, "cannot scale: it changed");
    }
}
