//! Determines the memory limit of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the memory limit in bytes: the lowest limit of all cgroups of this process (v1 or v2),
/// or the machine's memory if that's less. `None` without procfs.
pub(crate) fn find() -> Option<u64> {
    find_below(Path::new("/"))
}

fn find_below(root: &Path) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(root.join(path)).ok();
    let groups = read(Path::new("proc/self/cgroup")).unwrap_or_default();
    let files = groups.lines().flat_map(limit_files);
    let limits = files.filter_map(|file| read(&file)?.trim().parse().ok());
    let machine = read(Path::new("proc/meminfo")).and_then(|text| total_memory(&text));
    limits.chain(machine).min()
}

/// Returns the files that may contain a limit, given a line of `/proc/self/cgroup`, from the cgroup
/// of the process up to the root.
fn limit_files(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        controllers if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    // Go all the way up to the root. In a container, the path is often the host's, although only
    // the container's cgroup is mounted.
    let group = Path::new(path.trim_start_matches('/'));
    let groups = group.ancestors();
    groups
        .map(|group| Path::new(mount).join(group).join(file))
        .collect()
}

/// Converts from the KiB of `/proc/meminfo`.
fn total_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: u64 = 1024 * 1024;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<u64>) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(find_below(root.path()), expected, "{files:?}");
    }

    #[test]
    fn smallest_limit_wins() {
        let machine = ("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
        check(&[], None);
        check(&[machine], Some(2 * MEBIBYTE));
        let v2 = ("proc/self/cgroup", "0::/kubepods/pod1\n");
        check(
            &[machine, v2, ("sys/fs/cgroup/memory.max", "max\n")],
            Some(2 * MEBIBYTE),
        );
        check(
            &[machine, v2, ("sys/fs/cgroup/memory.max", "1048576\n")],
            Some(MEBIBYTE),
        );
        let parent = ("sys/fs/cgroup/kubepods/memory.max", "4096\n");
        let own = ("sys/fs/cgroup/kubepods/pod1/memory.max", "8192\n");
        check(&[machine, v2, parent, own], Some(4096));
    }

    #[test]
    fn cgroup_v1_limits_are_found() {
        let groups = ("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/1\n");
        let own = ("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "4096\n");
        let unlimited = (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        check(&[groups, own, unlimited], Some(4096));
        check(
            &[groups, unlimited, ("proc/meminfo", "MemTotal: 4 kB\n")],
            Some(4096),
        );
    }

    #[test]
    fn malformed_cgroup_lines_are_ignored() {
        check(
            &[("proc/self/cgroup", "nonsense\n:\n0:\n"), ("proc/meminfo", "?\n")],
            None,
        );
    }
}
