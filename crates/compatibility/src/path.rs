//! Paths of values in objects, e.g. `spec.ports[*].name`.

use std::fmt;

use serde_json::Value;

/// The map key used on paths in generated objects, which have no other. In lists, the first item is
/// used.
pub(crate) const KEY: &str = "key";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Field(String),
    Items,
    Values,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    pub(crate) fn then(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    pub(crate) fn field(&self, name: &str) -> Path {
        self.then(Step::Field(name.to_owned()))
    }

    pub(crate) fn is_status(&self) -> bool {
        matches!(self.0.first(), Some(Step::Field(name)) if name == "status")
    }

    /// Finds the value in a generated object, which has a single item or key on the path.
    pub(crate) fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            Step::Field(name) => value.get(name.as_str()),
            Step::Items => value.get(0),
            Step::Values => value.get(KEY),
        })
    }

    /// Checks if a field in the server's message is the value at this path or nested in it.
    pub(crate) fn covers(&self, field: &str) -> bool {
        let mut rest = field;
        for step in &self.0 {
            let found = match step {
                Step::Field(name) => strip_name(rest, name),
                Step::Items => strip_index(rest),
                Step::Values => strip_name(rest, KEY),
            };
            match found {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty() || rest.starts_with(['.', '[']) || self.0.is_empty()
    }
}

fn strip_name<'f>(field: &'f str, name: &str) -> Option<&'f str> {
    if let Some(rest) = field.strip_prefix('[') {
        return rest.strip_prefix(name)?.strip_prefix(']');
    }
    let rest = field.strip_prefix('.').unwrap_or(field).strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

fn strip_index(field: &str) -> Option<&str> {
    let (index, rest) = field.strip_prefix('[')?.split_once(']')?;
    index.parse::<usize>().ok().map(|_| rest)
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if index == 0 => formatter.write_str(name)?,
                Step::Field(name) => write!(formatter, ".{name}")?,
                Step::Items => formatter.write_str("[*]")?,
                Step::Values => formatter.write_str(".*")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_covers_fields_of_messages() {
        let ports = Path::default().field("spec").field("ports").then(Step::Items);
        let name = ports.field("name");
        assert_eq!(name.to_string(), "spec.ports[*].name");
        assert!(name.covers("spec.ports[3].name"));
        assert!(ports.covers("spec.ports[0].name"));
        assert!(!name.covers("spec.ports[0].names"));
        assert!(!name.covers("spec.ports"));
        let values = Path::default().field("map").then(Step::Values);
        assert!(values.covers("map.key.inner") && values.covers("map[key]"));
        assert!(!values.covers("map.other"));
        assert!(Path::default().covers("<nil>"));
    }
}
