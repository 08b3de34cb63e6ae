//! Reads published packages, which are gzip-compressed tar archives, in memory.
//!
//! The checksum proves that an archive is the one named in `Cargo.lock`. It does not prove that the
//! archive is harmless. So we write nothing to disk, follow no links, accept only plain names, and
//! limit both the unpacked size and the cached texts.
//!
//! We don't use the crates `tar` and `flate2`. Builds of the command without `dev` and `envtest`
//! depend on neither, and it takes less code to read regular files than to enforce these rules with
//! them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};

/// Cargo has the same limit.
const LARGEST_UNPACKED: u64 = 512 << 20;

/// The text of a file, or `None` if it does not exist. The error is the reason why it cannot be
/// read.
pub(super) type Text = Result<Option<Arc<str>>, String>;

/// Maximum total size in bytes of the texts kept from all archives, including their names. The
/// largest packages, generated from hundreds of CRDs or from system headers, need half of it.
pub(super) const LARGEST_KEPT: usize = 256 << 20;

const LONGEST_NAME: u64 = 64 << 10;

/// Memory used by each file in addition to its text and name, in bytes.
const COST_OF_FILE: usize = 128;

/// Size of the blocks that make up a tar archive.
const BLOCK: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) texts: BTreeMap<String, Text>,
    /// Memory used by the texts, in bytes.
    pub(super) size: usize,
}

/// Reads the manifest of a package and stops there. The error is a phrase.
pub(super) fn read_manifest(archive: &[u8], folder: &str) -> Result<Text, String> {
    let mut found = read(archive, folder, &|path| path == MANIFEST, true, LARGEST_KEPT)?;
    found
        .texts
        .remove(MANIFEST)
        .ok_or_else(|| format!("it has no `{MANIFEST}`"))
}

/// Reads a package's Rust files. Fails if the archive is damaged, if its texts need more than
/// `limit` bytes, or if a file is not in `folder`, where Cargo puts all files. The error is a
/// phrase.
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

/// The path of a member below the directory of the package, or `None` for that directory itself.
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

/// Iterates over the members of a tar archive. The caller must read or skip each member's content.
struct Members<'a> {
    input: Gunzip<'a>,
    long_name: Option<String>,
}

struct Member {
    name: String,
    size: u64,
    /// True for a regular file, false for a directory, a link or anything else.
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
                // These are long names. `L` is GNU's format, which Cargo writes, and `x` is the
                // POSIX format.
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
                // Headers that apply to several members, and long link targets, don't matter here.
                b'g' | b'K' => self.skip(size)?,
                sort => {
                    let name = self.long_name.take().unwrap_or_else(|| name_of(&header));
                    let is_file = matches!(sort, b'0' | b'\0');
                    return Ok(Some(Member { name, size, is_file }));
                }
            }
        }
    }

    /// Reads the content of a member. The caller must have checked its size.
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

/// The name in a header. The POSIX format may store the beginning of a long path in a second field.
fn name_of(header: &[u8; BLOCK]) -> String {
    let name = text_of(&header[..100]);
    let prefix = text_of(&header[345..500]);
    match &header[257..263] {
        b"ustar\0" if !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name.to_owned(),
    }
}

/// A field up to its first zero byte. A name that is not UTF-8 cannot belong to a module, so we
/// don't need its text.
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

/// Decompresses the first member of a gzip file, as Cargo does. We ignore gzip's own checksum,
/// because we have verified the SHA-256 of the whole file.
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
