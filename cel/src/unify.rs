//! Which types fit which: CEL's rules of assignment, with types found out on the way.

use super::types::Type;

/// The types found out so far, by number of the variable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    bound: Vec<Option<Type>>,
}

impl Bindings {
    /// A type to be found out.
    pub(crate) fn fresh(&mut self) -> usize {
        self.bound.push(None);
        self.bound.len() - 1
    }

    /// A type with everything filled in that is known of it.
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

    /// The same, with `dyn` for what is not known.
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

    /// Whether a value of one type can stand where another is wanted; what that says about types still to be
    /// found out is kept only if so.
    pub(crate) fn accepts(&mut self, given: &Type, wanted: &Type) -> bool {
        self.all_accept(std::slice::from_ref(given), std::slice::from_ref(wanted))
    }

    /// The same for several values at once.
    pub(crate) fn all_accept(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        let mut trial = self.clone();
        let fits = given.len() == wanted.len() && given.iter().zip(wanted).all(|(a, b)| trial.assign(a, b));
        if fits {
            *self = trial;
        }
        fits
    }

    fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        if let Type::Variable(number) = wanted {
            let (valid, bound) = self.bind(*number, given);
            if valid || bound {
                return valid;
            }
        }
        if let Type::Variable(number) = given {
            return self.bind(*number, wanted).0;
        }
        match (given, wanted) {
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

    /// Whether a variable can be a type, and whether it was known before.
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

    /// Whether a type is made of a variable: no type can hold itself.
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

/// Whether the first of two types that fit says no more than the second.
pub(crate) fn is_less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Error | Type::Variable(_), _) => true,
        (_, Type::Dyn | Type::Error | Type::Variable(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_less_specific(a, b),
        (Type::Map(a, b), Type::Map(c, d)) => is_less_specific(a, c) && is_less_specific(b, d),
        (a, b) => a == b,
    }
}
