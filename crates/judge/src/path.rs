//! Field paths in messages, e.g. `spec.ports[0].name`.

use std::fmt;

/// A field path, like apimachinery's `field.Path`. The empty path refers to the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn root() -> Path {
        Path::default()
    }

    pub(crate) fn child(&self, name: &str) -> Path {
        match self.0.is_empty() {
            true => Path(name.to_owned()),
            false => Path(format!("{}.{name}", self.0)),
        }
    }

    pub(crate) fn key(&self, key: &str) -> Path {
        Path(format!("{}[{key}]", self.0))
    }

    pub(crate) fn index(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Path {
    /// A nil pointer in Go, and formatted as such.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}
