//! Follows the calls of all functions.

use rbuilder_reader::token::lex;

use super::follow::Follower;
use super::functions::{Functions, Instance, implicit_name, is_impl};
use super::ty::{Bindings, Scope, Ty, read_type};
use super::{Need, Needs, Unseen};
use crate::package::{FunctionId, Package};

pub(crate) fn find_needs(package: &Package) -> Needs {
    let mut functions = Functions::new(package);
    let mut needs = Needs::default();
    let mut generic = Vec::new();
    for index in 0..package.functions.len() {
        let instance = Instance {
            function: FunctionId(index),
            bindings: Bindings::new(),
        };
        if package.functions[index].body.is_empty() {
            continue;
        }
        if functions.signatures[index].is_generic {
            generic.push(instance);
            continue;
        }
        let (known, unseen) = follow(&mut functions, &instance);
        needs.known.extend(known);
        needs.unseen.extend(unseen);
    }
    loop {
        while let Some(instance) = functions.waiting.pop() {
            let (known, unseen) = follow(&mut functions, &instance);
            needs.known.extend(known);
            needs.unseen.extend(unseen);
        }
        // The function is never called with known types, so follow it with unknown ones.
        let Some(instance) = generic.pop() else { break };
        if !functions.is_instantiated(instance.function) {
            let (known, unseen) = follow(&mut functions, &instance);
            needs.known.extend(known);
            needs.unseen.extend(unseen);
        }
    }
    needs.known.sort();
    needs.known.dedup();
    needs.unseen.sort();
    needs.unseen.dedup();
    needs
}

fn follow(functions: &mut Functions<'_>, instance: &Instance) -> (Vec<Need>, Vec<Unseen>) {
    let item = functions.item(instance.function);
    let Ok(tokens) = lex(&item.body) else {
        return (Vec::new(), Vec::new());
    };
    let scope = Scope {
        module: item.module,
        self_type: item.self_type.as_ref(),
        bindings: &instance.bindings,
    };
    let signature = &functions.signatures[instance.function.0];
    let mut variables = Vec::new();
    for (position, parameter) in signature.parameters.iter().enumerate() {
        let Some(name) = parameter.name.clone() else {
            continue;
        };
        let ty = match &parameter.ty {
            Some(ty) if is_impl(ty) => {
                let bound = instance.bindings.get(&implicit_name(position));
                let bound = bound.cloned().unwrap_or_default();
                bound.or(|| read_type(functions.package, ty, scope))
            }
            Some(ty) => read_type(functions.package, ty, scope),
            None => item
                .self_type
                .as_ref()
                .map_or(Ty::Unknown, |ty| read_type(functions.package, ty, scope)),
        };
        variables.push((name, ty));
    }
    let output = signature.output.as_ref();
    let expected = output.map_or(Ty::Unknown, |output| read_type(functions.package, output, scope));
    let mut follower = Follower::new(functions, item, scope, variables, expected);
    follower.body(tokens.cursor());
    follower.finish()
}
