//! How much memory the machine has, and how much of it the process's control groups grant.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io};

/// Where nothing can be learned.
const OTHERWISE: u64 = 2 << 30;

/// Limits from here on are version 1's way to say that there is none.
const NO_LIMIT: u64 = 1 << 60;

/// Bytes of memory that this process can hope for: what the machine has, or the least limit of the
/// process's control groups (version 1 or 2). Looked up once.
pub fn machine_memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        // More than an address space has room for is of no use.
        memory_below(Path::new("/")).unwrap_or(OTHERWISE).min(isize::MAX as u64)
    })
}

/// The least of what the files below `root` say.
fn memory_below(root: &Path) -> Option<u64> {
    let text = |path: &str| fs::read_to_string(root.join(path));
    let machine = text("proc/meminfo").ok().and_then(|text| total_memory(&text));
    let groups = text("proc/self/cgroup")
        .and_then(|groups| Ok(directories(&groups, &text("proc/self/mountinfo")?)))
        .unwrap_or_default();
    let limits = groups.iter().filter_map(|directories| least_limit(root, directories));
    machine.into_iter().chain(limits).min()
}

/// Bytes of memory, by the text of `/proc/meminfo`, which says kibibytes.
fn total_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The directories of a control group and of all those around it.
#[derive(Debug, PartialEq, Eq)]
struct Directories {
    version: Version,
    /// Where the hierarchy is mounted.
    mount: PathBuf,
    /// The group within.
    group: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The directories with the limits of this process, by the contents of `/proc/self/cgroup` and
/// `/proc/self/mountinfo`.
fn directories(groups: &str, mounts: &str) -> Vec<Directories> {
    let mut found = Vec::new();
    for line in groups.lines() {
        // A number, the controllers, the group.
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let version = match controllers {
            "" => Version::Two,
            _ if controllers.split(',').any(|controller| controller == "memory") => Version::One,
            _ => continue,
        };
        found.extend(mounts.lines().filter_map(|line| mounted(line, version, Path::new(group))));
    }
    found
}

/// Where a group is, if a line of `/proc/self/mountinfo` mounts its hierarchy.
fn mounted(line: &str, version: Version, group: &Path) -> Option<Directories> {
    // Number, parent, device, root, mount point, options, any number of further fields, a dash; the
    // kind of file system, its source, its own options.
    let (mount, file_system) = line.split_once(" - ")?;
    let mut file_system = file_system.split(' ');
    let (kind, options) = (file_system.next()?, file_system.nth(1)?);
    let is_it = match version {
        Version::One => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        Version::Two => kind == "cgroup2",
    };
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (unescaped(mount.next()?), unescaped(mount.next()?));
    // The mount may show a part of the hierarchy. A group that is outside of it, as seen from
    // another namespace, has its part mounted if anything.
    let group = group.strip_prefix(&root).unwrap_or(Path::new(""));
    let is_plain = group.components().all(|part| matches!(part, Component::Normal(_)));
    let group = if is_plain { group.to_owned() } else { PathBuf::new() };
    is_it.then(|| Directories { version, mount: point.into(), group })
}

/// Spaces and such are written as a backslash and three octal digits.
fn unescaped(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                text.push(char::from(code));
                text.push_str(&part[3..]);
            }
            None => {
                text.push('\\');
                text.push_str(part);
            }
        }
    }
    text
}

/// The least limit of a group and those around it.
fn least_limit(root: &Path, directories: &Directories) -> Option<u64> {
    let Directories { version, mount, group } = directories;
    // Above `memory.high` a process is slowed down until it is of no use.
    let files: &[&str] = match version {
        Version::One => &["memory.limit_in_bytes"],
        Version::Two => &["memory.max", "memory.high"],
    };
    let mount = root.join(mount.strip_prefix("/").unwrap_or(mount));
    let groups = group.ancestors().map(|group| mount.join(group));
    let paths = groups.flat_map(|directory| files.iter().map(move |file| directory.join(file)));
    paths.filter_map(|path| limit(fs::read_to_string(path))).min()
}

/// What a limit's file says; `None` for no limit, which is also said by there being no file.
fn limit(text: io::Result<String>) -> Option<u64> {
    let limit = text.ok()?.trim().parse().ok()?;
    (limit < NO_LIMIT).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const MIB: u64 = 1 << 20;

    /// A machine of 16 GiB, with files.
    fn machine(files: &[(&str, &str)]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let meminfo = ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
        for (path, text) in files.iter().chain([&meminfo]) {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn memory_of(files: &[(&str, &str)]) -> Option<u64> {
        memory_below(machine(files).path())
    }

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
        24 30 0:5 / /proc rw - proc proc rw\n";

    const V1_MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 master:1 - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    const V1_NONE: &str = "9223372036854771712\n";

    #[test]
    fn the_machine_says_kibibytes() {
        assert_eq!(total_memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16384 * 1024));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
        assert_eq!(total_memory("MemTotal: 18446744073709551615 kB\n"), None);
        assert!(machine_memory() > 0);
    }

    #[test]
    fn without_control_groups_the_machine_counts() {
        assert_eq!(memory_of(&[]), Some(16 << 30));
        let only_groups = ("proc/self/cgroup", "0::/user\n");
        assert_eq!(memory_of(&[only_groups]), Some(16 << 30));
        assert_eq!(memory_of(&[only_groups, ("proc/self/mountinfo", V2_MOUNT)]), Some(16 << 30));
    }

    #[test]
    fn nothing_is_learned_from_nothing() {
        assert_eq!(memory_below(tempfile::tempdir().unwrap().path()), None);
    }

    #[test]
    fn the_least_limit_of_nested_groups_counts() {
        let files = |own: &'static str, middle: &'static str, high: &'static str| {
            [
                ("proc/self/cgroup", "0::/a/b c\n"),
                ("proc/self/mountinfo", V2_MOUNT),
                ("sys/fs/cgroup/a/b c/memory.max", own),
                ("sys/fs/cgroup/a/memory.max", middle),
                ("sys/fs/cgroup/a/memory.high", high),
            ]
        };
        assert_eq!(memory_of(&files("1048576\n", "max\n", "max\n")), Some(MIB));
        assert_eq!(memory_of(&files("1048576\n", "4096\n", "max\n")), Some(4096));
        assert_eq!(memory_of(&files("max\n", "1048576\n", "8192\n")), Some(8192));
        assert_eq!(memory_of(&files("max\n", "max\n", "max\n")), Some(16 << 30));
        assert_eq!(memory_of(&files("what\n", "", "-1\n")), Some(16 << 30));
    }

    #[test]
    fn in_a_namespace_the_mount_is_the_group() {
        let limit = ("sys/fs/cgroup/memory.max", "1048576\n");
        for group in ["0::/\n", "0::/../elsewhere\n"] {
            let files = [("proc/self/cgroup", group), ("proc/self/mountinfo", V2_MOUNT), limit];
            assert_eq!(memory_of(&files), Some(MIB), "{group}");
        }
    }

    #[test]
    fn version_one_has_its_own_hierarchy() {
        let groups = "9:name=systemd:/x\n4:cpu,memory:/jobs/one\n0::/x\n";
        let files = |own: &'static str, around: &'static str| {
            [
                ("proc/self/cgroup", groups),
                ("proc/self/mountinfo", V1_MOUNTS),
                ("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", own),
                ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", around),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NONE),
            ]
        };
        assert_eq!(memory_of(&files("1048576\n", V1_NONE)), Some(MIB));
        assert_eq!(memory_of(&files(V1_NONE, "2097152\n")), Some(2 * MIB));
        assert_eq!(memory_of(&files(V1_NONE, V1_NONE)), Some(16 << 30));
    }

    #[test]
    fn no_limit_of_version_one_is_none_without_a_machine() {
        let directory = machine(&[
            ("proc/self/cgroup", "4:memory:/\n"),
            ("proc/self/mountinfo", V1_MOUNTS),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", V1_NONE),
        ]);
        fs::remove_file(directory.path().join("proc/meminfo")).unwrap();
        assert_eq!(memory_below(directory.path()), None);
    }

    #[test]
    fn a_container_has_its_own_group_mounted() {
        let mounts =
            "35 31 0:32 /docker/abc /sys/fs/my\\040groups/memory ro - cgroup cgroup rw,memory\n";
        for group in ["4:memory:/docker/abc\n", "4:memory:/docker/abc/inner\n", "4:memory:/other\n"]
        {
            let files = [
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mounts),
                ("sys/fs/my groups/memory/memory.limit_in_bytes", "1048576\n"),
            ];
            assert_eq!(memory_of(&files), Some(MIB), "{group}");
        }
    }

    #[test]
    fn backslashes_are_octal() {
        assert_eq!(unescaped("/a\\040b\\134c\\x"), "/a b\\c\\x");
        assert_eq!(unescaped("/a\\04"), "/a\\04");
    }
}
