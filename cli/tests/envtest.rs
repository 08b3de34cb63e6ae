//! `rbuilder envtest` with a local test server that mimics the published index.
#![allow(clippy::disallowed_methods)] // the test serves files and inspects the store itself

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA512, digest};
use support::{Folder, Ran};

const INDEX: &str = "/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml";

#[derive(Clone, Debug)]
enum Answer {
    Content(Vec<u8>),
    /// Announces the whole content, but closes the connection after this many bytes.
    Part(Vec<u8>, usize),
    /// Announces content, but sends nothing for as long as the client waits.
    Silence,
    Status(u16),
}

/// Each path has a list of responses, and the last one is repeated.
struct Server {
    url: String,
    answers: Arc<Mutex<BTreeMap<String, Vec<Answer>>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Server {
            url: format!("http://{}", listener.local_addr().expect("an address")),
            answers: Arc::default(),
            requests: Arc::default(),
        };
        let (answers, requests) = (server.answers.clone(), server.requests.clone());
        // The thread ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(path) = read_request(&stream) else {
                    continue;
                };
                let answer = next_answer(&mut answers.lock().expect("no panic"), &path);
                requests.lock().expect("no panic").push(path);
                std::thread::spawn(move || send(stream, answer));
            }
        });
        server
    }

    /// The index lists these archives.
    fn with(names: &[&str]) -> Server {
        let server = Server::start();
        let mut index = "releases:\n".to_owned();
        for name in names {
            let content = archive(&[
                ("etcd", b"etcd"),
                ("kube-apiserver", b"server"),
                ("kubectl", b"kubectl"),
            ]);
            let path = format!("/releases/{name}");
            let hash = sha512(&content);
            let _ = write!(
                index,
                "  {name}:\n    {name}:\n      hash: {hash}\n      selfLink: https://example.com{path}\n"
            );
            server.answer(&path, &[Answer::Content(content)]);
        }
        server.answer(INDEX, &[Answer::Content(index.into_bytes())]);
        server
    }

    fn answer(&self, path: &str, answers: &[Answer]) {
        let mut all = self.answers.lock().expect("no panic");
        all.insert(path.to_owned(), answers.to_vec());
    }

    fn content(&self, path: &str) -> Vec<u8> {
        match self.answers.lock().expect("no panic")[path].first() {
            Some(Answer::Content(content)) => content.clone(),
            answer => panic!("found {answer:?}"),
        }
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().expect("no panic"))
    }
}

fn read_request(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    first.split(' ').nth(1).map(str::to_owned)
}

fn next_answer(answers: &mut BTreeMap<String, Vec<Answer>>, path: &str) -> Answer {
    match answers.get_mut(path) {
        Some(answers) if answers.len() > 1 => answers.remove(0),
        Some(answers) => answers[0].clone(),
        None => Answer::Status(404),
    }
}

fn send(mut stream: TcpStream, answer: Answer) {
    let mut head = |status: u16, length: usize| {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes())
    };
    // Ignore errors, because the client may have closed the connection.
    let _ = match answer {
        Answer::Content(content) => head(200, content.len()).and_then(|()| stream.write_all(&content)),
        Answer::Part(content, sent) => {
            head(200, content.len()).and_then(|()| stream.write_all(&content[..sent]))
        }
        Answer::Silence => head(200, 1000).and_then(|()| {
            let mut reader = BufReader::new(&stream);
            reader.fill_buf().map(drop)
        }),
        Answer::Status(status) => head(status, 0),
    };
}

fn archive(programs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in programs {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        let path = format!("controller-tools/envtest/{name}");
        builder
            .append_data(&mut header, path, *content)
            .expect("a member");
    }
    builder
        .into_inner()
        .and_then(GzEncoder::finish)
        .expect("an archive")
}

fn sha512(bytes: &[u8]) -> String {
    digest(&SHA512, bytes)
        .as_ref()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

const NEW: &str = "envtest-v1.37.2-linux-amd64.tar.gz";
const OLD: &str = "envtest-v1.37.0-linux-amd64.tar.gz";

/// Keeps the store in the directory, and uses a fixed platform so that the results are the same on
/// every machine.
fn run(folder: &Folder, command: &str) -> Ran {
    let (command, rest) = command.split_once(' ').unwrap_or((command, ""));
    folder.run(&format!(
        "envtest {command} --bin-dir bin --os linux --arch amd64 {rest}"
    ))
}

fn run_with(folder: &Folder, server: &Server, command: &str) -> Ran {
    run(folder, &format!("{command} --mirror {} --timeout 1", server.url))
}

fn leaf(folder: &Folder, version: &str) -> PathBuf {
    folder.path().join(format!("bin/k8s/{version}-linux-amd64"))
}

/// Also returns hidden directories.
fn store(folder: &Folder) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder.path().join("bin/k8s")) else {
        return Vec::new();
    };
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<_> = names.filter(|name| name != ".rbuilder.lock").collect();
    names.sort();
    names
}

#[track_caller]
fn refused(ran: &Ran, expected: &str) {
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert_eq!(ran.out, "");
}

#[test]
fn downloads_a_version_once() {
    let (folder, server) = (Folder::new(), Server::with(&[OLD, NEW]));
    let ran = run_with(&folder, &server, "install 1.37").ok();
    let leaf = leaf(&folder, "1.37.2");
    assert_eq!(ran.out, format!("{}\n", leaf.display()));
    assert_eq!(fs::read(leaf.join("kube-apiserver")).expect("a file"), b"server");
    assert_eq!(fs::read_dir(&leaf).expect("a folder").count(), 3);
    assert_eq!(server.requests(), [INDEX.to_owned(), format!("/releases/{NEW}")]);

    for command in ["install 1.37", "install 1.37.2", "install ~1.37.1", "install"] {
        assert_eq!(run_with(&folder, &server, command).ok().out, ran.out, "{command}");
    }
    for command in ["path 1.37", "path", "path latest"] {
        assert_eq!(run(&folder, command).ok().out, ran.out, "{command}");
    }
    assert_eq!(server.requests(), [""; 0], "what is installed is not asked for");
    assert_eq!(store(&folder), ["1.37.2-linux-amd64"]);

    run_with(&folder, &server, "install 1.37 --force").ok();
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn uses_installed_patch_until_a_newer_one_is_requested() {
    let (folder, server) = (Folder::new(), Server::with(&[OLD, NEW]));
    for (command, expected) in [
        ("install 1.37.0", "1.37.0"),
        ("install 1.37.x", "1.37.0"),
        ("install latest-on-disk", "1.37.0"),
        ("install latest --installed-only", "1.37.0"),
        ("install 1.37.x!", "1.37.2"),
        ("install latest", "1.37.2"),
        ("install <1.37.2", "1.37.0"),
    ] {
        let ran = run_with(&folder, &server, command).ok();
        assert_eq!(
            ran.out,
            format!("{}\n", leaf(&folder, expected).display()),
            "{command}"
        );
    }
}

#[test]
fn defaults_to_the_version_of_the_project() {
    let names = ["envtest-v1.35.0-linux-amd64.tar.gz", NEW];
    let server = Server::with(&names);
    let check = |manifest: Option<&str>, expected: &str| {
        let folder = Folder::new();
        if let Some(features) = manifest {
            let package = "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"";
            let dependency = format!("k8s-openapi = {{ version = \"0.29\", features = [{features}] }}");
            folder.write(
                "Cargo.toml",
                &format!("{package}\n[dependencies]\n{dependency}\n"),
            );
            folder.write("src/lib.rs", "");
        }
        let ran = run_with(&folder, &server, "install").ok();
        assert_eq!(ran.out, format!("{}\n", leaf(&folder, expected).display()));
    };
    check(None, "1.37.2");
    check(Some("\"v1_35\""), "1.35.0");
    check(Some("\"latest\""), "1.37.2");
}

#[test]
fn prints_output_for_shells_and_programs() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    let ran = run_with(&folder, &server, "install --env").ok();
    let path = leaf(&folder, "1.37.2").display().to_string();
    assert_eq!(ran.out, format!("export KUBEBUILDER_ASSETS='{path}'\n"));
    for command in ["install --output json", "path --output json"] {
        let answer: serde_json::Value = serde_json::from_str(&run(&folder, command).ok().out).expect("JSON");
        let expected = serde_json::json!({
            "version": "1.37.2", "os": "linux", "arch": "amd64", "installed": true, "path": path,
        });
        assert_eq!(answer, expected);
    }
    let ran = run(&folder, "path 1.30 --output json");
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (ran.code, &answer["command"]),
        (1, &serde_json::json!("envtest path"))
    );
}

#[test]
fn lists_versions_once() {
    let (folder, server) = (
        Folder::new(),
        Server::with(&[OLD, NEW, "envtest-v1.37.2-darwin-arm64.tar.gz"]),
    );
    run_with(&folder, &server, "install 1.37.0").ok();
    fs::create_dir(leaf(&folder, "1.35.0")).expect("a folder");
    let installed = "(installed)   v1.37.0   linux/amd64\n(incomplete)  v1.35.0   linux/amd64\n";
    let ran = run_with(&folder, &server, "list").ok();
    assert_eq!(
        ran.out,
        format!("{installed}(available)   v1.37.2   linux/amd64\n")
    );
    assert_eq!(run(&folder, "list --installed-only").ok().out, installed);
    let all = format!(
        "envtest list --bin-dir bin --os * --arch * --mirror {}",
        server.url
    );
    assert!(
        folder
            .run(&all)
            .ok()
            .out
            .ends_with("(available)   v1.37.2   darwin/arm64\n")
    );
    let ran = run(&folder, "list 1.37 --installed-only --output json").ok();
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer.as_array().map(Vec::len), Some(1));
}

#[test]
fn removes_versions() {
    let (folder, server) = (Folder::new(), Server::with(&[OLD, NEW]));
    run_with(&folder, &server, "install 1.37.0").ok();
    run_with(&folder, &server, "install 1.37.2").ok();
    let ran = run(&folder, "remove <1.37.2 --dry-run").ok();
    assert_eq!(ran.out, "would remove 1.37.0 (linux/amd64)\n");
    assert_eq!(store(&folder).len(), 2);
    assert_eq!(
        run(&folder, "remove <1.37.2").ok().out,
        "removed 1.37.0 (linux/amd64)\n"
    );
    assert_eq!(store(&folder), ["1.37.2-linux-amd64"]);
    assert_eq!(
        run(&folder, "remove").code,
        2,
        "everything is removed only when asked for"
    );
    run(&folder, "remove --all").ok();
    assert_eq!(store(&folder), [""; 0]);
    assert_eq!(run(&folder, "remove --all").ok().out, "");
}

#[test]
fn reports_missing_versions() {
    let (folder, server) = (
        Folder::new(),
        Server::with(&[OLD, NEW, "envtest-v1.35.0-darwin-arm64.tar.gz"]),
    );
    for (command, expected) in [
        (
            "install 1.37.3",
            "it has these patches for `linux/amd64`: 1.37.2, 1.37.0",
        ),
        ("install 1.35", "1.35.0 is available for `darwin/arm64`"),
        (
            "install 1.37 --installed-only",
            "not installed for `linux/amd64` (installed: nothing)",
        ),
        ("install 1.37 --installed-only --force", "`--force` downloads"),
    ] {
        refused(&run_with(&folder, &server, command), expected);
    }
    for (command, advised) in [
        ("path", "1."),
        ("path 1.35", "1.35"),
        ("path <1.37", "'<1.37'"),
        ("path latest-on-disk", "latest"),
    ] {
        let advice = format!("run `rbuilder envtest install {advised}");
        refused(&run(&folder, command), &advice);
    }
    refused(
        &folder.run("envtest path 1.35 --bin-dir bin --os plan9 --arch mips"),
        "run `rbuilder envtest install 1.35 --os plan9 --arch mips`",
    );
    refused(
        &folder.run("envtest path --bin-dir bin --os ../x"),
        "found `../x`",
    );
    assert_eq!(run(&folder, "install newest").code, 2);
    assert_eq!(store(&folder), [""; 0]);
}

#[test]
fn dry_run_downloads_no_archive() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    let ran = run_with(&folder, &server, "install --dry-run").ok();
    assert!(
        ran.out
            .starts_with(&format!("would download {}/releases/{NEW} to ", server.url)),
        "{}",
        ran.out
    );
    assert_eq!(server.requests(), [INDEX]);
    assert_eq!(store(&folder), [""; 0]);
}

#[test]
fn does_not_install_damaged_archives() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    let path = format!("/releases/{NEW}");
    let whole = server.content(&path);
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    let cut = whole.len() / 2;
    for (answer, expected) in [
        (
            Answer::Content(damaged),
            "the checksum of the archive does not match",
        ),
        (
            Answer::Content(b"<html>".to_vec()),
            "the checksum of the archive does not match",
        ),
        (
            Answer::Content(Vec::new()),
            "the checksum of the archive does not match",
        ),
        (Answer::Part(whole, cut), "cannot download http://127.0.0.1"),
        (Answer::Silence, "cannot download http://127.0.0.1"),
        (Answer::Status(404), "status 404"),
        (Answer::Status(503), "status 503"),
    ] {
        server.answer(&path, &[answer]);
        let ran = run_with(&folder, &server, "install");
        refused(&ran, expected);
        assert!(ran.err.contains(&format!("{}{path}", server.url)), "{}", ran.err);
        assert_eq!(store(&folder), [""; 0]);
    }
}

#[test]
fn retries_an_interrupted_download_once() {
    let server = Server::with(&[NEW]);
    let path = format!("/releases/{NEW}");
    let whole = server.content(&path);
    let good = Answer::Content(whole.clone());
    for first in [
        Answer::Part(whole.clone(), 100),
        Answer::Silence,
        Answer::Status(503),
    ] {
        let folder = Folder::new();
        server.answer(&path, &[first, good.clone()]);
        let ran = run_with(&folder, &server, "install").ok();
        assert!(ran.err.contains("; trying again"), "{}", ran.err);
        assert_eq!(server.requests().len(), 3);
        assert_eq!(
            fs::read(leaf(&folder, "1.37.2").join("etcd")).expect("a file"),
            b"etcd"
        );
    }
    server.answer(&path, &[Answer::Status(404), good]);
    refused(&run_with(&Folder::new(), &server, "install"), "status 404");
}

#[test]
fn checks_archives_despite_a_correct_checksum() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    let content = archive(&[("etcd", b"etcd")]);
    let index = format!(
        "releases: {{a: {{{NEW}: {{hash: {}, selfLink: 'https://example.com/a'}}}}}}",
        sha512(&content)
    );
    server.answer(INDEX, &[Answer::Content(index.into_bytes())]);
    server.answer("/a", &[Answer::Content(content)]);
    refused(&run_with(&folder, &server, "install"), "no `kube-apiserver`");
    assert_eq!(store(&folder), [""; 0]);
}

#[test]
fn reports_unreadable_indexes() {
    let (folder, server) = (Folder::new(), Server::start());
    for (content, expected) in [
        ("releases: 1", "cannot read the index http://127.0.0.1"),
        ("a: [", "cannot read the index"),
    ] {
        server.answer("/index.yaml", &[Answer::Content(content.into())]);
        let ran = run(&folder, &format!("install --index {}/index.yaml", server.url));
        refused(&ran, expected);
    }
    let ran = run(&folder, &format!("list --index {}/none.yaml", server.url));
    refused(
        &ran,
        &format!(
            "cannot download {}/none.yaml: the server answered with status 404",
            server.url
        ),
    );
}

#[test]
fn ignores_leftovers_of_killed_commands() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    // A killed setup-envtest and a killed rbuilder left these.
    folder.write("bin/k8s/1.37.2-linux-amd64/etcd", "etcd");
    folder.write("bin/k8s/.rbuilder-partial-1.37.2-linux-amd64/etcd", "etc");
    folder.write("bin/k8s/.rbuilder-removed-1.35.0-linux-amd64/etcd", "etc");
    refused(&run(&folder, "path"), "not installed");
    run_with(&folder, &server, "install").ok();
    assert_eq!(store(&folder), ["1.37.2-linux-amd64"]);
    run(&folder, "path").ok();
}

#[test]
fn concurrent_commands_download_once() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| run_with(&folder, &server, "install").ok());
        }
    });
    let downloads = server
        .requests()
        .into_iter()
        .filter(|path| path.starts_with("/releases/"));
    assert_eq!(downloads.count(), 1);
}

#[test]
fn installs_local_archives() {
    let folder = Folder::new();
    let content = archive(&[("etcd", b"etcd"), ("kube-apiserver", b"server")]);
    fs::write(folder.path().join("a.tar.gz"), &content).expect("a file");
    let other = sha512(b"other");
    for (command, expected) in [
        (
            format!("install 1.37.9 --from a.tar.gz --sha512 {other}"),
            "the checksum of the archive does not match",
        ),
        (
            "install 1.37.9 --from a.tar.gz --sha512 12".to_owned(),
            "found `12`",
        ),
        ("install 1.37 --from a.tar.gz".to_owned(), "found `1.37`"),
        ("install 1.37.9 --from b.tar.gz".to_owned(), "cannot open"),
    ] {
        refused(&run(&folder, &command), expected);
        assert_eq!(store(&folder), [""; 0]);
    }
    let sum = sha512(&content);
    let ran = run(&folder, &format!("install 1.37.9 --from a.tar.gz --sha512 {sum}")).ok();
    assert_eq!(ran.out, format!("{}\n", leaf(&folder, "1.37.9").display()));
    refused(&run(&folder, "install 1.37.9 --from a.tar.gz"), "pass `--force`");
    let ran = run(&folder, "install 1.37.9 --from a.tar.gz --force").ok();
    assert!(
        ran.err.contains(&format!("its sha512 checksum is {sum}")),
        "{}",
        ran.err
    );
}

#[cfg(unix)]
#[test]
fn does_not_follow_links_in_the_store() {
    let (folder, server) = (Folder::new(), Server::with(&[NEW]));
    let elsewhere = Folder::new();
    for name in ["etcd", "kube-apiserver"] {
        elsewhere.write(name, "precious");
    }
    fs::create_dir_all(folder.path().join("bin/k8s")).expect("a folder");
    std::os::unix::fs::symlink(elsewhere.path(), leaf(&folder, "1.37.2")).expect("a link");
    refused(&run(&folder, "path"), "not installed");
    run(&folder, "remove --all").ok();
    refused(&run_with(&folder, &server, "install"), "cannot create");
    assert_eq!(elsewhere.tree().len(), 2);
}
