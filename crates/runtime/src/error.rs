//! Error types.
//!
//! [`Error`] wraps any error, so that `?` works on everything a reconcile function calls; the cause stays accessible
//! by type through [`Error::downcast_ref`]. It also tells a controller whether to retry: a terminal error
//! ([`Error::terminal`]) is not retried, and a conflict is retried without being reported as a failure at first.
//! Failures of the library itself are typed: [`ManagerError`], [`OwnershipError`] and [`FieldManagerConflict`].

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::Action;

/// The result type of reconcile functions and of most of this library.
///
/// The default type parameters make the usual signature short: `async fn reconcile(…) -> Result`.
pub type Result<T = Action, E = Error> = std::result::Result<T, E>;

/// A boxed error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// An error of any type, marked as terminal or retryable.
///
/// `?` converts every `std::error::Error` into it. It does not implement `std::error::Error`
/// itself, because that would conflict with this conversion; `?` also converts it into a `Box<dyn
/// Error>`.
///
/// `Debug` prints the message and its causes, so returning it from `main` reports both.
pub struct Error {
    cause: BoxError,
    terminal: bool,
}

impl Error {
    /// Creates an error from another error, a message, or a boxed error such as `anyhow::Error`.
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

    /// Creates an error that retrying cannot fix: the object is reconciled again only when it changes.
    pub fn terminal(cause: impl Into<BoxError>) -> Self {
        Self {
            terminal: true,
            ..Self::new(cause)
        }
    }

    /// Returns `true` if the error was created with [`Error::terminal`].
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns `true` if one of the causes is the API server's "the object has been modified" (409 Conflict).
    ///
    /// Such an error usually means that the cache lagged behind, and the next attempt reads the
    /// newer object. A controller therefore retries up to four conflicts in a row for an object
    /// without logging an error; from the fifth on it treats them like any other error. [Conflicts
    /// of field managers](Self::is_field_manager_conflict) are included.
    pub fn is_conflict(&self) -> bool {
        self.conflicts().next().is_some()
    }

    /// Returns `true` if one of the causes is a server-side apply that the API server rejected
    /// because another field manager owns a field (409 Conflict with causes
    /// `FieldManagerConflict`).
    ///
    /// A retry does not help until the other manager gives up the field, so a controller logs it as
    /// an error at once. Applies with `force` never fail this way; a [`Ctx`](crate::Ctx) forces by
    /// default, unless it is [`without_force`](crate::Ctx::without_force). For the managers and
    /// fields, downcast to [`FieldManagerConflict`].
    pub fn is_field_manager_conflict(&self) -> bool {
        self.conflicts()
            .any(|status| field_conflicts_of(status).next().is_some())
    }

    /// Returns `true` if one of the causes is an API server response that rejects a request as
    /// malformed or invalid (400 or 422).
    pub(crate) fn is_refused(&self) -> bool {
        self.causes().any(|cause| {
            matches!(cause.downcast_ref(), Some(kube::Error::Api(status)) if [400, 422].contains(&status.code))
        })
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

    /// Returns `true` if the cause is that an owner is being deleted or gone:
    /// [`OwnershipError::OwnerTerminating`] or [`OwnershipError::OwnerGone`].
    ///
    /// A reconcile can return such an error about its own object with `?`. The controller neither
    /// counts it as a failure nor retries, because a deletion event for the object follows.
    pub fn is_owner_terminating(&self) -> bool {
        self.terminating_owners().next().is_some()
    }

    /// Returns the UIDs of the owners that are being deleted or gone, according to the causes of
    /// this error.
    pub(crate) fn terminating_owners(&self) -> impl Iterator<Item = &str> {
        self.causes().filter_map(|cause| match cause.downcast_ref()? {
            OwnershipError::OwnerTerminating { uid, .. } | OwnershipError::OwnerGone { uid, .. } => {
                Some(&**uid)
            }
            _ => None,
        })
    }

    /// Returns the cause if it is of type `T`.
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        self.cause.downcast_ref()
    }

    fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        causes_of(self.cause.as_ref())
    }
}

/// Iterates over an error and its chain of sources.
pub(crate) fn causes_of<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn StdError + 'static)| {
        (*cause).source()
    })
}

/// Joins the messages of an error and its causes, skipping a message that the previous one already
/// contains.
pub(crate) fn describe_causes(error: &(dyn StdError + 'static)) -> String {
    let mut said = Vec::<String>::new();
    for message in causes_of(error).map(ToString::to_string) {
        if said.last().is_none_or(|last| !last.contains(&message)) {
            said.push(message);
        }
    }
    said.join(": ")
}

impl fmt::Display for Error {
    /// Writes the message. With `{:#}`, also writes the messages of its causes, unless the message
    /// already contains them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => f.write_str(&describe_causes(self.cause.as_ref())),
            false => write!(f, "{}", self.cause),
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

/// An [`Error`] inside a `Box<dyn Error>`; [`Error::new`] unwraps it.
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

/// The error with which a manager failed to start or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// Two controllers have the same name. Names must be unique because they are metric labels and field managers.
    #[error("duplicate controller name `{0}`; rename one of them with `.named(…)`")]
    DuplicateController(String),

    /// A flag has an invalid value.
    #[error("invalid value `{value}` for --{flag}: {reason}")]
    Flag {
        /// The flag's long name.
        flag: &'static str,
        /// The value found.
        value: String,
        /// The problem, and the values expected.
        reason: String,
    },

    /// An environment variable has an invalid value.
    #[error("invalid value `{value}` for environment variable {variable}: {reason}")]
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// The value found.
        value: String,
        /// The problem, and the values expected.
        reason: String,
    },

    /// Neither a kubeconfig nor a pod's service account was found.
    #[error(
        "no cluster configuration found; set KUBECONFIG to the path of a kubeconfig, or run in a pod: {0}"
    )]
    NoCluster(#[from] kube::config::InferConfigError),

    /// The API server did not answer when the manager started outside of a pod. Inside a pod, the
    /// caches retry until [`cache_sync_timeout`](crate::Manager::cache_sync_timeout) instead.
    #[error("{0}")]
    Unreachable(
        /// The address of the API server, and all causes, such as `Connection refused`.
        String,
    ),

    /// A controller selects objects in no namespace (see
    /// [`Selection::namespaces`](crate::Selection::namespaces)), or has a finalizer on objects that
    /// can leave its selection (see
    /// [`Controller::when_unselected`](crate::Controller::when_unselected)).
    #[error("invalid selection of {kind}: {reason}")]
    Selection {
        /// Kind and API version, such as `Memcached (cache.example.com/v1alpha1)`.
        kind: String,
        /// The problem and how to fix it.
        reason: &'static str,
    },

    /// A controller of a kind without namespaces is divided by namespace (see
    /// [`Controller::shard_by`](crate::Controller::shard_by)).
    #[error("cannot divide {0} by namespace, because it has none; remove `.shard_by(…)` from the controller")]
    ShardBy(
        /// Kind and API version, such as `Cluster (infra.example.com/v1)`.
        String,
    ),

    /// A server enabled by the flags failed to start.
    #[error("failed to start {server}: {reason}")]
    Server {
        /// The server, such as `the metrics server`.
        server: &'static str,
        /// The cause, with the flag and the address or file.
        reason: String,
    },

    /// The webhooks added to the manager are invalid: a bad or duplicate path, or contradictory conversions.
    #[error("{0}")]
    Webhook(String),

    /// A cache did not sync in time. No controller was started.
    #[error(
        "timed out after {} s waiting for the cache of {kind} to sync; last error: {last_error}",
        timeout.as_secs()
    )]
    CacheSync {
        /// Kind and API version, such as `Memcached (cache.example.com/v1alpha1)`.
        kind: String,
        /// The timeout; see [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
        timeout: Duration,
        /// The last error of the watch, such as a missing CRD or a missing permission.
        last_error: String,
    },

    /// A [required](crate::ClusterConfig::required) cluster was not connected in time, or its
    /// caches did not sync in time. No controller was started.
    #[error("timed out after {} s waiting for the cluster `{cluster}`: {reason}", timeout.as_secs())]
    ClusterSync {
        /// The name of the cluster.
        cluster: String,
        /// The timeout; see [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
        timeout: Duration,
        /// The last error, such as an unreadable kubeconfig.
        reason: String,
    },

    /// Two clusters have the same name. Names must be unique because they are metric labels.
    #[error("duplicate cluster name `{0}`; give one of them another name")]
    DuplicateCluster(String),

    /// A component of the manager failed, panicked or exited before it was asked to.
    #[error("{part} stopped: {reason}")]
    Part {
        /// The component, such as `controller memcached` or `cache of Deployment (apps/v1)`.
        part: String,
        /// The error or panic message.
        reason: String,
    },

    /// Reconciles or tasks were still running when the grace period ended, and were cancelled.
    #[error("{parts} did not stop within the grace period of {} s", grace.as_secs())]
    GracePeriod {
        /// The components, separated by commas.
        parts: String,
        /// The grace period; see [`grace_period`](crate::Manager::grace_period).
        grace: Duration,
    },

    /// The durations of leader election are inconsistent.
    #[error("invalid leader election settings: {0}")]
    LeaseTimes(String),

    /// The lease could not be renewed in time or is held by another process.
    #[error("leader election lost: {0}")]
    LeaderElectionLost(String),

    /// The operator is both sharded and elects a leader.
    #[error(
        "`--shards` and `--leader-elect` exclude each other: with shards, every replica works; remove `--leader-elect`"
    )]
    ShardsWithLeader,

    /// The ranges of this replica may belong to another one by now.
    #[error("shards lost: {0}")]
    ShardsLost(String),
}

/// An error from applying or creating an object with an owner that it cannot have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnershipError {
    /// The object exists and has another controller.
    #[error("{object} is already owned by {owner}; it was not changed")]
    AlreadyOwned {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind and name of its controller.
        owner: String,
    },

    /// The object exists and is owned by an object of the same kind and name but with another UID,
    /// which was deleted and created again. A retry succeeds once the garbage collector has deleted
    /// the object.
    #[error(
        "{object} is owned by a deleted {owner} with uid {uid}; it was not changed, and can be created again once the \
         garbage collector has deleted it"
    )]
    OwnedByNamesake {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of both owners.
        owner: String,
        /// The uid in the object's owner reference.
        uid: String,
    },

    /// The object exists and the owner is not its controller. It may have no controller.
    #[error("{object} already exists and is not controlled by {owner}; it was not changed")]
    NotOwned {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the intended owner.
        owner: String,
    },

    /// Owner and object are in different namespaces, or a namespaced owner would own a cluster-scoped object.
    #[error("{owner} cannot own {object}: an owner must be cluster-scoped or in the same namespace")]
    Scope {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
    },

    /// The owner is being deleted. The garbage collector deletes or orphans (`kubectl delete
    /// --cascade=orphan`) its dependents, so it gets no new ones, and orphaned objects are not
    /// adopted again.
    #[error("{owner} is being deleted and cannot own {object}, which was not changed")]
    OwnerTerminating {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// The uid of the owner.
        uid: String,
    },

    /// The owner was deleted, and another object with its name may exist by now. The caches had not
    /// caught up yet.
    #[error("{owner} with uid {uid} was deleted and cannot own {object}, which was not changed")]
    OwnerGone {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// The uid of the owner.
        uid: String,
    },

    /// The owner is of a kind known only at run time and has no `apiVersion` or `kind`.
    #[error(
        "`{0}` has no API version and kind and cannot be an owner; use the object that the API server returned"
    )]
    NoKind(String),

    /// The owner is in a different cluster than the object. Owner references do not reach across
    /// clusters: the garbage collector would conclude that the owner is gone and delete the object.
    #[error(
        "{owner} of {owner_cluster} cannot own {object} in {cluster}: owner references do not reach other clusters; apply \
         it without an owner and with a label or an annotation that names {owner}, map it back with `Watch::in_cluster`, \
         and delete it in a finalizer"
    )]
    OtherCluster {
        /// Kind, namespace and name of the object.
        object: String,
        /// The cluster of the object.
        cluster: String,
        /// Kind, namespace and name of the owner.
        owner: String,
        /// The cluster of the owner.
        owner_cluster: String,
    },

    /// The owner was not read from the API server.
    #[error("{0} has no uid and cannot be an owner; use the object that the API server returned")]
    NoUid(String),
}

/// A server-side apply without `force` that the API server rejected because other field managers
/// own some of the fields, like `kubectl apply --server-side` without `--force-conflicts`. The
/// object was not changed.
#[derive(Debug, thiserror::Error)]
#[error("{object} was not applied, other field managers own its fields: {}", describe_fields(.fields))]
#[non_exhaustive]
pub struct FieldManagerConflict {
    /// Kind, namespace and name of the object.
    pub object: String,
    /// The conflicting fields and their managers, in the API server's order. A field with several
    /// managers appears once for each.
    pub fields: Vec<OwnedField>,
    /// The response of the API server.
    pub status: Box<Status>,
}

/// A field of an object and a field manager that owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedField {
    /// Path of the field, such as `.spec.replicas` or `.spec.containers[name="web"].image`.
    pub field: String,
    /// Name of the field manager, such as `kubectl-client-side-apply`.
    pub manager: String,
}

impl FieldManagerConflict {
    /// Builds the error from the API server's response to an apply of `object`. Returns `None` if
    /// the response has other causes than field manager conflicts.
    pub(crate) fn find(object: String, status: &Status) -> Option<Self> {
        let fields: Vec<OwnedField> = field_conflicts_of(status).collect();
        (!fields.is_empty()).then(|| Self {
            object,
            fields,
            status: Box::new(status.clone()),
        })
    }
}

/// Returns the conflicting fields listed in the API server's response to an apply.
fn field_conflicts_of(status: &Status) -> impl Iterator<Item = OwnedField> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    causes.map(|cause| OwnedField {
        field: cause.field.clone(),
        manager: parse_manager(&cause.message).unwrap_or_else(|| cause.message.clone()),
    })
}

/// Parses the manager from a message such as `conflict with "kubectl" using v1`. The name is quoted
/// with Go's `%q`.
fn parse_manager(message: &str) -> Option<String> {
    let quoted = message.strip_prefix("conflict with ")?;
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
        // The response of kube-apiserver.
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
        assert!(long.starts_with("cannot scale: ApiError: it changed"), "{long}");
        assert_eq!(long.matches("it changed").count(), 2, "{long}");
    }
}
