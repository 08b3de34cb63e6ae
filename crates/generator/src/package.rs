//! The model of the source: packages, modules, names, types, aliases and rules.
//!
//! Owns all of its data, has no tokens, and refers to other data by index.

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
    pub(crate) orphans: Vec<Orphan>,
    /// Functions and constants that may be the source of a value.
    pub(crate) values: Vec<ValueItem>,
    /// The values that belong to a type.
    pub(crate) associated: Vec<Associated>,
    /// Indexes, into `associated`, of functions that return the schema of a type.
    pub(crate) schema_functions: Vec<usize>,
    /// Functions whose calls are followed to find out which permissions they need.
    pub(crate) functions: Vec<FunctionItem>,
    /// The named fields of structs, by module and name of the struct.
    pub(crate) fields: BTreeMap<(ModuleId, String), Vec<(String, TypeRef)>>,
    /// Kinds whose CRDs the program merges, with the storage version it passes.
    pub(crate) merges: Vec<(String, String)>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) rules: Vec<PlacedRule>,
    /// An `#[rbac]` marker has errors, so there may be unknown rules.
    pub(crate) has_unread_rules: bool,
    pub(crate) handlers: Vec<Handler>,
    /// Handwritten implementations of `Serialize` and `Deserialize`.
    pub(crate) by_hand: Vec<ByHand>,
    pub(crate) members: Vec<Member>,
    pub(crate) gaps: Vec<Gap>,
    /// Kubernetes' own types, in the version that k8s-openapi is built for.
    pub(crate) kubernetes: KubernetesTypes,
}

#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) path: String,
    pub(crate) text: Arc<str>,
    /// The missing declaration, e.g. "`mod v1alpha1;` to `src/api/mod.rs`".
    pub(crate) declaration: String,
}

impl Orphan {
    /// Just searches the text of the file for the attribute `kind`.
    pub(crate) fn declares(&self, kind: &str) -> bool {
        let words = format!("kind = \"{kind}\"");
        self.text.contains(&words)
    }
}

/// What the first segment of a path refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// A package whose source is read: a path dependency, or a published package that has been
    /// loaded.
    Package(PackageId),
    /// A crate with built-in types, by name.
    Other(String),
    /// A package from a registry or from git that hasn't been loaded.
    Locked(LockedDependency),
}

/// Loaded when a kind needs one of its types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockedDependency {
    pub(crate) key: String,
    pub(crate) name: String,
    /// Why loading failed, if it was tried.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why a dependency can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// Includes the name of the package.
    pub(crate) reason: String,
    pub(crate) help: String,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) folder: String,
    /// The name of the library, and its root module.
    pub(crate) library: Option<(String, ModuleId)>,
    /// By name in the source.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
    /// True if serde's defaults become part of the schema. (They always do with `CrdSchema`.)
    pub(crate) takes_serde_defaults: bool,
    /// True for packages from a registry or from git, which users cannot edit.
    pub(crate) is_published: bool,
    /// Import paths start at the crate root in edition 2015.
    pub(crate) is_2015: bool,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) package: PackageId,
    /// The file hasn't been read yet.
    pub(crate) is_unread: bool,
    /// The module belongs to a dependency, of which only the required types are read.
    pub(crate) is_foreign: bool,
    /// The module has the items of a function body, which only that body can see. Other names are
    /// looked up in `parent`, the enclosing module.
    pub(crate) is_body: bool,
    /// `None` for the root of a target.
    pub(crate) parent: Option<ModuleId>,
    pub(crate) root: ModuleId,
    pub(crate) names: BTreeMap<String, Name>,
    pub(crate) values: BTreeMap<String, ValueId>,
    pub(crate) functions: BTreeMap<String, FunctionId>,
    pub(crate) globs: Vec<Glob>,
    pub(crate) gaps: Vec<GapId>,
}

/// `use path::*`.
#[derive(Debug)]
pub(crate) struct Glob {
    pub(crate) path: Vec<String>,
    /// Set if it's unclear whether the import is compiled.
    pub(crate) undecided: Option<GapId>,
}

#[derive(Clone, Debug)]
pub(crate) enum Name {
    Module(ModuleId),
    Type(TypeId),
    /// The struct that kube generates for the type, i.e. the whole object.
    Root(TypeId),
    Alias(AliasId),
    Import(Vec<String>),
    /// A type without a schema.
    Opaque,
}

#[derive(Debug)]
pub(crate) struct TypeItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// `None` if the item failed to parse, which has been reported.
    pub(crate) model: Option<Type>,
    /// Diagnostics about the item, reported for everything that uses it.
    pub(crate) reserved: Vec<rbuilder_syntax::Diagnostic>,
    /// `cfg`s on the enclosing modules that can't be evaluated.
    pub(crate) doubts: Vec<(FileId, rbuilder_syntax::Diagnostic)>,
    /// True if errors are reported even if nothing uses the item.
    pub(crate) is_checked: bool,
    /// An attribute macro may change the item, so it has no schema.
    pub(crate) is_rewritten: bool,
    /// Name of the struct, if it derives `CustomResource`.
    pub(crate) kind_struct: Option<String>,
    pub(crate) serde: SerdeDerives,
    pub(crate) derives_default: bool,
    /// True if it derives `CrdSchema`.
    pub(crate) is_ours: bool,
    pub(crate) derives_schema: bool,
    pub(crate) skipped: Option<Skipped>,
    pub(crate) sign: Option<Sign>,
}

impl TypeItem {
    pub(crate) fn resource(&self) -> Option<&CustomResource> {
        self.model.as_ref()?.custom_resource.as_ref()
    }

    /// Returns the name of the struct that kube generates for a kind.
    pub(crate) fn root(&self) -> Option<&str> {
        let resource = self.resource()?;
        Some(resource.root.as_deref().unwrap_or(&resource.kind))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// Excluded on the command line.
    Flag,
    /// Listed in `skip` in `Cargo.toml`.
    Listed,
    /// PROJECT says that another project defines it.
    Disowned,
    /// Not listed in `only` in `Cargo.toml`.
    Unlisted,
    Foreign(&'static str),
    /// Something in the source suggests that another project defines it.
    Seems(Sign),
    /// Has `schema = "disabled"`, and no derive provides a schema.
    NoSchema,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SerdeDerives {
    pub(crate) writes: bool,
    pub(crate) reads: bool,
    /// A derive whose JSON differs from what the fields and variants suggest.
    pub(crate) other: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct ByHand {
    pub(crate) module: ModuleId,
    pub(crate) self_type: TypeRef,
    pub(crate) direction: Direction,
}

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
    /// Reported only if something refers to the alias.
    pub(crate) reserved: Vec<rbuilder_syntax::Diagnostic>,
    pub(crate) doubts: Vec<(FileId, rbuilder_syntax::Diagnostic)>,
}

/// A function or constant that may be the source of a value.
#[derive(Debug)]
pub(crate) struct ValueItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    pub(crate) is_function: bool,
    /// The name of the parameter, if there is exactly one.
    pub(crate) parameter: Option<String>,
    pub(crate) returns_schema: bool,
    /// Only recorded for functions that return a schema.
    pub(crate) type_parameters: Vec<String>,
    pub(crate) self_type: Option<TypeRef>,
    /// `None` unless all items in the body can be read.
    pub(crate) local: Option<LocalItems>,
    pub(crate) body: Box<str>,
    pub(crate) start: u32,
}

/// A function whose calls are followed.
#[derive(Debug)]
pub(crate) struct FunctionItem {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    pub(crate) name: String,
    pub(crate) self_type: Option<TypeRef>,
    /// From the qualifiers to the `where` clause.
    pub(crate) signature: Box<str>,
    /// Without the braces.
    pub(crate) body: Box<str>,
    pub(crate) start: u32,
}

/// The items in a function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalItems {
    None,
    /// Searched before the enclosing module.
    Module(ModuleId),
}

impl ValueItem {
    pub(crate) fn body_module(&self) -> ModuleId {
        match self.local {
            Some(LocalItems::Module(module)) => module,
            Some(LocalItems::None) | None => self.module,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Patch {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    /// As written.
    pub(crate) kind: Vec<String>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Associated {
    pub(crate) module: ModuleId,
    pub(crate) self_type: TypeRef,
    /// Last segment of the trait's path.
    pub(crate) of_trait: Option<String>,
    pub(crate) name: String,
    pub(crate) value: ValueId,
}

/// Caches the plural.
pub(crate) struct OwnKind<'a> {
    pub(crate) kind: &'a CustomResource,
    pub(crate) plural: String,
}

#[derive(Debug)]
pub(crate) struct PlacedRule {
    pub(crate) file: FileId,
    pub(crate) rule: RbacRule,
}

#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    pub(crate) function: Span,
    pub(crate) webhook: Webhook,
    /// A receiver is `Self`.
    pub(crate) parameters: Vec<TypeRef>,
    pub(crate) self_type: Option<TypeRef>,
}

impl Package {
    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    pub(crate) fn member(&self, id: ModuleId) -> &Member {
        &self.members[self.module(id).package.0]
    }

    /// Includes the kinds of dependencies, as far as they have been read.
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
