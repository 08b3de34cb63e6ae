//! Lists of words: either a string in kubebuilder's syntax, or a Rust array.

use crate::Session;
use crate::args::{Arg, ReadArg as _};

/// Reads a list of words: either `"a;b"` or `["a", "b"]`.
pub(crate) fn read_words(arg: &Arg<'_>, session: &mut Session) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut is_right = true;
    for text in arg.texts(session)? {
        let parts: Vec<&str> = text.split(';').map(str::trim).collect();
        // The empty string is the core group, so only an item of `groups` may be empty. Next to a
        // `;`, it is more likely a typo that would grant unintended access.
        let may_be_empty = arg.name == "groups" && parts.len() == 1;
        is_right &= may_be_empty || parts.iter().all(|part| !part.is_empty());
        words.extend(parts.into_iter().map(str::to_owned));
    }
    if !is_right {
        let help = match arg.name == "groups" {
            true => "write `core` for the core group, or remove the `;`",
            false => "remove it",
        };
        session.error_help(arg.value_span(), format!("empty item in `{}`", arg.name), help);
    }
    is_right &= check_separators(&words, arg, session);
    is_right.then_some(words)
}

/// Reports a list item that contains a separator, such as `"get,list"`: the user meant two items.
/// URLs and resource names may contain separators.
fn check_separators(words: &[String], arg: &Arg<'_>, session: &mut Session) -> bool {
    const FREE: &[&str] = &["urls", "resource_names"];
    let is_separator = |byte: &u8| matches!(byte, b',' | b' ' | b'\t' | b'\n');
    let is_several = |word: &&String| word.as_bytes().iter().any(&is_separator);
    let Some(several) = words
        .iter()
        .find(is_several)
        .filter(|_| !FREE.contains(&arg.name))
    else {
        return true;
    };
    let parts: Vec<&str> = several
        .split(|letter| u8::try_from(letter).is_ok_and(|byte| is_separator(&byte)))
        .filter(|part| !part.is_empty())
        .collect();
    session.error_help(
        arg.value_span(),
        format!("`{several}` is read as a single word"),
        format!("separate words by `;`: `{} = \"{}\"`", arg.name, parts.join(";")),
    );
    false
}
