//! Source text to Kubernetes manifests: `generate` is the whole journey on one screen.
//!
//! This crate reads no file, no clock and no environment: text comes in through [`Sources`], text goes out as
//! [`OutputFile`]s. Broken user code is ordinary input: it makes diagnostics, never a panic.

mod advice;
mod cargo;
mod collect;
mod crd;
mod csv;
mod defaults;
mod fields;
mod gap;
mod handwritten;
mod kinds;
mod kube_release;
mod kubernetes_kinds;
mod kubernetes_types;
mod nulls;
mod origin;
mod orphan;
mod package;
mod place;
pub mod rbac;
mod report;
mod resolve;
mod schemas;
mod selection;
mod serde_forms;
mod sources;
mod survey;
mod webhook;
pub mod yaml;

use std::ops::Range;

pub use cargo::{Membership, PackageSummary, find_membership, summarize_package};
pub use fields::{FieldPath, FieldPlace, find_fields};
pub use kinds::{KindOutcome, KindSummary};
pub use kubernetes_kinds::{KubernetesKind, explain_unknown_kind, find_kubernetes_kind, is_kubernetes_group};
pub use rbuilder_catalogue::{Minor, versions};
pub use rbuilder_diagnostic::Severity;
pub use rbuilder_schema::{CsvKind, CsvMarkers, CsvResource, Descriptor, RequiredCrd, fits_descriptor_path};
pub use rbuilder_syntax::kubernetes::BuiltinKind;
pub use rbuilder_syntax::{MarkKind, RBAC_URL_VERBS, RBAC_VERBS};
pub use rbuilder_syntax::{Webhook, WebhookKind};
pub use selection::{ProjectKinds, find_group_owner};
pub use sources::{Archive, ArchiveError, REGISTRY, SourceSet, Sources};
pub use survey::{LeftOut, Standing, StandingMarker, find_standing_markers};
pub use webhook::MANAGER_NAMESPACE;

use kubernetes_types::KubernetesTypes;
use report::{Concern, Report};

/// A sort of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// CustomResourceDefinitions of the kinds.
    Crds,
    /// Roles with the permissions that `#[rbac]` asks for.
    Roles,
    /// Configurations of the webhooks that `#[webhook]` marks.
    Webhooks,
}

/// Options of the output.
#[derive(Clone, Debug)]
pub struct Options {
    /// The products to make. A mistake in another product is not an error.
    pub products: Vec<Product>,
    /// Name of the ClusterRole, and of Roles whose marker names none.
    pub role_name: String,
    /// The packages to read, by name; when empty, the package that the command runs in, or every member of
    /// the workspace that it runs in.
    pub packages: Vec<String>,
    /// Examples to read, by name, in place of the library and the binaries.
    pub examples: Vec<String>,
    /// The kinds whose CRDs are written, as `Kind`, `Kind.group` or `*.group`; when empty, those that `Cargo.toml` and
    /// PROJECT leave.
    pub kinds: Vec<String>,
    /// Kinds whose CRDs are not written.
    pub skip_kinds: Vec<String>,
    /// The kinds that PROJECT lists as the project's own or as others', where there is a PROJECT.
    pub project: Option<ProjectKinds>,
    /// The names of CRDs that the project has generated before, such as `cups.example.com`: their kinds are its own, whatever
    /// the source says.
    pub committed: Vec<String>,
    /// Cargo features that count as on when `cfg(feature = "…")` is evaluated, beside the default ones:
    /// `feature`, or `package/feature`.
    pub features: Vec<String>,
    /// Treats every feature of the packages as on.
    pub all_features: bool,
    /// Treats the default features of the packages as off.
    pub no_default_features: bool,
    /// Value of the version annotation on CRDs; nothing leaves the annotation out.
    pub version: Option<String>,
    /// Most bytes of a description, which is cut after a sentence or a word; 0 drops descriptions, nothing keeps
    /// them whole. The marker `max_description_length` says the same of one type.
    pub max_description_length: Option<usize>,
    /// Keeps labels, annotations and names in the `metadata` of embedded objects, such as a pod template's.
    /// Without it the API server drops them. The marker `embedded_object_meta` says the same of one value.
    pub embedded_object_meta: bool,
    /// Makes the manifests that no error concerns, in spite of errors elsewhere: the CRDs of the other kinds, and the
    /// roles and webhook configurations if there is no error outside of types. Without it an error leaves nothing.
    pub keep_going: bool,
    /// The Kubernetes whose types k8s-openapi has, where no feature of it is chosen in a manifest: what the variable
    /// `K8S_OPENAPI_ENABLED_VERSION` says to the build. Where nothing is said, the newest is taken.
    pub kubernetes: Option<Minor>,
    /// Collects what `#[csv(…)]` says, for [`Findings::csv`].
    pub csv: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            products: vec![Product::Crds, Product::Roles, Product::Webhooks],
            role_name: "manager-role".into(),
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
        }
    }
}

/// One manifest: path relative to the project's `config` folder, and its final bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// `crd/bases/<group>_<plural>.yaml`, `rbac/role.yaml`, `webhook/manifests.yaml`.
    pub path: String,
    /// The content of the file.
    pub text: String,
}

/// A diagnostic about a part of a file.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<FileRange>;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The file, as [`Sources`] knows it.
    pub path: String,
    /// The bytes; none, at 0, for the file as a whole.
    pub range: Range<usize>,
}

impl FileRange {
    /// A range of a file's bytes.
    pub fn new(path: impl Into<String>, range: Range<usize>) -> Self {
        FileRange {
            path: path.into(),
            range,
        }
    }
}

/// The result of `generate`. With an error among the diagnostics there are no files, or, with [`Options::keep_going`],
/// those that no error concerns.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// The manifests, by path.
    pub files: Vec<OutputFile>,
    /// Everything to be said, sorted by place, without duplicates.
    pub diagnostics: Vec<Diagnostic>,
    /// The kinds of the packages.
    pub kinds: Vec<KindSummary>,
}

/// The findings of a run, beside its manifests.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Everything to be said, sorted by place, without duplicates.
    pub diagnostics: Vec<Diagnostic>,
    /// The kinds of the packages, by group and name; none if CRDs are not asked for, or the packages could not be read.
    pub kinds: Vec<KindSummary>,
    /// The other products that an error holds back.
    pub held_back: Vec<Product>,
    /// The versions of kinds with `#[csv(…)]`, by group and kind, without those that an error concerns; none unless
    /// [`Options::csv`] is set.
    pub csv: Vec<CsvMarkers>,
}

/// Reads the kinds and markers of the packages that are asked for and writes their manifests.
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

/// As [`generate`], with each manifest handed over as soon as it is made, so that a caller who does not keep them
/// never holds them all. An error can still follow: what was handed over then counts for nothing, unless
/// [`Options::keep_going`] is set, with which only what no error concerns is handed over.
pub fn generate_each(sources: &dyn Sources, options: &Options, each: &mut dyn FnMut(OutputFile)) -> Findings {
    let mut report = Report::default();
    let crd::CrdFindings { kinds, csv } = manifests(sources, options, &mut report, each).unwrap_or_default();
    let held_back = [
        (Product::Roles, Concern::Roles),
        (Product::Webhooks, Concern::Webhooks),
    ]
    .into_iter()
    .filter(|(product, concern)| options.products.contains(product) && is_held_back(&report, *concern))
    .map(|(product, _)| product)
    .collect();
    let (diagnostics, concerns): (Vec<_>, Vec<_>) = report.into_sorted().into_iter().unzip();
    let kinds = kinds::summarize_kinds(kinds, &diagnostics, &concerns);
    Findings {
        diagnostics,
        kinds,
        held_back,
        csv,
    }
}

/// Returns true if an error concerns the roles, or the webhook configurations.
fn is_held_back(report: &Report, concern: Concern) -> bool {
    report.holds_back(concern) || report.holds_back(Concern::Markers)
}

/// Returns the Kubernetes minor whose types the packages compile, as far as their manifests or the options say it.
pub fn find_kubernetes_minor(sources: &dyn Sources, options: &Options) -> Option<Minor> {
    let manifests = cargo::read_manifests(sources, options, &mut Report::default());
    manifests.map_or(options.kubernetes, |manifests| {
        manifests.k8s_openapi.choose(options.kubernetes).minor
    })
}

/// Errors are collected within a stage; a stage that cannot go on hands nothing to the next.
fn manifests(
    sources: &dyn Sources,
    options: &Options,
    report: &mut Report,
    each: &mut dyn FnMut(OutputFile),
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
        collected.selector.report(package, sources, options, report);
    }
    let mut found = crd::CrdFindings::default();
    for product in &options.products {
        match product {
            Product::Crds => found = crd::crd_files(package, options, report, each),
            Product::Roles => {
                report.set_concern(Concern::Roles);
                let file = rbac::roles_file(package, &options.role_name, report);
                file.filter(|_| !is_held_back(report, Concern::Roles))
                    .into_iter()
                    .for_each(&mut *each);
            }
            Product::Webhooks => {
                report.set_concern(Concern::Webhooks);
                let file = webhook::manifests_file(package, report);
                file.filter(|_| !is_held_back(report, Concern::Webhooks))
                    .into_iter()
                    .for_each(&mut *each);
            }
        }
        report.set_concern(Concern::Run);
    }
    Some(found)
}
