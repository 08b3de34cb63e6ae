//! Functions for the code that `derive(CrdSchema)` emits. Not for use by hand: they change with the derive.

use std::cell::RefCell;
use std::sync::Arc;

use rbuilder_diagnostic::Diagnostic;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::import::{OWN, import_schema};
use crate::kube_quirks::{deny_null, shield_from_kube};
use crate::type_name::refine_by_type_name;
use crate::{Container, ESCAPE, Part, Schema, Shape, Slot, assemble_with_defaults};

pub use crate::Site;

/// The crate whose trait the derive implements: the user's program need not depend on it.
pub use schemars;

thread_local! {
    /// The types whose schema is being made, outermost first.
    static STACK: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Takes the innermost type off the stack, on a panic too.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        STACK.with_borrow_mut(|stack| stack.pop());
    }
}

/// The schema of a type that derives `CrdSchema`.
///
/// `container` is the JSON of its [`Container`]; `slots` gives the schemas of the types it mentions.
///
/// # Panics
/// When the type has no structural schema: it contains itself, or a marker does not fit the type it is on.
/// `JsonSchema` has no way to return an error; `rbuilder manifests` reports the same at its place in the source.
pub fn json_schema<T: ?Sized>(container: &str, slots: impl FnOnce() -> Vec<Slot>) -> schemars::Schema {
    json_schema_with_defaults::<T>(container, slots, Vec::new)
}

/// [`json_schema`], with the values that serde reads in place of absent fields.
///
/// # Panics
/// As [`json_schema`].
pub fn json_schema_with_defaults<T: ?Sized>(
    container: &str,
    slots: impl FnOnce() -> Vec<Slot>,
    defaults: impl FnOnce() -> Vec<(Site, Option<Value>)>,
) -> schemars::Schema {
    let container: Container = match serde_json::from_str(container) {
        Ok(container) => container,
        Err(error) => panic!("rbuilder and rbuilder-derive are of different versions: {error}"),
    };
    let (_entered, depth) = enter(std::any::type_name::<T>());
    let mut schema = match assemble_with_defaults(&container, &slots(), &defaults()) {
        // The generator warns of a default that the schema refuses.
        Ok(assembled) => assembled.schema,
        Err(diagnostics) => panic!("{}", report(&container, &diagnostics)),
    };
    if depth == 0 {
        shield_from_kube(&mut schema);
    }
    let mut map = match serde_json::to_value(&schema) {
        Ok(Value::Object(mut map)) => {
            if depth == 0 {
                deny_null(&mut map);
            }
            map
        }
        other => panic!(
            "the schema of `{}` is not a JSON object: {other:?}",
            container.name
        ),
    };
    if depth > 0 {
        // Read by another type's slot, which need not guess that it is structural.
        map.insert(OWN.to_owned(), Value::Bool(true));
    }
    schemars::Schema::from(map)
}

/// Puts a type on the stack; says how many were there.
fn enter(name: &'static str) -> (Entered, usize) {
    STACK.with_borrow_mut(|stack| {
        if let Some(start) = stack.iter().position(|earlier| *earlier == name) {
            let cycle: Vec<_> = stack[start..].iter().chain([&name]).copied().collect();
            let cycle = cycle.join("` -> `");
            // The stack is left as it was: the guards of the outer types take them off.
            panic!(
                "`{name}` contains itself, which a CRD cannot express: `{cycle}`\nhelp: put `#[kube(schemaless, preserve_unknown_fields)]` on the field that closes the cycle"
            );
        }
        stack.push(name);
        (Entered, stack.len() - 1)
    })
}

fn report(container: &Container, diagnostics: &[Diagnostic<Part>]) -> String {
    let lines = diagnostics.iter().map(|diagnostic| {
        let help = diagnostic
            .help
            .as_ref()
            .map(|help| format!("\n    help: {help}"))
            .unwrap_or_default();
        format!(
            "\n  {}: {}{help}",
            place(container, &diagnostic.place.site),
            diagnostic.message
        )
    });
    format!(
        "`{}` has no structural schema:{}",
        container.name,
        lines.collect::<String>()
    )
}

fn place(container: &Container, site: &Site) -> String {
    let variant = |position: usize| match &container.shape {
        Shape::Enum { variants, .. } => variants.get(position),
        _ => None,
    };
    let name = match (site, &container.shape) {
        (Site::Field(position), Shape::Object(fields)) => fields
            .get(*position)
            .map(|field| format!("{}.{}", container.name, field.ident)),
        (Site::Variant(position) | Site::VariantField(position, _), _) => {
            variant(*position).map(|variant| format!("{}::{}", container.name, variant.ident))
        }
        _ => None,
    };
    name.unwrap_or_else(|| container.name.clone())
}

/// A value that may have a form in JSON.
///
/// `(&Held(&value)).to_json()` is that form, or `null` for a type that does not implement `Serialize`: method resolution
/// tries [`Unserialized`] last.
pub struct Held<'a, T: ?Sized>(pub &'a T);

/// Preferred by method resolution.
pub trait Serialized {
    /// The value as serde writes it.
    fn to_json(&self) -> Option<Value>;
}

impl<T: serde::Serialize + ?Sized> Serialized for Held<'_, T> {
    fn to_json(&self) -> Option<Value> {
        Some(serde_json::to_value(self.0).unwrap_or_default())
    }
}

/// Used by method resolution when [`Serialized`] does not apply.
pub trait Unserialized {
    /// No value.
    fn to_json(&self) -> Option<Value>;
}

impl<T: ?Sized> Unserialized for &Held<'_, T> {
    fn to_json(&self) -> Option<Value> {
        Some(Value::Null)
    }
}

/// The schema that a function of the program returns, with the schemas of Kubernetes' own types from `kubernetes`.
///
/// # Panics
/// When that schema has no structural form.
pub fn slot_of(
    function: impl FnOnce(&mut schemars::SchemaGenerator) -> schemars::Schema,
    kubernetes: &dyn Fn(&str) -> Option<Arc<Schema>>,
) -> Slot {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schema = function(&mut generator);
    let definitions = generator.take_definitions(true);
    match import_schema(schema.as_value(), &definitions, kubernetes) {
        Ok(schema) => Slot {
            schema: schema.into(),
            optional: false,
        },
        Err(reason) => panic!("a function of `schema_with` does not return a structural schema: {reason}"),
    }
}

/// Returns whether a field of the type may be absent.
pub fn is_option<T: JsonSchema + ?Sized>() -> bool {
    T::_schemars_private_is_option()
}

/// The schema of a type that a container mentions, from its `JsonSchema`.
///
/// # Panics
/// When that schema has no structural form.
pub fn slot<T: JsonSchema + ?Sized>() -> Slot {
    slot_with::<T>(&|_| None)
}

/// [`slot`], with the schemas of Kubernetes' own types from `kubernetes`, which is asked by Rust path
/// (`k8s_openapi::api::core::v1::Pod`).
///
/// # Panics
/// When the type's schema has no structural form.
pub fn slot_with<T: JsonSchema + ?Sized>(kubernetes: &dyn Fn(&str) -> Option<Arc<Schema>>) -> Slot {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.subschema_for::<T>();
    let definitions = generator.take_definitions(true);
    match import_schema(schema.as_value(), &definitions, kubernetes) {
        // Asked of the trait, so that an alias of `Option` is one too.
        Ok(mut schema) => {
            refine_by_type_name(&mut schema, std::any::type_name::<T>());
            Slot {
                schema: schema.into(),
                optional: is_option::<T>(),
            }
        }
        Err(reason) => panic!(
            "`{}` has no structural schema: {reason}\nhelp: {ESCAPE}",
            std::any::type_name::<T>()
        ),
    }
}
