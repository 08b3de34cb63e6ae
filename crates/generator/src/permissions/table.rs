//! The calls of the library and kube, and the permissions that each needs.
//!
//! There is a row for every call. Tests compare the rows with the public functions of the library
//! and kube, and fail if one of them adds a function without a row.

/// Where the kind of a permission comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The type argument of the receiver, i.e. `K` of `Api<K>`.
    Receiver,
    /// The type argument of the call, or else the type of this argument.
    Generic(usize),
    Argument(usize),
    /// The type argument of an argument, e.g. `K` of an `Api<K>`.
    Inside(usize),
    /// The type argument of the call, or else the first parameter of the function passed as this
    /// argument.
    Mapped(usize),
    /// A fixed group and plural.
    Fixed(&'static str, &'static str),
    /// Any kind, because the source does not determine it.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Subresource(&'static str),
    /// Named by a string argument.
    Named(usize),
}

/// How certain it is that a call needs a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// The call may need it, or another role grants it. Only keeps a rule for it from being
    /// reported as unnecessary.
    Possible,
    /// Only some clusters or calls need it. Part of derived roles, but not reported as missing.
    Optional,
    /// The call fails without it.
    Required,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) of: Of,
    pub(crate) part: Part,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) strength: Strength,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Returns {
    /// An irrelevant type.
    Nothing,
    Receiver,
    /// The type of the receiver, but for another cluster.
    Remote,
    /// A value of the kind, possibly in a `Result`, an `Option` or a list.
    Value(Of),
    /// A type in this table, with the kind as its type argument.
    Known(&'static str, Of),
}

pub(crate) struct Row {
    /// The name of the type that has the function, as in [`TYPES`].
    pub(crate) on: &'static str,
    pub(crate) name: &'static str,
    pub(crate) asks: &'static [Ask],
    pub(crate) returns: Returns,
}

const fn row(on: &'static str, name: &'static str, asks: &'static [Ask], returns: Returns) -> Row {
    Row {
        on,
        name,
        asks,
        returns,
    }
}

const fn ask(of: Of, verbs: &'static [&'static str]) -> Ask {
    Ask {
        of,
        part: Part::Whole,
        verbs,
        strength: Strength::Required,
    }
}

const fn sub(of: Of, name: &'static str, verbs: &'static [&'static str]) -> Ask {
    Ask {
        part: Part::Subresource(name),
        ..ask(of, verbs)
    }
}

const fn named(of: Of, argument: usize, verbs: &'static [&'static str]) -> Ask {
    Ask {
        part: Part::Named(argument),
        ..ask(of, verbs)
    }
}

const fn weak(strength: Strength, ask: Ask) -> Ask {
    Ask { strength, ..ask }
}

/// Clusters with the OwnerReferencesPermissionEnforcement admission plugin require this for owner
/// references with `blockOwnerDeletion`.
const fn own(of: Of) -> Ask {
    weak(Strength::Optional, sub(of, "finalizers", &["update"]))
}

const EVENTS: Of = Of::Fixed("events.k8s.io", "events");
const SEND_EVENTS: Ask = ask(EVENTS, &["create", "patch"]);
/// After a conflict, patching the object itself rereads its version. Without the permission, the
/// whole reconcile is repeated instead.
const LOOK_AGAIN: Ask = weak(Strength::Optional, ask(Of::Argument(0), &["get"]));
const WATCH: &[&str] = &["list", "watch"];
const APPLY: &[&str] = &["create", "patch"];
const WRITE: &[&str] = &["get", "create", "patch"];
const MEMBER: &[&str] = &["get", "create", "patch", "delete"];
pub(crate) const ALL: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
const CERTIFICATE: &[&str] = &["get", "list", "watch", "update"];
const ADMISSION: &str = "admissionregistration.k8s.io";

use Of::{Any, Argument, Fixed, Generic, Inside, Mapped, Receiver};
use Returns::{Known, Nothing, Value};

/// Functions of these types without a row need no permission.
#[rustfmt::skip]
pub(crate) const CALLS: &[Row] = &[
    // rbuilder: controllers.
    row("Controller", "new", &[ask(Mapped(0), WATCH), weak(Strength::Possible, own(Mapped(0)))], Known("Controller", Mapped(0))),
    row("Controller", "dynamic", &[ask(Any, WATCH)], Known("Controller", Any)),
    row("Controller", "finalizer", &[ask(Receiver, &["patch"])], Returns::Receiver),
    row("Controller", "owns", &[ask(Generic(9), WATCH)], Returns::Receiver),
    row("Controller", "owns_dynamic", &[ask(Any, WATCH)], Returns::Receiver),
    row("Controller", "watches", &[ask(Mapped(0), WATCH)], Returns::Receiver),
    row("Controller", "try_watches", &[ask(Mapped(0), WATCH)], Returns::Receiver),
    row("Controller", "watch", &[ask(Inside(0), WATCH)], Returns::Receiver),
    row("Controller", "watch_clusters", &[weak(Strength::Possible, ask(Any, WATCH))], Returns::Receiver),
    row("Controller", "reads", &[ask(Generic(9), WATCH)], Returns::Receiver),
    row("Controller", "reads_dynamic", &[ask(Any, WATCH)], Returns::Receiver),
    row("Controller", "index", &[ask(Mapped(1), WATCH)], Returns::Receiver),
    row("Controller", "index_dynamic", &[ask(Any, WATCH)], Returns::Receiver),
    row("Watch", "owned", &[], Known("Watch", Receiver)),
    row("Watch", "owned_dynamic", &[], Known("Watch", Any)),
    row("Watch", "mapped", &[], Known("Watch", Mapped(0))),
    row("Watch", "try_mapped", &[], Known("Watch", Mapped(0))),
    row("Watch", "mapped_dynamic", &[], Known("Watch", Any)),
    row("Watch", "mapped_changes", &[], Known("Watch", Mapped(0))),
    row("Watch", "mapped_changes_dynamic", &[], Known("Watch", Any)),
    row("Watch", "in_cluster", &[], Returns::Remote),
    row("Watches", "with", &[ask(Inside(1), WATCH)], Returns::Receiver),
    // rbuilder: reconciles.
    row("Ctx", "watch", &[ask(Inside(1), WATCH)], Nothing),
    row("Ctx", "api", &[], Known("Api", Generic(9))),
    row("Ctx", "api_dynamic", &[], Known("Api", Any)),
    row("Ctx", "client", &[], Known("Client", Any)),
    row("Ctx", "in_cluster", &[], Returns::Remote),
    row("Ctx", "without_force", &[], Returns::Receiver),
    row("Ctx", "cached", &[], Known("Cached", Generic(9))),
    row("Ctx", "cached_everywhere", &[], Known("Cached", Generic(9))),
    row("Ctx", "cached_selection", &[], Known("Cached", Generic(9))),
    row("Ctx", "apply", &[ask(Argument(0), APPLY)], Value(Argument(0))),
    row("Ctx", "apply_owned", &[ask(Argument(1), WRITE), own(Argument(0))], Value(Argument(1))),
    row("Ctx", "create_owned", &[ask(Argument(1), &["get", "create"]), own(Argument(0))], Value(Argument(1))),
    row("Ctx", "create_or_update", &[ask(Argument(0), WRITE)], Known("Written", Argument(0))),
    row("Ctx", "create_or_update_owned", &[ask(Argument(1), WRITE), own(Argument(0))], Known("Written", Argument(1))),
    row("Ctx", "apply_status", &[sub(Argument(0), "status", &["patch"]), LOOK_AGAIN], Value(Argument(0))),
    row("Ctx", "patch", &[ask(Argument(0), &["patch"]), LOOK_AGAIN], Value(Argument(0))),
    row("Ctx", "patch_status", &[sub(Argument(0), "status", &["patch"]), LOOK_AGAIN], Value(Argument(0))),
    row("Ctx", "delete", &[ask(Argument(0), &["delete"])], Value(Argument(0))),
    row("Ctx", "delete_with", &[ask(Argument(0), &["delete"])], Value(Argument(0))),
    row("Ctx", "apply_set", &[ask(Argument(0), &["patch"]), weak(Strength::Optional, ask(Argument(0), &["list"])), own(Argument(0)), weak(Strength::Possible, ask(Any, &["get", "list", "delete"]))], Nothing),
    row("Ctx", "delete_set", &[weak(Strength::Possible, ask(Any, &["get", "list", "patch", "delete"]))], Nothing),
    row("Ctx", "normal", &[SEND_EVENTS], Nothing),
    row("Ctx", "warning", &[SEND_EVENTS], Nothing),
    row("Ctx", "event", &[SEND_EVENTS], Nothing),
    row("ApplySet", "add", &[ask(Argument(0), MEMBER), weak(Strength::Optional, ask(Argument(0), &["list"]))], Returns::Receiver),
    row("ApplySet", "add_and_wait", &[ask(Argument(0), MEMBER), weak(Strength::Optional, ask(Argument(0), &["list"]))], Returns::Receiver),
    row("ApplySet", "add_kept", &[ask(Argument(0), MEMBER), weak(Strength::Optional, ask(Argument(0), &["list"]))], Returns::Receiver),
    row("ApplySet", "extend", &[ask(Inside(0), MEMBER), weak(Strength::Optional, ask(Inside(0), &["list"]))], Nothing),
    row("ApplySet", "delete_namespaces_and_crds", &[weak(Strength::Possible, ask(Any, &["list"]))], Returns::Receiver),
    row("", "rbuilder::set_controller_reference", &[own(Argument(0))], Nothing),
    row("", "rbuilder::set_owner_reference", &[own(Argument(0))], Nothing),
    row("Cached", "get", &[], Value(Receiver)),
    row("Cached", "named", &[], Value(Receiver)),
    row("Cached", "list", &[], Value(Receiver)),
    row("Cached", "in_namespace", &[], Value(Receiver)),
    row("Cached", "labelled", &[], Value(Receiver)),
    row("Cached", "by", &[], Value(Receiver)),
    row("Written", "object", &[], Value(Receiver)),
    row("Written", "into_object", &[], Value(Receiver)),
    // rbuilder: managers. The scaffold has a separate role for leader election.
    row("Manager", "new", &[weak(Strength::Possible, ask(Fixed("coordination.k8s.io", "leases"), &["get", "create", "update"])), weak(Strength::Possible, ask(Fixed("", "events"), &["create", "patch"])), weak(Strength::Possible, SEND_EVENTS), weak(Strength::Possible, ask(Fixed("authentication.k8s.io", "tokenreviews"), &["create"])), weak(Strength::Possible, ask(Fixed("authorization.k8s.io", "subjectaccessreviews"), &["create"])), weak(Strength::Possible, ask(Fixed("", "secrets"), &["create", "get", "list", "watch", "update"])), weak(Strength::Possible, ask(Fixed(ADMISSION, "mutatingwebhookconfigurations"), CERTIFICATE)), weak(Strength::Possible, ask(Fixed(ADMISSION, "validatingwebhookconfigurations"), CERTIFICATE)), weak(Strength::Possible, ask(Fixed("apiextensions.k8s.io", "customresourcedefinitions"), CERTIFICATE))], Known("Manager", Any)),
    row("Manager", "with_config", &[], Known("Manager", Any)),
    row("Manager", "with_client", &[], Known("Manager", Any)),
    row("Manager", "controller", &[weak(Strength::Optional, SEND_EVENTS)], Returns::Receiver),
    row("Manager", "sharded", &[weak(Strength::Possible, ask(Fixed("coordination.k8s.io", "leases"), &["list", "create", "update", "patch", "delete"]))], Returns::Receiver),
    row("Manager", "cached", &[ask(Generic(9), WATCH)], Known("Cached", Generic(9))),
    row("Manager", "cached_selection", &[ask(Generic(9), WATCH)], Known("Cached", Generic(9))),
    row("Manager", "cached_dynamic", &[ask(Any, WATCH)], Known("Cached", Any)),
    row("Manager", "client", &[], Known("Client", Any)),
    row("Manager", "leader_client", &[], Known("Client", Any)),
    row("Manager", "cluster", &[], Known("Cluster", Any)),
    row("Manager", "clusters", &[], Known("Clusters", Any)),
    row("Manager", "events", &[SEND_EVENTS], Known("EventRecorder", Any)),
    row("Manager", "webhook_certificate", &[ask(Fixed("", "secrets"), &["create", "get", "list", "watch", "update"]), weak(Strength::Optional, ask(Fixed("apiextensions.k8s.io", "customresourcedefinitions"), CERTIFICATE))], Returns::Receiver),
    row("Manager", "start", &[], Nothing),
    row("Manager", "start_until", &[], Nothing),
    row("ManagedCertificate", "for_service", &[], Known("ManagedCertificate", Any)),
    row("ManagedCertificate", "mutating_configuration", &[ask(Fixed(ADMISSION, "mutatingwebhookconfigurations"), CERTIFICATE)], Returns::Receiver),
    row("ManagedCertificate", "validating_configuration", &[ask(Fixed(ADMISSION, "validatingwebhookconfigurations"), CERTIFICATE)], Returns::Receiver),
    row("EventRecorder", "new", &[weak(Strength::Optional, SEND_EVENTS)], Known("EventRecorder", Any)),
    row("EventRecorder", "normal", &[SEND_EVENTS], Nothing),
    row("EventRecorder", "warning", &[SEND_EVENTS], Nothing),
    row("EventRecorder", "event", &[SEND_EVENTS], Nothing),
    row("ClusterConfig", "from_secret", &[ask(Fixed("", "secrets"), &["get"])], Known("ClusterConfig", Any)),
    // Requests to other clusters need no permission in this one.
    row("Cluster", "client", &[], Known("Client", Any)),
    row("Cluster", "cached", &[], Known("Cached", Generic(9))),
    row("Cluster", "cached_selection", &[], Known("Cached", Generic(9))),
    row("Cluster", "index", &[weak(Strength::Possible, ask(Mapped(1), WATCH))], Nothing),
    row("Clusters", "add", &[], Known("Cluster", Any)),
    row("Clusters", "get", &[], Known("Cluster", Any)),
    // kube: clients for a single kind.
    row("Api", "all", &[], Known("Api", Receiver)),
    row("Api", "namespaced", &[], Known("Api", Receiver)),
    row("Api", "default_namespaced", &[], Known("Api", Receiver)),
    row("Api", "all_with", &[], Known("Api", Receiver)),
    row("Api", "namespaced_with", &[], Known("Api", Receiver)),
    row("Api", "default_namespaced_with", &[], Known("Api", Receiver)),
    row("Api", "dynamic", &[], Known("Api", Receiver)),
    row("Api", "constrain", &[], Returns::Receiver),
    row("Api", "unconstrain", &[], Returns::Receiver),
    row("Api", "constrain_default", &[], Returns::Receiver),
    row("Api", "into_client", &[], Known("Client", Any)),
    row("Api", "get", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "get_with", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "get_metadata", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "get_metadata_with", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "get_opt", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "get_metadata_opt", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "get_metadata_opt_with", &[ask(Receiver, &["get"])], Value(Receiver)),
    row("Api", "list", &[ask(Receiver, &["list"])], Value(Receiver)),
    row("Api", "list_metadata", &[ask(Receiver, &["list"])], Value(Receiver)),
    row("Api", "create", &[ask(Receiver, &["create"])], Value(Receiver)),
    row("Api", "delete", &[ask(Receiver, &["delete"])], Nothing),
    row("Api", "delete_collection", &[ask(Receiver, &["deletecollection"])], Nothing),
    // Only apply patches create objects; other patches are marked as `Ty::Change`.
    row("Api", "patch", &[ask(Receiver, &["patch"]), weak(Strength::Optional, ask(Receiver, &["create"]))], Value(Receiver)),
    row("Api", "patch_metadata", &[ask(Receiver, &["patch"]), weak(Strength::Optional, ask(Receiver, &["create"]))], Value(Receiver)),
    row("Api", "replace", &[ask(Receiver, &["update"])], Value(Receiver)),
    row("Api", "watch", &[ask(Receiver, &["watch"])], Nothing),
    row("Api", "watch_metadata", &[ask(Receiver, &["watch"])], Nothing),
    row("Api", "entry", &[ask(Receiver, &["get"]), weak(Strength::Optional, ask(Receiver, &["create", "update"]))], Nothing),
    row("Api", "get_status", &[sub(Receiver, "status", &["get"])], Value(Receiver)),
    row("Api", "patch_status", &[sub(Receiver, "status", &["patch"])], Value(Receiver)),
    row("Api", "replace_status", &[sub(Receiver, "status", &["update"])], Value(Receiver)),
    row("Api", "get_scale", &[sub(Receiver, "scale", &["get"])], Nothing),
    row("Api", "patch_scale", &[sub(Receiver, "scale", &["patch"])], Nothing),
    row("Api", "replace_scale", &[sub(Receiver, "scale", &["update"])], Nothing),
    row("Api", "get_subresource", &[named(Receiver, 0, &["get"])], Value(Receiver)),
    row("Api", "create_subresource", &[named(Receiver, 0, &["create"])], Nothing),
    row("Api", "patch_subresource", &[named(Receiver, 0, &["patch"])], Value(Receiver)),
    row("Api", "replace_subresource", &[named(Receiver, 0, &["update"])], Value(Receiver)),
    row("Api", "get_ephemeral_containers", &[sub(Receiver, "ephemeralcontainers", &["get"])], Value(Receiver)),
    row("Api", "patch_ephemeral_containers", &[sub(Receiver, "ephemeralcontainers", &["patch"])], Value(Receiver)),
    row("Api", "replace_ephemeral_containers", &[sub(Receiver, "ephemeralcontainers", &["update"])], Value(Receiver)),
    row("Api", "get_resize", &[sub(Receiver, "resize", &["get"])], Value(Receiver)),
    row("Api", "patch_resize", &[sub(Receiver, "resize", &["patch"])], Value(Receiver)),
    row("Api", "replace_resize", &[sub(Receiver, "resize", &["update"])], Value(Receiver)),
    row("Api", "get_approval", &[sub(Receiver, "approval", &["get"])], Value(Receiver)),
    row("Api", "patch_approval", &[sub(Receiver, "approval", &["patch"])], Value(Receiver)),
    row("Api", "logs", &[sub(Receiver, "log", &["get"])], Nothing),
    row("Api", "log_stream", &[sub(Receiver, "log", &["get"])], Nothing),
    row("Api", "evict", &[sub(Receiver, "eviction", &["create"])], Nothing),
    // kube opens WebSockets with GET, and newer servers also require `create`.
    row("Api", "attach", &[sub(Receiver, "attach", &["get", "create"])], Nothing),
    row("Api", "exec", &[sub(Receiver, "exec", &["get", "create"])], Nothing),
    row("Api", "portforward", &[sub(Receiver, "portforward", &["get", "create"])], Nothing),
    row("Api", "restart", &[ask(Receiver, &["patch"])], Value(Receiver)),
    row("Api", "cordon", &[ask(Receiver, &["patch"])], Value(Receiver)),
    row("Api", "uncordon", &[ask(Receiver, &["patch"])], Value(Receiver)),
    row("Api", "create_token_request", &[sub(Receiver, "token", &["create"])], Nothing),
    // kube: clients for any kind.
    row("Client", "clone", &[], Returns::Receiver),
    row("Client", "try_default", &[], Known("Client", Any)),
    row("Client", "try_from", &[], Known("Client", Any)),
    row("Client", "new", &[], Known("Client", Any)),
    row("Client", "get", &[ask(Generic(9), &["get"])], Value(Generic(9))),
    row("Client", "list", &[ask(Generic(9), &["list"])], Value(Generic(9))),
    row("Client", "fetch", &[ask(Any, &["get"])], Nothing),
    row("Client", "send", &[ask(Any, ALL)], Nothing),
    row("Client", "request", &[ask(Any, ALL)], Nothing),
    row("Client", "request_text", &[ask(Any, ALL)], Nothing),
    row("Client", "request_stream", &[ask(Any, ALL)], Nothing),
    row("Client", "request_status", &[ask(Any, ALL)], Nothing),
    row("Client", "request_events", &[ask(Any, ALL)], Nothing),
    row("Client", "connect", &[ask(Any, ALL)], Nothing),
    // kube: its runtime.
    row("kube::Controller", "new", &[ask(Inside(0), WATCH)], Known("kube::Controller", Inside(0))),
    row("kube::Controller", "new_with", &[ask(Inside(0), WATCH)], Known("kube::Controller", Inside(0))),
    row("kube::Controller", "owns", &[ask(Inside(0), WATCH)], Returns::Receiver),
    row("kube::Controller", "owns_with", &[ask(Inside(0), WATCH)], Returns::Receiver),
    row("kube::Controller", "watches", &[ask(Inside(0), WATCH)], Returns::Receiver),
    row("kube::Controller", "watches_with", &[ask(Inside(0), WATCH)], Returns::Receiver),
    row("Recorder", "new", &[weak(Strength::Optional, SEND_EVENTS)], Known("Recorder", Any)),
    row("Recorder", "publish", &[SEND_EVENTS], Nothing),
    row("", "kube::runtime::watcher", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::watcher::watcher", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::metadata_watcher", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::watcher::metadata_watcher", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::watcher::watch_object", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::watch_object", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::finalizer", &[ask(Inside(0), &["patch"])], Nothing),
    row("", "kube::runtime::finalizer::finalizer", &[ask(Inside(0), &["patch"])], Nothing),
    row("", "kube::runtime::wait::await_condition", &[ask(Inside(0), WATCH)], Value(Inside(0))),
    row("", "kube::runtime::wait::delete::delete_and_finalize", &[ask(Inside(0), &["delete", "list", "watch"])], Nothing),
];

/// Functions of the types above that require no permission.
#[cfg(test)]
#[rustfmt::skip]
const QUIET: &[(&str, &[&str])] = &[
    (
        "Controller",
        &[
            "reconciles_terminating", "on_deleted", "on_undecodable", "filter", "selecting", "when_unselected",
            "required", "triggers", "resync_every", "concurrency", "on_every_replica", "named", "renamed_from",
            "shard_by", "label_owned",
            "reconcile_timeout", "backoff", "rate_limiter", "recover_panics",
        ],
    ),
    ("Watch", &["by_any_owner", "filter", "selecting", "optional", "required"]),
    ("Watches", &["new"]),
    (
        "Ctx",
        &[
            "new", "set_watches", "watches", "unwatch", "discover", "cached_dynamic", "cached_dynamic_selection",
            "cached_everywhere_dynamic",
            "caching", "caching_dynamic", "indexing", "indexing_dynamic", "cluster", "controller", "now", "random",
        ],
    ),
    ("ApplySet", &["new", "owner_of", "owner_of_dynamic"]),
    (
        "Manager",
        &[
            "with_metrics", "metrics_handler", "task", "webhook", "raw_webhook", "webhook_client_ca",
            "healthz_check", "readyz_check", "discover", "metrics", "grace_period", "cache_sync_timeout",
            "lease_duration", "renew_deadline", "retry_period", "cache_stale_after", "applied_memory",
            "list_page_size", "list_semantic", "initial_list_strategy", "keep_managed_fields",
            "keep_last_applied", "user_agent", "request_rate", "max_connections", "client_layer",
            "webhook_memory", "webhook_shutdown_delay",
        ],
    ),
    ("ManagedCertificate", &["namespace", "secret", "lifetime"]),
    (
        "ClusterConfig",
        &[
            "from_kubeconfig", "from_kubeconfig_text", "in_cluster", "from_config", "from_client", "context",
            "namespaces", "required", "allow_commands", "allow_files", "allow_proxy", "allow_insecure",
        ],
    ),
    ("Cluster", &["new", "caching", "name", "cached_dynamic", "check", "is_synced", "synced"]),
    ("Clusters", &["remove", "list"]),
    ("Cached", &["undecodable", "is_synced", "len", "is_empty"]),
    ("Api", &["namespace", "resource_url"]),
];

/// Calls on these return the receiver unless there is a row.
const BUILDERS: [&str; 7] = [
    "Controller",
    "Watch",
    "Watches",
    "ApplySet",
    "Manager",
    "ManagedCertificate",
    "kube::Controller",
];

/// The types that rows are for, as (crate, name, name in this table).
pub(crate) const TYPES: &[(&str, &str, &str)] = &[
    ("rbuilder", "Controller", "Controller"),
    ("rbuilder", "Watch", "Watch"),
    ("rbuilder", "Watches", "Watches"),
    ("rbuilder", "Ctx", "Ctx"),
    ("rbuilder", "ApplySet", "ApplySet"),
    ("rbuilder", "Manager", "Manager"),
    ("rbuilder", "ManagedCertificate", "ManagedCertificate"),
    ("rbuilder", "EventRecorder", "EventRecorder"),
    ("rbuilder", "ClusterConfig", "ClusterConfig"),
    ("rbuilder", "Cluster", "Cluster"),
    ("rbuilder", "Clusters", "Clusters"),
    ("rbuilder", "Cached", "Cached"),
    ("kube", "Api", "Api"),
    ("kube", "Client", "Client"),
    ("kube", "Controller", "kube::Controller"),
    ("kube", "Recorder", "Recorder"),
];

/// Finds the name of a type in this table. `path` has to be canonical.
pub(crate) fn find_type(path: &str) -> Option<&'static str> {
    let (crate_name, _) = path.split_once("::")?;
    let crate_name = if crate_name.starts_with("kube") {
        "kube"
    } else {
        crate_name
    };
    let name = path.rsplit("::").next()?;
    let mut types = TYPES.iter();
    let found = types.find(|(of, known, _)| *of == crate_name && *known == name);
    found.map(|(_, _, name)| *name)
}

pub(crate) fn find_call(on: &str, name: &str) -> Option<&'static Row> {
    CALLS.iter().find(|row| row.on == on && row.name == name)
}

pub(crate) fn is_builder(on: &str) -> bool {
    BUILDERS.contains(&on)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use rbuilder_reader::TypeKind;
    use rbuilder_reader::grammar::{ItemKind, Items};
    use rbuilder_reader::token::lex;

    use super::*;

    /// Adds the type and name of each public function in a directory.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test reads the source of the library"
    )]
    fn add_functions(folder: &Path, found: &mut BTreeSet<(String, String)>) {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                add_functions(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                let tokens = lex(&text).expect("tokens");
                let mut items = Items::new(tokens.cursor(), None);
                items.read_inner_attributes().expect("inner attributes");
                while let Some(item) = items.read().expect("an item") {
                    let ItemKind::Impl(implementation) = item.kind else {
                        continue;
                    };
                    let self_type = implementation.self_type().expect("a type");
                    let TypeKind::Path(segments, _) = self_type.kind else {
                        continue;
                    };
                    let is_trait = implementation.trait_name().is_some();
                    let mut members = Items::new(implementation.content, None);
                    while let Some(member) = members.read().expect("a member") {
                        let ItemKind::Function(function) = member.kind else {
                            continue;
                        };
                        let before = text[..function.signature.start as usize].trim_end();
                        if before.ends_with("pub") && !is_trait {
                            let name = segments.last().expect("a name").clone();
                            found.insert((name, function.ident.text.to_owned()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_function_of_the_library_has_a_row() {
        let mut functions = BTreeSet::new();
        add_functions(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/src"),
            &mut functions,
        );
        let listed = |on: &str, name: &str| {
            let is_quiet = |(of, names): &(&str, &[&str])| *of == on && names.contains(&name);
            find_call(on, name).is_some() || QUIET.iter().any(is_quiet)
        };
        let ours = TYPES.iter().filter(|(of, ..)| *of == "rbuilder");
        let ours: Vec<&str> = ours.map(|(_, name, _)| *name).collect();
        let missing: Vec<_> = functions
            .iter()
            .filter(|(on, name)| ours.contains(&on.as_str()) && !listed(on, name))
            .collect();
        assert!(missing.is_empty(), "add rows to CALLS or QUIET: {missing:?}");
        // `extend` belongs to the trait `Extend`.
        let known = CALLS
            .iter()
            .filter(|row| ours.contains(&row.on) && row.name != "extend");
        let quiet = QUIET
            .iter()
            .filter(|(on, _)| ours.contains(on))
            .flat_map(|(on, names)| names.iter().map(move |name| (*on, *name)));
        for (on, name) in known.map(|row| (row.on, row.name)).chain(quiet) {
            let key = (on.to_owned(), name.to_owned());
            assert!(functions.contains(&key), "the library has no {on}::{name}");
        }
    }
}
