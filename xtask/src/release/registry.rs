//! A local registry which provides the packages created by `cargo package`. We use the sparse
//! protocol over HTTP and serve the files from `target/package/tmp-registry`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

const PUBLIC: &str = "https://github.com/rust-lang/crates.io-index";

/// A registry. It is available until the process exits.
pub(super) struct Registry {
    /// URL to use for `registries.<name>.index`.
    pub(super) index: String,
}

impl Registry {
    /// Starts a server for the packages with these names. `folder` is where cargo has written them.
    pub(super) fn serve(folder: &Path, names: &[&str], version: &str) -> Result<Registry> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on this machine")?;
        let address = listener.local_addr()?;
        let files = Arc::new(collect_files(folder, names, version, &address.to_string())?);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = Arc::clone(&files);
                // We can ignore errors here, since cargo will report when a connection is broken.
                std::thread::spawn(move || answer(stream, &files).ok());
            }
        });
        Ok(Registry {
            index: format!("sparse+http://{address}/"),
        })
    }
}

/// Returns all files of the registry. The key is the path in the URL.
fn collect_files(
    folder: &Path,
    names: &[&str],
    version: &str,
    address: &str,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let config = json!({ "dl": format!("http://{address}/{{crate}}-{{version}}.crate") });
    let mut files = BTreeMap::from([("/config.json".to_owned(), config.to_string().into_bytes())]);
    let ours: BTreeSet<&str> = names.iter().copied().collect();
    for name in names {
        let path = index_path(name);
        let index = fs_err::read_to_string(folder.join("index").join(&path))?;
        let lines: Result<Vec<String>> = index.lines().map(|line| own_dependencies(line, &ours)).collect();
        files.insert(format!("/{path}"), lines?.join("\n").into_bytes());
        let package = format!("{name}-{version}.crate");
        files.insert(format!("/{package}"), fs_err::read(folder.join(&package))?);
    }
    Ok(files)
}

/// Returns the path of a package in the index. This only supports names with more than three
/// letters, but there are no shorter ones.
fn index_path(name: &str) -> String {
    format!("{}/{}/{name}", &name[..2], &name[2..4])
}

/// Changes the registry of our own packages in a line of the index.
///
/// For all dependencies, cargo writes that they are hosted on crates.io. Ours are in the same
/// registry as the package, which must be `null`.
fn own_dependencies(line: &str, ours: &BTreeSet<&str>) -> Result<String> {
    let mut package: Value = serde_json::from_str(line)?;
    let dependencies = package["deps"]
        .as_array_mut()
        .context("a package has no list of dependencies")?;
    for dependency in dependencies {
        let name = dependency["package"].as_str().or(dependency["name"].as_str());
        let is_ours = name.is_some_and(|name| ours.contains(name));
        dependency["registry"] = if is_ours { Value::Null } else { json!(PUBLIC) };
    }
    Ok(package.to_string())
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // We don't need the headers. There's an empty line after the last one.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match files.get(path) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &[][..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_packages_are_in_same_registry() {
        let line = json!({ "name": "rbuilder-cel", "deps": [
            { "name": "rbuilder-schema", "package": null, "registry": PUBLIC },
            { "name": "schema", "package": "rbuilder-schema", "registry": PUBLIC },
            { "name": "serde", "package": null, "registry": PUBLIC },
        ]});
        let line =
            own_dependencies(&line.to_string(), &BTreeSet::from(["rbuilder-schema"])).expect("an index");
        let package: Value = serde_json::from_str(&line).expect("JSON");
        let registries = [0, 1, 2].map(|place| package["deps"][place]["registry"].as_str());
        assert_eq!(registries, [None, None, Some(PUBLIC)]);
        assert_eq!(index_path("rbuilder-cel"), "rb/ui/rbuilder-cel");
    }
}
