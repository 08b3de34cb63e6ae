//! `include!`: items from another file in the middle of a module.

use rbuilder_reader::grammar::Macro;
use rbuilder_reader::token::{Cursor, Delimiter, LiteralKind, text_value};

use super::path;

pub(super) enum Included {
    Path(String),
    /// A file in `OUT_DIR`, which does not exist before the first build.
    Built,
    /// Can't be determined without running the compiler.
    Unknown,
}

pub(super) fn is_include(mac: &Macro<'_>) -> bool {
    matches!(mac.path.as_slice(), ["include"] | ["std" | "core", "include"])
}

/// Evaluates the argument. Supports literals, `concat!` and `env!("CARGO_MANIFEST_DIR")`. `package`
/// and `folder` are the folders of the package and of the file.
pub(super) fn read_argument(mac: &Macro<'_>, package: &str, folder: &str) -> Included {
    let mut body = mac.body;
    if let Some(written) = read_text(&mut body, 0) {
        body.eat(b',');
        if body.is_end() {
            let path = match written.strip_prefix(MANIFEST_DIR) {
                Some(rest) => path::join(package, rest.trim_start_matches('/')),
                None => path::join(folder, &written),
            };
            return Included::Path(path);
        }
    }
    if mac.body.text_of(mac.span).contains("\"OUT_DIR\"") {
        Included::Built
    } else {
        Included::Unknown
    }
}

/// Placeholder for the package's folder during evaluation. Can't be mistaken for a path, because no
/// valid path contains a NUL.
const MANIFEST_DIR: &str = "\0";

const MAX_DEPTH: usize = 8;

fn read_text(cursor: &mut Cursor<'_>, depth: usize) -> Option<String> {
    if let Some((kind, literal)) = cursor.literal() {
        let text = (kind == LiteralKind::Text).then(|| text_value(literal));
        return text.flatten().map(|text| text.into_owned());
    }
    let name = cursor.any_ident()?.text;
    if !cursor.eat(b'!') || depth >= MAX_DEPTH {
        return None;
    }
    let mut inner = cursor.group(Delimiter::Paren)?;
    match name {
        "concat" => {
            let mut text = String::new();
            while !inner.is_end() {
                text.push_str(&read_text(&mut inner, depth + 1)?);
                if !inner.eat(b',') && !inner.is_end() {
                    return None;
                }
            }
            Some(text)
        }
        "env" => (read_text(&mut inner, depth + 1)? == "CARGO_MANIFEST_DIR").then(|| MANIFEST_DIR.to_owned()),
        _ => None,
    }
}
