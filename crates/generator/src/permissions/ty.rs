//! Types of values, as far as they matter for permissions.
//!
//! References, pointers, `Option`, `Result` and lists have the type of their content: all that
//! matters is the kind of an object.

use rbuilder_reader::{TypeKind, TypeRef};

use super::Resource;
use super::table::find_type;
use crate::package::{FunctionId, ModuleId, Package};
use crate::resolve::{Owner, Target, lookup_path};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ty {
    #[default]
    Unknown,
    /// An object of a kind.
    Object(Resource),
    /// An object whose kind is only known at run time.
    Dynamic,
    /// A type of the package that is not a kind.
    Own(Owner),
    /// A type of another crate, by path.
    Foreign(String),
    /// A type in the [table](super::table), with the kind and the state from its type arguments.
    Known(&'static str, Box<Known>),
    Tuple(Vec<Ty>),
    /// A string literal, which may name a subresource.
    Text(String),
    /// A kube patch that changes objects but never creates one.
    Change,
    /// The types of the parameters and of the result.
    Closure(Vec<Ty>, Box<Ty>),
    Function(FunctionId),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    pub(super) kind: Ty,
    pub(super) state: Ty,
    /// True for another cluster than the manager's own.
    pub(super) is_remote: bool,
}

impl Ty {
    pub(super) fn or(self, other: impl FnOnce() -> Ty) -> Ty {
        match self {
            Ty::Unknown => other(),
            known => known,
        }
    }

    pub(super) fn kind(&self) -> Ty {
        match self {
            Ty::Known(_, known) => known.kind.clone(),
            // A list has the type of its items.
            Ty::Object(_) | Ty::Dynamic => self.clone(),
            _ => Ty::Unknown,
        }
    }

    pub(super) fn can_send(&self) -> bool {
        matches!(
            self,
            Ty::Known("Ctx" | "Api" | "Client" | "EventRecorder" | "Recorder", known) if !known.is_remote
        )
    }
}

/// Types that are treated like their last argument.
const TRANSPARENT: [&str; 26] = [
    "Arc",
    "Rc",
    "Box",
    "Cow",
    "Option",
    "Vec",
    "VecDeque",
    "BTreeSet",
    "HashSet",
    "BTreeMap",
    "HashMap",
    "Mutex",
    "RwLock",
    "OnceCell",
    "OnceLock",
    "Pin",
    "Weak",
    "ObjectList",
    "PartialObjectMeta",
    "Store",
    "MutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "Ref",
    "RefMut",
    "RefCell",
];

pub(super) type Bindings = std::collections::BTreeMap<String, Ty>;

#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) module: ModuleId,
    pub(super) self_type: Option<&'a TypeRef>,
    pub(super) bindings: &'a Bindings,
}

const MAX_DEPTH: usize = 32;

pub(super) fn read_type(package: &Package, ty: &TypeRef, scope: Scope<'_>) -> Ty {
    read(package, ty, scope, 0)
}

fn read(package: &Package, ty: &TypeRef, scope: Scope<'_>, depth: usize) -> Ty {
    if depth > MAX_DEPTH {
        return Ty::Unknown;
    }
    match &ty.kind {
        TypeKind::Path(segments, args) => read_path(package, segments, args, scope, depth),
        TypeKind::Tuple(items) => {
            let items = items.iter().map(|item| read(package, item, scope, depth + 1));
            Ty::Tuple(items.collect())
        }
        TypeKind::Array(item, _) => read(package, item, scope, depth + 1),
        TypeKind::Other(text) => read_other(package, text, ty, scope, depth),
    }
}

/// Parses `impl Future<Output = T>` and `impl Iterator<Item = T>`.
fn read_other(package: &Package, text: &str, ty: &TypeRef, scope: Scope<'_>, depth: usize) -> Ty {
    let parts = ["Output", "Item"]
        .into_iter()
        .find_map(|name| text.split_once(name));
    let inner = parts.and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    let Some(inner) = inner else {
        return Ty::Unknown;
    };
    // The type ends at the closing angle bracket around it.
    let mut open = 0i32;
    let end = inner.char_indices().find(|(_, character)| {
        open += i32::from(*character == '<') - i32::from(*character == '>');
        open < 0 || open == 0 && *character == ','
    });
    let inner = &inner[..end.map_or(inner.len(), |(at, _)| at)];
    match TypeRef::parse(inner.trim(), ty.span) {
        Some(inner) => read(package, &inner, scope, depth + 1),
        None => Ty::Unknown,
    }
}

pub(super) fn read_path(
    package: &Package,
    segments: &[String],
    args: &[TypeRef],
    scope: Scope<'_>,
    depth: usize,
) -> Ty {
    if depth > MAX_DEPTH {
        return Ty::Unknown;
    }
    if let [name] = segments {
        if let Some(bound) = scope.bindings.get(name) {
            return bound.clone();
        }
        if name == "Self" {
            return scope
                .self_type
                .map_or(Ty::Unknown, |ty| read(package, ty, scope, depth + 1));
        }
    }
    let name = segments.last().map_or("", String::as_str);
    // Crates define many aliases of `Result`, so go by the name.
    if name.ends_with("Result") || name == "Either" {
        return args
            .first()
            .map_or(Ty::Unknown, |arg| read(package, arg, scope, depth + 1));
    }
    let target = lookup_path(package, scope.module, segments);
    let path = match target {
        Target::Root(id) => {
            let resource = package.item(id).resource();
            return resource.map_or(Ty::Unknown, |kind| {
                Ty::Object(Resource {
                    group: kind.group.clone(),
                    plural: kind.plural_name(),
                    is_namespaced: kind.namespaced,
                })
            });
        }
        Target::Type(id) => return Ty::Own(Owner::Type(id)),
        Target::Opaque(owner) => return Ty::Own(owner),
        Target::Alias(id) => {
            let alias = package.alias(id);
            let mut bindings = Bindings::new();
            for (position, (parameter, default)) in alias.generics.iter().enumerate() {
                let bound = args.get(position).or(default.as_ref());
                let bound = bound.map_or(Ty::Unknown, |bound| read(package, bound, scope, depth + 1));
                bindings.insert(parameter.clone(), bound);
            }
            let inner = Scope {
                module: alias.module,
                self_type: None,
                bindings: &bindings,
            };
            return read(package, &alias.target, inner, depth + 1);
        }
        Target::External(path) => path,
        // The items of a glob of kube or the library aren't known, so the type may come from there.
        Target::Missing(globs) => {
            let is_ours = |glob: &&String| glob.starts_with("kube") || glob.starts_with("rbuilder");
            match globs.iter().find(is_ours) {
                Some(glob) if segments.len() == 1 => format!("{glob}::{name}"),
                _ => return Ty::Unknown,
            }
        }
        Target::Module | Target::Unavailable(_) | Target::Hidden(_) => return Ty::Unknown,
    };
    read_external(package, path, name, args, scope, depth)
}

fn read_external(
    package: &Package,
    path: String,
    name: &str,
    args: &[TypeRef],
    scope: Scope<'_>,
    depth: usize,
) -> Ty {
    let arg = |position: usize| {
        args.get(position)
            .map_or(Ty::Unknown, |arg| read(package, arg, scope, depth + 1))
    };
    let last = path.rsplit("::").next().unwrap_or(name);
    if let Some(name) = find_type(&path) {
        // The first type argument of a context is its state.
        let (kind, state) = if name == "Ctx" {
            (Ty::Unknown, arg(0))
        } else {
            (arg(0), arg(1))
        };
        let known = Known {
            kind,
            state,
            is_remote: false,
        };
        return Ty::Known(name, Box::new(known));
    }
    if let Some(kind) = rbuilder_syntax::kubernetes::find_kind(&path) {
        let is_namespaced = rbuilder_syntax::kubernetes::BuiltinKind::all()
            .find(|known| known.group() == kind.group && known.plural() == kind.plural)
            .is_some_and(|known| known.is_namespaced());
        return Ty::Object(Resource {
            group: kind.group,
            plural: kind.plural,
            is_namespaced,
        });
    }
    match last {
        "DynamicObject" => Ty::Dynamic,
        _ if TRANSPARENT.contains(&last) => match args.len() {
            0 => Ty::Unknown,
            count => arg(count - 1),
        },
        "String" | "str" => Ty::Unknown,
        _ => Ty::Foreign(path),
    }
}
