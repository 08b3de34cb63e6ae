//! Called by the code that `derive(CrdSchema)` emits. Not a stable API: it changes together with
//! the derive.

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

/// The crate with the trait that the derive implements. Re-exported so that users don't need to
/// depend on it.
pub use schemars;

thread_local! {
    /// The types whose schemas are being built, outermost first.
    static STACK: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Pops the innermost type off the stack when dropped, even on a panic.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        STACK.with_borrow_mut(|stack| stack.pop());
    }
}

/// Builds the schema of a type that derives `CrdSchema`.
///
/// `container` is the [`Container`] as JSON, and `slots` returns the schemas of the types mentioned
/// in it.
///
/// # Panics
///
/// Panics if the type has no structural schema, because it contains itself or has an invalid
/// marker: `JsonSchema` has no way to return an error. `rbuilder manifests` reports the same
/// problem with its location in the source.
pub fn json_schema<T: ?Sized>(container: &str, slots: impl FnOnce() -> Vec<Slot>) -> schemars::Schema {
    json_schema_with_defaults::<T>(container, slots, Vec::new)
}

/// Like [`json_schema`], but also with the values that serde uses for absent fields.
///
/// # Panics
///
/// Panics for the same reasons as [`json_schema`].
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
        // Ignore defaults that the schema rejects; the generator warns about them.
        Ok(assembled) => assembled.schema,
        Err(diagnostics) => panic!("{}", report(&container, &diagnostics)),
    };
    if depth == 0 {
        // Only the schema of the outermost type reaches kube; the others have become part of it.
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
        // Tell the outer type, which reads this schema as one of its slots, that it is structural.
        map.insert(OWN.to_owned(), Value::Bool(true));
    }
    schemars::Schema::from(map)
}

fn enter(name: &'static str) -> (Entered, usize) {
    STACK.with_borrow_mut(|stack| {
        if let Some(start) = stack.iter().position(|earlier| *earlier == name) {
            let cycle: Vec<_> = stack[start..].iter().chain([&name]).copied().collect();
            let cycle = cycle.join("` -> `");
            // Don't clean up the stack here; the guards of the outer types do.
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

/// A value that may or may not implement `Serialize`.
///
/// `(&Held(&value)).to_json()` returns the value as JSON, or `null` if its type isn't `Serialize`.
/// This relies on method resolution, which only tries [`Unserialized`] if [`Serialized`] doesn't
/// apply.
pub struct Held<'a, T: ?Sized>(pub &'a T);

/// The trait preferred by method resolution.
pub trait Serialized {
    /// Returns the value as serialized by serde.
    fn to_json(&self) -> Option<Value>;
}

impl<T: serde::Serialize + ?Sized> Serialized for Held<'_, T> {
    fn to_json(&self) -> Option<Value> {
        Some(serde_json::to_value(self.0).unwrap_or_default())
    }
}

/// The trait that method resolution falls back to if [`Serialized`] doesn't apply.
pub trait Unserialized {
    /// Returns `null`.
    fn to_json(&self) -> Option<Value>;
}

impl<T: ?Sized> Unserialized for &Held<'_, T> {
    fn to_json(&self) -> Option<Value> {
        Some(Value::Null)
    }
}

/// Builds a slot from the schema returned by a user's function. `kubernetes` has the schemas of
/// Kubernetes types.
///
/// # Panics
///
/// Panics if the schema has no structural form.
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

/// Returns whether a field of this type may be absent.
pub fn is_option<T: JsonSchema + ?Sized>() -> bool {
    T::_schemars_private_is_option()
}

/// Builds the slot of a type from its `JsonSchema`.
///
/// # Panics
///
/// Panics if the schema has no structural form.
pub fn slot<T: JsonSchema + ?Sized>() -> Slot {
    slot_with::<T>(&|_| None)
}

/// Like [`slot`], but looks up the schemas of Kubernetes types by their Rust path, e.g.
/// `k8s_openapi::api::core::v1::Pod`.
///
/// # Panics
///
/// Panics if the schema of the type has no structural form.
pub fn slot_with<T: JsonSchema + ?Sized>(kubernetes: &dyn Fn(&str) -> Option<Arc<Schema>>) -> Slot {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.subschema_for::<T>();
    let definitions = generator.take_definitions(true);
    match import_schema(schema.as_value(), &definitions, kubernetes) {
        // Ask the trait, because an alias of `Option` has a different name.
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
