//! The model of the source: packages, modules, the names in them, and the types, aliases and rules found there.
//!
//! Everything is owned and refers to everything else by number; no tokens are left.

use std::collections::BTreeMap;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_syntax::{CustomResource, RbacRule, Type, Webhook};

use crate::gap::{Gap, GapId};
use crate::kubernetes_types::KubernetesTypes;
use crate::orphan::Orphan;
use crate::place::FileId;
use crate::selection::Sign;

/// Declares a number that indexes one of the package's lists.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub(crate) usize);
    };
}

id!(
    /// A Cargo package.
    PackageId
);
id!(
    /// A module of a target.
    ModuleId
);
id!(
    /// A struct or enum that has a schema.
    TypeId
);
id!(
    /// A `type` alias.
    AliasId
);
id!(
    /// A function or a constant.
    ValueId
);

/// The source of a run: of the packages that are asked for all targets, of path crates what is needed of them.
#[derive(Default)]
pub(crate) struct Package {
    pub(crate) modules: Vec<Module>,
    pub(crate) types: Vec<TypeItem>,
    pub(crate) aliases: Vec<Alias>,
    /// Files with markers that no module leads to.
    pub(crate) orphans: Vec<Orphan>,
    /// Functions and constants that may be a single value.
    pub(crate) values: Vec<ValueItem>,
    /// Those of them that belong to a type.
    pub(crate) associated: Vec<Associated>,
    /// Those of them by which types give their own schemas, by number.
    pub(crate) schema_functions: Vec<usize>,
    /// The kinds that `merge_crds` is called for, with the version that it is told to store.
    pub(crate) merges: Vec<(String, String)>,
    /// The places where functions change CRDs.
    pub(crate) patches: Vec<Patch>,
    pub(crate) rules: Vec<PlacedRule>,
    pub(crate) handlers: Vec<Handler>,
    /// Implementations of `Serialize` and `Deserialize` that are not derives.
    pub(crate) by_hand: Vec<ByHand>,
    /// The Cargo packages, in the order of their manifests.
    pub(crate) members: Vec<Member>,
    /// Parts of the source whose items are unknown.
    pub(crate) gaps: Vec<Gap>,
    /// Kubernetes' own types, as the packages' k8s-openapi has them.
    pub(crate) kubernetes: KubernetesTypes,
}

/// The crate that a name in source stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// A package of the run: a path crate, or one of a registry that has been read.
    Package(PackageId),
    /// A crate whose types are built in, by its name.
    Other(String),
    /// A package of a registry or of git that has not been read.
    Locked(LockedDependency),
}

/// A dependency whose source is read when a kind needs a type of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockedDependency {
    /// Its key in the manifest.
    pub(crate) key: String,
    /// The name of the crate.
    pub(crate) name: String,
    /// Why it could not be read, where that was tried.
    pub(crate) obstacle: Option<Obstacle>,
}

/// The reason why a dependency cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// A phrase that names the package.
    pub(crate) reason: String,
    pub(crate) help: String,
}

/// A Cargo package.
#[derive(Debug)]
pub(crate) struct Member {
    /// The folder of the package.
    pub(crate) folder: String,
    /// The library's name and root.
    pub(crate) library: Option<(String, ModuleId)>,
    /// The crates that its source can name.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
    /// True if serde's defaults are defaults of the schemas that other derives than ours make.
    pub(crate) takes_serde_defaults: bool,
    /// True for a package of a registry or of git, which nobody can edit.
    pub(crate) is_published: bool,
    /// True where the paths of imports begin at the root of the crate, as in edition 2015.
    pub(crate) is_2015: bool,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) package: PackageId,
    /// True while its items are in a file that has not been read.
    pub(crate) is_unread: bool,
    /// True for a module of a dependency, of which only the types in use are wanted.
    pub(crate) is_foreign: bool,
    /// True for the items that the body of a function declares, which can be named in it only. Other names are those of the
    /// module around it, which is the parent.
    pub(crate) is_body: bool,
    /// `None` for the root of a target.
    pub(crate) parent: Option<ModuleId>,
    /// The root of the target that the module is in.
    pub(crate) root: ModuleId,
    pub(crate) names: BTreeMap<String, Name>,
    /// Its functions and constants that may be a single value.
    pub(crate) values: BTreeMap<String, ValueId>,
    pub(crate) globs: Vec<Glob>,
    /// The parts of it whose items are unknown.
    pub(crate) gaps: Vec<GapId>,
}

/// `use path::*`.
#[derive(Debug)]
pub(crate) struct Glob {
    pub(crate) path: Vec<String>,
    /// The gap that says why nobody knows whether it is compiled.
    pub(crate) undecided: Option<GapId>,
}

/// The meaning of a name in a module.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    Module(ModuleId),
    Type(TypeId),
    /// The struct that kube makes of this one: the whole object.
    Root(TypeId),
    Alias(AliasId),
    /// `use path as name`.
    Import(Vec<String>),
    /// A type without a schema: it derives nothing we read.
    Opaque,
}

#[derive(Debug)]
pub(crate) struct TypeItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// Nothing when the item's shape could not be read; the reason has been reported.
    pub(crate) model: Option<Type>,
    /// The error in it, which concerns all that need it.
    pub(crate) reserved: Vec<rbuilder_syntax::Diagnostic>,
    /// The unknown parts of the conditions of its file.
    pub(crate) doubts: Vec<(FileId, rbuilder_syntax::Diagnostic)>,
    /// True if that is to be said even if nothing needs it.
    pub(crate) is_checked: bool,
    /// True if a macro may change it. It has no schema then.
    pub(crate) is_rewritten: bool,
    /// Its name, if it derives `CustomResource`.
    pub(crate) kind_struct: Option<String>,
    /// The traits of serde that are derived.
    pub(crate) serde: SerdeDerives,
    /// True if `Default` is derived.
    pub(crate) derives_default: bool,
    /// True if `CrdSchema` gives it its schema.
    pub(crate) is_ours: bool,
    /// True if any derive gives it a schema.
    pub(crate) derives_schema: bool,
    /// Why no CRD is written for it, where it is a kind.
    pub(crate) skipped: Option<Skipped>,
    /// What its file says of a kind that is another project's.
    pub(crate) sign: Option<Sign>,
}

impl TypeItem {
    /// The kind that it is.
    pub(crate) fn resource(&self) -> Option<&CustomResource> {
        self.model.as_ref()?.custom_resource.as_ref()
    }

    /// The name of the type that kube makes of a kind.
    pub(crate) fn root(&self) -> Option<&str> {
        let resource = self.resource()?;
        Some(resource.root.as_deref().unwrap_or(&resource.kind))
    }
}

/// Why no CRD is written for a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// The command line says so.
    Flag,
    /// `skip` in `Cargo.toml` names it.
    Listed,
    /// PROJECT says that another project defines it.
    Disowned,
    /// `only` in `Cargo.toml` does not name it.
    Unlisted,
    /// Its group belongs to another project.
    Foreign(&'static str),
    /// Something in the source says that it is another project's.
    Seems(Sign),
    /// `schema = "disabled"`, and nothing that the program derives gives it a schema.
    NoSchema,
}

/// The traits of serde that a type derives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SerdeDerives {
    pub(crate) writes: bool,
    pub(crate) reads: bool,
    /// A derive that gives the type another form than its fields and variants say.
    pub(crate) other: Option<&'static str>,
}

/// `impl Serialize for …`, `impl Deserialize for …`.
#[derive(Debug)]
pub(crate) struct ByHand {
    pub(crate) module: ModuleId,
    pub(crate) self_type: TypeRef,
    pub(crate) direction: Direction,
}

/// The direction of serde: from a value to JSON, or from JSON to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Write,
    Read,
}

#[derive(Debug)]
pub(crate) struct Alias {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    pub(crate) generics: Vec<(String, Option<TypeRef>)>,
    pub(crate) target: TypeRef,
    /// Complaints that count only when something refers to the alias.
    pub(crate) reserved: Vec<rbuilder_syntax::Diagnostic>,
    /// The unknown parts of the conditions of its file.
    pub(crate) doubts: Vec<(FileId, rbuilder_syntax::Diagnostic)>,
}

/// A function or a constant that may be a single value.
#[derive(Debug)]
pub(crate) struct ValueItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// True for a function.
    pub(crate) is_function: bool,
    /// The name of its one parameter.
    pub(crate) parameter: Option<String>,
    /// True for a function that returns a schema.
    pub(crate) returns_schema: bool,
    /// The type parameters of such a function.
    pub(crate) type_parameters: Vec<String>,
    /// The type that `Self` stands for.
    pub(crate) self_type: Option<TypeRef>,
    /// The items that the body declares; nothing if it declares some that are not read.
    pub(crate) local: Option<LocalItems>,
    /// The body of the function, or the value of the constant, as written.
    pub(crate) body: Box<str>,
    /// The byte of the file at which the body begins.
    pub(crate) start: u32,
}

/// The items that a body declares between its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalItems {
    None,
    /// Those of this module, in which the names of the body are looked up first.
    Module(ModuleId),
}

impl ValueItem {
    /// The module from which the names in the body are looked up.
    pub(crate) fn body_module(&self) -> ModuleId {
        match self.local {
            Some(LocalItems::Module(module)) => module,
            Some(LocalItems::None) | None => self.module,
        }
    }
}

/// A place where a function changes the CRD that `crd()` of a kind returns.
#[derive(Debug)]
pub(crate) struct Patch {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// The path of the kind, as written.
    pub(crate) kind: Vec<String>,
    pub(crate) span: Span,
}

/// A function or a constant of a type.
#[derive(Debug)]
pub(crate) struct Associated {
    pub(crate) module: ModuleId,
    pub(crate) self_type: TypeRef,
    /// The trait that it is of, by its last name.
    pub(crate) of_trait: Option<String>,
    pub(crate) name: String,
    pub(crate) value: ValueId,
}

/// A kind and its plural, which is made once.
pub(crate) struct OwnKind<'a> {
    pub(crate) kind: &'a CustomResource,
    pub(crate) plural: String,
}

/// A rule and the file it is in.
#[derive(Debug)]
pub(crate) struct PlacedRule {
    pub(crate) file: FileId,
    pub(crate) rule: RbacRule,
}

/// A function that a webhook calls.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// The place of the function's name.
    pub(crate) function: Span,
    pub(crate) webhook: Webhook,
    /// The types of its parameters as written, a receiver as `Self`.
    pub(crate) parameters: Vec<TypeRef>,
    /// The type that `Self` stands for.
    pub(crate) self_type: Option<TypeRef>,
}

impl Package {
    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// The package that a module is of.
    pub(crate) fn member(&self, id: ModuleId) -> &Member {
        &self.members[self.module(id).package.0]
    }

    /// The kinds of the packages and of the path crates that have been read.
    pub(crate) fn own_kinds(&self) -> Vec<OwnKind<'_>> {
        let models = self.types.iter().filter_map(|item| item.model.as_ref());
        models
            .filter_map(|model| model.custom_resource.as_ref())
            .map(|kind| OwnKind {
                kind,
                plural: kind.plural_name(),
            })
            .collect()
    }

    pub(crate) fn gap(&self, id: GapId) -> &Gap {
        &self.gaps[id.0]
    }

    pub(crate) fn item(&self, id: TypeId) -> &TypeItem {
        &self.types[id.0]
    }

    pub(crate) fn alias(&self, id: AliasId) -> &Alias {
        &self.aliases[id.0]
    }
}
