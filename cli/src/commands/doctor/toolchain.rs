//! Parses a project's toolchain file. We don't run rustup, because a toolchain file can name any
//! program.

use std::path::Path;

use toml_edit::Document;

use crate::disk::Folder;

const FILES: [&str; 2] = ["rust-toolchain", "rust-toolchain.toml"];

const LARGEST: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Toolchain {
    /// An official release of Rust, e.g. `1.93.0` or `nightly-2026-01-31`.
    Released { name: String, file: String },
    /// Anything else, which we must not run. The reason is a phrase.
    Unknown { reason: String },
}

/// Reads the nearest toolchain file in the directory or its parents, if any.
pub(super) fn find_toolchain(dir: &Path) -> Option<Toolchain> {
    let dir = std::path::absolute(dir).ok()?;
    dir.ancestors().find_map(|folder| {
        let open = Folder::open(folder).ok()?;
        FILES.iter().find_map(|name| read_file(&open, name))
    })
}

fn read_file(folder: &Folder, name: &str) -> Option<Toolchain> {
    let unknown = |reason: String| Some(Toolchain::Unknown { reason });
    let bytes = match folder.read(name, LARGEST, name) {
        Ok(bytes) => bytes?,
        Err(error) => return unknown(format!("{error:#}")),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match parse_name(&text) {
        Some(channel) if is_released(&channel) => Some(Toolchain::Released {
            name: channel,
            file: name.to_owned(),
        }),
        Some(other) => unknown(format!("{name} names the toolchain `{other}`")),
        None if text.contains("path") => unknown(format!("{name} names a toolchain by its path")),
        None => unknown(format!("{name} names no toolchain")),
    }
}

/// The channel in a toolchain file, which is either TOML or a single line with the name.
fn parse_name(text: &str) -> Option<String> {
    let parsed = Document::parse(text).ok();
    if let Some(parsed) = parsed.filter(|parsed| !parsed.is_empty()) {
        let table = parsed.get("toolchain")?;
        return Some(table.get("channel")?.as_str()?.to_owned());
    }
    let line = text.trim();
    (!line.is_empty() && !line.contains(char::is_whitespace)).then(|| line.to_owned())
}

/// Whether a name is an official release. For these, rustup uses neither the repository's files nor
/// a toolchain linked by the user.
fn is_released(name: &str) -> bool {
    let mut parts = name.split('-');
    let channel = parts.next().unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = (2..=3).contains(&channel.split('.').count()) && channel.split('.').all(is_number);
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
    };
    (is_version || ["stable", "beta", "nightly"].contains(&channel)) && parts.all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_releases_are_told_from_others() {
        for (name, expected) in [
            ("stable", true),
            ("1.93", true),
            ("1.93.0", true),
            ("nightly-2026-01-31", true),
            ("1.93.0-x86_64-unknown-linux-gnu", true),
            ("1", false),
            ("esp", false),
            ("mine-1.93", false),
            ("stable/../../tmp", false),
            ("/tmp/tool", false),
            ("", false),
        ] {
            assert_eq!(is_released(name), expected, "{name}");
        }
    }

    #[test]
    fn toolchain_files_are_read() {
        for (text, expected) in [
            ("[toolchain]\nchannel = \"1.93\"\ncomponents = []\n", Some("1.93")),
            ("1.93.0\n", Some("1.93.0")),
            ("nightly", Some("nightly")),
            ("[toolchain]\npath = \"tool\"\n", None),
            ("[toolchain]\nchannel = 5\n", None),
            ("two words\n", None),
            ("", None),
        ] {
            assert_eq!(parse_name(text).as_deref(), expected, "{text}");
        }
    }
}
