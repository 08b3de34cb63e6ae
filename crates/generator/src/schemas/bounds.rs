//! Size limits for schemas. A CRD repeats a type wherever it is used, so a chain of types that each
//! use the next one twice grows exponentially.

use rbuilder_schema::{Schema, Slot, Weight};
use rbuilder_syntax::Type;

use super::{Instance, Schemas};
use crate::advice;
use crate::place::Place;

/// The maximum size of a CRD as JSON, in bytes. kube-apiserver rejects larger requests, and no flag
/// raises the limit.
pub(crate) const MAX_BYTES: usize = 3 << 20;

/// The maximum size of all of a type's slots, in bytes. It exceeds [`MAX_BYTES`] because variants
/// can share fields, so the sum is more than the result.
const MAX_SLOT_BYTES: usize = 16 * MAX_BYTES;

/// The maximum number of members of `anyOf` and similar lists in all slots of a type. Each type
/// that uses them copies them.
const MAX_ALTERNATIVES: usize = 16 * 1024;

impl Schemas<'_> {
    /// Reports a type whose slots are too large to build its schema.
    pub(super) fn check_slots(&mut self, instance: &Instance, slots: &[Slot], place: Place) -> Option<()> {
        let weights = slots.iter().map(|slot| slot.schema.weight().structure as usize);
        let alternatives = slots.iter().map(|slot| slot.schema.alternatives());
        if weights.sum::<usize>() > MAX_SLOT_BYTES || alternatives.sum::<usize>() > MAX_ALTERNATIVES {
            return self.refuse_size(instance, place);
        }
        Some(())
    }

    /// Reports a type whose schema exceeds the maximum size of a CRD.
    pub(super) fn check_size_of(&mut self, instance: &Instance, schema: &Schema, place: Place) -> Option<()> {
        match schema.weight().structure as usize > MAX_BYTES {
            true => self.refuse_size(instance, place),
            false => Some(()),
        }
    }

    /// Reports a type that is too large. For a type with arguments the error is where it is used,
    /// since the arguments cause the size.
    fn refuse_size(&mut self, (id, args): &Instance, place: Place) -> Option<()> {
        let item = self.package().item(*id);
        let place = match &item.model {
            Some(Type { span, .. }) if args.is_empty() => Place {
                file: item.file,
                span: *span,
            },
            _ => place,
        };
        let message = format!(
            "the schema of `{}` is too large: with all types in it, it has more than {} MiB",
            self.name(*id),
            MAX_BYTES >> 20
        );
        let help = advice::for_type(HELP, self.resolver.is_ours);
        self.report().error(place, message, &help);
        None
    }
}

/// Advice for reducing the size of a schema.
const HELP: &str = "a CRD repeats a type wherever it is used: use it in fewer fields, or put `#[kube(schemaless, preserve_unknown_fields)]` on a field that holds it; the API server rejects requests of more than 3 MiB";

/// Returns whether a CRD with versions of these weights exceeds the API server's limit.
pub(crate) fn is_too_large(weights: impl IntoIterator<Item = Weight>) -> bool {
    let bytes: usize = weights.into_iter().map(Weight::total).sum();
    bytes > MAX_BYTES
}
