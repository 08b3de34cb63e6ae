//! JSON paths of printer columns, as far as they lead to a schema.

use rbuilder_kubernetes::json_path;

/// A step of a path, down into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.name`, after resolving escapes.
    Field(String),
    /// `[0]`, `[1:3]` or `[?(@.type=="Ready")]`, i.e. some items of a list.
    Elements,
    /// `.*`, `[*]`, `..name` or `['a','b']`. These values have no schema in common.
    Any,
}

/// Parses the path of a printer column.
///
/// # Errors
///
/// If the API server cannot parse the path, or could never find a value with it, returns a phrase
/// that describes what was expected.
pub(crate) fn parse_json_path(path: &str) -> Result<Vec<Step>, String> {
    if !path.starts_with('.') {
        return Err("it must begin with a dot".into());
    }
    let steps = json_path::parse(path)?;
    match json_path::find_never(&steps) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(steps.into_iter().map(Step::from).collect()),
    }
}

impl From<json_path::Step> for Step {
    fn from(step: json_path::Step) -> Self {
        match step {
            json_path::Step::Field(name) => Step::Field(name),
            json_path::Step::Slice(slice) if slice != json_path::Slice::ALL => Step::Elements,
            json_path::Step::Filter(_) => Step::Elements,
            _ => Step::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_valid_paths() {
        let field = |name: &str| Step::Field(name.into());
        for (path, steps) in [
            (".spec.size", vec![field("spec"), field("size")]),
            (r".a\.b/c", vec![field("a.b/c")]),
            (".a['b']", vec![field("a"), field("b")]),
            // The package splits the key, as does `kubectl get -o jsonpath`.
            (".a['b.c']", vec![field("a"), field("b"), field("c")]),
            (r".a['b\.c']", vec![field("a"), field("b.c")]),
            (".a[0]", vec![field("a"), Step::Elements]),
            (".a[-1:].b", vec![field("a"), Step::Elements, field("b")]),
            (".a[*].b", vec![field("a"), Step::Any, field("b")]),
            (".a[0,1]", vec![field("a"), Step::Any]),
            (".a.*", vec![field("a"), Step::Any]),
            ("..a", vec![Step::Any, field("a")]),
            (
                r#".a[?(@.type=="Ready)]")].b"#,
                vec![field("a"), Step::Elements, field("b")],
            ),
            (".a[?(@.b)]", vec![field("a"), Step::Elements]),
            (".", vec![field("")]),
        ] {
            assert_eq!(parse_json_path(path), Ok(steps), "{path}");
        }
    }

    #[test]
    fn rejects_invalid_paths() {
        for (path, reason) in [
            ("spec", "it must begin with a dot"),
            ("", "it must begin with a dot"),
            (".a b", "expected `.` or `[`, found ` `"),
            (".a{b}", "found `{`"),
            (".a]", "found `]`"),
            (".a,b", "found `,`"),
            (".a[0", "`[` is not closed"),
            (".a[b]", "found `b`"),
            (".a[\"b\"]", "found `\"b\"`"),
            (".a[1:2:3:4]", "found `1:2:3:4`"),
            (".a[99999999999999999999]", "expected an index"),
            ("....a", "expected a name after `..`"),
            (".a[?(@.b==1)", "expected `]` after the filter"),
            (".a[?(@.b==1", "is not closed by `)]`"),
            (".a[?(@.type=\"Ready\")]", "unknown operator `=`"),
            (".a[?(@.type==Ready)]", "found `Ready`"),
            (".a[?(type==\"Ready\")]", "found `type`"),
        ] {
            let found = parse_json_path(path).expect_err(path);
            assert!(found.contains(reason), "{path}: {found}");
        }
    }
}
