//! Tests with source and manifests that refer to other places, or don't end.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use super::{Outside, READS, WRITES, project, quickly};
use crate::support::Folder;

type Make<'a> = &'a dyn Fn(&Folder);

/// The library has this text and then a kind.
fn package(folder: &Folder, at: &str, before: &str) {
    let dot = if at.is_empty() {
        String::new()
    } else {
        format!("{at}/")
    };
    folder.write(
        &format!("{dot}Cargo.toml"),
        "[package]\nname = \"bad\"\nedition = \"2024\"\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\n",
    );
    folder.write(
        &format!("{dot}src/lib.rs"),
        &format!(
            "{before}\nuse kube::CustomResource; use rbuilder::CrdSchema;\n#[derive(CustomResource, CrdSchema)]\n\
             #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Good\")]\npub struct GoodSpec {{ pub size: i32 }}\n"
        ),
    );
}

/// Every command must end, and report the path without showing any content.
#[track_caller]
fn shows_nothing(folder: &Folder, outside: &Outside, at: &str, what: &str, code: u8) {
    for line in [
        "manifests --check",
        "manifests --dry-run",
        "manifests --stdout",
        "manifests",
        "docs --stdout",
    ] {
        let started = Instant::now();
        let ran = folder.inside(at).run(line);
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        let shown = format!("{}{}", ran.out, ran.err);
        assert!(!shown.contains("hunter2"), "{what}: {line}: {shown}");
        assert!(
            ran.code == code || line.ends_with("--check"),
            "{what}: {line}: {shown}"
        );
    }
    outside.check(what);
}

#[test]
fn rejects_source_outside_of_the_repository() {
    let outside = Outside::new();
    let secret = outside.path("secret").display().to_string();
    let inner = outside.path("inner/lib.rs").display().to_string();
    let cases: [(&str, String, Make); 9] = [
        ("a link in place of a module", "mod x;".into(), &|folder| {
            symlink(&secret, folder.path().join("op/src/x.rs")).unwrap();
        }),
        ("a folder that is a link", "mod x;".into(), &|folder| {
            symlink(outside.path("inner"), folder.path().join("op/src/x")).unwrap();
            fs::write(folder.path().join("op/src/x.rs"), "mod lib;").unwrap();
        }),
        (
            "an absolute path",
            format!("#[path = \"{inner}\"] mod x;"),
            &|_| {},
        ),
        (
            "a relative path",
            "#[path = \"../../../../../../../../../../../..INNER\"] mod x;".replace("INNER", &inner),
            &|_| {},
        ),
        ("an include", format!("include!(\"{secret}\");"), &|_| {}),
        ("a target", String::new(), &|folder| {
            let text = format!("[package]\nname = \"bad\"\n[lib]\npath = \"{secret}\"\n");
            folder.write("op/Cargo.toml", &text);
        }),
        ("a manifest that is a link", String::new(), &|folder| {
            folder.remove("op/Cargo.toml");
            symlink(&secret, folder.path().join("op/Cargo.toml")).unwrap();
        }),
        ("Cargo's configuration", "mod missing;".into(), &|folder| {
            fs::create_dir(folder.path().join("op/.cargo")).unwrap();
            symlink(&secret, folder.path().join("op/.cargo/config.toml")).unwrap();
        }),
        ("a link over a link", "mod x;".into(), &|folder| {
            symlink("y.rs", folder.path().join("op/src/x.rs")).unwrap();
            symlink(&secret, folder.path().join("op/src/y.rs")).unwrap();
        }),
    ];
    for (what, before, make) in cases {
        for is_repository in [true, false] {
            let folder = Folder::new();
            package(&folder, "op", &before);
            if is_repository {
                fs::create_dir(folder.path().join(".git")).unwrap();
            }
            make(&folder);
            shows_nothing(&folder, &outside, "op", what, 1);
        }
    }
}

#[test]
fn rejects_manifests_outside_of_the_project() {
    let outside = Outside::new();
    for (at, to) in [
        ("config/crd/kustomization.yaml", "secret"),
        ("config/rbac/role.yaml", "secret"),
        ("config/crd", ""),
        ("PROJECT", "secret"),
    ] {
        let folder = project();
        let path = folder.path().join(at);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        symlink(outside.path(to), &path).unwrap();
        for line in WRITES.iter().chain(&READS) {
            let ran = quickly(&folder, line);
            assert!(
                !format!("{}{}", ran.out, ran.err).contains("hunter2"),
                "{at}: {line}"
            );
        }
        outside.check(at);
    }
}

/// If a file is endless or too large, it must not be read to the end.
#[test]
fn rejects_endless_source() {
    let outside = Outside::new();
    let deep = |folder: &Folder| {
        // With two links each, twenty directories result in a million paths.
        for level in 0..20 {
            let at = folder.path().join(format!("op/src/l{level}"));
            fs::create_dir_all(&at).unwrap();
            for name in ["a", "b"] {
                symlink(format!("../l{}", level + 1), at.join(name)).unwrap();
            }
        }
        folder.write("op/src/l20/x.rs", "pub struct A;\n");
    };
    let cases: [(&str, &str, u8, Make); 7] = [
        ("a device", "include!(\"/dev/zero\");", 1, &|_| {}),
        ("a device by a link", "mod x;", 1, &|folder| {
            symlink("/dev/zero", folder.path().join("op/src/x.rs")).unwrap();
        }),
        ("a file of a terabyte", "mod x;", 1, &|folder| {
            File::create(folder.path().join("op/src/x.rs"))
                .unwrap()
                .set_len(1 << 40)
                .unwrap();
        }),
        ("a manifest of a terabyte", "", 1, &|folder| {
            File::create(folder.path().join("op/Cargo.toml"))
                .unwrap()
                .set_len(1 << 40)
                .unwrap();
        }),
        ("the whole file system below src", "", 0, &|folder| {
            symlink("/", folder.path().join("op/src/all")).unwrap();
        }),
        ("links to links to links", "", 0, &deep),
        ("members everywhere", "", 0, &|folder| {
            deep(folder);
            let text = fs::read_to_string(folder.path().join("op/Cargo.toml")).unwrap();
            folder.write(
                "op/Cargo.toml",
                &format!("{text}[workspace]\nmembers = [\"/*/*/*/*\", \"../../../*/*/*\"]\n"),
            );
        }),
    ];
    for (what, before, code, make) in cases {
        let folder = Folder::new();
        package(&folder, "op", before);
        fs::create_dir(folder.path().join(".git")).unwrap();
        make(&folder);
        shows_nothing(&folder, &outside, "op", what, code);
    }
    let folder = project();
    folder.remove("config/crd/kustomization.yaml");
    File::create(folder.path().join("config/crd/kustomization.yaml"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let ran = quickly(&folder, "manifests");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("is larger than the limit of 64 MiB"),
        "{}",
        ran.err
    );
}

/// Common uses of links and path dependencies must still work.
#[test]
fn follows_links_and_path_dependencies_within_limits() {
    let cases: [(&str, &str, Make); 5] = [
        ("a link to a file beside", "mod x;", &|folder| {
            folder.write("op/src/real.rs", "pub struct A;\n");
            symlink("real.rs", folder.path().join("op/src/x.rs")).unwrap();
        }),
        (
            "a link to another folder of the repository",
            "mod x;",
            &|folder| {
                folder.write("shared/x.rs", "pub struct A;\n");
                symlink("../../shared/x.rs", folder.path().join("op/src/x.rs")).unwrap();
            },
        ),
        (
            "a path to another folder of the repository",
            "#[path = \"../../shared/x.rs\"] mod x;",
            &|folder| {
                folder.write("shared/x.rs", "pub struct A;\n");
            },
        ),
        (
            "an include of another folder",
            "include!(\"../../shared/x.in\");",
            &|folder| {
                folder.write("shared/x.in", "pub struct A;\n");
            },
        ),
        ("a folder that is a link", "mod x;", &|folder| {
            folder.write("shared/x/mod.rs", "pub struct A;\n");
            symlink("../../shared/x", folder.path().join("op/src/x")).unwrap();
        }),
    ];
    for (what, before, make) in cases {
        let folder = Folder::new();
        package(&folder, "op", before);
        fs::create_dir(folder.path().join(".git")).unwrap();
        make(&folder);
        let ran = folder.inside("op").run("manifests --stdout");
        assert_eq!(ran.code, 0, "{what}: {}", ran.err);
    }
    // Refer to it by an absolute path, by a relative path, and through a link. There is no
    // repository around them.
    for by in ["absolute", "relative", "link"] {
        let (folder, elsewhere) = (Folder::new(), Folder::new());
        elsewhere.write(
            "other/Cargo.toml",
            "[package]\nname = \"other\"\nedition = \"2024\"\n[dependencies]\nrbuilder = \"0.1\"\n",
        );
        elsewhere.write("other/src/lib.rs", "mod inner; pub use inner::Inner;\n");
        elsewhere.write(
            "other/src/inner.rs",
            "use rbuilder::CrdSchema;\n#[derive(CrdSchema)]\npub struct Inner { pub name: String }\n",
        );
        package(&folder, "op", "use other::Inner;");
        let real = elsewhere.path().join("other");
        let path = match by {
            "absolute" => real.display().to_string(),
            "relative" => format!(
                "../../{}/other",
                elsewhere.path().file_name().unwrap().to_str().unwrap()
            ),
            _ => {
                symlink(&real, folder.path().join("op/vendored")).unwrap();
                "vendored".to_owned()
            }
        };
        let manifest = &folder.tree()["op/Cargo.toml"];
        folder.write(
            "op/Cargo.toml",
            &format!("{manifest}other = {{ path = \"{path}\" }}\n"),
        );
        let source = folder.tree()["op/src/lib.rs"].replace("size: i32", "size: i32, pub inner: Inner");
        folder.write("op/src/lib.rs", &source);
        let ran = folder.inside("op").run("manifests --stdout").ok();
        assert!(
            ran.out.contains("inner:") && ran.out.contains("name:"),
            "{by}: {}",
            ran.out
        );
    }
}
