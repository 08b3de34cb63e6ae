//! Random damage to project directories.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::random::{Random, floor};

type Damage = fn(&Site, &mut Random) -> String;

const ALL: [Damage; 17] = [
    link, link, pipe, folder, no_folder, remove, cut, mutate, encode, grow, hard_link, journal, journal,
    companion, name, source, manifest,
];

struct Site<'a> {
    project: &'a Path,
    outside: &'a Path,
}

/// The text describes the damage.
pub(crate) fn apply(project: &Path, outside: &Path, random: &mut Random) -> String {
    let site = Site { project, outside };
    random.one_of(&ALL)(&site, random)
}

impl Site<'_> {
    /// Prefers the files that commands read first.
    fn any(&self, random: &mut Random) -> PathBuf {
        if random.once_in(3) {
            return self.project.join(random.text(&[
                "PROJECT",
                "Cargo.toml",
                "src",
                "src/lib.rs",
                "src/main.rs",
                "config",
                "config/crd",
                "config/crd/bases",
                "config/crd/kustomization.yaml",
                "config/rbac/role.yaml",
                "config/samples/kustomization.yaml",
                "config/webhook",
                ".rbuilder-journal",
                ".cargo",
                ".cargo/config.toml",
                ".git",
                ".gitignore",
            ]));
        }
        let all: Vec<PathBuf> = walkdir::WalkDir::new(self.project)
            .min_depth(1)
            .sort_by_file_name()
            .into_iter()
            .flatten()
            .map(walkdir::DirEntry::into_path)
            .collect();
        if all.is_empty() {
            self.project.join("PROJECT")
        } else {
            random.one_of(&all).clone()
        }
    }

    fn file(&self, random: &mut Random) -> PathBuf {
        for _ in 0..20 {
            let path = self.any(random);
            if path
                .symlink_metadata()
                .is_ok_and(|found| found.is_file() && found.len() < 1 << 20)
            {
                return path;
            }
        }
        self.project.join("new")
    }

    /// The path may also be a cycle.
    fn elsewhere(&self, random: &mut Random) -> PathBuf {
        match random.below(12) {
            0 => self.outside.to_owned(),
            1 => self.outside.join("secret"),
            2 => self.outside.join("lib.rs"),
            3 => self.outside.join("deep"),
            4 => PathBuf::from(random.text(&[
                "/",
                "/dev/zero",
                "/dev/null",
                "/proc/self/environ",
                "/proc/self/root",
                "/dev/tty",
            ])),
            5 => PathBuf::from(random.text(&["..", ".", "../out", "../out/secret", "../../..", "nowhere"])),
            6 => self.outside.join("made-by-a-command"),
            _ => self.any(random),
        }
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.project)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }
}

fn clear(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    if let Some(above) = path.parent() {
        let _ = fs::create_dir_all(above);
    }
}

fn text_of(path: &Path) -> String {
    let bytes = match path.symlink_metadata() {
        Ok(found) if found.is_file() && found.len() < 1 << 20 => fs::read(path).unwrap_or_default(),
        _ => Vec::new(),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

fn put(path: &Path, bytes: impl AsRef<[u8]>) {
    // Never write through a link or into a pipe, because then the damage would do what the test
    // looks for.
    clear(path);
    let _ = fs::write(path, bytes);
}

fn link(site: &Site, random: &mut Random) -> String {
    let (path, to) = (site.any(random), site.elsewhere(random));
    if path == to {
        return "nothing".into();
    }
    clear(&path);
    let _ = symlink(&to, &path);
    format!("link {} -> {}", site.shown(&path), to.display())
}

fn pipe(site: &Site, random: &mut Random) -> String {
    let path = site.any(random);
    clear(&path);
    let what = random.text(&["pipe", "socket", "device"]);
    let _ = match what {
        "socket" => std::os::unix::net::UnixListener::bind(&path).map(drop).is_ok(),
        // Only root can create a device, so otherwise there is none.
        "device" => Command::new("mknod")
            .arg(&path)
            .args(["c", "1", "5"])
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok(),
        _ => Command::new("mkfifo")
            .arg(&path)
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok(),
    };
    format!("{what} {}", site.shown(&path))
}

fn folder(site: &Site, random: &mut Random) -> String {
    let path = site.file(random);
    clear(&path);
    let _ = fs::create_dir_all(path.join("inner"));
    format!("folder {}", site.shown(&path))
}

fn no_folder(site: &Site, random: &mut Random) -> String {
    let mut path = site.any(random);
    if !path.is_dir() {
        path.pop();
    }
    if path.as_path() != site.project && path.starts_with(site.project) {
        put(&path, "a file\n");
    }
    format!("file in place of {}", site.shown(&path))
}

fn remove(site: &Site, random: &mut Random) -> String {
    let path = site.any(random);
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    format!("without {}", site.shown(&path))
}

fn cut(site: &Site, random: &mut Random) -> String {
    let path = site.file(random);
    let text = text_of(&path);
    let at = random.boundary(&text);
    put(&path, &text[..at]);
    format!("{} cut at {at}", site.shown(&path))
}

fn mutate(site: &Site, random: &mut Random) -> String {
    let path = site.file(random);
    let mut text = text_of(&path);
    for _ in 0..=random.below(4) {
        let at = random.boundary(&text);
        let end = floor(&text, at + random.below(30));
        match random.below(3) {
            0 => text.replace_range(at..end.max(at), ""),
            1 => {
                let again = text[at..end.max(at)].to_owned();
                text.insert_str(at, &again);
            }
            _ => text.insert_str(
                at,
                random.text(&[
                    "\n",
                    "\"",
                    "{",
                    "}",
                    "[",
                    "]",
                    ":",
                    "- ",
                    "  ",
                    "\t",
                    "#",
                    "//",
                    "/*",
                    "*/",
                    "'",
                    "&a ",
                    "*a",
                    "<<: ",
                    "---\n",
                    "\\",
                    "../",
                    "/",
                    "r#\"",
                    "mod x;\n",
                    "#[cfg(x)]",
                    "!!binary ",
                    "\u{feff}",
                    "\u{1b}[2J",
                ]),
            ),
        }
    }
    put(&path, &text);
    format!("{} mutated", site.shown(&path))
}

fn encode(site: &Site, random: &mut Random) -> String {
    let path = site.file(random);
    let text = text_of(&path);
    let (what, bytes): (&str, Vec<u8>) = match random.below(8) {
        0 => ("a mark", format!("\u{feff}{text}").into_bytes()),
        1 => ("CRLF", text.replace('\n', "\r\n").into_bytes()),
        2 => ("CR", text.replace('\n', "\r").into_bytes()),
        3 => ("UTF-16", text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        4 => ("no UTF-8", [text.as_bytes(), b"\xff\xfe"].concat()),
        5 => ("NUL", [text.as_bytes(), b"\0\0"].concat()),
        6 => ("a shebang", format!("#!/bin/sh\n{text}").into_bytes()),
        _ => ("nothing", Vec::new()),
    };
    put(&path, bytes);
    format!("{} with {what}", site.shown(&path))
}

fn grow(site: &Site, random: &mut Random) -> String {
    let path = site.file(random);
    match random.below(4) {
        0 => {
            clear(&path);
            let _ = File::create(&path).and_then(|file| file.set_len(1 << 38));
        }
        1 => put(&path, text_of(&path).repeat(200)),
        2 => put(
            &path,
            random
                .text(&["[", "{", "- ", "(", "mod a {", "&x ", "a: "])
                .repeat(20_000),
        ),
        _ => {
            let mut deep = path.clone();
            for _ in 0..60 {
                deep = deep.join("d");
            }
            clear(&path);
            let _ = fs::create_dir_all(deep);
        }
    }
    format!("{} grown", site.shown(&path))
}

fn hard_link(site: &Site, random: &mut Random) -> String {
    let path = site.any(random);
    clear(&path);
    let _ = fs::hard_link(
        site.outside
            .join(random.text(&["secret", "lib.rs", "deep/x.yaml", "run.sh"])),
        &path,
    );
    format!("hard link {}", site.shown(&path))
}

/// The author of the journal knows all inodes, some of them, or none.
fn journal(site: &Site, random: &mut Random) -> String {
    let path = site.project.join(".rbuilder-journal");
    if random.once_in(4) {
        let text = random.text(&["", "{", "[]\n", "\"renamed\"\n", "{\"begin\":{}}\n", "\0\n"]);
        put(&path, text);
        return format!("journal {text:?}");
    }
    put(&path, "");
    let inode = |path: &Path| path.symlink_metadata().map_or(0, |found| found.ino());
    let wrong = u64::from(random.once_in(5));
    let mut entries = Vec::new();
    let mut inodes = Vec::new();
    for _ in 0..=random.below(4) {
        let target = match random.below(6) {
            0 => site.elsewhere(random),
            1 => PathBuf::from(random.text(&[
                "../out/secret",
                ".git/hooks/pre-commit",
                ".cargo/config.toml",
                "a/../../out/secret",
                "new/file",
            ])),
            _ => site.any(random),
        };
        let shown = site.shown(&target);
        let real = site.project.join(&shown);
        let beside = |end: &str| {
            let name = real
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            real.with_file_name(format!(".{name}.rbuilder-{end}"))
        };
        let safe = real.starts_with(site.project) && !shown.contains("..");
        for end in ["new", "old"] {
            // Check this, because a link on the way would lead the damage itself out of the
            // project.
            if safe && random.once_in(2) && real.parent().is_some_and(|above| is_plain(site.project, above)) {
                put(&beside(end), "payload\n");
            }
        }
        let content = |text: &str| serde_json::json!({ "length": text.len(), "checksum": crc32fast::hash(text.as_bytes()) });
        let there = text_of(&real);
        let (before, after) = match random.below(4) {
            0 => (content(&there), content("payload\n")),
            1 => (content("payload\n"), content(&there)),
            2 => (content(&there), content(&there)),
            _ => (content("x"), content("y")),
        };
        let none = serde_json::Value::Null;
        let (action, before, after) = match random.below(3) {
            0 => ("create", none, after),
            1 => ("write", before, after),
            _ => ("delete", before, none),
        };
        entries
            .push(serde_json::json!({ "path": shown, "action": action, "before": before, "after": after }));
        let staged = if random.once_in(2) {
            inode(&beside("new"))
        } else {
            inode(&real)
        };
        inodes.push(serde_json::json!({ "staged": staged, "backup": inode(&beside("old")) }));
    }
    let folders: Vec<String> = entries
        .iter()
        .filter_map(|entry| Some(entry["path"].as_str()?.rsplit_once('/')?.0.to_owned()))
        .filter(|_| random.once_in(3))
        .collect();
    let begin = serde_json::json!({ "begin": {
        "format": 3, "journal": inode(&path) + wrong, "root": inode(site.project), "folders": folders, "entries": entries,
    }});
    let mut text = format!("{begin}\n");
    if !random.once_in(4) {
        text.push_str(&format!("{}\n", serde_json::json!({ "staged": inodes })));
        text.push_str(random.text(&["", "\"renamed\"\n", "\"restored\"\n", "\"ren"]));
    }
    // Write in place, because the text contains the inode of the file.
    let _ = fs::write(&path, &text);
    format!("journal {text}")
}

/// Returns false if there is a link on the way.
fn is_plain(folder: &Path, path: &Path) -> bool {
    path.starts_with(folder)
        && path
            .ancestors()
            .take_while(|above| above.starts_with(folder))
            .all(|above| above.symlink_metadata().is_ok_and(|found| found.is_dir()))
}

/// The name is one that commands use for temporary files.
fn companion(site: &Site, random: &mut Random) -> String {
    let path = site.any(random);
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let path = path.with_file_name(
        random
            .text(&[".N.rbuilder-new", ".N.rbuilder-old", "N.rbuilder-kept"])
            .replace('N', &name),
    );
    if is_plain(site.project, path.parent().unwrap_or(site.project)) {
        clear(&path);
        if random.once_in(2) {
            let _ = symlink(site.elsewhere(random), &path);
        } else {
            put(&path, "payload\n");
        }
    }
    format!("companion {}", site.shown(&path))
}

fn name(site: &Site, random: &mut Random) -> String {
    let mut above = site.any(random);
    if !above.is_dir() || !is_plain(site.project, &above) {
        above = site.project.join("src");
    }
    let long = "x".repeat(252);
    let name: Vec<u8> = match random.below(6) {
        0 => b"\xff\xfe.rs".to_vec(),
        1 => b"a\nb.rs".to_vec(),
        2 => b"\x1b[2J.rs".to_vec(),
        3 => format!("{long}.rs").into_bytes(),
        4 => "\u{202e}sr.a".as_bytes().to_vec(),
        _ => b"-rf.yaml".to_vec(),
    };
    let path = above.join(OsStr::from_bytes(&name));
    put(&path, "#[derive(CustomResource)] pub struct A;\n");
    if random.once_in(4) {
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(random.below(0o1000) as u32));
    }
    format!("name {path:?}")
}

fn source(site: &Site, random: &mut Random) -> String {
    let to = site.elsewhere(random);
    let to = to.display();
    let line = match random.below(6) {
        0 => format!("include!(\"{to}\");\n"),
        1 => format!("#[path = \"{to}\"] mod led_away;\n"),
        2 => format!("#[path = \"{to}/lib.rs\"] pub mod led_away;\n"),
        3 => "mod missing;\n".to_owned(),
        4 => format!("mod {};\n", "m".repeat(300)),
        _ => format!("include!(concat!(\"{to}\"));\n"),
    };
    let path = site.project.join(random.text(&[
        "src/lib.rs",
        "src/main.rs",
        "crates/operator/src/main.rs",
        "src/api/mod.rs",
    ]));
    if path.parent().is_some_and(|above| is_plain(site.project, above)) {
        put(&path, format!("{line}{}", text_of(&path)));
    }
    format!("source {line}")
}

fn manifest(site: &Site, random: &mut Random) -> String {
    let to = site.elsewhere(random);
    let to = to.display();
    let (file, text) = match random.below(7) {
        0 => (
            "Cargo.toml",
            format!("[workspace]\nmembers = [\"*\", \"{to}\", \"/*/*\", \"../*/*/*\"]\n"),
        ),
        1 => (
            "Cargo.toml",
            format!(
                "[package]\nname = \"a\"\n[lib]\npath = \"{to}\"\n[dependencies]\nb = {{ path = \"{to}\" }}\n"
            ),
        ),
        2 => (
            "Cargo.toml",
            format!("[package]\nname = \"a\"\nworkspace = \"{to}\"\n"),
        ),
        3 => (
            "PROJECT",
            format!(
                "version: \"3\"\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: \"{to}\"\ndomain: ../../out\n"
            ),
        ),
        4 => (
            "PROJECT",
            format!(
                "version: \"3\"\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: a\ndomain: example.com\nmultigroup: true\nresources:\n- group: \"{to}\"\n  version: ../../out\n  kind: Cup\n  api: {{}}\n  controller: true\n"
            ),
        ),
        5 => (
            "config/crd/kustomization.yaml",
            format!("resources:\n- {to}\n- bases/../../../out/secret\n"),
        ),
        _ => (
            ".cargo/config.toml",
            format!("[env]\nK8S_OPENAPI_ENABLED_VERSION = {{ value = \"{to}\" }}\n"),
        ),
    };
    let path = site.project.join(file);
    if path
        .parent()
        .is_some_and(|above| above == site.project || is_plain(site.project, above))
    {
        put(&path, &text);
    }
    format!("{file}: {text}")
}
