//! JSON paths of printer columns, parsed like Kubernetes' `jsonpath` package.
//!
//! If the package cannot parse a path, the API server drops this column and all columns after it.
//! When a CRD is created, the API server only checks that the path starts with a dot.

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

const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

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
    parse_steps(path)
}

fn parse_steps(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        rest = if let Some(after) = rest.strip_prefix("..") {
            if after.starts_with("..") {
                return Err("expected a name after `..`".into());
            }
            // `..` searches at every depth.
            steps.push(Step::Any);
            let field = after.starts_with(|c: char| c == '_' || c.is_alphanumeric());
            if field { parse_field(after).1 } else { after }
        } else if let Some(after) = rest.strip_prefix("[?(") {
            steps.push(Step::Elements);
            parse_filter(after)?
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after
                .split_once(']')
                .filter(|(inside, _)| !inside.contains('\n'))
                .ok_or("`[` is not closed")?;
            parse_brackets(inside, &mut steps)?;
            after
        } else if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = parse_field(after);
            steps.push(if name == "*" { Step::Any } else { Step::Field(name) });
            after
        } else if matches!(first, '$' | '@') {
            // `$` and `@` are the root and the current object.
            &rest[1..]
        } else {
            return Err(format!("expected `.` or `[`, found `{first}`"));
        };
    }
    Ok(steps)
}

/// Returns the name of a field and the rest of the path. A backslash escapes the next character.
fn parse_field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' => name.extend(signs.next().map(|(_, escaped)| escaped)),
            ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => {
                return (name, &text[at..]);
            }
            _ => name.push(sign),
        }
    }
    (name, "")
}

fn parse_brackets(inside: &str, steps: &mut Vec<Step>) -> Result<(), String> {
    if inside.contains(',') {
        for part in inside.split(',') {
            parse_brackets(part.trim_matches(' '), &mut Vec::new())?;
        }
        steps.push(Step::Any);
    } else if inside == "*" {
        steps.push(Step::Any);
    } else if let Some(key) = quoted_key(inside) {
        // The package parses the key as a path, so dots in the key separate fields.
        steps.extend(parse_steps(&format!(".{key}"))?);
    } else if is_slice(inside) {
        steps.push(Step::Elements);
    } else {
        return Err(format!(
            "expected an index, a slice, `*`, a filter or a key in single quotes in the brackets, found `{inside}`"
        ));
    }
    Ok(())
}

fn quoted_key(inside: &str) -> Option<&str> {
    let key = inside.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

/// Matches an index or a slice: up to three integers separated by colons, all of them optional.
fn is_slice(inside: &str) -> bool {
    let is_index = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (part.is_empty() || part.parse::<i64>().is_ok())
    };
    inside.split(':').count() <= 3 && inside.split(':').all(is_index)
}

/// Parses a filter after its `[?(`, and returns the rest of the path.
fn parse_filter(text: &str) -> Result<&str, String> {
    let mut quote = None;
    let mut before = '\0';
    for (at, sign) in text.char_indices() {
        match (sign, quote) {
            ('"' | '\'', None) => quote = Some(sign),
            (_, Some(open)) if sign == open && before != '\\' => quote = None,
            (')', None) => {
                check_filter(&text[..at])?;
                return text[at + 1..]
                    .strip_prefix(']')
                    .ok_or_else(|| "expected `]` after the filter".into());
            }
            _ => {}
        }
        before = sign;
    }
    Err("the filter is not closed by `)]`".into())
}

fn check_filter(inside: &str) -> Result<(), String> {
    let is_comparison = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let Some(at) = inside.find(is_comparison) else {
        return check_operand(inside);
    };
    let (left, rest) = inside.split_at(at);
    let right = rest.trim_start_matches(is_comparison);
    let operator = &rest[..rest.len() - right.len()];
    if !OPERATORS.contains(&operator) {
        return Err(format!("unknown operator `{operator}` in a filter; write `==`"));
    }
    check_operand(left)?;
    check_operand(right)
}

fn check_operand(text: &str) -> Result<(), String> {
    let text = text.trim_matches(' ');
    let is_quoted = |quote: char| text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote);
    if is_quoted('"') || is_quoted('\'') || text.parse::<f64>().is_ok() || matches!(text, "true" | "false") {
        return Ok(());
    }
    if text.starts_with(['@', '$', '.', '[']) {
        return parse_steps(text).map(drop);
    }
    Err(format!(
        "expected a path, a number or a string in quotes in the filter, found `{text}`"
    ))
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
            ("..a", vec![Step::Any]),
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
