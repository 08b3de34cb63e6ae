//! CEL's assignability rules and type inference.

use super::types::Type;

/// Types inferred so far, indexed by type variable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    bound: Vec<Option<Type>>,
}

impl Bindings {
    pub(crate) fn fresh(&mut self) -> usize {
        self.bound.push(None);
        self.bound.len() - 1
    }

    pub(crate) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Variable(number) => match self.bound.get(*number) {
                Some(Some(bound)) => self.resolve(bound),
                _ => ty.clone(),
            },
            Type::List(item) => Type::list(self.resolve(item)),
            Type::Optional(inner) => Type::optional(self.resolve(inner)),
            Type::Map(key, value) => Type::map(self.resolve(key), self.resolve(value)),
            ty => ty.clone(),
        }
    }

    /// Like [`resolve`](Self::resolve), but replaces unbound variables with `dyn`.
    pub(crate) fn settle(&self, ty: &Type) -> Type {
        match ty {
            Type::Variable(number) => match self.bound.get(*number) {
                Some(Some(bound)) => self.settle(bound),
                _ => Type::Dyn,
            },
            Type::List(item) => Type::list(self.settle(item)),
            Type::Optional(inner) => Type::optional(self.settle(inner)),
            Type::Map(key, value) => Type::map(self.settle(key), self.settle(value)),
            ty => ty.clone(),
        }
    }

    /// Returns whether `given` is assignable to `expected`. Only binds variables if it is.
    pub(crate) fn accepts(&mut self, given: &Type, expected: &Type) -> bool {
        self.all_accept(std::slice::from_ref(given), std::slice::from_ref(expected))
    }

    pub(crate) fn all_accept(&mut self, given: &[Type], expected: &[Type]) -> bool {
        // Use a copy, so that a failure leaves no bindings behind.
        let mut trial = self.clone();
        let fits =
            given.len() == expected.len() && given.iter().zip(expected).all(|(a, b)| trial.assign(a, b));
        if fits {
            *self = trial;
        }
        fits
    }

    fn assign(&mut self, given: &Type, expected: &Type) -> bool {
        if let Type::Variable(number) = expected {
            let (valid, bound) = self.bind(*number, given);
            // If the variable would contain itself, binding `given` below may still work.
            if valid || bound {
                return valid;
            }
        }
        if let Type::Variable(number) = given {
            return self.bind(*number, expected).0;
        }
        match (given, expected) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Object(_)
                    | Type::Opaque(_)
                    | Type::Optional(_)
                    | Type::Duration
                    | Type::Timestamp
            ),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.assign(a, b),
            (Type::Map(a, b), Type::Map(c, d)) => self.assign(a, c) && self.assign(b, d),
            (a, b) => a == b,
        }
    }

    /// Returns whether the types are compatible, and whether the variable was already bound.
    fn bind(&mut self, number: usize, ty: &Type) -> (bool, bool) {
        if *ty == Type::Variable(number) {
            return (true, true);
        }
        match self.bound.get(number).cloned().flatten() {
            Some(known) if known == *ty => (true, true),
            Some(known) => {
                if !self.assign(ty, &known) {
                    return (false, true);
                }
                let general = if is_less_specific(ty, &known) { ty } else { &known };
                if !self.mentions(general, number) {
                    self.bound[number] = Some(general.clone());
                }
                (true, true)
            }
            None if self.mentions(ty, number) => (false, false),
            None => {
                if let Some(slot) = self.bound.get_mut(number) {
                    *slot = Some(ty.clone());
                }
                (true, false)
            }
        }
    }

    /// Occurs check: binding a variable to a type that contains it would create an infinite type.
    fn mentions(&self, ty: &Type, number: usize) -> bool {
        match ty {
            Type::Variable(other) => {
                *other == number
                    || self
                        .bound
                        .get(*other)
                        .and_then(Option::as_ref)
                        .is_some_and(|bound| self.mentions(bound, number))
            }
            Type::List(inner) | Type::Optional(inner) => self.mentions(inner, number),
            Type::Map(key, value) => self.mentions(key, number) || self.mentions(value, number),
            _ => false,
        }
    }
}

/// Checks if `a` is at least as general as `b`. They must be assignable to each other.
pub(crate) fn is_less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Error | Type::Variable(_), _) => true,
        (_, Type::Dyn | Type::Error | Type::Variable(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_less_specific(a, b),
        (Type::Map(a, b), Type::Map(c, d)) => is_less_specific(a, c) && is_less_specific(b, d),
        (a, b) => a == b,
    }
}
