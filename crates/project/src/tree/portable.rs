//! Paths from any platform, as they appear in files and messages.
//!
//! Project files use `/` in paths, regardless of the platform that wrote them. Windows also accepts
//! `\`, has drives (`C:`) and shares (`\\server\share`), and adds a `\\?\` prefix to canonical
//! paths, which neither Cargo nor make understands.

/// A path as written to files, with `/` and without the `\\?\` prefix.
pub fn with_slashes(path: &str) -> String {
    without_verbatim_prefix(path).replace('\\', "/")
}

/// Removes the prefix of canonical paths on Windows: `\\?\C:\a` becomes `C:\a`, and `\\?\UNC\s\a`
/// becomes `\\s\a`.
pub fn without_verbatim_prefix(path: &str) -> String {
    match (path.strip_prefix(r"\\?\UNC\"), path.strip_prefix(r"\\?\")) {
        (Some(share), _) => format!(r"\\{share}"),
        (None, Some(rest)) => rest.to_owned(),
        (None, None) => path.to_owned(),
    }
}

/// Converts a path from the command line to a project path. `\` is a separator only on Windows.
pub fn typed_path(path: &str) -> String {
    read_typed_path(path, cfg!(windows))
}

fn read_typed_path(path: &str, is_windows: bool) -> String {
    match is_windows {
        true => path.replace('\\', "/"),
        false => path.to_owned(),
    }
}

/// Whether a path stays within the directory that it is joined to. On Windows, a colon starts a new
/// path (`C:`) or names an alternate data stream.
pub(super) fn is_within(path: &str) -> bool {
    stays_within(path, cfg!(windows))
}

fn stays_within(path: &str, is_windows: bool) -> bool {
    let is_name = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_special = |c: char| matches!(c, '\\' | '\0') || is_windows && c == ':';
    !path.contains(is_special) && path.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_files_use_slashes() {
        for (path, expected) in [
            ("/srv/rbuilder/crates/runtime", "/srv/rbuilder/crates/runtime"),
            ("..\\rbuilder\\crates\\runtime", "../rbuilder/crates/runtime"),
            ("C:\\src\\rbuilder", "C:/src/rbuilder"),
            ("\\\\?\\C:\\src\\rbuilder", "C:/src/rbuilder"),
            ("\\\\server\\share\\rbuilder", "//server/share/rbuilder"),
            ("\\\\?\\UNC\\server\\share\\rbuilder", "//server/share/rbuilder"),
        ] {
            assert_eq!(with_slashes(path), expected, "{path}");
        }
    }

    #[test]
    fn backslash_separates_typed_paths_only_on_windows() {
        for (path, on_windows, elsewhere) in [
            ("deploy\\crd", "deploy/crd", "deploy\\crd"),
            ("deploy/crd", "deploy/crd", "deploy/crd"),
            (".\\deploy\\", "./deploy/", ".\\deploy\\"),
        ] {
            assert_eq!(read_typed_path(path, true), on_windows);
            assert_eq!(read_typed_path(path, false), elsewhere);
        }
    }

    #[test]
    fn rejects_paths_that_leave_the_directory() {
        for (path, on_windows, elsewhere) in [
            ("src/lib.rs", true, true),
            ("src", true, true),
            ("", false, false),
            ("/etc/passwd", false, false),
            ("../x", false, false),
            ("a//b", false, false),
            ("a\\..\\..\\b", false, false),
            ("C:/Windows", false, true),
            ("C:x", false, true),
            ("src/lib.rs:stream", false, true),
        ] {
            assert_eq!(stays_within(path, true), on_windows, "{path}");
            assert_eq!(stays_within(path, false), elsewhere, "{path}");
        }
    }
}
