//! Paths with `/` as separator, as used throughout a project.

/// Returns the parent directory of `path`, which is empty at the top level.
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn folders_of_files() {
        for (path, expected) in [("a/b/c.rs", "a/b"), ("a/c.rs", "a"), ("c.rs", "")] {
            assert_eq!(folder_of(path), expected);
        }
    }
}
