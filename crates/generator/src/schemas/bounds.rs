//! Limits the size of schemas. A CRD repeats a type wherever it is used, so in a chain of types
//! that each use the next one twice, the size grows exponentially.

use rbuilder_schema::{Container, Content, Schema, Shape, Slot, Tagging, Weight};
use rbuilder_syntax::Type;

use super::{Instance, Schemas};
use crate::advice;
use crate::place::Place;

/// The maximum size of a CRD, in bytes of JSON. kube-apiserver rejects larger requests, and no flag
/// changes that.
pub(crate) const MAX_BYTES: usize = 3 << 20;

/// Limit for all slots of a type together. Larger than [`MAX_BYTES`], because variants can share
/// fields, which makes the result smaller than the sum.
const MAX_SLOT_BYTES: usize = 16 * MAX_BYTES;

/// Maximum number of members of `anyOf` and similar lists in all slots of a type. Each type that
/// uses them copies them.
const MAX_ALTERNATIVES: usize = 16 * 1024;

impl Schemas<'_> {
    pub(super) fn check_slots(
        &mut self,
        instance: &Instance,
        container: &Container,
        slots: &[Slot],
        place: Place,
    ) -> Option<()> {
        let weights = slots.iter().map(|slot| slot.schema.weight().structure as usize);
        let alternatives = slots.iter().map(|slot| slot.schema.alternatives());
        let alternatives = alternatives.sum::<usize>() + count_alternatives(container);
        if weights.sum::<usize>() > MAX_SLOT_BYTES || alternatives > MAX_ALTERNATIVES {
            return self.refuse_size(instance, place);
        }
        Some(())
    }

    /// Fails if the schema alone exceeds the limit for a CRD.
    pub(super) fn check_size_of(&mut self, instance: &Instance, schema: &Schema, place: Place) -> Option<()> {
        match schema.weight().structure as usize > MAX_BYTES {
            true => self.refuse_size(instance, place),
            false => Some(()),
        }
    }

    fn refuse_size(&mut self, (id, args): &Instance, place: Place) -> Option<()> {
        let item = self.package().item(*id);
        // The size may be due to the arguments, so point at the use of a generic type.
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

/// Counts the alternatives that the variants of an enum will add, before they are made. If unknown
/// fields are errors, the alternative of a variant lists the fields of all others.
fn count_alternatives(container: &Container) -> usize {
    let Shape::Enum { tagging, variants } = &container.shape else {
        return 0;
    };
    let objects = variants.iter().filter_map(|variant| match &variant.content {
        Content::Object(fields) => Some(fields.len()),
        Content::Unit | Content::Newtype(_) => None,
    });
    let is_merged = *tagging != Tagging::External && container.denies_unknown;
    let closed = match is_merged {
        true => objects.clone().count().saturating_mul(objects.sum()),
        false => 0,
    };
    let with_content = variants.iter().filter(|variant| variant.content != Content::Unit);
    with_content.count().saturating_add(closed)
}

const HELP: &str = "a CRD repeats a type wherever it is used: use it in fewer fields, or put `#[kube(schemaless, preserve_unknown_fields)]` on a field that holds it; the API server rejects requests of more than 3 MiB";

pub(crate) fn is_too_large(weights: impl IntoIterator<Item = Weight>) -> bool {
    let bytes: usize = weights.into_iter().map(Weight::total).sum();
    bytes > MAX_BYTES
}
