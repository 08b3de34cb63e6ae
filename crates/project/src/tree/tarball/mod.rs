//! Reads published packages, i.e. gzip-compressed tar archives, in memory.
//!
//! The checksum proves that an archive is the one named in `Cargo.lock`, not that it is harmless.
//! So we write nothing to disk, follow no links, accept only plain names, and limit both the
//! unpacked size and the cached texts.
//!
//! We don't use the crates `tar` and `flate2`: builds without `dev` and `envtest` don't depend on
//! either, and reading regular files takes less code than enforcing these rules on top of them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};

/// Same limit as in Cargo.
const LARGEST_UNPACKED: u64 = 512 << 20;

/// The text of a file, or `None` if it does not exist. The error explains why it can't be read.
pub(super) type Text = Result<Option<Arc<str>>, String>;

/// Maximum total size in bytes of the cached texts of all archives, including names. The largest
/// packages, generated from hundreds of CRDs or from system headers, need half of it.
pub(super) const LARGEST_KEPT: usize = 256 << 20;

const LONGEST_NAME: u64 = 64 << 10;

/// Overhead in bytes of each file, on top of its text and name.
const COST_OF_FILE: usize = 128;

const BLOCK: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) texts: BTreeMap<String, Text>,
    pub(super) size: usize,
}

/// Reads a package's manifest, and nothing beyond it. The error is a phrase.
pub(super) fn read_manifest(archive: &[u8], folder: &str) -> Result<Text, String> {
    let mut found = read(archive, folder, &|path| path == MANIFEST, true, LARGEST_KEPT)?;
    found
        .texts
        .remove(MANIFEST)
        .ok_or_else(|| format!("it has no `{MANIFEST}`"))
}

/// Reads a package's Rust files. Fails if the archive is damaged, if its texts exceed `limit`
/// bytes, or if a file is outside of `folder`, where Cargo puts all files. The error is a phrase.
pub(super) fn read_texts(archive: &[u8], folder: &str, limit: usize) -> Result<Texts, String> {
    read(archive, folder, &|path| path.ends_with(".rs"), false, limit)
}

const MANIFEST: &str = "Cargo.toml";

fn read(
    archive: &[u8],
    folder: &str,
    keeps: &dyn Fn(&str) -> bool,
    first_only: bool,
    limit: usize,
) -> Result<Texts, String> {
    let mut members = Members {
        input: Gunzip::new(archive)?,
        long_name: None,
    };
    let mut found = Texts::default();
    while let Some(member) = members.next()? {
        let Some(path) = path_below(&member.name, folder)?.filter(|path| member.is_file && keeps(path))
        else {
            members.skip(member.size)?;
            continue;
        };
        let cost = usize::try_from(member.size)
            .map_or(usize::MAX, |size| size.saturating_add(path.len() + COST_OF_FILE));
        found.size = cost.saturating_add(found.size);
        if found.size > limit {
            return Err(format!(
                "the source of published packages exceeds the limit of {} MiB",
                LARGEST_KEPT >> 20
            ));
        }
        let path = path.to_owned();
        let bytes = members.content(member.size)?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_owned());
        found.texts.insert(path, text.map(|text| Some(Arc::from(text))));
        if first_only {
            break;
        }
    }
    Ok(found)
}

/// Path of a member relative to the package's directory, or `None` for the directory itself.
fn path_below<'a>(name: &'a str, folder: &str) -> Result<Option<&'a str>, String> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    let name = name.strip_suffix('/').unwrap_or(name);
    let below = name.strip_prefix(folder);
    match below.map(|below| below.strip_prefix('/').unwrap_or(below)) {
        Some("") => Ok(None),
        Some(path) if name.as_bytes()[folder.len()] == b'/' && path.split('/').all(is_plain) => {
            Ok(Some(path))
        }
        _ => Err(format!(
            "expected files in `{folder}`, found `{}`",
            name.chars().take(100).collect::<String>().escape_debug()
        )),
    }
}

/// Iterates over the members of a tar archive. The caller must read or skip the content of each.
struct Members<'a> {
    input: Gunzip<'a>,
    long_name: Option<String>,
}

struct Member {
    name: String,
    size: u64,
    /// Whether this is a regular file rather than a directory, a link or anything else.
    is_file: bool,
}

impl Members<'_> {
    fn next(&mut self) -> Result<Option<Member>, String> {
        loop {
            let mut header = [0; BLOCK];
            self.fill(&mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            let size = octal(&header[124..136]).ok_or("a header has no valid size")?;
            match header[156] {
                // Long names: `L` is the GNU format, which Cargo writes, and `x` is the POSIX
                // format.
                sort @ (b'L' | b'x') if size <= LONGEST_NAME => {
                    let content = self.content(size)?;
                    let name = match sort {
                        b'L' => Some(content.as_slice()),
                        _ => posix_path(&content),
                    };
                    let name = name.map(|name| text_of(name).to_owned());
                    self.long_name = name.or(self.long_name.take());
                }
                b'L' | b'x' => return Err("a name is too long".to_owned()),
                // Global headers and long link targets don't matter here.
                b'g' | b'K' => self.skip(size)?,
                sort => {
                    let name = self.long_name.take().unwrap_or_else(|| name_of(&header));
                    let is_file = matches!(sort, b'0' | b'\0');
                    return Ok(Some(Member { name, size, is_file }));
                }
            }
        }
    }

    /// Reads a member's content. The size was checked by the caller.
    fn content(&mut self, size: u64) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let taken = (&mut self.input).take(size).read_to_end(&mut content);
        if taken.map_err(|error| error.to_string())? as u64 != size {
            return Err("it ends in the middle of a file".to_owned());
        }
        self.skip_padding(size)?;
        Ok(content)
    }

    fn skip(&mut self, size: u64) -> Result<(), String> {
        let skipped = io::copy(&mut (&mut self.input).take(size), &mut io::sink());
        if skipped.map_err(|error| error.to_string())? != size {
            return Err("it ends in the middle of a file".to_owned());
        }
        self.skip_padding(size)
    }

    fn skip_padding(&mut self, size: u64) -> Result<(), String> {
        let padding = (BLOCK - (size % BLOCK as u64) as usize) % BLOCK;
        self.fill(&mut [0; BLOCK][..padding])
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        self.input.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it has no end".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// The name in a header. In the POSIX format, the beginning of a long path may be in a second
/// field.
fn name_of(header: &[u8; BLOCK]) -> String {
    let name = text_of(&header[..100]);
    let prefix = text_of(&header[345..500]);
    match &header[257..263] {
        b"ustar\0" if !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name.to_owned(),
    }
}

/// A field up to its first NUL. A name that isn't UTF-8 can't belong to a module, so its text
/// doesn't matter.
fn text_of(field: &[u8]) -> &str {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(&field[..end]).unwrap_or("\u{fffd}")
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = text_of(field).trim_matches(' ');
    u64::from_str_radix(digits, 8).ok()
}

/// The value of `path` in records such as `20 path=a/b/c`.
fn posix_path(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        let record = rest.get(end + 1..length)?;
        if let Some(value) = record.strip_prefix(b"path=") {
            return value.strip_suffix(b"\n");
        }
        rest = &rest[length..];
    }
    None
}

/// Decompresses the first member of a gzip file, like Cargo does. The gzip checksum is ignored,
/// since the SHA-256 of the whole file was verified.
struct Gunzip<'a> {
    input: &'a [u8],
    state: Box<InflateState>,
    left: u64,
}

impl<'a> Gunzip<'a> {
    fn new(archive: &'a [u8]) -> Result<Self, String> {
        Ok(Gunzip {
            input: skip_header(archive).ok_or("it is not a gzip file")?,
            state: InflateState::new_boxed(DataFormat::Raw),
            left: LARGEST_UNPACKED,
        })
    }
}

fn skip_header(archive: &[u8]) -> Option<&[u8]> {
    let flags = *archive.strip_prefix(&[0x1f, 0x8b, 8])?.first()?;
    let mut rest = archive.get(10..)?;
    if flags & 4 != 0 {
        let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
        rest = rest.get(2 + length..)?;
    }
    // Skip the file name and the comment.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

impl Read for Gunzip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = inflate(&mut self.state, self.input, buffer, MZFlush::None);
            self.input = &self.input[result.bytes_consumed..];
            if result.bytes_written > 0 {
                self.left = self
                    .left
                    .checked_sub(result.bytes_written as u64)
                    .ok_or_else(|| io::Error::other("the unpacked archive is too large"))?;
                return Ok(result.bytes_written);
            }
            match result.status {
                Ok(MZStatus::StreamEnd) => return Ok(0),
                Ok(_) if result.bytes_consumed > 0 => {}
                _ => return Err(io::Error::other("it is damaged")),
            }
        }
    }
}

#[cfg(test)]
mod tests;
