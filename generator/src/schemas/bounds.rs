//! The limits of a schema whose types are written out wherever they are used: a few types that each mention the next one
//! twice describe more than any memory holds.

use rbuilder_schema::{Schema, Slot, Weight};
use rbuilder_syntax::Type;

use super::{Instance, Schemas};
use crate::advice;
use crate::place::Place;

/// The most bytes of JSON that a definition can have: kube-apiserver rejects larger requests, and no flag of it changes
/// that.
pub(crate) const MAX_BYTES: usize = 3 << 20;

/// The bytes of all slots together. Variants can share fields, so their sum is more than the result.
const MAX_SLOT_BYTES: usize = 16 * MAX_BYTES;

/// The members of `anyOf` and the like in all slots together. They are copied from type to type.
const MAX_ALTERNATIVES: usize = 16 * 1024;

impl Schemas<'_> {
    /// Reports a type whose parts are too large for the schema to be made.
    pub(super) fn check_slots(&mut self, instance: &Instance, slots: &[Slot], place: Place) -> Option<()> {
        let weights = slots.iter().map(|slot| slot.schema.weight().structure as usize);
        let alternatives = slots.iter().map(|slot| slot.schema.alternatives());
        if weights.sum::<usize>() > MAX_SLOT_BYTES || alternatives.sum::<usize>() > MAX_ALTERNATIVES {
            return self.refuse_size(instance, place);
        }
        Some(())
    }

    /// Reports a type whose schema is larger than any definition.
    pub(super) fn check_size_of(&mut self, instance: &Instance, schema: &Schema, place: Place) -> Option<()> {
        match schema.weight().structure as usize > MAX_BYTES {
            true => self.refuse_size(instance, place),
            false => Some(()),
        }
    }

    /// A type with arguments is too large because of them, so it is reported where they are written.
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

/// The ways to make a schema smaller.
const HELP: &str = "a CRD repeats a type wherever it is used: use it in fewer fields, or put `#[kube(schemaless, preserve_unknown_fields)]` on a field that holds it; the API server rejects requests of more than 3 MiB";

/// Returns whether a definition with versions of these weights is larger than any that the API server accepts.
pub(crate) fn is_too_large(weights: impl IntoIterator<Item = Weight>) -> bool {
    let bytes: usize = weights.into_iter().map(Weight::total).sum();
    bytes > MAX_BYTES
}
