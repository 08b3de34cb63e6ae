//! What can go wrong, for people and for the controller that decides whether to try again.
//!
//! [`Error`] carries any error, so that `?` works on everything a reconciler calls; the cause stays reachable
//! by type through [`Error::downcast_ref`]. It adds the two things a controller must know: whether trying
//! again can help ([`Error::terminal`]), and whether the cause is a conflict that the next try resolves.
//! Failures of the runtime itself are typed: [`ManagerError`] and [`OwnershipError`].

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::Action;

/// What reconcilers, and most of this library, return.
///
/// The defaults make the usual signature short: `async fn reconcile(…) -> Result`.
pub type Result<T = Action, E = Error> = std::result::Result<T, E>;

/// A boxed error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Any error, with what a controller needs to know about it.
///
/// Every `std::error::Error` turns into it through `?`. It does not implement `std::error::Error` itself (the
/// two exclude each other); where one is asked for, `?` turns it into a `Box<dyn Error>`.
///
/// `Debug` prints the message and its causes, so a `main` that returns it says what happened.
pub struct Error {
    cause: BoxError,
    terminal: bool,
}

impl Error {
    /// An error from anything that is an error, a message, or a boxed error such as `anyhow::Error`.
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

    /// An error that trying again cannot cure: the object is reconciled again only when it changes.
    pub fn terminal(cause: impl Into<BoxError>) -> Self {
        Self {
            terminal: true,
            ..Self::new(cause)
        }
    }

    /// Whether the error was made with [`Error::terminal`].
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether somewhere among the causes is the API server's "this object has been modified" (409 Conflict).
    ///
    /// Such an error only says that the cache was behind; the next try reads the newer object.
    pub fn is_conflict(&self) -> bool {
        self.causes().filter_map(|cause| cause.downcast_ref::<kube::Error>()).any(
            |error| matches!(error, kube::Error::Api(status) if status.is_conflict() && !status.is_already_exists()),
        )
    }

    /// The cause, when it is a `T`.
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        self.cause.downcast_ref()
    }

    fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: &(dyn StdError + 'static) = self.cause.as_ref();
        std::iter::successors(Some(first), |cause: &&(dyn StdError + 'static)| (*cause).source())
    }
}

impl fmt::Display for Error {
    /// The message; with `{:#}`, followed by the messages of its causes that it does not already contain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.cause.to_string();
        f.write_str(&said)?;
        if f.alternate() {
            for cause in self.causes().skip(1) {
                let next = cause.to_string();
                if !said.contains(&next) {
                    write!(f, ": {next}")?;
                    said = next;
                }
            }
        }
        Ok(())
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

/// An [`Error`] on its way through a `Box<dyn Error>`; [`Error::new`] takes it out again.
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

/// Why a manager did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// Two controllers have the same name; names are metric labels and field managers.
    #[error("duplicate controller name `{0}`; rename one of them with `.named(…)`")]
    DuplicateController(String),

    /// A flag has a value that the manager cannot work with.
    #[error("invalid value `{value}` for --{flag}: {reason}")]
    Flag {
        /// The flag's long name.
        flag: &'static str,
        /// What was given.
        value: String,
        /// What is wrong, and what to write instead.
        reason: String,
    },

    /// An environment variable has a value that the manager cannot work with.
    #[error("invalid value `{value}` for environment variable {variable}: {reason}")]
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// What it is set to.
        value: String,
        /// What is wrong, and what to write instead.
        reason: String,
    },

    /// Neither a kubeconfig nor a pod's service account says which cluster this is about.
    #[error(
        "no cluster configuration found; set KUBECONFIG to the path of a kubeconfig, or run in a pod: {0}"
    )]
    NoCluster(#[from] kube::config::InferConfigError),

    /// A server that the flags ask for cannot be started.
    #[error("failed to start {server}: {reason}")]
    Server {
        /// Which one, such as `the metrics server`.
        server: &'static str,
        /// Why; names the flag, and the address or file.
        reason: String,
    },

    /// Webhooks cannot be served as they were added.
    #[error("{0}")]
    Webhook(String),

    /// A watch never delivered its first list.
    #[error(
        "timed out after {} s waiting for the cache of {kind} to sync; last error: {last_error}",
        timeout.as_secs()
    )]
    CacheSync {
        /// Kind and API version, such as `Memcached (cache.example.com/v1alpha1)`.
        kind: String,
        /// How long the manager waited.
        timeout: Duration,
        /// What the watch ran into, such as a missing CRD or a missing permission.
        last_error: String,
    },

    /// A part of the manager ended, by an error or a panic, while it should have run.
    #[error("{part} stopped: {reason}")]
    Part {
        /// Which part, such as `controller memcached` or `health probes`.
        part: String,
        /// Why.
        reason: String,
    },

    /// Reconciles were still running when the grace period ended; they were abandoned.
    #[error("{parts} did not stop within the grace period of {} s", grace.as_secs())]
    GracePeriod {
        /// Which parts, separated by commas.
        parts: String,
        /// How long the manager waited.
        grace: Duration,
    },

    /// The durations of the leader election do not fit together.
    #[error("invalid leader election settings: {0}")]
    LeaseTimes(String),

    /// Another process holds the lease now; this one must not go on.
    #[error("leader election lost: {0}")]
    LeaderElectionLost(String),
}

/// Why an object cannot be applied or created as owned by another one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnershipError {
    /// The object is there, and another controller owns it.
    #[error("{object} is already owned by {owner}; it was not changed")]
    AlreadyOwned {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind and name of its controller.
        owner: String,
    },

    /// The object is there, and belongs to an owner of the same kind and name with another uid: one that was deleted
    /// and created again. The garbage collector deletes what the deleted one owned; a retry succeeds after that.
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

    /// The object is there, and whoever made it, its controller is not the owner.
    #[error("{object} already exists and is not controlled by {owner}; it was not changed")]
    NotOwned {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of who was to own it.
        owner: String,
    },

    /// Owner and object are in two namespaces, or a cluster-wide object would be owned by a namespaced one.
    #[error("{owner} cannot own {object}: an owner must be cluster-scoped or in the same namespace")]
    Scope {
        /// Kind, namespace and name of the object.
        object: String,
        /// Kind, namespace and name of the owner.
        owner: String,
    },

    /// The owner was not read from the API server.
    #[error("{0} has no uid and cannot be an owner; use the object that the API server returned")]
    NoUid(String),
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
    fn question_mark_takes_any_error_and_keeps_its_type() {
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
    fn conflicts_are_found_below_the_users_own_errors() {
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
    fn the_long_form_names_each_cause_once() {
        let error = Error::from(Wrapped(conflict()));
        assert_eq!(format!("{error}"), "cannot scale");
        let long = format!("{error:#}");
        assert!(long.starts_with("cannot scale: ApiError: it changed"), "{long}");
        assert_eq!(long.matches("it changed").count(), 2, "{long}");
    }
}
