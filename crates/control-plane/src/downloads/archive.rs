//! Unpacks archives. An archive isn't trusted, so it may only write plain files into a single
//! directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use crate::{PROGRAMS, Platform, has_program};

/// Maximum unpacked size of an archive in bytes. Published archives have 200 MB.
pub const LARGEST: u64 = 2 << 30;

const MOST_MEMBERS: usize = 1000;

/// Unpacks a gzip-compressed tarball. Regular files are written under their base name, readable and
/// executable.
///
/// Long names and other extensions are ignored, i.e. members have the short name from their header.
/// Extensions could exhaust the memory, and no program that we need has such a long name.
///
/// # Errors
///
/// Returns an error if the archive is damaged, too large or incomplete, if a member is neither a
/// regular file nor a directory, or if its name is unsafe or not unique. The directory may contain
/// some of the files then.
pub fn unpack(archive: impl Read, folder: &Path, platform: &Platform, largest: u64) -> Result<()> {
    let mut archive = Archive::new(Bounded {
        inner: MultiGzDecoder::new(archive),
        left: largest,
    });
    for (count, entry) in archive.entries()?.raw(true).enumerate() {
        if count == MOST_MEMBERS {
            bail!("expected at most {MOST_MEMBERS} members in the archive");
        }
        let mut entry = entry.context("cannot read the archive")?;
        if let Some(name) = file_name(&entry)? {
            write_member(&mut entry, &folder.join(&name))
                .with_context(|| format!("cannot unpack `{name}`"))?;
        }
    }
    // Read to EOF, where gzip stores the checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).context("cannot read the archive")?;
    check_programs(folder, platform)
}

/// Returns `None` for members without content, e.g. directories.
fn file_name(entry: &Entry<'_, impl Read>) -> Result<Option<String>> {
    let path = entry.path_bytes();
    let path = String::from_utf8_lossy(&path);
    match entry.header().entry_type() {
        EntryType::Regular => {}
        EntryType::Directory
        | EntryType::XHeader
        | EntryType::XGlobalHeader
        | EntryType::GNULongName
        | EntryType::GNULongLink => return Ok(None),
        other => bail!("expected regular files in the archive, found `{path}` of type {other:?}"),
    }
    // Reject absolute paths and `..`, even though only the base name is used.
    let is_inside = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    let name = Path::new(&*path).file_name().and_then(|name| name.to_str());
    match name {
        Some(name) if Path::new(&*path).components().all(is_inside) && is_plain(name) => {
            Ok(Some(name.to_owned()))
        }
        _ => bail!("expected file names such as `etcd` in the archive, found `{path}`"),
    }
}

/// Only allows names with the same meaning on every system. Windows, for example, ignores a
/// trailing dot.
fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.ends_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn write_member(entry: &mut Entry<'_, impl Read>, path: &Path) -> Result<()> {
    let size = entry.header().size()?;
    // Fails if the file exists, e.g. because of duplicate members. Doesn't follow links either.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let copied = io::copy(entry, &mut file)?;
    if copied != size {
        bail!("the archive ends after {copied} of {size} bytes");
    }
    make_executable(&file)?;
    // Sync before the directory gets its final name, which marks it as complete even after a power
    // failure.
    file.sync_all()?;
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o555))
}

#[cfg(not(unix))]
fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}

fn check_programs(folder: &Path, platform: &Platform) -> Result<()> {
    for program in PROGRAMS {
        if !has_program(folder, platform, program) {
            bail!("the archive has no `{}`", platform.file_name(program));
        }
    }
    Ok(())
}

struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other("the unpacked archive is too large")),
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    const ETCD: (&str, EntryType, &[u8]) = ("controller-tools/envtest/etcd", EntryType::Regular, b"etcd");
    const SERVER: (&str, EntryType, &[u8]) = (
        "controller-tools/envtest/kube-apiserver",
        EntryType::Regular,
        b"server",
    );

    /// Writes names as they are, so that tests can use unsafe ones.
    fn archive(members: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, sort, content) in members {
            let mut header = Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
            header.set_entry_type(*sort);
            header.set_size(content.len() as u64);
            header.set_mode(0o4777);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    fn unpack_here(archive: &[u8]) -> (tempfile::TempDir, Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let platform = Platform {
            os: "linux".into(),
            arch: "amd64".into(),
        };
        let inside = folder.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let unpacked = unpack(archive, &inside, &platform, 1 << 20);
        (folder, unpacked)
    }

    #[test]
    fn unpacks_files_under_their_base_names() {
        let folder = ("controller-tools/", EntryType::Directory, &b""[..]);
        let long = ("././@LongLink", EntryType::GNULongName, &b"../../x\0"[..]);
        let (temp, unpacked) = unpack_here(&archive(&[folder, ETCD, long, SERVER]));
        unpacked.unwrap();
        let inside = temp.path().join("inside");
        assert_eq!(std::fs::read(inside.join("etcd")).unwrap(), b"etcd");
        assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 2);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = inside
                .join("kube-apiserver")
                .metadata()
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o7777, 0o555);
        }
    }

    #[test]
    fn rejects_hostile_members() {
        let file = EntryType::Regular;
        for (name, sort, expected) in [
            ("../etcd", file, "found `../etcd`"),
            ("a/../../etcd", file, "found `a/../../etcd`"),
            ("/etc/passwd", file, "found `/etc/passwd`"),
            ("a/.hidden", file, "found `a/.hidden`"),
            ("a/b\\c", file, "found `a/b\\c`"),
            ("a/c:d", file, "found `a/c:d`"),
            ("..", file, "found `..`"),
            ("other/etcd", file, "cannot unpack `etcd`"),
            ("link", EntryType::Symlink, "`link` of type Symlink"),
            ("link", EntryType::Link, "`link` of type Link"),
            ("pipe", EntryType::Fifo, "`pipe` of type Fifo"),
            ("disk", EntryType::Block, "`disk` of type Block"),
            ("sparse", EntryType::GNUSparse, "`sparse` of type GNUSparse"),
        ] {
            let (temp, unpacked) = unpack_here(&archive(&[ETCD, SERVER, (name, sort, b"")]));
            let error = format!("{:#}", unpacked.unwrap_err());
            assert!(error.contains(expected), "{name}: {error}");
            assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "{name}");
        }
    }

    #[test]
    fn rejects_incomplete_and_damaged_archives() {
        let whole = archive(&[ETCD, SERVER]);
        let plenty: Vec<_> = (0..=MOST_MEMBERS)
            .map(|_| ("a/", EntryType::Directory, &b""[..]))
            .collect();
        let large = vec![0; 2 << 20];
        for (archive, expected) in [
            (archive(&[ETCD]), "no `kube-apiserver`"),
            (archive(&[("etcd", EntryType::Regular, b""), SERVER]), "no `etcd`"),
            (
                archive(&[ETCD, SERVER, ("large", EntryType::Regular, &large)]),
                "too large",
            ),
            (archive(&plenty), "at most 1000 members"),
            (b"not gzip".to_vec(), "cannot read the archive"),
            (Vec::new(), "cannot read the archive"),
        ] {
            let error = format!("{:#}", unpack_here(&archive).1.unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        for length in 0..whole.len() {
            assert!(unpack_here(&whole[..length]).1.is_err(), "{length}");
        }
    }
}
