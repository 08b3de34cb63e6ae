//! The builder of simulations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::client::Body;
use kube::{Client, Resource};
use rbuilder_testing::fake::{ApiServer, WebhookHandler, Webhooks};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::declaration::{Declaration, changes_between};
use crate::environment::{self, Behavior, World};
use crate::history::VARIABLE;
use crate::identity::Identity;
use crate::kept;
use crate::operator::{self, Operator, ProcessSettings, Program, Started};
use crate::oracle::Oracle;
use crate::progress::{self, Progress};
use crate::record::Record;
use crate::report::Report;
use crate::run::{Invariant, Setting};
use crate::search::Search;
use crate::settings::{Budget, Limit, Settings};
use crate::world::{GIVEN, ObjectName};

/// Number of histories by default.
const HISTORIES: usize = 120;

/// A simulation of an operator. See [the crate](crate).
pub struct Simulation {
    program: Program,
    server: ApiServer,
    declarations: Vec<Value>,
    alternatives: Vec<Value>,
    behaviors: Vec<Arc<dyn Behavior>>,
    invariants: Vec<Invariant>,
    namespace: Option<String>,
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
            behaviors: environment::of_cluster(),
            invariants: Vec::new(),
            namespace: None,
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
            self.server = self.server.role_from(roles);
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
        self.server = self.server.role_from(folder);
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
        assert!(report.failures.is_empty(), "\n{report}");
    }

    /// Runs the histories and returns what was found. Begins with the histories in the folder
    /// `simulations` of the package that `rbuilder simulate` has kept for this test.
    ///
    /// Environment variables:
    /// - `RBUILDER_SIMULATION`: only runs the history in it.
    /// - `RBUILDER_SIMULATION_HISTORIES`, `RBUILDER_SIMULATION_SECONDS`: the budget, in place of
    ///   [`histories`](Self::histories) or [`seconds`](Self::seconds).
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
        let setting = self.setting();
        let declared = setting.declarations.iter();
        let declared = declared.map(|declaration| declaration.name.to_string()).collect();
        let is_long = settings.reports.is_some() || matches!(limit, Limit::Seconds(_));
        let name = (is_long && settings.history.is_none()).then(|| identity.name.clone());
        let only = settings.history;
        let mut report = on_own_thread(move || {
            let search = Search::new(&setting, Budget::start(limit), Progress::new(name));
            match only {
                Some(history) => search.replay(&history),
                None => search.search(kept),
            }
        });
        if !report.timeline.is_empty() {
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
        let declarations = self.declarations.into_iter();
        let mut declarations: Vec<Declaration> = declarations
            .map(|object| declaration(&self.server, object))
            .collect();
        for object in self.alternatives {
            let other = declaration(&self.server, object);
            let mut known = declarations.iter_mut();
            match known.find(|known| known.name == other.name) {
                Some(known) => known
                    .alternatives
                    .push(changes_between(&known.object, &other.object)),
                None => panic!(
                    "{} is another form of nothing: add `.declare(&object)`",
                    other.name
                ),
            }
        }
        let server = with_namespaces(self.server, &declarations);
        let has_webhooks = install_webhooks(&server, &self.program, self.webhooks.as_deref());
        Setting {
            has_replicas: self.replicas > 1 && may_elect(&server),
            server,
            declarations,
            has_webhooks,
            program: self.program,
            namespace: self.namespace,
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

/// Completes a declared object: namespaced objects are in `default` unless they say otherwise.
#[track_caller]
fn declaration(server: &ApiServer, mut object: Value) -> Declaration {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    assert!(!name.is_empty(), "a declared object needs `metadata.name`");
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some((plural, is_namespaced)) = server.resource_of(group, &kind) else {
        panic!("the server does not know {kind} of {api_version}: add its CRD with `.install(\"config\")`");
    };
    let namespace = match (is_namespaced, text("/metadata/namespace")) {
        (false, _) => String::new(),
        (true, namespace) if namespace.is_empty() => "default".to_owned(),
        (true, namespace) => namespace,
    };
    if is_namespaced {
        object["metadata"]["namespace"] = namespace.clone().into();
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let name = ObjectName {
        group: group.to_owned(),
        plural,
        version: version.to_owned(),
        namespace,
        name,
    };
    let schema = server.schema_of(&name.group, &name.plural, &name.version);
    Declaration {
        object,
        name,
        alternatives: Vec::new(),
        schema: schema.unwrap_or_default(),
    }
}

/// Adds the namespaces of the declared objects, except for those that are declared themselves.
fn with_namespaces(server: ApiServer, declarations: &[Declaration]) -> ApiServer {
    let is_declared = |namespace: &str| {
        let mut names = declarations.iter().map(|declaration| &declaration.name);
        names.any(|name| name.plural == "namespaces" && name.name == namespace)
    };
    let names = declarations.iter().map(|declaration| &declaration.name);
    let namespaces: BTreeSet<&str> = names.map(|name| name.namespace.as_str()).collect();
    let missing = namespaces
        .into_iter()
        .filter(|namespace| !matches!(*namespace, "" | "default") && !is_declared(namespace));
    missing.fold(server, |server, name| {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.metadata.annotations = Some(BTreeMap::from([(GIVEN.to_owned(), String::new())]));
        server.object(&namespace)
    })
}

/// Webhooks of a process that does not run.
struct Taken(Option<WebhookHandler>);

impl Webhooks for Taken {
    fn take_webhooks(&mut self) -> WebhookHandler {
        self.0.take().expect("webhooks are installed once")
    }
}

/// Installs webhook configurations, and the conversions that an operator registers. Each run of the
/// operator brings its own webhooks later. Returns whether there are any.
#[track_caller]
fn install_webhooks(server: &ApiServer, program: &Program, configurations: Option<&Path>) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers needs nothing from the system");
    // Clients start tasks.
    let _entered = runtime.enter();
    let started = program(server.client(), &ProcessSettings::default());
    let Some(handler) = started.webhooks else {
        return false;
    };
    let converts = handler.converts();
    let mut operator = Taken(Some(handler));
    match configurations {
        Some(path) => {
            if let Err(error) = server.install_webhooks(path, &mut operator) {
                panic!("cannot install the webhooks: {error}");
            }
        }
        None if converts => server.install_conversions(&mut operator),
        None => return false,
    }
    server.serve_webhooks(None);
    true
}

/// Returns whether the operator may use the lease of leader election.
fn may_elect(server: &ApiServer) -> bool {
    let review = serde_json::json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "group": "coordination.k8s.io", "resource": "leases", "verb": "create", "namespace": "default",
        } },
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(review.to_string().into_bytes()));
    let request = request.expect("the path is a URI");
    // The server answers without waiting for anything.
    let Some(Ok(response)) = futures::FutureExt::now_or_never(server.copy().call(request, false)) else {
        return false;
    };
    let body = futures::FutureExt::now_or_never(http_body_util::BodyExt::collect(response.into_body()));
    let Some(Ok(body)) = body else { return false };
    let review: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    review["status"]["allowed"] == true
}

impl Setting {
    /// Returns whether the server rejects a variant of a declaration. Webhooks decide only in a run.
    pub(crate) fn is_rejected(&self, number: usize, changes: &BTreeMap<String, Value>) -> bool {
        if self.has_webhooks {
            return false;
        }
        let declaration = &self.declarations[number];
        let request = declaration.apply(&declaration.with(changes), "&dryRun=All");
        let request = request.map(|body| Body::from(body.into_bytes()));
        // The server answers without waiting for anything.
        let answer = futures::FutureExt::now_or_never(self.server.call(request, true));
        !matches!(answer, Some(Ok(response)) if response.status().is_success())
    }
}
