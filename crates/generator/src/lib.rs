//! Generates Kubernetes manifests from Rust source text. Start reading at [`generate`].
//!
//! This crate does no I/O and reads neither clock nor environment: source text comes from
//! [`Sources`], and manifests are returned as [`OutputFile`]s. Broken user code is expected: it
//! leads to diagnostics, but must never cause a panic.
//!
//! A run has these stages:
//!
//! | stage | result | may assume | must not contain |
//! |---|---|---|---|
//! | load | [`Sources`], read on demand | UTF-8 text by path | syntax trees |
//! | collect | `syntax::Type`, `RbacRule`, `Handler` | markers are parsed and checked item by item | resolved names |
//! | resolve | resolved slots | each path is resolved or reported | tokens |
//! | schema | `Schema` | structural, inlined, without `$ref` | Rust types |
//! | manifest | CRDs, roles and webhook configurations as objects | complete | file paths |
//! | output | [`OutputFile`] | final bytes | options |

mod advice;
mod cargo;
pub mod codes;
mod collect;
mod crd;
mod csv;
mod defaults;
mod fields;
mod gap;
mod kinds;
mod kube_release;
mod kubernetes_kinds;
mod kubernetes_types;
mod nulls;
mod origin;
mod orphan;
mod package;
mod permissions;
mod place;
pub mod rbac;
pub mod replacement;
mod report;
mod resolve;
mod root;
mod schemas;
mod selection;
mod serde_forms;
mod sign;
mod sources;
mod standing;
mod survey;
mod webhook;
pub mod yaml;

use std::ops::Range;

pub use cargo::{FETCH, Membership, PackageSummary, find_membership, summarize_package};
pub use codes::{Allows, Code, Levels};
pub use fields::{FieldPath, FieldPlace, find_fields};
pub use kinds::{Duplicate, KEEP_ONE, KindOutcome, KindSummary};
pub use kubernetes_kinds::{KubernetesKind, explain_unknown_kind, find_kubernetes_kind, is_kubernetes_group};
pub use rbuilder_catalogue::{Catalogue, Minor, versions};
pub use rbuilder_diagnostic::Severity;
pub use rbuilder_judge::Definition;
pub use rbuilder_schema::{CsvKind, CsvMarkers, CsvResource, Descriptor, RequiredCrd, fits_descriptor_path};
pub use rbuilder_syntax::kubernetes::BuiltinKind;
pub use rbuilder_syntax::{MarkKind, RBAC_URL_VERBS, RBAC_VERBS};
pub use rbuilder_syntax::{Webhook, WebhookKind};
pub use replacement::find_replacement;
pub use selection::{ProjectKinds, find_group_owner};
pub use sources::{Archive, ArchiveError, REGISTRY, SourceSet, Sources, find_crd_names};
pub use standing::{LeftOut, Standing, StandingMarker};
pub use survey::find_standing_markers;
pub use webhook::MANAGER_NAMESPACE;

use kubernetes_types::KubernetesTypes;
use report::{Concern, Report};

/// A kind of manifest to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// A CustomResourceDefinition for each kind.
    Crds,
    /// Roles with the permissions that `#[rbac]` markers ask for.
    Roles,
    /// The webhook configurations that `#[webhook]` markers describe.
    Webhooks,
}

/// Options for [`generate`].
#[derive(Clone, Debug)]
pub struct Options {
    /// What to generate. Mistakes in anything else aren't errors.
    pub products: Vec<Product>,
    /// The name of the ClusterRole, and of Roles whose markers don't name them.
    pub role_name: String,
    /// The manager's own namespaces. A Role for any other namespace gets the namespace in its name
    /// (unless its marker has a `role_name`), because kustomize rejects two objects of the same
    /// name. If `None`, such Roles all get the same name, as in controller-gen.
    pub own_namespaces: Option<Vec<String>>,
    /// The Service that webhooks and conversions call if their markers name no other. If `None`,
    /// `webhook-service`.
    pub webhook_service: Option<String>,
    /// The packages to read. If empty, the package in the current directory, or all members of the
    /// workspace there.
    pub packages: Vec<String>,
    /// The examples to read instead of the library and the binaries.
    pub examples: Vec<String>,
    /// The kinds to generate, as `Kind`, `Kind.group` or `*.group`. If empty, `Cargo.toml` and
    /// PROJECT select them.
    pub kinds: Vec<String>,
    /// The kinds to skip.
    pub skip_kinds: Vec<String>,
    /// The kinds according to PROJECT, if there is one.
    pub project: Option<ProjectKinds>,
    /// CRDs that the project has generated before, by name (e.g. `cups.example.com`). Their kinds
    /// count as the project's own, regardless of any signs in the source.
    pub committed: Vec<String>,
    /// Cargo features to enable besides the default ones, as `feature` or `package/feature`. They
    /// determine conditions like `cfg(feature = "…")`.
    pub features: Vec<String>,
    /// Enables all features of the packages.
    pub all_features: bool,
    /// Disables the default features of the packages.
    pub no_default_features: bool,
    /// The value of the version annotation on CRDs, or `None` for no annotation.
    pub version: Option<String>,
    /// Maximum length of descriptions in bytes. Longer descriptions are truncated at a sentence or
    /// word boundary; 0 omits all descriptions, and `None` keeps them whole. The marker
    /// `max_description_length` does the same for a single type.
    pub max_description_length: Option<usize>,
    /// Keeps labels, annotations and names in the `metadata` of embedded objects (e.g. pod
    /// templates), which the API server would otherwise drop. The marker `embedded_object_meta`
    /// does the same for a single value.
    pub embedded_object_meta: bool,
    /// Generates everything that isn't affected by an error: the CRDs of the other kinds, and the
    /// roles and webhook configurations if all errors are in types. Otherwise a single error
    /// prevents all output.
    pub keep_going: bool,
    /// The version of Kubernetes to take types from, if no feature of k8s-openapi selects one. Like
    /// the environment variable `K8S_OPENAPI_ENABLED_VERSION`. `None` means the newest version.
    pub kubernetes: Option<Minor>,
    /// Collects the `#[csv(…)]` attributes in [`Findings::csv`].
    pub csv: bool,
    /// Collects the served versions of the generated CRDs in [`Findings::definitions`].
    pub definitions: bool,
    /// The packages whose calls are compared with the roles.
    pub calls: Calls,
    /// Which warnings are errors, and which are suppressed.
    pub levels: Levels,
}

/// The name of the Service for webhooks in a scaffold, which markers have by default.
const WEBHOOK_SERVICE: &str = "webhook-service";

impl Options {
    pub(crate) fn webhook_service(&self) -> &str {
        self.webhook_service.as_deref().unwrap_or(WEBHOOK_SERVICE)
    }
}

/// The packages whose calls are followed to find out which permissions they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// Only packages that depend on rbuilder's library.
    #[default]
    OfLibrary,
    /// All selected packages.
    All,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            products: vec![Product::Crds, Product::Roles, Product::Webhooks],
            role_name: "manager-role".into(),
            own_namespaces: None,
            webhook_service: None,
            packages: Vec::new(),
            examples: Vec::new(),
            kinds: Vec::new(),
            skip_kinds: Vec::new(),
            project: None,
            committed: Vec::new(),
            features: Vec::new(),
            all_features: false,
            no_default_features: false,
            version: None,
            max_description_length: None,
            embedded_object_meta: false,
            keep_going: false,
            kubernetes: None,
            csv: false,
            definitions: false,
            calls: Calls::default(),
            levels: Levels::default(),
        }
    }
}

/// A generated manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The path relative to the project's `config` directory: `crd/bases/<group>_<plural>.yaml`,
    /// `rbac/role.yaml` or `webhook/manifests.yaml`.
    pub path: String,
    /// The contents of the file.
    pub text: String,
}

/// A diagnostic about some part of a file.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<FileRange>;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The path of the file, as in [`Sources`].
    pub path: String,
    /// The byte range, or `0..0` for the entire file.
    pub range: Range<usize>,
}

impl FileRange {
    /// Refers to a part of a file.
    pub fn new(path: impl Into<String>, range: Range<usize>) -> Self {
        FileRange {
            path: path.into(),
            range,
        }
    }
}

/// The result of [`generate`]. After an error, there are no files unless [`Options::keep_going`] is
/// set; then `files` has those that no error affects.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// The manifests, sorted by path.
    pub files: Vec<OutputFile>,
    /// All diagnostics, by place and without duplicates.
    pub diagnostics: Vec<Diagnostic>,
    /// The kinds in the packages.
    pub kinds: Vec<KindSummary>,
}

/// Results of [`generate_each`] besides the manifests.
#[derive(Debug, Default)]
pub struct Findings {
    /// All diagnostics, by place and without duplicates.
    pub diagnostics: Vec<Diagnostic>,
    /// The kinds in the packages, by group and name. Empty if CRDs weren't requested, or if the
    /// packages couldn't be read.
    pub kinds: Vec<KindSummary>,
    /// The products other than CRDs that were not generated because of an error.
    pub held_back: Vec<Product>,
    /// The versions of kinds that have `#[csv(…)]`, by group and kind. Excludes those affected by
    /// an error. Empty without [`Options::csv`].
    pub csv: Vec<CsvMarkers>,
    /// The served versions of the generated CRDs, for validating objects without parsing the CRDs.
    /// Empty without [`Options::definitions`].
    pub definitions: Vec<Definition>,
    /// Warnings suppressed in the source. Callers need this for their own diagnostics.
    pub allows: Allows,
    /// The source read by the run. Dropping it takes a twentieth of the run, so a process that is
    /// about to exit should forget it instead.
    pub source: SourceModel,
}

/// The source as known to a run, for [`Findings::source`].
#[derive(Default)]
pub struct SourceModel(
    #[expect(dead_code, reason = "held only to be dropped later")] Option<collect::Collected>,
);

impl std::fmt::Debug for SourceModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SourceModel")
    }
}

/// Generates the manifests for the kinds and markers of the selected packages.
pub fn generate(sources: &dyn Sources, options: &Options) -> Generated {
    let mut files = Vec::new();
    let Findings {
        diagnostics, kinds, ..
    } = generate_each(sources, options, &mut |file| files.push(file));
    if !options.keep_going && diagnostics.iter().any(Diagnostic::is_error) {
        files.clear();
    }
    Generated {
        files,
        diagnostics,
        kinds,
    }
}

/// Like [`generate`], but passes each manifest to `each` as soon as it's complete, so that not all
/// of them have to be in memory at once.
///
/// An error that occurs later invalidates all manifests so far. With [`Options::keep_going`],
/// `each` only gets manifests that no error affects.
pub fn generate_each(sources: &dyn Sources, options: &Options, each: &mut dyn FnMut(OutputFile)) -> Findings {
    let mut report = Report::with_levels(options.levels.clone());
    let mut source = SourceModel::default();
    let crd::CrdFindings {
        kinds,
        csv,
        definitions,
    } = manifests(sources, options, &mut report, each, &mut source).unwrap_or_default();
    report.check_allows(is_complete(options, &report));
    let held_back = [
        (Product::Roles, Concern::Roles),
        (Product::Webhooks, Concern::Webhooks),
    ]
    .into_iter()
    .filter(|(product, concern)| options.products.contains(product) && is_held_back(&report, *concern))
    .map(|(product, _)| product)
    .collect();
    let allows = report.take_allows();
    let (diagnostics, concerns): (Vec<_>, Vec<_>) = report.into_sorted().into_iter().unzip();
    let kinds = kinds::summarize_kinds(kinds, &diagnostics, &concerns);
    Findings {
        diagnostics,
        kinds,
        held_back,
        csv,
        definitions,
        allows,
        source,
    }
}

/// Returns whether this run found all warnings about the source, as far as the generator can know.
/// Otherwise an `allow(…)` can't be called unused.
fn is_complete(options: &Options, report: &Report) -> bool {
    let selects = [&options.kinds, &options.skip_kinds, &options.features];
    let is_whole = selects.iter().all(|list| list.is_empty()) && !options.no_default_features;
    let products = [Product::Crds, Product::Roles, Product::Webhooks];
    is_whole && products.iter().all(|product| options.products.contains(product)) && !report.has_errors()
}

fn is_held_back(report: &Report, concern: Concern) -> bool {
    report.holds_back(concern) || report.holds_back(Concern::Markers)
}

/// Returns the Kubernetes version that the packages are compiled for, if a manifest or an option
/// selects one.
pub fn find_kubernetes_minor(sources: &dyn Sources, options: &Options) -> Option<Minor> {
    let manifests = cargo::read_manifests(sources, options, &mut Report::default());
    manifests.map_or(options.kubernetes, |manifests| {
        manifests.k8s_openapi.choose(options.kubernetes).minor
    })
}

/// Each stage collects its errors, so that users see as many as possible. The run ends at the first
/// stage that cannot continue.
fn manifests(
    sources: &dyn Sources,
    options: &Options,
    report: &mut Report,
    each: &mut dyn FnMut(OutputFile),
    source: &mut SourceModel,
) -> Option<crd::CrdFindings> {
    let manifests = cargo::read_manifests(sources, options, report)?;
    report.set_kube(manifests.kube);
    let k8s_openapi = manifests.k8s_openapi;
    let choice = k8s_openapi.choose(options.kubernetes);
    let kubernetes = KubernetesTypes::new(choice, k8s_openapi.place);
    let build = collect::Build::Asked;
    let mut collected = collect::collect_packages(
        sources,
        manifests.packages,
        Some(manifests.published),
        kubernetes,
        build,
        options,
        report,
    );
    orphan::warn_of_orphans(sources, options, &mut collected, report);
    let package = &mut collected.package;
    origin::name_files(package);
    let package = &*package;
    if options.products.contains(&Product::Crds) {
        let find_standing = || find_standing_markers(sources, options);
        collected.selector.report(package, &find_standing, report);
    }
    let mut found = crd::CrdFindings::default();
    for product in &options.products {
        match product {
            Product::Crds => found = crd::crd_files(package, options, report, each),
            Product::Roles => {
                report.set_concern(Concern::Roles);
                let file = rbac::roles_file(package, options, report);
                file.filter(|_| !is_held_back(report, Concern::Roles))
                    .into_iter()
                    .for_each(&mut *each);
            }
            Product::Webhooks => {
                report.set_concern(Concern::Webhooks);
                let file = webhook::manifests_file(package, options, report);
                file.filter(|_| !is_held_back(report, Concern::Webhooks))
                    .into_iter()
                    .for_each(&mut *each);
            }
        }
        report.set_concern(Concern::Run);
    }
    *source = SourceModel(Some(collected));
    Some(found)
}
