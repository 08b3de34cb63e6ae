//! Resolves names: imports, globs, re-exports, aliases, generics, other crates and std's prelude.
//!
//! The result is a [`Ty`], with all that a schema needs to know about the type. Nothing is guessed:
//! a name that can't be found is reported where it is used.

mod external;
mod lookup;
mod missing;

use std::collections::BTreeMap;
use std::rc::Rc;

use rbuilder_reader::{TypeKind, TypeRef};
use rbuilder_schema::ESCAPE;
use rbuilder_syntax::SchemaMode;

use crate::advice;
use crate::package::{AliasId, ModuleId, Obstacle, Package, TypeId, ValueId};
use crate::place::{FileId, Place};
use crate::report::Report;

pub(crate) use external::{crate_name, is_known_crate, is_transparent};
pub(crate) use lookup::{Found, Owner, Target, ValueTarget, find_item, find_owner, find_value, lookup_path};
pub(crate) use lookup::{FunctionTarget, find_function};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Ty {
    /// A struct or enum of a package, with its type arguments.
    Item(TypeId, Vec<Ty>),
    /// A type with a built-in schema, by full path.
    Known(String),
    /// A type of k8s-openapi, by full path.
    Kubernetes(String),
    Option(Box<Ty>),
    List(Box<Ty>),
    /// A list without duplicates.
    Set(Box<Ty>),
    Map(Box<Ty>, Box<Ty>),
    Array(Box<Ty>, u64),
    /// A type with a handwritten `impl JsonSchema`: the function that returns the schema, and the
    /// type arguments.
    Written(ValueId, Vec<Ty>),
    /// The object that kube generates from this spec.
    Root(TypeId),
}

impl Ty {
    fn count_parts(&self) -> usize {
        let inner = match self {
            Ty::Known(_) | Ty::Kubernetes(_) | Ty::Root(_) => 0,
            Ty::Option(inner) | Ty::List(inner) | Ty::Set(inner) | Ty::Array(inner, _) => inner.count_parts(),
            Ty::Map(key, value) => key.count_parts() + value.count_parts(),
            Ty::Item(_, args) | Ty::Written(_, args) => args.iter().map(Ty::count_parts).sum(),
        };
        1 + inner
    }
}

/// Associated functions and constants, by type and name. `impl Default` is listed as `default`.
pub(crate) type Associated = BTreeMap<(Owner, String), ValueId>;

pub(crate) fn find_schema_function(associated: &Associated, owner: Owner) -> Option<ValueId> {
    associated.get(&(owner, SCHEMA_FUNCTION.to_owned())).copied()
}

pub(crate) const SCHEMA_FUNCTION: &str = "json_schema";

pub(crate) type Bindings = BTreeMap<String, Ty>;

/// Where a type is written.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) file: FileId,
    pub(crate) module: ModuleId,
    pub(crate) bindings: &'a Bindings,
}

/// Only a cycle of aliases exceeds this.
const MAX_ALIASES: usize = 64;

/// Maximum number of parts in a type, with aliases and type arguments substituted. Arguments can
/// double at each alias or type, so the number could grow exponentially.
const MAX_PARTS: usize = 1024;

pub(crate) struct Resolver<'a> {
    pub(crate) package: &'a Package,
    pub(crate) report: &'a mut Report,
    pub(crate) associated: Rc<Associated>,
    /// True if the current type derives `CrdSchema`. Help depends on it.
    pub(crate) is_ours: bool,
    /// The location of the status type, while the type is being resolved. Users cannot put an
    /// attribute there.
    pub(crate) status: Option<Place>,
    aliases: usize,
    depth: usize,
    /// Number of parts in the outermost type so far.
    parts: usize,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(package: &'a Package, associated: Rc<Associated>, report: &'a mut Report) -> Self {
        Resolver {
            package,
            report,
            associated,
            is_ours: true,
            status: None,
            aliases: 0,
            depth: 0,
            parts: 0,
        }
    }

    /// Returns `None` after reporting an error.
    pub(crate) fn resolve(&mut self, ty: &TypeRef, scope: Scope<'_>) -> Option<Ty> {
        if self.depth == 0 {
            // This is the outermost type, so restart the count.
            self.parts = 0;
        }
        self.depth += 1;
        let resolved = self.resolve_part(ty, scope);
        self.depth -= 1;
        resolved
    }

    fn resolve_part(&mut self, ty: &TypeRef, scope: Scope<'_>) -> Option<Ty> {
        let place = Place {
            file: scope.file,
            span: ty.span,
        };
        self.spend(1, place)?;
        match &ty.kind {
            TypeKind::Path(segments, args) => self.resolve_path(segments, args, place, scope),
            TypeKind::Array(item, length) => {
                let item = Box::new(self.resolve(item, scope)?);
                Some(match length {
                    Some(length) => Ty::Array(item, *length),
                    None => Ty::List(item),
                })
            }
            TypeKind::Tuple(items) => {
                let (message, help) = rbuilder_schema::refused_tuple(items.is_empty());
                self.error(place, message, help)
            }
            TypeKind::Other(text) => self.error(place, format!("`{text}` has no schema"), ESCAPE),
        }
    }

    fn spend(&mut self, parts: usize, place: Place) -> Option<()> {
        self.parts += parts;
        if self.parts <= MAX_PARTS {
            return Some(());
        }
        let message =
            format!("this type has more than {MAX_PARTS} parts, with its aliases and type arguments");
        self.error(
            place,
            message,
            "use fewer type arguments, or define structs instead of aliases",
        )
    }

    fn resolve_path(
        &mut self,
        segments: &[String],
        args: &[TypeRef],
        place: Place,
        scope: Scope<'_>,
    ) -> Option<Ty> {
        if let [name] = segments
            && let Some(bound) = scope.bindings.get(name)
        {
            self.spend(bound.count_parts(), place)?;
            return Some(bound.clone());
        }
        let written = segments.join("::");
        match lookup_path(self.package, scope.module, segments) {
            Target::Type(id) => self.resolve_item(id, args, place, scope),
            Target::Alias(id) => self.resolve_alias(id, args, place, scope),
            Target::External(path) => self.resolve_external(&path, &written, args, place, scope),
            Target::Unavailable(Obstacle { reason, help }) => {
                self.error(place, format!("cannot read `{written}`: {reason}"), &help)
            }
            Target::Root(id) => self.resolve_root(id, &written, place),
            Target::Opaque(owner)
                if let Some(function) = find_schema_function(&self.associated, owner.clone()) =>
            {
                // Resolve all arguments before giving up, so that every error is reported.
                let args: Vec<Option<Ty>> = args.iter().map(|arg| self.resolve(arg, scope)).collect();
                Some(Ty::Written(function, args.into_iter().collect::<Option<_>>()?))
            }
            Target::Opaque(owner) => {
                let help = match owner.is_published(self.package) {
                    true => format!("turn on the feature of its crate that derives a schema, or {ESCAPE}"),
                    false => format!("add `CrdSchema` to its derives, or {ESCAPE}"),
                };
                self.error(place, format!("`{written}` does not derive a schema"), &help)
            }
            Target::Module => self.error(
                place,
                format!("expected a type, found the module `{written}`"),
                "",
            ),
            Target::Hidden(id) => {
                let gap = self.package.gap(id);
                self.report.add_all(gap.file, [gap.reason.clone()]);
                None
            }
            Target::Missing(globs) => self.report_missing(segments, &globs, place, scope.module),
        }
    }

    fn report_missing<T>(
        &mut self,
        segments: &[String],
        globs: &[String],
        place: Place,
        module: ModuleId,
    ) -> Option<T> {
        if let Some(id) = missing::find_unread_mention(self.package, segments) {
            let gap = self.package.gap(id);
            self.report.add_all(gap.file, [gap.reason.clone()]);
            return None;
        }
        let help = match globs.first() {
            Some(glob) => {
                format!("import it by name: it may come from `{glob}::*`, but that crate is not read")
            }
            None => {
                missing::suggest_type(self.package, module, segments).unwrap_or_else(|| UNKNOWN.to_owned())
            }
        };
        self.error(
            place,
            format!("cannot find type `{}`", segments.join("::")),
            &help,
        )
    }

    pub(crate) fn default_args(&mut self, id: TypeId, place: Place) -> Option<Vec<Ty>> {
        let item = self.package.item(id);
        let model = item.model.as_ref()?;
        let bindings = Bindings::new();
        let scope = Scope {
            file: item.file,
            module: item.module,
            bindings: &bindings,
        };
        let inner = (item.file, item.module);
        let args = self.bind(&model.ident, &model.generics, &[], inner, place, scope)?;
        Some(args.into_iter().map(|(_, ty)| ty).collect())
    }

    /// Errors in a type only matter once the type is needed.
    pub(crate) fn report_reserved(&mut self, id: TypeId) {
        let item = self.package.item(id);
        self.report.add_all(item.file, item.reserved.iter().cloned());
        self.report.add_from_files(&item.doubts);
    }

    fn resolve_item(&mut self, id: TypeId, args: &[TypeRef], place: Place, scope: Scope<'_>) -> Option<Ty> {
        self.report_reserved(id);
        let item = self.package.item(id);
        let model = item.model.as_ref().filter(|_| !item.is_rewritten)?;
        let inner = (item.file, item.module);
        let args = self.bind(&model.ident, &model.generics, args, inner, place, scope)?;
        Some(Ty::Item(id, args.into_iter().map(|(_, ty)| ty).collect()))
    }

    fn resolve_root(&mut self, id: TypeId, written: &str, place: Place) -> Option<Ty> {
        let model = self.package.item(id).model.as_ref();
        let mode = model
            .and_then(|model| model.custom_resource.as_ref())
            .map(|kind| kind.schema_mode);
        match mode {
            Some(SchemaMode::Derived) if !self.is_ours => {
                self.report_reserved(id);
                return Some(Ty::Root(id));
            }
            Some(SchemaMode::Manual)
                if let Some(function) = find_schema_function(&self.associated, Owner::Root(id)) =>
            {
                return Some(Ty::Written(function, Vec::new()));
            }
            _ => {}
        }
        // An error under `derive(CrdSchema)`: kube's schema of the object lacks `metadata`, so the
        // API server would prune it, and serde could not read the object.
        let spec = model.map_or("", |model| &model.ident);
        let lack = match mode {
            Some(SchemaMode::Derived) => "whose schema has no `metadata`",
            _ => "which has no schema",
        };
        let message = format!("`{written}` is the whole object that kube generates from `{spec}`, {lack}");
        let help =
            format!("use its spec, `{spec}`, or put `#[kube(schemaless, embedded_resource)]` on the field");
        self.error(place, message, &help)
    }

    fn resolve_alias(&mut self, id: AliasId, args: &[TypeRef], place: Place, scope: Scope<'_>) -> Option<Ty> {
        let alias = self.package.alias(id);
        self.report.add_all(alias.file, alias.reserved.iter().cloned());
        self.report.add_from_files(&alias.doubts);
        if self.aliases >= MAX_ALIASES {
            return self.error(place, "this alias refers to itself", "");
        }
        self.aliases += 1;
        let bound = self.bind(
            "this alias",
            &alias.generics,
            args,
            (alias.file, alias.module),
            place,
            scope,
        );
        let resolved = bound.and_then(|bound| {
            let bindings = bound.into_iter().collect();
            self.resolve(
                &alias.target,
                Scope {
                    file: alias.file,
                    module: alias.module,
                    bindings: &bindings,
                },
            )
        });
        self.aliases -= 1;
        resolved
    }

    /// Pairs type parameters with their arguments or defaults.
    fn bind(
        &mut self,
        name: &str,
        generics: &[(String, Option<TypeRef>)],
        args: &[TypeRef],
        (file, module): (FileId, ModuleId),
        place: Place,
        scope: Scope<'_>,
    ) -> Option<Vec<(String, Ty)>> {
        let mut bound: Vec<(String, Ty)> = Vec::new();
        for (position, (param, default)) in generics.iter().enumerate() {
            let ty = match (args.get(position), default) {
                (Some(arg), _) => self.resolve(arg, scope)?,
                (None, Some(default)) => {
                    // A default can use the parameters before it, as in `struct A<T, U = Vec<T>>`.
                    let bindings = bound.iter().cloned().collect();
                    self.resolve(
                        default,
                        Scope {
                            file,
                            module,
                            bindings: &bindings,
                        },
                    )?
                }
                (None, None) => {
                    return self.error(place, format!("missing type argument `{param}` of `{name}`"), "");
                }
            };
            bound.push((param.clone(), ty));
        }
        Some(bound)
    }

    fn resolve_external(
        &mut self,
        path: &str,
        written: &str,
        args: &[TypeRef],
        place: Place,
        scope: Scope<'_>,
    ) -> Option<Ty> {
        let constructor = external::find_constructor(path);
        let arg = |resolver: &mut Self, position: usize| match args.get(position) {
            Some(arg) => resolver.resolve(arg, scope).map(Box::new),
            None => resolver.error(place, format!("missing type argument of `{written}`"), ""),
        };
        match constructor {
            Some(external::Constructor::Option) => arg(self, 0).map(Ty::Option),
            Some(external::Constructor::Pointer) => arg(self, 0).map(|inner| *inner),
            Some(external::Constructor::NonZero) => match *arg(self, 0)? {
                Ty::Known(inner) if rbuilder_schema::is_known(&non_zero(&inner)) => {
                    Some(Ty::Known(non_zero(&inner)))
                }
                _ => self.error(
                    place,
                    format!("expected an integer type as argument of `{written}`"),
                    "",
                ),
            },
            Some(external::Constructor::List) => arg(self, 0).map(Ty::List),
            Some(external::Constructor::Set) => arg(self, 0).map(Ty::Set),
            Some(external::Constructor::Map) => {
                let (key, value) = (arg(self, 0), arg(self, 1));
                Some(Ty::Map(key?, value?))
            }
            None if self.is_ours
                && let Some((message, help)) = rbuilder_schema::refused(path) =>
            {
                self.error(place, message, help)
            }
            None if rbuilder_schema::is_known(path) => Some(Ty::Known(path.to_owned())),
            None if self.package.kubernetes.contains(path) => Some(Ty::Kubernetes(path.to_owned())),
            None => {
                let message = format!("unknown schema of `{path}`");
                match (
                    rbuilder_schema::refused(path),
                    self.package.kubernetes.advice(path),
                ) {
                    (Some((message, help)), _) => self.error(place, message, help),
                    (None, Some(help)) => self.error(place, message, &help),
                    (None, None) => self.error(place, message, ESCAPE),
                }
            }
        }
    }

    fn error<T>(&mut self, place: Place, message: impl Into<String>, help: &str) -> Option<T> {
        let help = match self.status == Some(place) {
            true => advice::for_status(help),
            false => help.to_owned(),
        };
        let help = advice::for_type(&help, self.is_ours);
        self.report.error(place, message, &help);
        None
    }
}

fn non_zero(inner: &str) -> String {
    format!("std::num::NonZero{}", inner.to_ascii_uppercase())
}

const UNKNOWN: &str = "define it in this package or in a path dependency, outside of macros, or put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field";
