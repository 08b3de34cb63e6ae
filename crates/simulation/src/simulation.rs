//! Builder for simulations.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Resource};
use rbuilder_testing::RandomObjects;
use rbuilder_testing::fake::ApiServer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::environment::{Behavior, World};
use crate::history::VARIABLE;
use crate::identity::Identity;
use crate::kept;
use crate::operator::{self, Operator, Program, Started};
use crate::oracle::Oracle;
use crate::progress::{self, Progress};
use crate::record::Record;
use crate::report::Report;
use crate::run::{Invariant, Setting};
use crate::search::{Search, run_plain};
use crate::setting;
use crate::settings::{Budget, Limit, Settings};
use crate::tolerance::Tolerance;

/// A simulation of an operator. See the [crate documentation](crate) for an introduction.
pub struct Simulation {
    program: Program,
    server: ApiServer,
    declarations: Vec<Value>,
    alternatives: Vec<Value>,
    random: Vec<Value>,
    behaviors: Vec<Arc<dyn Behavior>>,
    invariants: Vec<Invariant>,
    namespace: Option<String>,
    roles: Option<PathBuf>,
    accepted: Vec<Oracle>,
    tolerance: Tolerance,
    replicas: usize,
    has_copies: bool,
    rolls_out_config: bool,
    webhooks: Option<PathBuf>,
    /// `None` selects the default.
    limit: Option<Limit>,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("declarations", &self.declarations)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// Creates a simulation of the controllers that `register` adds.
    #[must_use]
    pub fn new<O: Operator>(register: impl Fn(O) -> O + Send + Sync + 'static) -> Self {
        let mut simulation = Self::of_program(operator::program(register));
        simulation.replicas = 2;
        simulation
    }

    /// Creates a simulation of any program that uses a [`kube::Client`], e.g. a `Controller` of
    /// kube-rs. The returned future is polled until it's dropped.
    #[must_use]
    pub fn of_client<F: Future<Output = ()> + Send + 'static>(
        program: impl Fn(Client) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::of_program(Arc::new(move |client, _| {
            let running = program(client);
            Started {
                running: Box::pin(async move {
                    running.await;
                    Ok(())
                }),
                webhooks: None,
            }
        }))
    }

    fn of_program(program: Program) -> Self {
        Self {
            program,
            server: ApiServer::new().collecting_garbage().repeating_results(),
            declarations: Vec::new(),
            alternatives: Vec::new(),
            random: Vec::new(),
            behaviors: Vec::new(),
            invariants: Vec::new(),
            namespace: None,
            roles: None,
            accepted: Vec::new(),
            tolerance: Tolerance::default(),
            replicas: 1,
            has_copies: true,
            rolls_out_config: false,
            webhooks: None,
            limit: None,
        }
    }

    /// Installs the CRDs and roles from `crd/bases` and `rbac` in the operator's `config`
    /// directory. Either may be missing, e.g. operators for foreign kinds have no CRDs.
    ///
    /// # Panics
    ///
    /// Panics if both are missing, or if a manifest can't be read.
    #[must_use]
    #[track_caller]
    pub fn install(mut self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        let (crds, roles) = (folder.join("crd/bases"), folder.join("rbac"));
        let has_roles = roles.exists();
        if (crds.exists() || !has_roles)
            && let Err(error) = self.server.install_crds(&crds)
        {
            panic!("cannot install the CRDs: {error}");
        }
        if has_roles {
            self = self.role_from(roles);
        }
        self
    }

    /// Installs webhook configurations from a file or directory, e.g.
    /// `config/webhook/manifests.yaml`.
    ///
    /// The webhooks must also be registered in the function passed to [`new`](Self::new). The
    /// server calls them while a process is running; otherwise the failure policy of each webhook
    /// applies. Conversion webhooks don't need this method, registering them is enough.
    ///
    /// Has no effect with [`of_client`](Self::of_client).
    ///
    /// # Panics
    ///
    /// [`run`](Self::run) panics if the configurations can't be read.
    #[must_use]
    pub fn webhooks(mut self, path: impl Into<PathBuf>) -> Self {
        self.webhooks = Some(path.into());
        self
    }

    /// Installs a CRD, e.g. `Memcached::crd()`.
    ///
    /// # Panics
    ///
    /// Panics if the CRD is invalid.
    #[must_use]
    pub fn crd(mut self, crd: CustomResourceDefinition) -> Self {
        self.server = self.server.crd(crd);
        self
    }

    /// Restricts the operator to the roles in a directory, see [`ApiServer::role_from`].
    ///
    /// # Panics
    ///
    /// Panics if the roles can't be read.
    #[must_use]
    #[track_caller]
    pub fn role_from(mut self, folder: impl AsRef<Path>) -> Self {
        self.server = self.server.role_from(&folder);
        self.roles = Some(folder.as_ref().to_owned());
        self
    }

    /// Declares the sample of a kind from `config/samples`.
    ///
    /// # Panics
    ///
    /// Panics if there's no such sample, or if it can't be read.
    #[must_use]
    #[track_caller]
    pub fn samples<K: Resource<DynamicType = ()> + DeserializeOwned + Serialize>(self) -> Self {
        self.declare(&rbuilder_testing::sample::<K>())
    }

    /// Declares an object.
    ///
    /// Histories apply the declared objects in order and delete them in reverse order. Their
    /// namespaces exist from the start and don't have to be declared.
    ///
    /// # Panics
    ///
    /// Panics if the object can't be serialized.
    #[must_use]
    #[track_caller]
    pub fn declare(mut self, object: &impl Serialize) -> Self {
        match serde_json::to_value(object) {
            Ok(object) => self.declarations.push(object),
            Err(error) => panic!("cannot serialize a declared object: {error}"),
        }
        self
    }

    /// Adds an alternative form of a declared object with the same kind and name.
    ///
    /// Useful for objects written by an older version of the operator (e.g. with annotations in the
    /// old format), or for configurations that differ in more than one field. Histories declare the
    /// alternative from scratch, and also update the object from either form to the other.
    ///
    /// # Panics
    ///
    /// Panics if the object can't be serialized. [`run`](Self::run) panics if there's no declared
    /// object with the same kind and name.
    #[must_use]
    #[track_caller]
    pub fn alternative(mut self, object: &impl Serialize) -> Self {
        match serde_json::to_value(object) {
            Ok(object) => self.alternatives.push(object),
            Err(error) => panic!("cannot serialize another form of a declared object: {error}"),
        }
        self
    }

    /// Adds `count` random variants of the declared objects of a kind, generated from its schema.
    ///
    /// Histories declare each variant from scratch, and also update the declared object to the
    /// variant and back. Random variants alternate with changes to a single field. Variants that
    /// the server rejects, e.g. because of a CEL rule, are skipped.
    ///
    /// Fully random values rarely make sense to an operator. Use [`RandomObjects::values`] to
    /// restrict fields such as an image.
    ///
    /// # Panics
    ///
    /// Panics if no object matching the schema can be generated. [`run`](Self::run) panics if no
    /// object of the kind is declared.
    #[must_use]
    #[track_caller]
    pub fn values(mut self, objects: &RandomObjects, count: u32) -> Self {
        self.random.extend(objects.iter(count));
        self
    }

    /// Adds a controller to the simulated cluster that the operator depends on.
    #[must_use]
    pub fn behavior(mut self, behavior: impl Behavior + 'static) -> Self {
        self.behaviors.push(Arc::new(behavior));
        self
    }

    /// Adds an invariant to check after every single change, including those that the operator
    /// makes one right after the other. Its error message becomes part of the report.
    #[must_use]
    pub fn invariant(mut self, rule: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.invariants.push(Arc::new(rule));
        self
    }

    /// Restricts the operator to a single namespace, like `WATCH_NAMESPACE` in projects created
    /// with `--namespaced`. No history then declares copies of the objects in another namespace.
    ///
    /// This doesn't restrict a program passed to [`of_client`](Self::of_client), which has to do so
    /// itself.
    #[must_use]
    pub fn watch_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Leaves out the histories with copies of the declared objects in another namespace, e.g. if
    /// the operator distributes objects to all namespaces, or accepts only one object per cluster.
    #[must_use]
    pub fn without_copies(mut self) -> Self {
        self.has_copies = false;
        self
    }

    /// Requires that Deployments, StatefulSets and DaemonSets get another template whenever the data
    /// of a ConfigMap or Secret changes that their Pods mount or have in their environment.
    ///
    /// Running processes keep their environment. Mounted files do change, but most programs read them
    /// only when they start. Operators often add a hash of the data to the template as an annotation.
    #[must_use]
    pub fn rolls_out_config(mut self) -> Self {
        self.rolls_out_config = true;
        self
    }

    /// Sets the number of replicas to use in some of the histories: 1 or 2.
    ///
    /// With two replicas, the leader crashes or is partitioned from the server for longer than the
    /// lease duration, and the other replica must take over.
    ///
    /// Defaults to 2 with [`new`](Self::new) if the role permits leader election, and to 1 with
    /// [`of_client`](Self::of_client), since such programs have to implement leader election
    /// themselves.
    #[must_use]
    pub fn replicas(mut self, count: usize) -> Self {
        self.replicas = count;
        self
    }

    /// Accepts that the operator keeps objects of the kind `K` that a fresh declaration would not
    /// have, or that belong to an object that has been deleted, e.g. the Jobs of former generations.
    ///
    /// Objects that `ApplySet::add_kept` marks to be kept don't need this, nor do objects that exist
    /// before anything is declared.
    ///
    /// An object that a fresh declaration has must still exist, but it may have another name.
    #[must_use]
    pub fn keeps<K: Resource<DynamicType = ()>>(mut self) -> Self {
        self.tolerance.keep(&K::group(&()), &K::plural(&()));
        self
    }

    /// Excludes a field from comparisons, e.g. `plains.example.com .status.phase`. The field is
    /// named as in reports, without the name of the object and without list indices.
    ///
    /// # Panics
    ///
    /// Panics if `field` is not a resource and a path.
    #[must_use]
    #[track_caller]
    pub fn ignoring(mut self, field: impl AsRef<str>) -> Self {
        if let Err(error) = self.tolerance.ignore(field.as_ref()) {
            panic!("cannot ignore a field: {error}");
        }
        self
    }

    /// Expects the operator to update a field at this interval, e.g. the time of a heartbeat. The
    /// field is named as in [`ignoring`](Self::ignoring), and not compared either.
    ///
    /// Writes that change nothing else don't count as changes, unless they come earlier.
    ///
    /// # Panics
    ///
    /// Panics if `field` is not a resource and a path.
    #[must_use]
    #[track_caller]
    pub fn every(mut self, field: impl AsRef<str>, interval: Duration) -> Self {
        if let Err(error) = self.tolerance.expect_every(field.as_ref(), interval) {
            panic!("cannot expect a field to be updated: {error}");
        }
        self
    }

    /// Disables an oracle entirely. Prefer [`keeps`](Self::keeps) and [`ignoring`](Self::ignoring),
    /// which leave the oracle on for everything else.
    #[must_use]
    pub fn without(mut self, oracle: Oracle) -> Self {
        self.accepted.push(oracle);
        self
    }

    /// Sets the maximum number of histories.
    ///
    /// Defaults to 8 per request of the undisturbed run (external calls count twice), but at least
    /// 45, plus those that every operator gets, e.g. with copies of the declared objects in another
    /// namespace. `RBUILDER_SIMULATION_HISTORIES` and `RBUILDER_SIMULATION_SECONDS` take precedence.
    #[must_use]
    pub fn histories(mut self, count: usize) -> Self {
        self.limit = Some(Limit::Histories(count));
        self
    }

    /// Limits the simulation to this many seconds of real time rather than a number of histories,
    /// and prints the progress to stderr.
    ///
    /// The number of histories then depends on the machine; the result of any individual history
    /// doesn't.
    #[must_use]
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.limit = Some(Limit::Seconds(seconds));
        self
    }

    /// Runs the simulation, and panics with a report if any history fails.
    ///
    /// # Panics
    ///
    /// Panics if a history fails, and for the same reasons as [`run`](Self::run).
    #[track_caller]
    pub fn check(self) {
        let report = self.run();
        assert!(report.is_clean(), "\n{report}");
    }

    /// Runs the simulation and returns a report.
    ///
    /// Histories that `rbuilder simulate` has saved for this test, in the directory `simulations`
    /// of the package, are run first.
    ///
    /// The following environment variables are supported:
    ///
    /// - `RBUILDER_SIMULATION`: only run this history.
    /// - `RBUILDER_SIMULATION_HISTORIES`, `RBUILDER_SIMULATION_SECONDS`: override
    ///   [`histories`](Self::histories) or [`seconds`](Self::seconds).
    /// - `RBUILDER_SIMULATION_SERVER`: set to `1` to behave like
    ///   [`run_on_server`](Self::run_on_server).
    /// - `RBUILDER_SIMULATION_REPORTS`: path of an existing directory. A JSON report of each
    ///   simulation is written to it, and the progress is printed to stderr.
    ///
    /// # Panics
    ///
    /// Panics in any of these cases:
    ///
    /// - There are no declarations.
    /// - A declared object has no name, or the server doesn't serve its kind.
    /// - An environment variable or a saved history can't be parsed.
    /// - The report can't be written.
    #[must_use]
    #[track_caller]
    pub fn run(self) -> Report {
        let settings = Settings::from_environment().unwrap_or_else(|error| panic!("{error}"));
        self.run_as(&Identity::of(std::panic::Location::caller()), settings)
    }

    /// Replays a history on a real API server instead of searching, and compares the resulting
    /// states with the simulation.
    ///
    /// Starts etcd and kube-apiserver from `KUBEBUILDER_ASSETS`. The history is taken from
    /// `RBUILDER_SIMULATION`, or else consists of the declared objects and their variants.
    ///
    /// No other controllers run alongside the real API server. Statuses are therefore copied from
    /// the simulated environment, and only the deletion of declared objects is checked.
    ///
    /// # Panics
    ///
    /// Panics for the same reasons as [`run`](Self::run), and also if the feature `envtest` is
    /// disabled, the servers fail to start, or the history requires control over time.
    #[must_use]
    #[track_caller]
    pub fn run_on_server(self) -> Report {
        let settings = Settings::from_environment().unwrap_or_else(|error| panic!("{error}"));
        let settings = Settings {
            on_server: true,
            ..settings
        };
        self.run_as(&Identity::of(std::panic::Location::caller()), settings)
    }

    #[track_caller]
    pub(crate) fn run_as(self, identity: &Identity, settings: Settings) -> Report {
        assert!(
            !self.declarations.is_empty(),
            "nothing is declared: add `.samples::<Kind>()` or `.declare(&object)`"
        );
        let count = self.declarations.len();
        if let Some(Err(error)) = settings.history.as_ref().map(|history| history.check(count)) {
            panic!("cannot run the history in {VARIABLE}: {error}");
        }
        let kept = kept::read(&settings.package.join(identity.kept_file()), count)
            .unwrap_or_else(|error| panic!("{error}"));
        let limit = settings.limit.or(self.limit);
        let mut setting = self.setting();
        let declared = setting.declarations.iter();
        let declared = declared.map(|declaration| declaration.name.to_string()).collect();
        let is_long = settings.reports.is_some() || matches!(limit, Some(Limit::Seconds(_)));
        let name = (is_long && settings.history.is_none()).then(|| identity.name.clone());
        let (only, on_server) = (settings.history, settings.on_server);
        let mut report = on_own_thread(move || {
            let mut plain = Some(run_plain(&setting));
            // The operator reads Pods, so start over with Pods.
            if plain.as_ref().is_some_and(|outcome| outcome.asks_for_pods) {
                setting.has_pods = true;
                plain = None;
            }
            let search = Search::new(&setting, plain, Budget::start(limit), Progress::new(name));
            match only {
                only if on_server => search.replay_on_server(only),
                Some(history) => search.replay(&history),
                None => search.search(kept),
            }
        });
        if !report.timeline.is_empty() || report.on_server.is_some() {
            progress::print(&format!("simulation {}: {report}\n", identity.name));
        }
        report.kept_file = identity.kept_file().to_string_lossy().replace('\\', "/");
        if let Some(folder) = settings.reports {
            let record = Record::new(
                identity,
                declared,
                limit.unwrap_or(Limit::Histories(report.histories)),
                &report,
            );
            let file = folder.join(format!("{}.json", identity.name));
            if let Err(error) = std::fs::write(&file, record.to_text()) {
                panic!("cannot write the report {}: {error}", file.display());
            }
        }
        report
    }

    #[track_caller]
    fn setting(self) -> Setting {
        let declarations =
            setting::declarations(&self.server, self.declarations, self.alternatives, &self.random);
        let server = setting::with_namespaces(self.server, &declarations);
        let has_webhooks = setting::install_webhooks(&server, &self.program, self.webhooks.as_deref());
        Setting {
            has_replicas: self.replicas > 1 && setting::may_elect(&server),
            server,
            declarations,
            has_webhooks,
            program: self.program,
            namespace: self.namespace,
            roles: self.roles,
            accepted: self.accepted,
            tolerance: Arc::new(self.tolerance),
            behaviors: self.behaviors,
            has_pods: false,
            has_copies: self.has_copies,
            rolls_out_config: self.rolls_out_config,
            invariants: self.invariants,
        }
    }
}

/// Each history creates a tokio runtime, which would panic inside another runtime; the test may be
/// running in one.
fn on_own_thread(search: impl FnOnce() -> Report + Send + 'static) -> Report {
    let thread = std::thread::Builder::new().name("simulation".to_owned());
    match thread.spawn(search).map(std::thread::JoinHandle::join) {
        Ok(Ok(report)) => report,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => panic!("cannot start a thread: {error}"),
    }
}
