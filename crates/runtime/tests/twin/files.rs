//! Reads files of the repository for the twin test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Returns the text files below a directory that have one of these extensions, by relative path.
pub fn below(root: &str, extensions: &[&str]) -> BTreeMap<String, String> {
    let root = Path::new(root);
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry").path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() {
                open.push(path);
            } else if extension.is_some_and(|extension| extensions.contains(&extension)) {
                let name = path.strip_prefix(root).expect("below the folder");
                let text = fs::read_to_string(&path).expect("text");
                files.insert(name.to_string_lossy().replace('\\', "/"), text);
            }
        }
    }
    files
}
