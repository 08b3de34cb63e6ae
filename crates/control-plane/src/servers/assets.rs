//! Locates the binaries of etcd and kube-apiserver, using the same variables and precedence as
//! controller-runtime's envtest.

use std::path::{Path, PathBuf};

use crate::Error;

/// Install location of the old kubebuilder tarballs.
const DEFAULT_FOLDER: &str = "/usr/local/kubebuilder/bin";

/// Paths of the control plane binaries.
#[derive(Clone, Debug, PartialEq)]
pub struct Assets {
    /// Path of etcd.
    pub etcd: PathBuf,
    /// Path of kube-apiserver.
    pub kube_apiserver: PathBuf,
}

impl Assets {
    /// Looks for the binaries in `TEST_ASSET_*`, `KUBEBUILDER_ASSETS`, `folder` and the default
    /// directory, in this order.
    ///
    /// # Errors
    ///
    /// Returns an error that names the variables if a binary doesn't exist.
    pub fn find(folder: Option<&Path>) -> Result<Self, Error> {
        Self::find_with(folder, |name| std::env::var_os(name).map(PathBuf::from))
    }

    pub(crate) fn find_beside(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.kube_apiserver.with_file_name(name);
        if path.is_file() {
            return Ok(path);
        }
        let path = path.display();
        Err(Error::new(format!(
            "no {name} at {path}: controllers and nodes need kube-controller-manager, kube-scheduler and kwok beside \
             kube-apiserver; `cargo xtask assets` in a checkout of rbuilder builds them"
        )))
    }

    fn find_with(folder: Option<&Path>, var: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, Error> {
        // Treat empty variables as unset.
        let var = |name: &str| var(name).filter(|value| !value.as_os_str().is_empty());
        let folder = var("KUBEBUILDER_ASSETS").or_else(|| folder.map(Path::to_owned));
        let folder = folder.unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER));
        let find = |variable: &str, name: &str| {
            let path = var(variable).unwrap_or_else(|| folder.join(name));
            if path.is_file() {
                Ok(path)
            } else {
                Err(missing_binary(name, variable, &path))
            }
        };
        Ok(Self {
            etcd: find("TEST_ASSET_ETCD", "etcd")?,
            kube_apiserver: find("TEST_ASSET_KUBE_APISERVER", "kube-apiserver")?,
        })
    }
}

fn missing_binary(name: &str, variable: &str, path: &Path) -> Error {
    let path = path.display();
    Error::new(format!(
        "no {name} at {path}: run `rbuilder envtest install` and set KUBEBUILDER_ASSETS to the folder that it prints, \
         or {variable} to the file"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &Path)], folder: Option<&Path>, expected: Result<(&Path, &Path), &str>) {
        let var = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| value.to_path_buf())
        };
        match (Assets::find_with(folder, var), expected) {
            (Ok(found), Ok((etcd, kube_apiserver))) => {
                assert_eq!(
                    (found.etcd.as_path(), found.kube_apiserver.as_path()),
                    (etcd, kube_apiserver)
                );
            }
            (Err(found), Err(expected)) => assert!(found.to_string().contains(expected), "{found}"),
            (found, expected) => panic!("found {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn most_specific_variable_wins() {
        let temp = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| temp.path().join(name));
        for folder in [&a, &b] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("etcd"), "").unwrap();
        }
        std::fs::write(a.join("kube-apiserver"), "").unwrap();
        let (etcd_a, etcd_b, api_a) = (a.join("etcd"), b.join("etcd"), a.join("kube-apiserver"));

        check(&[("KUBEBUILDER_ASSETS", &a)], None, Ok((&etcd_a, &api_a)));
        check(&[("KUBEBUILDER_ASSETS", &a)], Some(&b), Ok((&etcd_a, &api_a)));
        check(&[], Some(&a), Ok((&etcd_a, &api_a)));
        check(
            &[("KUBEBUILDER_ASSETS", &a), ("TEST_ASSET_ETCD", &etcd_b)],
            None,
            Ok((&etcd_b, &api_a)),
        );
        check(
            &[("KUBEBUILDER_ASSETS", Path::new(""))],
            Some(&a),
            Ok((&etcd_a, &api_a)),
        );
        check(&[("KUBEBUILDER_ASSETS", &b)], None, Err("no kube-apiserver at"));
        check(
            &[("KUBEBUILDER_ASSETS", &b)],
            None,
            Err("TEST_ASSET_KUBE_APISERVER"),
        );
    }
}
