//! The files to validate.

use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use rbuilder_generator::SourceSet;
use rbuilder_yaml::describe_failure;

use crate::commands::verdicts::{Object, RENDERED, is_in_file, parse_values_of, read_texts};
use crate::tree::{InputFile, with_slashes};

/// Reads files, directories, the standard input, and output of kustomize or Helm. `files` are
/// relative to `typed_in`. As in all messages, the paths in the result are relative to the project
/// directory `dir`.
pub(super) fn read_files(dir: &Path, typed_in: &Path, files: &[PathBuf]) -> Result<Vec<InputFile>> {
    let mut read = Vec::new();
    for typed in files {
        read.extend(read_texts(typed_in, typed)?);
    }
    if dir != typed_in {
        for file in &mut read {
            let (path, suffix) = match file.path.strip_suffix(RENDERED) {
                Some(path) => (path, RENDERED),
                None => (&*file.path, ""),
            };
            if Path::new(path).is_relative()
                && is_in_file(path)
                && let Some(path) = show_from(dir, &typed_in.join(path))
            {
                file.path = format!("{path}{suffix}");
            }
        }
    }
    Ok(read)
}

/// Parses the objects in files. Values of other forms are only included if their file contains objects
/// as well, or if the user has named it: a directory may contain files for other tools, such as values
/// of a chart.
pub(super) fn read_objects(files: &[InputFile]) -> Result<(Vec<Object>, SourceSet)> {
    let (mut objects, mut sources) = (Vec::new(), SourceSet::default());
    for InputFile { path, text, is_named } in files {
        let found = parse_values_of(path, text);
        let mut found = found.map_err(|error| describe_failure(path, text, &error))?;
        let has_type = |object: &Object| !object.api_version().is_empty() || !object.kind().is_empty();
        found.retain(|object| *is_named || object.is_beside_objects || has_type(object));
        objects.extend(found);
        sources.insert(path.as_str(), text.as_str());
    }
    Ok((objects, sources))
}

/// Makes a path absolute, without `.` and `..`. Symlinks aren't resolved.
pub(super) fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).ok()?.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

fn show_from(dir: &Path, path: &Path) -> Option<String> {
    let (dir, path) = (plain(dir)?, plain(path)?);
    let common = dir.components().zip(path.components());
    let common = common.take_while(|(one, other)| one == other).count();
    let up = dir.components().skip(common).map(|_| Path::new(".."));
    let down = path.components().skip(common);
    let shown: PathBuf = up.chain(down.map(|part| Path::new(part.as_os_str()))).collect();
    Some(with_slashes(shown.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_are_relative_to_the_project() {
        for (dir, path, expected) in [
            ("/a", "/a/b/../c.yaml", "c.yaml"),
            ("/a/b", "/a/b/./c/d.yaml", "c/d.yaml"),
            ("/a/b", "/a/c.yaml", "../c.yaml"),
            ("/a/b", "/c/d.yaml", "../../c/d.yaml"),
        ] {
            let shown = show_from(Path::new(dir), Path::new(path));
            assert_eq!(shown.as_deref(), Some(expected), "{dir} {path}");
        }
    }
}
