//! Finds the kind that a handler takes: the kind of the first parameter that has one.

use std::cell::{Cell, RefCell};

use rbuilder_reader::{Span, TypeKind, TypeRef};

use crate::gap::GapId;
use crate::package::{Handler, ModuleId, Package, TypeId};
use crate::resolve::{Target, is_transparent, lookup_path};
use rbuilder_syntax::kubernetes::{self, Kind};

/// Aliases and wrappers can form cycles.
const MAX_DEPTH: usize = 16;

/// Maximum number of types visited for one handler. An alias can mention another one twice.
const MAX_STEPS: usize = 1000;

pub(super) enum Subject {
    Found(Kind),
    /// The kind of a parameter may be hidden in a gap.
    Hidden(GapId),
    /// A parameter has a nonexistent type, given by its name as written.
    Unknown(String, Span),
    Missing,
}

/// Finds the kind in the signature, possibly within a reference, `Arc`, `Box`, `Option` or
/// `AdmissionRequest`. `self` has the type of the `impl`.
pub(super) fn find_subject(package: &Package, handler: &Handler) -> Subject {
    let search = Search {
        package,
        handler,
        steps: Cell::new(0),
        hidden: Cell::new(None),
        unknown: RefCell::default(),
    };
    let mut parameters = handler.parameters.iter();
    let found = parameters.find_map(|ty| search.kind(ty, handler.module, 0));
    match (found, search.hidden.get(), search.unknown.take()) {
        (Some(kind), ..) => Subject::Found(kind),
        (None, Some(gap), _) => Subject::Hidden(gap),
        (None, None, Some((name, span))) => Subject::Unknown(name, span),
        (None, None, None) => Subject::Missing,
    }
}

struct Search<'a> {
    package: &'a Package,
    handler: &'a Handler,
    steps: Cell<usize>,
    /// The first gap that may hide a type.
    hidden: Cell<Option<GapId>>,
    unknown: RefCell<Option<(String, Span)>>,
}

impl Search<'_> {
    fn kind(&self, ty: &TypeRef, module: ModuleId, depth: usize) -> Option<Kind> {
        let TypeKind::Path(segments, args) = &ty.kind else {
            return None;
        };
        self.steps.set(self.steps.get() + 1);
        if depth > MAX_DEPTH || self.steps.get() > MAX_STEPS {
            return None;
        }
        if segments[..] == ["Self"] {
            let own = self.handler.self_type.as_ref()?;
            return self.kind(own, self.handler.module, depth + 1);
        }
        let argument = || args.iter().find_map(|arg| self.kind(arg, module, depth + 1));
        match lookup_path(self.package, module, segments) {
            Target::Root(id) => self.custom(id),
            Target::Alias(id) => {
                let alias = self.package.alias(id);
                // With `type Shared<T> = Arc<T>`, the argument `T` is only known here.
                self.kind(&alias.target, alias.module, depth + 1)
                    .or_else(argument)
            }
            Target::External(path) if is_transparent(&path) => argument(),
            Target::External(path) => kubernetes::find_kind(&path),
            Target::Hidden(gap) => {
                self.hidden.set(self.hidden.get().or(Some(gap)));
                None
            }
            Target::Missing(globs) if globs.is_empty() && module == self.handler.module => {
                let name = named_type(segments).map(|name| (name.to_owned(), ty.span));
                let mut unknown = self.unknown.borrow_mut();
                *unknown = unknown.take().or(name);
                None
            }
            _ => None,
        }
    }

    fn custom(&self, id: TypeId) -> Option<Kind> {
        let resource = self.package.item(id).model.as_ref()?.custom_resource.as_ref()?;
        Some(Kind {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural_name(),
        })
    }
}

/// Returns `None` for a possible type parameter, such as `T` or `T::Object`.
fn named_type(segments: &[String]) -> Option<&str> {
    match segments {
        [name] if name.len() > 1 => Some(name),
        [root, .., name] if ["crate", "self", "super"].contains(&root.as_str()) => Some(name),
        _ => None,
    }
}
