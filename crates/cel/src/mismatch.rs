//! Error messages for calls whose argument types don't match any overload.

pub(crate) fn describe_mismatch(function: &str, member: bool, given: &[String]) -> (String, Option<String>) {
    let operator = function.trim_matches('_').trim_start_matches('@');
    let message = match (function, given) {
        ("_?_:_", [test, yes, no]) if test == "bool" => {
            return (
                format!("both branches of `?:` must have the same type, found {yes} and {no}"),
                None,
            );
        }
        ("_?_:_", [test, ..]) => format!("the condition of `?:` must be bool, found {test}"),
        ("_[_]" | "_[?_]", [target, index]) => format!("type {target} cannot be indexed with {index}"),
        (_, [left, right]) if !member && is_operator(function) => {
            format!("operator `{operator}` does not apply to {left} and {right}")
        }
        (_, [operand]) if is_operator(function) => {
            format!("operator `{operator}` does not apply to {operand}")
        }
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
            advise_comparison(left.as_str(), right.as_str())
        }
        _ => None,
    };
    (message, help.map(str::to_owned))
}

fn advise_comparison(left: &str, right: &str) -> Option<&'static str> {
    match (left, right) {
        ("int", "double") | ("double", "int") => Some("convert one of them: `double(…)`, `int(…)`"),
        (_, "null") | ("null", _) => Some("test for the presence of the field: `has(self.field)`"),
        ("object", "object") => {
            Some("compare the fields: objects with different schemas have different types")
        }
        _ => None,
    }
}

fn is_operator(function: &str) -> bool {
    function == "@in"
        || function == "!_"
        || function.contains('_') && !function.contains(char::is_alphanumeric)
}
