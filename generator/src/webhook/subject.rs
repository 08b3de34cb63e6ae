//! The kind a handler is about: the first of its parameters that is one.

use rbuilder_reader::{TypeKind, TypeRef};

use crate::package::{Handler, ModuleId, Package, TypeId};
use crate::resolve::{Target, is_transparent, lookup_path};
use rbuilder_syntax::kubernetes::{self, Kind};

/// Aliases and wrappers within each other; nobody writes more, and a circle ends.
const MAX_DEPTH: usize = 16;

/// The kind of the first parameter that has one, behind references, `Arc`, `Box` and `Option`, in an
/// `AdmissionRequest`, or as the `self` of an `impl`.
pub(super) fn find_kind(package: &Package, handler: &Handler) -> Option<Kind> {
    let search = Search { package, handler };
    handler
        .parameters
        .iter()
        .find_map(|ty| search.kind(ty, handler.module, 0))
}

struct Search<'a> {
    package: &'a Package,
    handler: &'a Handler,
}

impl Search<'_> {
    fn kind(&self, ty: &TypeRef, module: ModuleId, depth: usize) -> Option<Kind> {
        let TypeKind::Path(segments, args) = &ty.kind else {
            return None;
        };
        if depth > MAX_DEPTH {
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
                // The argument of `type Shared<T> = Arc<T>` is a parameter there.
                self.kind(&alias.target, alias.module, depth + 1)
                    .or_else(argument)
            }
            Target::External(path) if is_transparent(&path) => argument(),
            Target::External(path) => kubernetes::find_kind(&path),
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
