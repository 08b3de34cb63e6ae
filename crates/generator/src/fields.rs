//! Finds where a field is declared in source, given its path in objects.
//!
//! Schemas don't record this: types share schemas, and most runs have no use for it. Callers that
//! need it, e.g. to compare manifests, look the places up afterwards.

use std::rc::Rc;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::{Content, Field, Shape, Tagging, Variant};
use rbuilder_syntax::CustomResource;

use crate::collect::Build;
use crate::defaults;
use crate::package::TypeId;
use crate::place::{FileId, Place};
use crate::resolve::{Bindings, Resolver, Scope, Ty};
use crate::sources::Sources;
use crate::survey::collect_build;
use crate::{FileRange, Options};

/// Recursive types never end.
const MAX_DEPTH: usize = 64;

/// Maximum number of types visited for one field. Variants can use the same type at every level, so
/// the number of paths can explode.
const MAX_STEPS: usize = 10_000;

/// A field in the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The version.
    pub version: String,
    /// The path in an object, in which `[*]` stands for the items of a list and `*` for the values
    /// of a map, e.g. `.spec.servers[*].labels.*`.
    pub path: String,
}

/// Where a field is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// Where the field is, or else the struct of the kind.
    pub range: FileRange,
    /// True if the struct derives `CrdSchema` and therefore accepts our attributes.
    pub is_ours: bool,
}

/// Returns where each field is declared, or `None` if there is no such kind or field. For a field
/// inside a type that we don't read, returns the location of the enclosing field.
pub fn find_fields(
    sources: &dyn Sources,
    options: &Options,
    wanted: &[FieldPath],
) -> Vec<Option<FieldPlace>> {
    let (collected, mut report) = collect_build(sources, options, Build::Asked);
    let package = &collected.package;
    let associated = Rc::new(defaults::index_associated(package));
    let mut finder = Finder {
        resolver: Resolver::new(package, associated, &mut report),
        depth: 0,
        steps: 0,
    };
    let found: Vec<Option<Found>> = wanted.iter().map(|field| finder.find(field)).collect();
    let files = &report.files;
    let each = |found: Found| FieldPlace {
        range: FileRange::new(files.path(found.place.file), found.place.span.range()),
        is_ours: found.is_ours,
    };
    found.into_iter().map(|found| found.map(each)).collect()
}

#[derive(Clone, Copy)]
struct Found {
    place: Place,
    is_ours: bool,
}

/// A step down into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Field(&'a str),
    Items,
    Values,
}

fn parse_steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    // The path starts with a dot, so its first part is empty.
    for part in path.split('.').skip(1) {
        let name = part.trim_end_matches("[*]");
        steps.push(match name {
            "*" => Step::Values,
            name => Step::Field(name),
        });
        let lists = part[name.len()..].matches("[*]");
        steps.extend(lists.map(|_| Step::Items));
    }
    steps
}

struct Fields<'a> {
    fields: &'a [Field],
    sites: &'a [Span],
}

#[derive(Clone, Copy)]
struct Within<'a> {
    file: FileId,
    is_ours: bool,
    slots: &'a [TypeRef],
    scope: Scope<'a>,
}

impl Within<'_> {
    fn found(&self, span: Span) -> Found {
        Found {
            place: Place {
                file: self.file,
                span,
            },
            is_ours: self.is_ours,
        }
    }
}

struct Finder<'a> {
    resolver: Resolver<'a>,
    depth: usize,
    steps: usize,
}

impl Finder<'_> {
    fn find(&mut self, wanted: &FieldPath) -> Option<Found> {
        self.steps = 0;
        let package = self.resolver.package;
        let (id, resource) = package.types.iter().enumerate().find_map(|(position, item)| {
            let resource = item.model.as_ref()?.custom_resource.as_ref()?;
            let is_wanted = resource.group == wanted.group
                && resource.kind == wanted.kind
                && resource.version == wanted.version;
            (is_wanted && item.skipped.is_none()).then_some((TypeId(position), resource))
        })?;
        self.in_object(id, resource, &parse_steps(&wanted.path))
    }

    fn in_object(&mut self, id: TypeId, resource: &CustomResource, steps: &[Step<'_>]) -> Option<Found> {
        let item = self.resolver.package.item(id);
        let at = |span: Span| Found {
            place: Place {
                file: item.file,
                span,
            },
            is_ours: item.is_ours,
        };
        let (part, rest) = steps.split_first()?;
        match part {
            Step::Field("spec") => {
                let args = self.resolver.default_args(id, at(resource.span).place)?;
                let found = self.in_item(id, &args, rest);
                Some(found.unwrap_or(at(resource.span)))
            }
            Step::Field("status") => {
                let ty = resource.status.as_ref()?;
                let bindings = Bindings::new();
                let scope = Scope {
                    file: item.file,
                    module: item.module,
                    bindings: &bindings,
                };
                let status = self.resolver.resolve(ty, scope)?;
                Some(self.in_value(&status, rest).unwrap_or(at(ty.span)))
            }
            _ => None,
        }
    }

    /// Returns `None` if no steps are left, or if they lead to unread types.
    fn in_value(&mut self, ty: &Ty, steps: &[Step<'_>]) -> Option<Found> {
        let (step, rest) = steps.split_first()?;
        match (ty, step) {
            (Ty::Option(inner), _) => self.in_value(inner, steps),
            (Ty::List(item) | Ty::Set(item) | Ty::Array(item, _), Step::Items) => self.in_value(item, rest),
            // With an enum as key, the schema has a field for each variant.
            (Ty::Map(_, value), Step::Values | Step::Field(_)) => self.in_value(value, rest),
            (Ty::Item(id, args), _) => self.in_item(*id, args, steps),
            (Ty::Root(id), _) => {
                let model = self.resolver.package.item(*id).model.as_ref()?;
                self.in_object(*id, model.custom_resource.as_ref()?, steps)
            }
            _ => None,
        }
    }

    fn in_item(&mut self, id: TypeId, args: &[Ty], steps: &[Step<'_>]) -> Option<Found> {
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS || steps.is_empty() {
            return None;
        }
        self.depth += 1;
        let found = self.in_shape(id, args, steps);
        self.depth -= 1;
        found
    }

    fn in_shape(&mut self, id: TypeId, args: &[Ty], steps: &[Step<'_>]) -> Option<Found> {
        let item = self.resolver.package.item(id);
        let model = item.model.as_ref()?;
        let names = model.generics.iter().map(|(name, _)| name.clone());
        let bindings: Bindings = names.zip(args.iter().cloned()).collect();
        let within = Within {
            file: item.file,
            is_ours: item.is_ours,
            slots: &model.slots,
            scope: Scope {
                file: item.file,
                module: item.module,
                bindings: &bindings,
            },
        };
        match &model.container.shape {
            Shape::Object(fields) => {
                let sites = &model.sites;
                self.in_fields(&Fields { fields, sites }, within, steps)
            }
            Shape::Transparent(slot) => self.in_slot(*slot, within, steps),
            Shape::Enum { tagging, variants } => {
                variants.iter().enumerate().find_map(|(position, variant)| {
                    let sites = model.variant_sites.get(position).map_or(&[][..], Vec::as_slice);
                    let site = model.sites.get(position).copied();
                    self.in_variant((variant, site, sites), tagging, within, steps)
                })
            }
        }
    }

    fn in_slot(&mut self, slot: usize, within: Within<'_>, steps: &[Step<'_>]) -> Option<Found> {
        let ty = self.resolver.resolve(within.slots.get(slot)?, within.scope)?;
        self.in_value(&ty, steps)
    }

    fn in_fields(&mut self, of: &Fields<'_>, within: Within<'_>, steps: &[Step<'_>]) -> Option<Found> {
        let (Step::Field(wanted), rest) = steps.split_first()? else {
            return None;
        };
        for (field, span) in of.fields.iter().zip(of.sites) {
            // A flattened field isn't part of the path.
            if field.flatten {
                if let Some(found) = self.in_slot(field.slot, within, steps) {
                    return Some(found);
                }
            } else if field.name == *wanted {
                let inner = self.in_slot(field.slot, within, rest);
                return Some(inner.unwrap_or(within.found(*span)));
            }
        }
        None
    }

    fn in_variant(
        &mut self,
        (variant, site, sites): (&Variant, Option<Span>, &[Span]),
        tagging: &Tagging,
        within: Within<'_>,
        steps: &[Step<'_>],
    ) -> Option<Found> {
        // Some representations put the content into a field of its own.
        let wrapper = match tagging {
            _ if variant.untagged => None,
            Tagging::External => Some(&variant.name),
            Tagging::Adjacent(_, content) => Some(content),
            Tagging::Internal(_) | Tagging::Untagged => None,
        };
        let (inner, place) = match (wrapper, steps.split_first()?) {
            (Some(name), (Step::Field(wanted), rest)) if wanted == name => {
                (rest, site.map(|span| within.found(span)))
            }
            (Some(_), _) => return None,
            (None, _) => (steps, None),
        };
        let found = match &variant.content {
            Content::Unit => None,
            Content::Newtype(slot) => self.in_slot(*slot, within, inner),
            Content::Object(fields) => self.in_fields(&Fields { fields, sites }, within, inner),
        };
        found.or(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_paths() {
        use Step::{Field, Items, Values};
        for (path, expected) in [
            (".spec", &[Field("spec")][..]),
            (".spec.a[*].b", &[Field("spec"), Field("a"), Items, Field("b")]),
            (".status.m.*[*]", &[Field("status"), Field("m"), Values, Items]),
            (".", &[Field("")]),
            ("", &[]),
        ] {
            assert_eq!(parse_steps(path), expected, "{path}");
        }
    }
}
