//! The builder of simulations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Resource};
use rbuilder_testing::RandomObjects;
use rbuilder_testing::fake::ApiServer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::environment::{self, Behavior, World};
use crate::history::VARIABLE;
use crate::identity::Identity;
use crate::kept;
use crate::operator::{self, Operator, Program, Started};
use crate::oracle::Oracle;
use crate::progress::{self, Progress};
use crate::record::Record;
use crate::report::Report;
use crate::run::{Invariant, Setting};
use crate::search::{Search, asks_for_pods};
use crate::setting;
use crate::settings::{Budget, Limit, Settings};

/// Number of histories by default.
const HISTORIES: usize = 120;

/// A simulation of an operator. See [the crate](crate).
pub struct Simulation {
    program: Program,
    server: ApiServer,
    declarations: Vec<Value>,
    alternatives: Vec<Value>,
    random: Vec<Value>,
    behaviors: Vec<Arc<dyn Behavior>>,
    invariants: Vec<Invariant>,
    namespace: Option<String>,
    /// The folder with the roles of the operator.
    roles: Option<PathBuf>,
    accepted: Vec<Oracle>,
    replicas: usize,
    /// The file with webhook configurations.
    webhooks: Option<PathBuf>,
    limit: Limit,
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
    /// Creates a simulation of the controllers that a function registers.
    #[must_use]
    pub fn new<O: Operator>(register: impl Fn(O) -> O + Send + Sync + 'static) -> Self {
        let mut simulation = Self::of_program(operator::program(register));
        simulation.replicas = 2;
        simulation
    }

    /// Creates a simulation of any program that uses a [`kube::Client`], such as one with `Controller` of
    /// kube-rs. The future runs until it is dropped.
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
            server: ApiServer::new().collecting_garbage(),
            declarations: Vec::new(),
            alternatives: Vec::new(),
            random: Vec::new(),
            behaviors: environment::of_cluster(),
            invariants: Vec::new(),
            namespace: None,
            roles: None,
            accepted: Vec::new(),
            replicas: 1,
            webhooks: None,
            limit: Limit::Histories(HISTORIES),
        }
    }

    /// Installs the CRDs and the role of the operator from its folder of manifests: `crd/bases` and, if it
    /// exists, `rbac`.
    ///
    /// # Panics
    /// Panics if the manifests cannot be read.
    #[must_use]
    #[track_caller]
    pub fn install(mut self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        if let Err(error) = self.server.install_crds(folder.join("crd/bases")) {
            panic!("cannot install the CRDs: {error}");
        }
        let roles = folder.join("rbac");
        if roles.exists() {
            self = self.role_from(roles);
        }
        self
    }

    /// Installs webhook configurations from a file or folder, such as `config/webhook/manifests.yaml`. The
    /// function of [`new`](Self::new) must register the webhooks, too. The server calls them as long as a
    /// process runs, and without one the failure policies decide. Conversion webhooks that the function
    /// registers are called in any case. Has no effect with [`of_client`](Self::of_client).
    ///
    /// # Panics
    /// [`run`](Self::run) panics if the configurations cannot be read.
    #[must_use]
    pub fn webhooks(mut self, path: impl Into<PathBuf>) -> Self {
        self.webhooks = Some(path.into());
        self
    }

    /// Serves the kind of a CRD, such as `Memcached::crd()`.
    ///
    /// # Panics
    /// Panics if the CRD is not valid.
    #[must_use]
    pub fn crd(mut self, crd: CustomResourceDefinition) -> Self {
        self.server = self.server.crd(crd);
        self
    }

    /// Gives the operator the permissions of the roles in a folder. See [`ApiServer::role_from`].
    ///
    /// # Panics
    /// Panics if the roles cannot be read.
    #[must_use]
    #[track_caller]
    pub fn role_from(mut self, folder: impl AsRef<Path>) -> Self {
        self.server = self.server.role_from(&folder);
        self.roles = Some(folder.as_ref().to_owned());
        self
    }

    /// Declares the sample of a kind in `config/samples`.
    ///
    /// # Panics
    /// Panics if there is no sample of the kind or it cannot be read.
    #[must_use]
    #[track_caller]
    pub fn samples<K: Resource<DynamicType = ()> + DeserializeOwned + Serialize>(self) -> Self {
        self.declare(&rbuilder_testing::sample::<K>())
    }

    /// Declares an object. The histories apply all declared objects in order and delete them in the
    /// opposite order. Namespaces that they are in, and that are not declared, exist from the start.
    ///
    /// # Panics
    /// Panics if the object cannot be serialized.
    #[must_use]
    #[track_caller]
    pub fn declare(mut self, object: &impl Serialize) -> Self {
        match serde_json::to_value(object) {
            Ok(object) => self.declarations.push(object),
            Err(error) => panic!("cannot serialize a declared object: {error}"),
        }
        self
    }

    /// Adds another form of a declared object, which has the same kind and name: one that an older version
    /// of the operator has written, such as with annotations in a former format, or a whole configuration
    /// that differs in several fields. Histories declare it from nothing, and change between the two.
    ///
    /// # Panics
    /// Panics if the object cannot be serialized. [`run`](Self::run) panics if no such object is declared.
    #[must_use]
    #[track_caller]
    pub fn alternative(mut self, object: &impl Serialize) -> Self {
        match serde_json::to_value(object) {
            Ok(object) => self.alternatives.push(object),
            Err(error) => panic!("cannot serialize another form of a declared object: {error}"),
        }
        self
    }

    /// Adds random values of the declared objects of a kind, which its schema allows. Histories declare each
    /// of them from nothing, and change between it and the declared object, in turn with changes of single
    /// fields. Values that the server rejects, such as for a CEL rule, are skipped.
    ///
    /// Most operators need some order in their values: limit a field such as an image with
    /// [`RandomObjects::values`].
    ///
    /// # Panics
    /// Panics if no object that matches the schema can be generated. [`run`](Self::run) panics if no object
    /// of the kind is declared.
    #[must_use]
    #[track_caller]
    pub fn values(mut self, objects: &RandomObjects, count: u32) -> Self {
        self.random.extend(objects.iter(count));
        self
    }

    /// Adds a controller of the cluster that the operator depends on.
    #[must_use]
    pub fn behavior(mut self, behavior: impl Behavior + 'static) -> Self {
        self.behaviors.push(Arc::new(behavior));
        self
    }

    /// Adds a rule about the whole state, which is checked after each change.
    #[must_use]
    pub fn invariant(mut self, rule: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.invariants.push(Arc::new(rule));
        self
    }

    /// Lets the operator watch only this namespace, like `WATCH_NAMESPACE` in a project that was created
    /// with `--namespaced`. Has no effect with [`of_client`](Self::of_client).
    #[must_use]
    pub fn watch_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets whether some histories run two replicas of the operator, which elect a leader: 1 or 2. The
    /// leader dies, or cannot reach the server for longer than its lease lasts, and the other replica
    /// takes over.
    ///
    /// Defaults to 2 with [`new`](Self::new) if the role permits leases, and to 1 with
    /// [`of_client`](Self::of_client), whose programs must elect a leader by themselves.
    #[must_use]
    pub fn replicas(mut self, count: usize) -> Self {
        self.replicas = count;
        self
    }

    /// Does not report violations of an oracle, such as [`Oracle::Path`] for an operator that leaves an
    /// object when its name in the spec changes.
    #[must_use]
    pub fn without(mut self, oracle: Oracle) -> Self {
        self.accepted.push(oracle);
        self
    }

    /// Sets the largest number of histories. Defaults to 120. The environment variables
    /// `RBUILDER_SIMULATION_HISTORIES` and `RBUILDER_SIMULATION_SECONDS` take precedence.
    #[must_use]
    pub fn histories(mut self, count: usize) -> Self {
        self.limit = Limit::Histories(count);
        self
    }

    /// Runs histories for this many seconds of real time, in place of a number of histories, and prints
    /// progress on standard error. Which histories run then depends on the machine, but each of them is
    /// the same everywhere.
    #[must_use]
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.limit = Limit::Seconds(seconds);
        self
    }

    /// Runs the histories and panics with a report if the operator was wrong in one.
    ///
    /// # Panics
    /// Panics if a history fails, or as [`run`](Self::run) does.
    #[track_caller]
    pub fn check(self) {
        let report = self.run();
        assert!(report.is_clean(), "\n{report}");
    }

    /// Runs the histories and returns what was found. Begins with the histories in the folder
    /// `simulations` of the package that `rbuilder simulate` has kept for this test.
    ///
    /// Environment variables:
    /// - `RBUILDER_SIMULATION`: only runs the history in it.
    /// - `RBUILDER_SIMULATION_HISTORIES`, `RBUILDER_SIMULATION_SECONDS`: the budget, in place of
    ///   [`histories`](Self::histories) or [`seconds`](Self::seconds).
    /// - `RBUILDER_SIMULATION_SERVER`: with `1`, does what [`run_on_server`](Self::run_on_server) does.
    /// - `RBUILDER_SIMULATION_REPORTS`: an existing folder. A report of each simulation is written there
    ///   as JSON, and progress is printed on standard error.
    ///
    /// # Panics
    /// Panics if nothing is declared, a declared object has no name or is of a kind that is not served, a
    /// variable or a kept history cannot be parsed, or the report cannot be written.
    #[must_use]
    #[track_caller]
    pub fn run(self) -> Report {
        let settings = Settings::from_environment().unwrap_or_else(|error| panic!("{error}"));
        self.run_as(&Identity::of(std::panic::Location::caller()), settings)
    }

    /// Runs no search. Replays the declared objects and their variants, or the history in
    /// `RBUILDER_SIMULATION`, on etcd and kube-apiserver of `KUBEBUILDER_ASSETS`, and compares the states
    /// with those of the simulation. There are no other controllers, so that statuses are copied from the
    /// simulated environment, and of the deletions, only those of declared objects are awaited.
    ///
    /// # Panics
    /// Panics as [`run`](Self::run) does, without the feature `envtest`, if the servers do not start, or if
    /// the history needs control over time.
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
        let limit = settings.limit.unwrap_or(self.limit);
        let mut setting = self.setting();
        let declared = setting.declarations.iter();
        let declared = declared.map(|declaration| declaration.name.to_string()).collect();
        let is_long = settings.reports.is_some() || matches!(limit, Limit::Seconds(_));
        let name = (is_long && settings.history.is_none()).then(|| identity.name.clone());
        let (only, on_server) = (settings.history, settings.on_server);
        let mut report = on_own_thread(move || {
            if asks_for_pods(&setting) {
                setting.behaviors.extend(environment::of_pods());
            }
            let search = Search::new(&setting, Budget::start(limit), Progress::new(name));
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
            let record = Record::new(identity, declared, limit, &report);
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
            behaviors: self.behaviors,
            invariants: self.invariants,
        }
    }
}

/// Runs a search on a thread of its own: histories have runtimes, which cannot start inside of the
/// test's. Panics as the search does.
fn on_own_thread(search: impl FnOnce() -> Report + Send + 'static) -> Report {
    let thread = std::thread::Builder::new().name("simulation".to_owned());
    match thread.spawn(search).map(std::thread::JoinHandle::join) {
        Ok(Ok(report)) => report,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => panic!("cannot start a thread: {error}"),
    }
}
