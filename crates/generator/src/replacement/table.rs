//! The messages and help texts that determine a replacement.

use super::edits::{
    add_argument, mark_function, move_argument, remove_allowed, remove_argument, remove_named, remove_value,
    rename_argument, replace_comment, replace_in_column, set_beside, set_operations, set_value, split_group,
    unquote, wrap_argument,
};
use super::row::{Row, misspelling, row};
use super::words::{
    keep_wildcard, remove_backquotes, remove_empty, remove_item, remove_repeated, replace_item,
    replace_plural, replace_subresource, replace_variable, replace_word,
};

/// The first row that yields a replacement wins.
pub(super) const ROWS: &[Row] = &[
    // Names in lists.
    misspelling("{}unknown {}`{old}`{}", "did you mean `{new}`?", replace_item),
    misspelling(
        "Kubernetes has no API group `{old}`",
        "did you mean `{new}`?",
        replace_item,
    ),
    row(
        "invalid API group `{old}`",
        "write `{new}`: roles apply to all versions",
        replace_item,
    ),
    misspelling("{} no resource `{old}`", "did you mean `{new}`?", replace_plural),
    misspelling(
        "none of these groups has a resource `{old}`",
        "did you mean `{new}`?",
        replace_plural,
    ),
    row(
        "{} resource `{old}`",
        "write `{new}`: rules need full names",
        replace_plural,
    ),
    row(
        "this group has no kind with the plural `{old}` in this project",
        "did you mean `{new}`?",
        replace_plural,
    ),
    misspelling(
        "`{plural}` has no subresource `{old}`",
        "did you mean `{new}`?",
        replace_subresource,
    ),
    row(
        "`{plural}` has no subresource `{old}`",
        "write `{new}`",
        replace_subresource,
    ),
    row(
        "invalid resource `{}`",
        "write `groups = \"{group}\", resources = \"{plural}\"`",
        split_group,
    ),
    row("invalid resource `{old}`", "write `{new}`", replace_item),
    row("invalid URL path `{old}`", "write `{new}`", replace_item),
    row(
        "verb `{old}` does not apply to resources",
        "write `{new}`",
        replace_item,
    ),
    row(
        "unknown AdmissionReview version `{old}`",
        "write `{new}`",
        replace_item,
    ),
    row(
        "`{old}` is read as a single word",
        "separate words by `;`: `{} = \"{new}\"`",
        replace_item,
    ),
    row("empty item in `{}`", "remove it", remove_empty),
    row(
        "`*` already matches every operation",
        "remove the other operations",
        keep_wildcard,
    ),
    row("`*` already matches all {}", "remove the others", keep_wildcard),
    row("`{}` already matches `{old}`", "remove `{old}`", remove_item),
    row("duplicate operation `{old}`", "", remove_repeated),
    row("duplicate version `{old}`", "", remove_repeated),
    row("duplicate key `{old}`", "", remove_repeated),
    row("duplicate `{old}` in `{}`", "", remove_repeated),
    // Other names.
    misspelling(
        "printer column `{}` will be empty: unknown field `{old}`",
        "did you mean `{new}`?",
        replace_in_column,
    ),
    misspelling("{}unknown {}`{old}`{}", "did you mean `{new}`?", replace_word),
    misspelling("cannot find type `{old}`", "did you mean `{new}`?", replace_word),
    misspelling(
        "list map key `{old}` is not a field of the items",
        "did you mean `{new}`?",
        replace_word,
    ),
    row(
        "unknown key `{old}` of a kind",
        "use `{new} = \"…\"`",
        replace_word,
    ),
    row("unknown variable `{old}`{}", "write `{new}`", replace_variable),
    row("unknown field `{old}`{}", "write `{new}`", replace_word),
    row(
        "older API servers accept the field `{old}` as {}",
        "write `{new}`",
        replace_word,
    ),
    row(
        "older API servers accept no names in backquotes{}",
        "write `{new}`",
        remove_backquotes,
    ),
    row(
        "`{old}` applies to {}; this field is {}",
        "write `{new}`",
        rename_argument,
    ),
    row("`{old}` is not a valid JSON path", "write `{new}`", replace_word),
    row(
        "invalid field path `{old}`{}",
        "write `{new}`, a path relative to {}",
        replace_word,
    ),
    row(
        "invalid field path `{old}`{}",
        "write `{new}`: the path is relative to {}",
        replace_word,
    ),
    row(
        "expected a path that begins with `/`, found `{old}`",
        "write `{new}`",
        replace_word,
    ),
    // Values.
    row(
        "the webhook is never called for `{}`, which has other operations",
        "write `{name} = \"{value}\"`",
        set_operations,
    ),
    row(
        "printer column `{}` has type {}",
        "write `{name} = \"{value}\"`: {}",
        set_value,
    ),
    row("{} no resource `{}`", "write `{name} = \"{value}\"`", set_beside),
    row(
        "the kind with the plural `{}` is in another group of this project",
        "write `{name} = \"{value}\"`",
        set_beside,
    ),
    row(
        "expected {} for `{}`, found `{found}`",
        "write `{} = {value}`",
        unquote,
    ),
    row("`{}` takes no value", "write `{new}`", remove_value),
    // Arguments.
    row(
        "{}unknown {}`{}`{}",
        "did you mean `{outer}({new} = …)`?",
        wrap_argument,
    ),
    row("{}unknown {}`{}`{}", "write `{outer}({new} = …)`", wrap_argument),
    row(
        "{}unknown {}`{}`{}",
        "write `#[{attribute}({}…)]`: {}",
        move_argument,
    ),
    row(
        "`list_map_keys` requires a list of type `map`",
        "add `{new}`",
        add_argument,
    ),
    row("an embedded resource needs {}", "add `{new}`", add_argument),
    row(
        "serde can skip this field when serializing {}",
        "add `{new}` to `#[serde(…)]`",
        add_argument,
    ),
    row("{}", "remove `{name}`", remove_named),
    row(
        "{}",
        "remove `{name}`: only a ClusterRole can grant access to {}",
        remove_named,
    ),
    row(
        "invalid object name `*`",
        "remove `{name}` to match every object",
        remove_named,
    ),
    row(
        "fields of `metadata` cannot be made selectable",
        "remove it: {}",
        remove_argument,
    ),
    row("unknown argument {}", "remove it: {}", remove_argument),
    row("{}", "remove it: it has no effect", remove_argument),
    row(
        "there is no warning `{}` to allow here",
        "remove it",
        remove_allowed,
    ),
    // Markers.
    row(
        "the role does not allow {}",
        "add `{new}` to the function",
        mark_function,
    ),
    row(
        "`{}` is a kubebuilder marker, which has no effect in Rust",
        "write `{new}`",
        replace_comment,
    ),
];
