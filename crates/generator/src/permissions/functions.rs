//! The functions whose calls are followed, once for each combination of type arguments.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::grammar::{Function, ItemKind, Items, Parameter};
use rbuilder_reader::token::lex;
use rbuilder_reader::{TypeKind, TypeRef};

use super::ty::{Bindings, Scope, Ty, read_type};
use crate::package::{FunctionId, FunctionItem, Package};
use crate::resolve::{Owner, find_owner};

const MAX_INSTANCES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Signature {
    pub(super) type_parameters: Vec<String>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) output: Option<TypeRef>,
    /// True also for functions with an `impl Trait` in place of a type. Bounds on type parameters
    /// aren't read.
    pub(super) is_generic: bool,
}

impl Signature {
    fn read(item: &FunctionItem) -> Signature {
        let text = format!("{} {{}}", item.signature);
        let read = lex(&text).ok().and_then(|tokens| {
            let found = Items::new(tokens.cursor(), None).read().ok()??;
            let ItemKind::Function(function) = found.kind else {
                return None;
            };
            Some(Signature::of(&function))
        });
        read.unwrap_or_default()
    }

    fn of(function: &Function<'_>) -> Signature {
        let parameters = function.parameters().unwrap_or_default();
        let output = function.output_text().trim_start_matches("->").trim();
        let type_parameters = function.type_parameters();
        let is_implicit = |parameter: &Parameter| match &parameter.ty {
            Some(ty) => is_impl(ty),
            None => false,
        };
        Signature {
            is_generic: !type_parameters.is_empty() || parameters.iter().any(is_implicit),
            output: TypeRef::parse(output, rbuilder_reader::Span::OUTSIDE),
            type_parameters,
            parameters,
        }
    }
}

pub(super) fn is_impl(ty: &TypeRef) -> bool {
    matches!(&ty.kind, TypeKind::Other(text) if text.trim_start_matches('&').trim_start().starts_with("impl "))
}

/// Returns the placeholder name for the type of an `impl Trait` parameter.
pub(super) fn implicit_name(position: usize) -> String {
    format!("impl {position}")
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) function: FunctionId,
    pub(super) bindings: Bindings,
}

pub(super) struct Functions<'a> {
    pub(super) package: &'a Package,
    pub(super) signatures: Vec<Signature>,
    associated: BTreeMap<(Owner, &'a str), FunctionId>,
    pub(super) waiting: Vec<Instance>,
    seen: BTreeSet<Instance>,
}

impl<'a> Functions<'a> {
    pub(super) fn new(package: &'a Package) -> Self {
        let mut associated = BTreeMap::new();
        for (index, item) in package.functions.iter().enumerate() {
            if let Some(TypeKind::Path(segments, _)) = item.self_type.as_ref().map(|ty| &ty.kind)
                && let Some(owner) = find_owner(package, item.module, segments)
            {
                associated
                    .entry((owner, item.name.as_str()))
                    .or_insert(FunctionId(index));
            }
        }
        Functions {
            package,
            signatures: package.functions.iter().map(Signature::read).collect(),
            associated,
            waiting: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    pub(super) fn item(&self, id: FunctionId) -> &'a FunctionItem {
        &self.package.functions[id.0]
    }

    pub(super) fn of_type(&self, owner: &Owner, name: &str) -> Option<FunctionId> {
        self.associated.get(&(owner.clone(), name)).copied()
    }

    /// Returns the type of a parameter, not counting the receiver.
    pub(super) fn parameter(&self, id: FunctionId, position: usize) -> Ty {
        let bindings = Bindings::new();
        let mut typed = self.signatures[id.0]
            .parameters
            .iter()
            .filter_map(|each| each.ty.as_ref());
        typed.nth(position).map_or(Ty::Unknown, |ty| {
            read_type(self.package, ty, self.scope(id, &bindings))
        })
    }

    fn scope<'s>(&'s self, id: FunctionId, bindings: &'s Bindings) -> Scope<'s> {
        let item = &self.package.functions[id.0];
        Scope {
            module: item.module,
            self_type: item.self_type.as_ref(),
            bindings,
        }
    }

    /// Records a call with arguments of these types, and returns the type of its result.
    ///
    /// For a method, `args` starts with the receiver.
    pub(super) fn call(&mut self, id: FunctionId, generic: &[Ty], args: &[Ty]) -> Ty {
        let signature = &self.signatures[id.0];
        let mut bindings = Bindings::new();
        for (name, ty) in signature.type_parameters.iter().zip(generic) {
            bindings.insert(name.clone(), ty.clone());
        }
        for name in &signature.type_parameters {
            bindings.entry(name.clone()).or_default();
        }
        for (position, (parameter, arg)) in signature.parameters.iter().zip(args).enumerate() {
            match &parameter.ty {
                Some(ty) if is_impl(ty) => {
                    bindings.insert(implicit_name(position), arg.clone());
                }
                Some(ty) => bind(ty, arg, &mut bindings),
                None => {}
            }
        }
        let output = signature.output.clone();
        let is_generic = signature.is_generic;
        let result = output.map_or(Ty::Unknown, |output| {
            read_type(self.package, &output, self.scope(id, &bindings))
        });
        // If none of the types is known, don't follow the function again.
        if is_generic && bindings.values().any(|ty| *ty != Ty::Unknown) {
            self.add(Instance {
                function: id,
                bindings,
            });
        }
        result
    }

    fn add(&mut self, instance: Instance) {
        if self.seen.len() < MAX_INSTANCES && self.seen.insert(instance.clone()) {
            self.waiting.push(instance);
        }
    }

    pub(super) fn is_instantiated(&self, id: FunctionId) -> bool {
        self.seen.iter().any(|seen| seen.function == id)
    }
}

/// Determines the type parameters in `ty`, given an argument of this type.
fn bind(ty: &TypeRef, arg: &Ty, bindings: &mut Bindings) {
    let TypeKind::Path(segments, args) = &ty.kind else {
        return;
    };
    match segments.as_slice() {
        [name] if bindings.contains_key(name) => {
            let bound = bindings.entry(name.clone()).or_default();
            if *bound == Ty::Unknown {
                *bound = arg.clone();
            }
        }
        _ => match (arg, args.as_slice()) {
            (Ty::Known("Ctx", known), [state]) => bind(state, &known.state, bindings),
            (Ty::Known(_, known), [kind, ..]) => bind(kind, &known.kind, bindings),
            // Pointers and lists have the type of their content.
            (_, [.., content]) => bind(content, arg, bindings),
            (_, []) => {}
        },
    }
}
