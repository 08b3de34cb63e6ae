//! Versions and platforms, and the names of archives and store directories, which contain both.

use std::fmt;
use std::str::FromStr;

/// A released version of Kubernetes, e.g. `1.35.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major version, so far always 1.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    /// Patch version.
    pub patch: u32,
}

impl FromStr for Version {
    type Err = ();

    /// Parses e.g. `1.35.2`. Pre-releases aren't supported.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.splitn(3, '.').map(parse_number);
        let mut next = || numbers.next().flatten().ok_or(());
        Ok(Version {
            major: next()?,
            minor: next()?,
            patch: next()?,
        })
    }
}

/// Parses a number in canonical form, i.e. without sign and leading zeros.
pub fn parse_number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Operating system and processor architecture in Go's terms, e.g. `linux/amd64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Platform {
    /// The operating system, e.g. `linux`, `darwin`, `windows`.
    pub os: String,
    /// The processor architecture, e.g. `amd64`, `arm64`.
    pub arch: String,
}

impl Platform {
    /// Returns the platform that this program was built for.
    pub fn current() -> Platform {
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            os => os,
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            arch => arch,
        };
        Platform {
            os: os.to_owned(),
            arch: arch.to_owned(),
        }
    }

    /// The file name of a program on this platform.
    pub fn file_name(&self, program: &str) -> String {
        match self.os.as_str() {
            "windows" => format!("{program}.exe"),
            _ => program.to_owned(),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.arch)
    }
}

/// A version for a platform, corresponding to an archive or a directory in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The version of Kubernetes.
    pub version: Version,
    /// The platform that the programs run on.
    pub platform: Platform,
}

impl Release {
    /// Parses an archive name, e.g. `envtest-v1.35.2-linux-amd64.tar.gz`.
    pub fn from_archive(name: &str) -> Option<Release> {
        let name = name.strip_prefix("envtest-v")?.strip_suffix(".tar.gz")?;
        Release::from_directory(name)
    }

    /// Parses a directory name, e.g. `1.35.2-linux-amd64`.
    pub fn from_directory(name: &str) -> Option<Release> {
        let mut parts = name.split('-');
        let version = parts.next()?.parse().ok()?;
        let (os, arch) = (parts.next()?, parts.next()?);
        if parts.next().is_some() || !is_word(os) || !is_word(arch) {
            return None;
        }
        let (os, arch) = (os.to_owned(), arch.to_owned());
        Some(Release {
            version,
            platform: Platform { os, arch },
        })
    }

    /// Name of the directory in the store.
    pub fn directory(&self) -> String {
        format!("{}-{}-{}", self.version, self.platform.os, self.platform.arch)
    }
}

/// Returns true if a string is valid as part of a platform and of a file name.
pub fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_archive_names() {
        let check = |name: &str, expected: Option<&str>| {
            let found = Release::from_archive(name).map(|release| release.directory());
            assert_eq!(found.as_deref(), expected, "{name}");
        };
        check("envtest-v1.36.2-linux-amd64.tar.gz", Some("1.36.2-linux-amd64"));
        check("envtest-v1.28.0-darwin-arm64.tar.gz", Some("1.28.0-darwin-arm64"));
        for name in [
            "envtest-v1.35.0-alpha.3-linux-amd64.tar.gz",
            "envtest-v1.36-linux-amd64.tar.gz",
            "envtest-v1.036.2-linux-amd64.tar.gz",
            "envtest-v1.36.2-linux-../x.tar.gz",
            "envtest-v1.36.2-linux-amd64-x.tar.gz",
            "envtest-v1.36.2-linux-amd64.zip",
            "1.36.2-linux-amd64",
        ] {
            check(name, None);
        }
    }

    #[test]
    fn versions_compare_numerically() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("1.9.10") < version("1.36.2"));
        assert!(version("1.36.2") < version("1.36.10"));
        for text in ["1.36", "v1.36.2", "1.36.2-rc.1", "1.36.x", "1.+6.2", ""] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }
}
