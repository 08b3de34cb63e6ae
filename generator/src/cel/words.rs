//! What is said about calls that fit no function, and texts that are read with the rule.

/// What is wrong with the arguments of a call.
pub(super) fn mismatch(function: &str, member: bool, given: &[String]) -> (String, Option<String>) {
    let operator = function.trim_matches('_').trim_start_matches('@');
    let message = match (function, given) {
        ("_?_:_", [test, yes, no]) if test == "bool" => {
            return (
                format!("both outcomes of `?:` are of one type, and these are {yes} and {no}"),
                None,
            );
        }
        ("_?_:_", [test, ..]) => format!("`?:` asks for true or false, and this is {test}"),
        ("_[_]" | "_[?_]", [target, index]) => format!("{target} has no items to be had by {index}"),
        (_, [left, right]) if !member && is_operator(function) => {
            format!("`{operator}` cannot be used between {left} and {right}")
        }
        (_, [operand]) if is_operator(function) => format!("`{operator}` cannot be used on {operand}"),
        (_, [target, args @ ..]) if member => {
            format!(
                "`{function}` cannot be called on {target} with ({})",
                args.join(", ")
            )
        }
        (_, args) => format!("`{function}` cannot be called with ({})", args.join(", ")),
    };
    let help = match given {
        [left, right] if function.contains("==") || function.contains("!=") => {
            match (left.as_str(), right.as_str()) {
                ("int", "double") | ("double", "int") => {
                    Some("convert one of them: `double(…)`, `int(…)`".to_owned())
                }
                (_, "null") | ("null", _) => {
                    Some("ask whether the field is there: `has(self.field)`".to_owned())
                }
                ("object", "object") => {
                    Some("objects of two places cannot be compared: compare their fields".to_owned())
                }
                _ => None,
            }
        }
        _ => None,
    };
    (message, help)
}

fn is_operator(function: &str) -> bool {
    function == "@in"
        || function == "!_"
        || function.contains('_') && !function.contains(char::is_alphanumeric)
}

/// Whether Go reads a text as a duration: numbers with units, one after the other.
pub(super) fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let (number, tail) = rest.split_at(digits);
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"].iter().find(|unit| {
            tail.strip_prefix(**unit)
                .is_some_and(|after| !after.starts_with(char::is_alphabetic))
        });
        let Some(unit) = unit else { return false };
        if !number.contains(|c: char| c.is_ascii_digit()) {
            return false;
        }
        rest = &tail[unit.len()..];
        parts += 1;
    }
    parts > 0
}
