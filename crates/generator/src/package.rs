//! The model of the source: packages, modules, names, types, aliases and rules.
//!
//! It owns all of its data, has no tokens, and refers to other data by index.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_syntax::{CustomResource, RbacRule, Type, Webhook};

use crate::gap::{Gap, GapId};
use crate::kubernetes_types::KubernetesTypes;
use crate::place::FileId;
use crate::sign::Sign;

/// Declares an index into one of the lists of [`Package`].
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
id!(
    /// A function whose calls are followed.
    FunctionId
);

/// The source of a run: all targets of the selected packages, and the required parts of their
/// dependencies.
#[derive(Default)]
pub(crate) struct Package {
    pub(crate) modules: Vec<Module>,
    pub(crate) types: Vec<TypeItem>,
    pub(crate) aliases: Vec<Alias>,
    /// Files with markers that do not belong to any module.
    pub(crate) orphans: Vec<Orphan>,
    /// Functions and constants that may evaluate to a value.
    pub(crate) values: Vec<ValueItem>,
    /// The associated functions and constants among them.
    pub(crate) associated: Vec<Associated>,
    /// The indices of those that return the schema of a type.
    pub(crate) schema_functions: Vec<usize>,
    /// Functions whose calls are followed to find the permissions that they need.
    pub(crate) functions: Vec<FunctionItem>,
    /// The named fields of structs, by module and name of the struct.
    pub(crate) fields: BTreeMap<(ModuleId, String), Vec<(String, TypeRef)>>,
    /// Kinds whose CRDs the program merges, with the storage version that it passes.
    pub(crate) merges: Vec<(String, String)>,
    /// Places where functions modify CRDs.
    pub(crate) patches: Vec<Patch>,
    pub(crate) rules: Vec<PlacedRule>,
    /// Whether an `#[rbac]` marker has errors, so that its rule is not known.
    pub(crate) has_unread_rules: bool,
    pub(crate) handlers: Vec<Handler>,
    /// Handwritten implementations of `Serialize` and `Deserialize`.
    pub(crate) by_hand: Vec<ByHand>,
    /// The Cargo packages, in the order of their manifests.
    pub(crate) members: Vec<Member>,
    /// Parts of the source whose items are unknown.
    pub(crate) gaps: Vec<Gap>,
    /// Kubernetes' own types, in the version that k8s-openapi is built for.
    pub(crate) kubernetes: KubernetesTypes,
}

/// A file with markers that does not belong to any module.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) path: String,
    pub(crate) text: Arc<str>,
    /// The missing declaration, such as "`mod v1alpha1;` to `src/api/mod.rs`".
    pub(crate) declaration: String,
}

impl Orphan {
    /// Returns whether the file seems to declare a version of a kind.
    pub(crate) fn declares(&self, kind: &str) -> bool {
        let words = format!("kind = \"{kind}\"");
        self.text.contains(&words)
    }
}

/// The crate that a name in the source refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// A package that is read: a path dependency, or a published package that has been loaded.
    Package(PackageId),
    /// A crate with built-in types, by name.
    Other(String),
    /// A package from a registry or from git that has not been loaded.
    Locked(LockedDependency),
}

/// A dependency that is loaded when a kind needs one of its types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockedDependency {
    /// The key in the manifest.
    pub(crate) key: String,
    /// The name of the crate.
    pub(crate) name: String,
    /// Why loading failed, if it was attempted.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why a dependency cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// A phrase that names the package.
    pub(crate) reason: String,
    pub(crate) help: String,
}

/// A Cargo package.
#[derive(Debug)]
pub(crate) struct Member {
    /// The directory of the package.
    pub(crate) folder: String,
    /// The name and root module of the library.
    pub(crate) library: Option<(String, ModuleId)>,
    /// The crates that the source can refer to.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
    /// Whether serde's defaults become schema defaults for types with derives other than
    /// `CrdSchema`.
    pub(crate) takes_serde_defaults: bool,
    /// Whether the package comes from a registry or from git, so the user cannot edit it.
    pub(crate) is_published: bool,
    /// Whether import paths start at the crate root, as in edition 2015.
    pub(crate) is_2015: bool,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) package: PackageId,
    /// Whether the module's file has not been read yet.
    pub(crate) is_unread: bool,
    /// Whether the module belongs to a dependency, of which only used types are read.
    pub(crate) is_foreign: bool,
    /// Whether the module contains the items of a function body, which are visible only there.
    /// Other names are looked up in the enclosing module, the parent.
    pub(crate) is_body: bool,
    /// `None` for the root of a target.
    pub(crate) parent: Option<ModuleId>,
    /// The root module of the target.
    pub(crate) root: ModuleId,
    pub(crate) names: BTreeMap<String, Name>,
    /// Functions and constants that may evaluate to a value.
    pub(crate) values: BTreeMap<String, ValueId>,
    /// Functions whose calls are followed.
    pub(crate) functions: BTreeMap<String, FunctionId>,
    pub(crate) globs: Vec<Glob>,
    /// Parts of the module whose items are unknown.
    pub(crate) gaps: Vec<GapId>,
}

/// `use path::*`.
#[derive(Debug)]
pub(crate) struct Glob {
    pub(crate) path: Vec<String>,
    /// Set if it is unknown whether the import is compiled.
    pub(crate) undecided: Option<GapId>,
}

/// What a name in a module refers to.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    Module(ModuleId),
    Type(TypeId),
    /// The struct that kube generates for the type: the whole object.
    Root(TypeId),
    Alias(AliasId),
    /// `use path as name`.
    Import(Vec<String>),
    /// A type without a schema.
    Opaque,
}

#[derive(Debug)]
pub(crate) struct TypeItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// `None` if the item could not be parsed, which has been reported.
    pub(crate) model: Option<Type>,
    /// Errors in the item. They apply to everything that uses it.
    pub(crate) reserved: Vec<rbuilder_syntax::Diagnostic>,
    /// `cfg`s on the item's modules that cannot be evaluated.
    pub(crate) doubts: Vec<(FileId, rbuilder_syntax::Diagnostic)>,
    /// Whether errors are reported even if nothing uses the item.
    pub(crate) is_checked: bool,
    /// Whether an attribute macro may change the item. In this case, it has no schema.
    pub(crate) is_rewritten: bool,
    /// The name of the struct if it derives `CustomResource`.
    pub(crate) kind_struct: Option<String>,
    /// The serde traits that the type derives.
    pub(crate) serde: SerdeDerives,
    /// Whether the type derives `Default`.
    pub(crate) derives_default: bool,
    /// Whether the type derives `CrdSchema`.
    pub(crate) is_ours: bool,
    /// Whether any derive provides a schema.
    pub(crate) derives_schema: bool,
    /// Why no CRD is generated, if the type is a kind.
    pub(crate) skipped: Option<Skipped>,
    /// Evidence in the source that the kind belongs to another project.
    pub(crate) sign: Option<Sign>,
}

impl TypeItem {
    /// Returns the kind, if the type is one.
    pub(crate) fn resource(&self) -> Option<&CustomResource> {
        self.model.as_ref()?.custom_resource.as_ref()
    }

    /// Returns the name of the struct that kube generates for a kind.
    pub(crate) fn root(&self) -> Option<&str> {
        let resource = self.resource()?;
        Some(resource.root.as_deref().unwrap_or(&resource.kind))
    }
}

/// Why no CRD is generated for a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// Excluded on the command line.
    Flag,
    /// Listed in `skip` in `Cargo.toml`.
    Listed,
    /// Defined by another project, according to PROJECT.
    Disowned,
    /// Not listed in `only` in `Cargo.toml`.
    Unlisted,
    /// The group belongs to another project.
    Foreign(&'static str),
    /// The source contains hints that another project defines it.
    Seems(Sign),
    /// It has `schema = "disabled"`, and no derive provides a schema.
    NoSchema,
}

/// The serde traits that a type derives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SerdeDerives {
    pub(crate) writes: bool,
    pub(crate) reads: bool,
    /// A derive whose format differs from what the fields and variants suggest.
    pub(crate) other: Option<&'static str>,
}

/// A handwritten `impl Serialize` or `impl Deserialize`.
#[derive(Debug)]
pub(crate) struct ByHand {
    pub(crate) module: ModuleId,
    pub(crate) self_type: TypeRef,
    pub(crate) direction: Direction,
}

/// Whether serde serializes or deserializes.
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
    /// Errors that are reported only if something refers to the alias.
    pub(crate) reserved: Vec<rbuilder_syntax::Diagnostic>,
    /// `cfg`s on the alias's modules that cannot be evaluated.
    pub(crate) doubts: Vec<(FileId, rbuilder_syntax::Diagnostic)>,
}

/// A function or constant that may evaluate to a value.
#[derive(Debug)]
pub(crate) struct ValueItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// Whether this is a function.
    pub(crate) is_function: bool,
    /// The name of the only parameter.
    pub(crate) parameter: Option<String>,
    /// Whether the function returns a schema.
    pub(crate) returns_schema: bool,
    /// The type parameters of a function that returns a schema.
    pub(crate) type_parameters: Vec<String>,
    /// The type behind `Self`.
    pub(crate) self_type: Option<TypeRef>,
    /// The items declared in the body; `None` if some of them cannot be read.
    pub(crate) local: Option<LocalItems>,
    /// The source text of the function body or of the constant's value.
    pub(crate) body: Box<str>,
    /// The byte offset of the body in the file.
    pub(crate) start: u32,
}

/// A function whose calls are followed.
#[derive(Debug)]
pub(crate) struct FunctionItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    pub(crate) name: String,
    /// The type behind `Self`.
    pub(crate) self_type: Option<TypeRef>,
    /// The source text from the qualifiers to the `where` clause.
    pub(crate) signature: Box<str>,
    /// The source text between the braces.
    pub(crate) body: Box<str>,
    /// The byte offset of the body in the file.
    pub(crate) start: u32,
}

/// The items declared in a function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalItems {
    None,
    /// Items in this module, which is searched before the enclosing one.
    Module(ModuleId),
}

impl ValueItem {
    /// Returns the module in which names in the body are looked up.
    pub(crate) fn body_module(&self) -> ModuleId {
        match self.local {
            Some(LocalItems::Module(module)) => module,
            Some(LocalItems::None) | None => self.module,
        }
    }
}

/// A place where a function modifies the result of a kind's `crd()`.
#[derive(Debug)]
pub(crate) struct Patch {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// The path of the kind in source.
    pub(crate) kind: Vec<String>,
    pub(crate) span: Span,
}

/// An associated function or constant.
#[derive(Debug)]
pub(crate) struct Associated {
    pub(crate) module: ModuleId,
    pub(crate) self_type: TypeRef,
    /// The last segment of the trait's path.
    pub(crate) of_trait: Option<String>,
    pub(crate) name: String,
    pub(crate) value: ValueId,
}

/// A kind and its plural, which is computed only once.
pub(crate) struct OwnKind<'a> {
    pub(crate) kind: &'a CustomResource,
    pub(crate) plural: String,
}

/// A rule and its file.
#[derive(Debug)]
pub(crate) struct PlacedRule {
    pub(crate) file: FileId,
    pub(crate) rule: RbacRule,
}

/// A function that handles a webhook.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// The place of the function name.
    pub(crate) function: Span,
    pub(crate) webhook: Webhook,
    /// The types of the parameters, with `Self` for a receiver.
    pub(crate) parameters: Vec<TypeRef>,
    /// The type behind `Self`.
    pub(crate) self_type: Option<TypeRef>,
}

impl Package {
    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// Returns the package that a module belongs to.
    pub(crate) fn member(&self, id: ModuleId) -> &Member {
        &self.members[self.module(id).package.0]
    }

    /// Returns the kinds of all packages that have been read.
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
