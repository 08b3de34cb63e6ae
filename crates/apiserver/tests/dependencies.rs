//! The server must not depend on clients: the command would compile them as well, and each test
//! could only use one version of kube.

use std::process::Command;

#[test]
fn depends_neither_on_kube_nor_on_k8s_openapi() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", "rbuilder-apiserver", "--all-features"])
        .args([
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--locked",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let (packages, errors) = (
        String::from_utf8_lossy(&tree.stdout),
        String::from_utf8_lossy(&tree.stderr),
    );
    assert!(
        tree.status.success() && packages.contains("rbuilder-judge"),
        "{packages}{errors}"
    );
    let clients: Vec<&str> = packages
        .lines()
        .filter(|package| package.starts_with("kube") || package.starts_with("k8s-openapi"))
        .collect();
    assert!(clients.is_empty(), "{clients:?}");
}
