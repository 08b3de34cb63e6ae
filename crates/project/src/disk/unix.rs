//! Open directories, accessed through `openat` and related calls.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RawMode, Stat, fcntl_setfl, fstat, fsync, mkdirat, open, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::{Given, Sort, Status};

/// Never follow symlinks, block on pipes, or leak the descriptor to child processes.
const CAREFUL: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How long to wait for a process that writes to a named pipe.
const WRITER: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An open directory.
#[derive(Clone, Debug)]
pub struct Folder(Arc<OwnedFd>);

impl Folder {
    /// Opens a directory by path. Symlinks are followed, because the user chose the path.
    pub fn open(path: &Path) -> io::Result<Folder> {
        // `openat` rejects an empty path; treat it as the current directory.
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let fd = open(
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Folder(Arc::new(fd)))
    }

    pub(crate) fn folder(&self, name: &str) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAREFUL;
        Ok(Folder(Arc::new(openat(&self.0, name, flags, Mode::empty())?)))
    }

    pub(crate) fn status(&self) -> io::Result<Status> {
        Ok(status(&fstat(&self.0)?))
    }

    pub(crate) fn look(&self, name: &str) -> io::Result<Option<Status>> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(status(&found))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn open_file(&self, name: &str, to_write: bool) -> io::Result<File> {
        let access = if to_write { OFlags::RDWR } else { OFlags::RDONLY };
        Ok(openat(&self.0, name, access | CAREFUL, Mode::empty())?.into())
    }

    /// Creates a new file for reading and writing. The umask limits its permissions.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | CAREFUL;
        Ok(openat(&self.0, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    pub(crate) fn create_folder(&self, name: &str) -> io::Result<()> {
        Ok(mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub(crate) fn rename_to_free_name(&self, from: &str, to: &str) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            use rustix::fs::{RenameFlags, renameat_with};
            match renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
                // Not all file systems and kernels support this flag. Fall back to checking first.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                done => return Ok(done?),
            }
        }
        if self.look(to)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.rename(from, to)
    }

    /// Flushes changes to this directory's entries to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }

    pub(crate) fn names(&self) -> io::Result<Vec<(OsString, Sort)>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let sort = match entry.file_type() {
                // Some file systems don't report the file type in directory entries.
                FileType::Unknown => {
                    let found = statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    sort(found.st_mode as RawMode)
                }
                known => sort(known.as_raw_mode()),
            };
            names.push((OsString::from_vec(name.to_vec()), sort));
        }
        Ok(names)
    }
}

pub(crate) fn status_of(file: &File) -> io::Result<Status> {
    Ok(status(&fstat(file)?))
}

pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(PermissionsExt::from_mode(mode))
}

pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Opens a file that the user named on the command line. Symlinks are followed.
///
/// A pipe is read like a file, but without a writer, opening it would block for ever. So this fails
/// unless a process has opened the pipe for writing within [`WRITER`].
pub(crate) fn open_given(path: &Path) -> io::Result<Given> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::empty())?);
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode as RawMode);
    match kind {
        FileType::RegularFile => Ok(Given::File(file)),
        FileType::Fifo => {
            let first = wait_for_writer(&mut file, WRITER)?;
            fcntl_setfl(&file, OFlags::empty())?;
            Ok(Given::Pipe(Box::new(io::Cursor::new(first).chain(file))))
        }
        _ => Ok(Given::Other),
    }
}

/// Waits until a process writes to a pipe that was opened with `NONBLOCK`. Returns what had to be
/// read to find out.
fn wait_for_writer(pipe: &mut File, limit: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let mut first = vec![0; 4096];
    loop {
        match pipe.read(&mut first) {
            // No process has the pipe open for writing.
            Ok(0) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(0) => {
                let message = format!("no process has written to this pipe within {} s", limit.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            }
            Ok(length) => {
                first.truncate(length);
                return Ok(first);
            }
            // The pipe has a writer, and nothing to read yet.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a file if its path, relative to `folder`, contains no symlinks. Returns `None` if it may
/// contain one; the caller must then check each component.
pub(crate) fn open_without_links(folder: &Folder, path: &Path) -> Option<io::Result<File>> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let opened = openat2(
            folder.0.as_fd(),
            path,
            OFlags::RDONLY | CAREFUL,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        );
        match opened {
            Ok(file) => return Some(Ok(file.into())),
            Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => return Some(Err(error.into())),
            // Either the kernel is older than 5.6 or a sandbox blocks the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Err(_) => return None,
        }
    }
    open_parts(folder, path)
}

/// Same as [`open_without_links`], with one call per path component.
fn open_parts(folder: &Folder, path: &Path) -> Option<io::Result<File>> {
    let mut parts = path.components().peekable();
    let mut above: Option<OwnedFd> = None;
    loop {
        // Treat `..` like a symlink, i.e. leave it to the caller.
        let Component::Normal(name) = parts.next()? else {
            return None;
        };
        let of_folder = match parts.peek() {
            Some(_) => OFlags::DIRECTORY,
            None => OFlags::empty(),
        };
        let at = above.as_ref().map_or(folder.0.as_fd(), AsFd::as_fd);
        match openat(at, name, OFlags::RDONLY | CAREFUL | of_folder, Mode::empty()) {
            Ok(file) if parts.peek().is_none() => return Some(Ok(file.into())),
            Ok(inner) => above = Some(inner),
            Err(error @ (Errno::NOENT | Errno::ACCESS)) => return Some(Err(error.into())),
            // A symlink, or a file where a directory was expected.
            Err(_) => return None,
        }
    }
}

// The integer types in `Stat` differ between platforms.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn status(found: &Stat) -> Status {
    Status {
        sort: sort(found.st_mode as RawMode),
        length: u64::try_from(found.st_size).unwrap_or(0),
        inode: found.st_ino as u64,
        device: found.st_dev as u64,
        links: found.st_nlink as u64,
        owner: found.st_uid,
        mode: u32::from(found.st_mode) & 0o777,
        changed: i128::from(found.st_ctime) * 1_000_000_000 + i128::from(found.st_ctime_nsec),
    }
}

fn sort(mode: RawMode) -> Sort {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Sort::File,
        FileType::Directory => Sort::Folder,
        FileType::Symlink => Sort::Link,
        _ => Sort::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods)] // the test creates the files itself
    fn parts_that_are_links_are_not_opened() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let at = |path: &str| top.path().join(path);
        std::fs::create_dir_all(at("a/b")).expect("folders");
        std::fs::write(at("a/b/file"), "text").expect("a file");
        symlink("a", at("linked")).expect("a link");
        symlink("file", at("a/b/link")).expect("a link");
        let folder = Folder::open(top.path()).expect("it is there");
        let opened = |path: &str| open_parts(&folder, Path::new(path));
        let mut text = String::new();
        let file = opened("a/b/file").expect("no link").expect("a file");
        (&file).read_to_string(&mut text).expect("text");
        assert_eq!(text, "text");
        for path in ["linked/b/file", "a/b/link", "a/../a/b/file", "a/b/file/x"] {
            assert!(opened(path).is_none(), "{path}");
        }
        let absent = opened("a/none/file").expect("no link").expect_err("no file");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // the test creates the pipe itself
    fn pipe_is_read_once_it_has_a_writer() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let path = top.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let mut pipe = File::from(open(&path, flags, Mode::empty()).expect("it is there"));
        let error = wait_for_writer(&mut pipe, Duration::from_millis(50)).expect_err("no writer");
        assert_eq!(error.kind(), ErrorKind::TimedOut);

        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut pipe = File::options().write(true).open(path).expect("it is there");
                std::thread::sleep(Duration::from_millis(200));
                std::io::Write::write_all(&mut pipe, &[b'x'; 100_000]).expect("a reader");
            }
        });
        let Given::Pipe(mut pipe) = open_given(&path).expect("a writer") else {
            panic!("expected a pipe");
        };
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("bytes");
        assert_eq!(bytes.len(), 100_000);
        writer.join().expect("it has written");
    }
}
