//! Field paths in messages, such as `spec.ports[0].name`.

use std::fmt;

/// A field path, like `field.Path` in apimachinery. The empty path refers to the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    /// The path of the object itself.
    pub(crate) fn root() -> Path {
        Path::default()
    }

    /// Returns the path of a field.
    pub(crate) fn child(&self, name: &str) -> Path {
        match self.0.is_empty() {
            true => Path(name.to_owned()),
            false => Path(format!("{}.{name}", self.0)),
        }
    }

    /// Returns the path of a map entry.
    pub(crate) fn key(&self, key: &str) -> Path {
        Path(format!("{}[{key}]", self.0))
    }

    /// Returns the path of a list item.
    pub(crate) fn index(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Path {
    /// Go prints the empty path as a nil pointer.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}
