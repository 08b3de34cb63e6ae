//! Paths with `/` as separator, as all paths in a project are written.

/// The directory of a file, or nothing for a file at the top.
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
