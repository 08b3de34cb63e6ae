//! JSON paths of printer columns, as Kubernetes' package `jsonpath` parses and evaluates them.
//!
//! If the package cannot parse a path, the API server drops this column and all columns after it.
//! When a CRD is created, the API server only checks that the path starts with a dot.

use std::cmp::Ordering;

use serde_json::Value;

/// A step of a path, down into a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `.name`, after resolving escapes.
    Field(String),
    /// `[0]`, `[1:3]` or `[*]`: some items of a list.
    Slice(Slice),
    /// `[?(@.type=="Ready")]`: the items of a list for which a comparison holds.
    Filter(Box<Filter>),
    /// `.*`: the members of an object or the items of a list.
    Wildcard,
    /// `..`: the value, and all objects and lists in it.
    Recursive,
    /// `[0,1]`: the results of several paths.
    Union(Vec<Vec<Step>>),
    /// A string, number or boolean.
    Literal(Value),
    /// The package parses this, but never finds a value with it. Contains a phrase that describes
    /// what was expected.
    Never(String),
}

/// The bounds of a slice, which count from the end if they are negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first item.
    pub start: Option<i64>,
    /// The item after the last one.
    pub end: Option<i64>,
    /// The distance of the items.
    pub step: Option<i64>,
    /// Whether the slice is one item, as in `[0]`.
    pub is_index: bool,
}

/// A comparison of two paths from each item of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The value on the left.
    pub left: Vec<Step>,
    /// The operator and the value on the right. `None` if the value on the left only has to exist.
    pub comparison: Option<(Operator, Vec<Step>)>,
}

/// The operator of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Slice {
    /// `[*]` and `[:]`.
    pub const ALL: Slice = Slice {
        start: None,
        end: None,
        step: None,
        is_index: false,
    };
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Operator::Equal => ordering.is_eq(),
            Operator::NotEqual => ordering.is_ne(),
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            Operator::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// How many values a step may find. Only a path with several `..` finds more values than there are.
const MAX_RESULTS: usize = 100_000;

/// Parses a path without braces, e.g. `.status.conditions[?(@.type=="Ready")].status`.
///
/// # Errors
///
/// If the package cannot parse the path, returns a phrase that describes what was expected. So does a
/// path with a `}`, which would end it early, because the server writes braces around it.
pub fn parse(path: &str) -> Result<Vec<Step>, String> {
    parse_steps(path, false)
}

fn parse_steps(path: &str, is_operand: bool) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        rest = if let Some(after) = rest.strip_prefix("..") {
            if after.starts_with("..") {
                return Err("expected a name after `..`".into());
            }
            steps.push(Step::Recursive);
            match after.chars().next() {
                Some(next) if is_word(next) => push_field(after, &mut steps),
                _ => after,
            }
        } else if let Some(after) = rest.strip_prefix("[?(") {
            parse_filter(after, &mut steps)?
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after
                .split_once(']')
                .filter(|(inside, _)| !inside.contains('\n'))
                .ok_or("`[` is not closed")?;
            parse_brackets(inside, &mut steps)?;
            after
        } else if let Some(after) = rest.strip_prefix('.') {
            push_field(after, &mut steps)
        } else if matches!(first, '$' | '@' | ' ') {
            // `$` and `@` are the root and the current object. Spaces are skipped.
            if first == ' ' && !is_operand && rest.trim_start().starts_with(is_word) {
                steps.push(Step::Never("expected `.` or `[`, found ` `".into()));
            }
            &rest[1..]
        } else if matches!(first, '"' | '\'') {
            let (text, after) = quoted(rest).ok_or("the quoted string is not closed")?;
            steps.push(Step::Literal(text.into()));
            after
        } else if first.is_ascii_digit() || matches!(first, '+' | '-') {
            let after = rest[1..].trim_start_matches(|sign: char| sign == '.' || sign.is_numeric());
            steps.push(Step::Literal(number(&rest[..rest.len() - after.len()])?));
            after
        } else if is_word(first) {
            let word = rest.split(is_terminator).next().unwrap_or_default();
            steps.push(match word {
                "true" | "false" => Step::Literal((word == "true").into()),
                _ if is_operand => Step::Never(format!(
                    "expected a path, a number or a string in quotes in the filter, found `{word}`"
                )),
                _ => Step::Never(format!("expected `.` or `[`, found `{first}`")),
            });
            &rest[word.len()..]
        } else {
            return Err(format!("expected `.` or `[`, found `{first}`"));
        };
    }
    Ok(steps)
}

fn is_word(sign: char) -> bool {
    sign == '_' || sign.is_alphanumeric()
}

fn is_terminator(sign: char) -> bool {
    matches!(
        sign,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn push_field<'t>(text: &'t str, steps: &mut Vec<Step>) -> &'t str {
    let (name, after) = parse_field(text);
    steps.push(if name == "*" {
        Step::Wildcard
    } else {
        Step::Field(name)
    });
    after
}

/// Returns the name of a field and the rest of the path. A backslash escapes the next character.
fn parse_field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' => name.extend(signs.next().map(|(_, escaped)| escaped)),
            sign if is_terminator(sign) => return (name, &text[at..]),
            _ => name.push(sign),
        }
    }
    (name, "")
}

/// Returns the string at the start of the text, and the rest. A backslash escapes the next character.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut signs = text.char_indices();
    let (_, quote) = signs.next()?;
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\n' => return None,
            '\\' => value.push(match signs.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                sign => sign,
            }),
            sign if sign == quote => return Some((value, &text[at + 1..])),
            sign => value.push(sign),
        }
    }
    None
}

fn number(text: &str) -> Result<Value, String> {
    let whole = text
        .strip_prefix('+')
        .unwrap_or(text)
        .parse::<i64>()
        .map(Value::from);
    let float = |_| text.parse::<f64>().map(Value::from);
    whole
        .or_else(float)
        .map_err(|_| format!("expected a number, found `{text}`"))
}

fn parse_brackets(inside: &str, steps: &mut Vec<Step>) -> Result<(), String> {
    if inside.contains(',') {
        let parse_part = |part: &str| {
            let mut steps = Vec::new();
            parse_brackets(part.trim_matches(' '), &mut steps).map(|()| steps)
        };
        steps.push(Step::Union(
            inside.split(',').map(parse_part).collect::<Result<_, _>>()?,
        ));
    } else if let Some(key) = quoted_key(inside) {
        // The package parses the key as a path, so dots in the key separate fields.
        steps.extend(parse(&format!(".{key}"))?);
    } else if let Some(slice) = parse_slice(if inside == "*" { ":" } else { inside }) {
        steps.push(Step::Slice(slice));
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

/// Parses an index or a slice: up to three integers separated by colons, all of them optional.
fn parse_slice(inside: &str) -> Option<Slice> {
    let mut parts = [None; 3];
    let count = inside.split(':').count();
    if count > 3 {
        return None;
    }
    for (part, text) in parts.iter_mut().zip(inside.split(':')) {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *part = match text {
            "" => None,
            text => Some(text.parse().ok()?),
        };
    }
    let [start, end, step] = parts;
    Some(Slice {
        start,
        end,
        step,
        is_index: count == 1,
    })
}

/// Parses a filter after its `[?(`, and returns the rest of the path.
fn parse_filter<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, String> {
    let mut quote = None;
    let mut before = '\0';
    for (at, sign) in text.char_indices() {
        match (sign, quote) {
            ('"' | '\'', None) => quote = Some(sign),
            (_, Some(open)) if sign == open && before != '\\' => quote = None,
            (')', None) => {
                parse_comparison(&text[..at], steps)?;
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

fn parse_comparison(inside: &str, steps: &mut Vec<Step>) -> Result<(), String> {
    let is_comparison = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let Some(at) = inside.find(is_comparison) else {
        let left = parse_steps(inside, true)?;
        steps.push(Step::Filter(Box::new(Filter {
            left,
            comparison: None,
        })));
        return Ok(());
    };
    let (left, rest) = inside.split_at(at);
    let right = rest.trim_start_matches(is_comparison);
    let operator = &rest[..rest.len() - right.len()];
    if left.is_empty() || right.is_empty() {
        return Err(format!("expected a value on both sides of `{operator}`"));
    }
    let (left, right) = (parse_steps(left, true)?, parse_steps(right, true)?);
    steps.push(match Operator::parse(operator) {
        Some(operator) => Step::Filter(Box::new(Filter {
            left,
            comparison: Some((operator, right)),
        })),
        None => Step::Never(format!("unknown operator `{operator}` in a filter; write `==`")),
    });
    Ok(())
}

/// Returns the first phrase of a [`Step::Never`] in a path.
pub fn find_never(steps: &[Step]) -> Option<&str> {
    steps.iter().find_map(|step| match step {
        Step::Never(reason) => Some(&**reason),
        Step::Union(paths) => paths.iter().find_map(|path| find_never(path)),
        Step::Filter(filter) => {
            let right = filter.comparison.as_ref().map_or(&[][..], |(_, right)| right);
            find_never(&filter.left).or_else(|| find_never(right))
        }
        _ => None,
    })
}

/// Evaluates a path. A missing field has no result.
///
/// Where the order of the package is random, that of members of objects, this one sorts by name.
///
/// # Errors
///
/// Like the package: if an index is out of bounds, if brackets follow something that is not a list,
/// or if a filter compares values of different types. Also if a path with several `..` has a huge
/// number of results.
pub fn find<'v>(steps: &'v [Step], value: &'v Value) -> Result<Vec<&'v Value>, NoResult> {
    walk(steps, vec![value])
}

/// The evaluation of a path has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoResult;

fn walk<'v>(steps: &'v [Step], mut values: Vec<&'v Value>) -> Result<Vec<&'v Value>, NoResult> {
    for step in steps {
        values = match step {
            Step::Field(name) => values
                .iter()
                .filter_map(|value| value.as_object()?.get(name))
                .collect(),
            Step::Slice(slice) => slice_items(*slice, &values)?,
            Step::Filter(filter) => filter_items(filter, &values)?,
            Step::Wildcard => values.iter().flat_map(|value| members(value)).collect(),
            Step::Recursive => {
                let mut found = Vec::new();
                for value in values {
                    descend(value, &mut found)?;
                }
                found
            }
            Step::Union(paths) => {
                let found = paths.iter().map(|path| walk(path, values.clone()));
                found.collect::<Result<Vec<_>, _>>()?.concat()
            }
            Step::Literal(literal) => vec![literal; values.len()],
            Step::Never(_) => return Err(NoResult),
        };
        if values.len() > MAX_RESULTS {
            return Err(NoResult);
        }
    }
    Ok(values)
}

fn members(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            fields.into_iter().map(|(_, value)| value).collect()
        }
        _ => Vec::new(),
    }
}

/// Appends a value that has members, and all such values in it.
fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>) -> Result<(), NoResult> {
    let members = members(value);
    if !members.is_empty() {
        found.push(value);
    }
    if found.len() > MAX_RESULTS {
        return Err(NoResult);
    }
    members.into_iter().try_for_each(|member| descend(member, found))
}

fn slice_items<'v>(slice: Slice, values: &[&'v Value]) -> Result<Vec<&'v Value>, NoResult> {
    let mut found = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let items = value.as_array().ok_or(NoResult)?;
        let length = i64::try_from(items.len()).map_err(|_| NoResult)?;
        let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
        let start = from_end(slice.start.unwrap_or(0));
        let end = match slice.end {
            // The item before the first one of `[-1]` is the last one.
            None if slice.is_index => match slice.start.unwrap_or(0).saturating_add(1) {
                0 => length,
                end => from_end(end),
            },
            None => length,
            Some(end) => from_end(end),
        };
        if start == end {
            return Ok(found);
        }
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let (start, end) = range
            .filter(|(start, end)| start < &items.len() && start <= end)
            .ok_or(NoResult)?;
        let step = match slice.step {
            Some(step) => usize::try_from(step)
                .ok()
                .filter(|step| *step > 0)
                .ok_or(NoResult)?,
            None => 1,
        };
        found.extend(items.get(start..end).ok_or(NoResult)?.iter().step_by(step));
    }
    Ok(found)
}

fn filter_items<'v>(filter: &'v Filter, values: &[&'v Value]) -> Result<Vec<&'v Value>, NoResult> {
    let mut found = Vec::new();
    for value in values {
        for item in value.as_array().ok_or(NoResult)? {
            let left = walk(&filter.left, vec![item]);
            let Some((operator, right)) = &filter.comparison else {
                // The package overlooks errors here.
                if left.is_ok_and(|left| left.is_empty()) {
                    continue;
                }
                found.push(item);
                continue;
            };
            let left = match left?[..] {
                [] => continue,
                [left] => left,
                _ => return Err(NoResult),
            };
            let right = match walk(right, vec![item])?[..] {
                [] => continue,
                [right] => right,
                _ => return Err(NoResult),
            };
            if compare(left, right, *operator)? {
                found.push(item);
            }
        }
    }
    Ok(found)
}

/// Go compares integers with integers only, and has no order of booleans.
fn compare(left: &Value, right: &Value, operator: Operator) -> Result<bool, NoResult> {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right))
            if matches!(operator, Operator::Equal | Operator::NotEqual) =>
        {
            left.cmp(right)
        }
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (None, None) => {
                let floats = left.as_f64().zip(right.as_f64());
                floats
                    .and_then(|(left, right)| left.partial_cmp(&right))
                    .ok_or(NoResult)?
            }
            _ => return Err(NoResult),
        },
        _ => return Err(NoResult),
    };
    Ok(operator.holds(ordering))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_the_package_finds() {
        let object = json!({
            "spec": { "size": 3, "a.b/c": 1, "ratio": 0.5, "none": null },
            "list": [{ "type": "A", "n": 1 }, { "type": "B", "n": 2 }, { "type": "C" }],
        });
        let check = |path: &str, expected: Option<Value>| {
            let steps = parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let found = find(&steps, &object).ok();
            let found = found.map(|values| Value::Array(values.into_iter().cloned().collect()));
            assert_eq!(found, expected, "{path}");
        };
        check(".spec.size", Some(json!([3])));
        check(r".spec.a\.b/c", Some(json!([1])));
        check(r".spec['a\.b/c']", Some(json!([1])));
        check(".spec.none", Some(json!([null])));
        check(".spec.none.x", Some(json!([])));
        check(".spec.other.x", Some(json!([])));
        check(".spec.size.x", Some(json!([])));
        check(".list[0].type", Some(json!(["A"])));
        check(".list[-1].type", Some(json!(["C"])));
        check(".list[-2:].type", Some(json!(["B", "C"])));
        check(".list[0:3:2].type", Some(json!(["A", "C"])));
        check(".list[*].n", Some(json!([1, 2])));
        check(".list[0,2].type", Some(json!(["A", "C"])));
        check(".list[3].type", None);
        check(".list[1:1].type", Some(json!([])));
        check(".list[2:1].type", None);
        check(".list[::0].type", None);
        check(".spec[0]", None);
        check(".list.*.type", Some(json!(["A", "B", "C"])));
        check("..type", Some(json!(["A", "B", "C"])));
        check(r#".list[?(@.type=="B")].n"#, Some(json!([2])));
        check(r#".list[?(@.type!="B")].type"#, Some(json!(["A", "C"])));
        check(".list[?(@.n)].type", Some(json!(["A", "B"])));
        check(".list[?(@.n>=2)].type", Some(json!(["B"])));
        check(".list[?(@.n>1.5)].type", None);
        check(".list[?(@.type==1)].type", None);
        check(".list[?(@.type==Ready)]", None);
        check(".list[?(@.type=\"A\")]", None);
        check(".spec[?(@.a==1)]", None);
        check(".spec size", None);
        check(".spec.size ", Some(json!([3])));
    }

    #[test]
    fn several_searches_at_every_depth_end() {
        let mut object = json!({ "a": 1 });
        for _ in 0..100 {
            object = json!({ "a": object, "b": [1, 2] });
        }
        let steps = parse("..a..a..a..a..a").unwrap();
        assert_eq!(find(&steps, &object), Err(NoResult));
    }
}
