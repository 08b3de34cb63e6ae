use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

type Part<'a> = (&'a str, EntryType, &'a [u8]);

const LIMIT: usize = 1 << 20;
const FILE: EntryType = EntryType::Regular;
const LIB: Part<'_> = ("a-1.0.0/src/lib.rs", FILE, b"struct A;");
const TOML: Part<'_> = ("a-1.0.0/Cargo.toml", FILE, b"[package]");

/// Builds an archive with the given members, with unmodified names.
fn archive(members: &[Part<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, sort, content) in members {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
        header.set_entry_type(*sort);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn paths(archive: &[u8]) -> Result<Vec<String>, String> {
    let found = read_texts(archive, "a-1.0.0", LIMIT);
    found.map(|found| found.texts.into_keys().collect())
}

#[test]
fn reads_rust_files_and_the_manifest() {
    let other = ("a-1.0.0/README.md", FILE, &b"\xff"[..]);
    let bad = ("a-1.0.0/src/bad.rs", FILE, &b"\xff"[..]);
    let folder = ("a-1.0.0/src/", EntryType::Directory, &b""[..]);
    let archive = archive(&[folder, other, TOML, LIB, bad]);
    let found = read_texts(&archive, "a-1.0.0", LIMIT).unwrap();
    assert_eq!(
        found.texts.into_iter().collect::<Vec<_>>(),
        [
            ("src/bad.rs".to_owned(), Err("it is not valid UTF-8".to_owned())),
            ("src/lib.rs".to_owned(), Ok(Some("struct A;".into()))),
        ]
    );
    let manifest = read_manifest(&archive, "a-1.0.0").unwrap();
    assert_eq!(manifest, Ok(Some("[package]".into())));
}

#[test]
fn reads_long_names_in_both_formats() {
    let long = format!("a-1.0.0/src/{}.rs", "x".repeat(150));
    let gnu = ("././@LongLink", EntryType::GNULongName, long.as_bytes());
    let record = format!("30 mtime=1700000000.123456789\n{} path={long}\n", long.len() + 10);
    let posix = ("PaxHeaders/x", EntryType::XHeader, record.as_bytes());
    for header in [gnu, posix] {
        let found = paths(&archive(&[header, ("a-1.0.0/short", FILE, b"fn f() {}"), LIB])).unwrap();
        assert_eq!(found, ["src/lib.rs", &long["a-1.0.0/".len()..]], "{header:?}");
    }
}

#[test]
fn skips_links_and_devices() {
    for sort in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Block,
        EntryType::GNUSparse,
    ] {
        let found = paths(&archive(&[("a-1.0.0/src/passwd.rs", sort, b""), LIB]));
        assert_eq!(found, Ok(vec!["src/lib.rs".to_owned()]), "{sort:?}");
    }
}

#[test]
fn rejects_files_outside_of_the_package() {
    for name in [
        "../a.rs",
        "a-1.0.0/../a.rs",
        "a-1.0.0//a.rs",
        "a-1.0.0/./a.rs",
        "/a-1.0.0/a.rs",
        "a-1.0.0x/a.rs",
        "b-1.0.0/a.rs",
        "a-1.0.0/a\\..\\b.rs",
        "a.rs",
    ] {
        let reason = paths(&archive(&[LIB, (name, FILE, b"")])).unwrap_err();
        assert!(
            reason.starts_with("expected files in `a-1.0.0`, found"),
            "{name}: {reason}"
        );
    }
}

#[test]
fn rejects_damaged_and_large_archives() {
    let whole = archive(&[TOML, LIB]);
    assert_eq!(paths(&whole), Ok(vec!["src/lib.rs".to_owned()]));
    for length in 0..whole.len() - 8 {
        // The trailing bytes are gzip's checksum and length.
        assert!(
            paths(&whole[..length]).is_err() || length > whole.len() - 16,
            "{length}"
        );
    }
    let large = vec![b' '; LIMIT];
    let name = vec![b'x'; LONGEST_NAME as usize + 1];
    let mut huge = Header::new_gnu();
    huge.set_path("a-1.0.0/src/huge.rs").unwrap();
    huge.set_size(1 << 32);
    huge.set_cksum();
    let mut bomb = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    bomb.append(&huge, &b""[..]).unwrap();
    let huge = bomb.into_inner().unwrap().finish().unwrap();
    for (archive, expected) in [
        (
            archive(&[("a-1.0.0/src/large.rs", FILE, &large)]),
            "exceeds the limit of 256 MiB",
        ),
        (huge, "exceeds the limit of 256 MiB"),
        (
            archive(&[("l", EntryType::GNULongName, &name)]),
            "a name is too long",
        ),
        (b"not gzip".to_vec(), "it is not a gzip file"),
        (Vec::new(), "it is not a gzip file"),
        (
            vec![0x1f, 0x8b, 8, 0xff, 0, 0, 0, 0, 0, 0],
            "it is not a gzip file",
        ),
    ] {
        let reason = paths(&archive).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(
        read_manifest(&archive(&[LIB]), "a-1.0.0").unwrap_err(),
        "it has no `Cargo.toml`"
    );
}

/// Zeros compress about 1000:1.
#[test]
fn decompression_stops_at_the_limit() {
    let zeros = vec![0; 4 << 20];
    let bomb = archive(&[("a-1.0.0/zeros", FILE, &zeros)]);
    assert_eq!(paths(&bomb), Ok(Vec::new()));
    let mut input = Gunzip::new(&bomb).unwrap();
    input.left = 1 << 20;
    let error = io::copy(&mut input, &mut io::sink()).unwrap_err().to_string();
    assert_eq!(error, "the unpacked archive is too large");
}
