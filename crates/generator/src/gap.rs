//! Parts of the source whose items are unknown: text after a syntax error, macros, files generated
//! by a build, and imports under a `cfg` that cannot be evaluated.
//!
//! Nothing is omitted silently, even if other kinds are generated in spite of an error. A name that
//! a gap may declare is not looked up elsewhere, and a kind is not generated if a gap may declare
//! one of its versions.

use crate::place::FileId;

/// The index of a [`Gap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GapId(pub(crate) usize);

/// A part of the source whose items are unknown.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) file: FileId,
    pub(crate) sort: GapSort,
    /// The source text.
    pub(crate) text: Box<str>,
    /// Whether the text contains `derive(CustomResource)`.
    pub(crate) hides_kind: bool,
    /// The error about this gap. It applies to everything that needs one of its items.
    pub(crate) reason: rbuilder_syntax::Diagnostic,
}

/// The cause of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapSort {
    /// Text after a syntax error. Item names in it are reliable.
    Unread,
    /// A macro call, or an item that an attribute macro may change. Any word may be the name of an
    /// item.
    Macro,
    /// A kind with unparsable attributes. `text` is the raw attribute list, which contains the type
    /// name.
    Kind,
    /// Imports under a `cfg` that cannot be evaluated. `text` contains the imported names.
    Undecided,
    /// A file that a build generates. Its contents are unknown.
    Built,
}

impl Gap {
    /// Creates the gap for a file that a build generates.
    pub(crate) fn of_build(file: FileId, reason: rbuilder_syntax::Diagnostic) -> Gap {
        Gap {
            file,
            sort: GapSort::Built,
            text: "".into(),
            hides_kind: false,
            reason,
        }
    }

    /// Returns whether the gap may declare or import an item with this name.
    pub(crate) fn may_declare(&self, name: &str) -> bool {
        match self.sort {
            GapSort::Unread => declares(&self.text, name),
            GapSort::Macro | GapSort::Undecided | GapSort::Kind => has_word(&self.text, name),
            GapSort::Built => true,
        }
    }

    /// Returns whether the gap may implement one of serde's traits or `JsonSchema` for a type.
    pub(crate) fn may_implement_for(&self, name: &str) -> bool {
        self.sort == GapSort::Unread
            && has_word(&self.text, "impl")
            && ["Serialize", "Deserialize", "JsonSchema"]
                .iter()
                .any(|of_trait| has_word(&self.text, of_trait))
            && has_word(&self.text, name)
    }

    /// Returns whether the gap mentions a kind.
    pub(crate) fn mentions(&self, kind: &str) -> bool {
        has_word(&self.text, kind)
    }
}

/// Returns the words of a text: names, keywords and numbers.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

fn has_word(text: &str, name: &str) -> bool {
    words(text).any(|word| word == name)
}

/// Returns whether a text declares or imports a name, either with an item keyword or `use`, or as a
/// type that kube generates (`kind = "Foo"`).
fn declares(text: &str, name: &str) -> bool {
    const KEYWORDS: [&str; 10] = [
        "struct", "enum", "union", "type", "trait", "mod", "fn", "const", "static", "kind",
    ];
    let mut before = "";
    for word in words(text) {
        if word == name && KEYWORDS.contains(&before) {
            return true;
        }
        before = word;
    }
    text.split(';')
        .filter_map(|statement| statement.split_once("use ").map(|(_, tree)| tree))
        .any(|tree| has_word(tree, name) || tree.contains('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_declared_and_imported_names() {
        let text = "pub struct Foo { bar: Bar }\nuse a::{Baz as Qux, b};\nfn make() -> Quux { todo!() ";
        for (name, expected) in [
            ("Foo", true),
            ("Bar", false),
            ("Qux", true),
            ("b", true),
            ("make", true),
            ("Quux", false),
        ] {
            assert_eq!(declares(text, name), expected, "{name}");
        }
        assert!(declares("use a::*; )", "Anything"));
        assert!(declares("#[kube(kind = \"Foo\")] struct FooSpec ", "Foo"));
    }
}
