//! Files of the system that the sandbox replaces where the real ones are closed: users, groups and host names.
//!
//! Many programs fail without an entry for their own user, and without `localhost`.

use std::path::{Path, PathBuf};

use ward_process::sandbox::{FileReplacement, MemoryFiles};

/// The size of `/dev/shm` in the sandbox. It is memory that no process owns, so the limit is well below that
/// of a command.
const SHARED_MEMORY_BYTES: u64 = 256 << 20;

const NOBODY: u32 = 65_534;

/// The name of the user and of the group in the sandbox, unless the user is root.
const USER_NAME: &str = "user";

/// Returns a private `/dev/shm` and replacements for the files that are not readable.
pub(super) fn memory_files(readable: &[PathBuf]) -> MemoryFiles {
    let is_readable = |path: &str| readable.iter().any(|tree| Path::new(path).starts_with(tree));
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let files = [
        ("/etc/passwd", password_file(user, group)),
        ("/etc/group", group_file(group)),
        ("/etc/hosts", hosts_file(&host_name())),
    ];
    let replaced = files.into_iter().filter(|(path, _)| !is_readable(path));
    let replacements =
        replaced.map(|(path, text)| FileReplacement { path: path.into(), content: text.into_bytes() });
    MemoryFiles { max_bytes: SHARED_MEMORY_BYTES, replacements: replacements.collect() }
}

/// The start of the names of folders in `/etc` with the settings of Java.
const JAVA_SETTINGS: &str = "/etc/java-";

/// The parts of these folders without which Java doesn't start. The others can contain passwords for remote control.
const JAVA_PARTS: [&str; 5] =
    ["jvm-amd64.cfg", "jvm-arm64.cfg", "logging.properties", "net.properties", "security"];

/// Returns the settings of the installed versions of Java.
pub(super) fn java_settings() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten().map(|entry| entry.path());
    let parts = entries.filter(|path| is_java_setting(path));
    parts.flat_map(|folder| JAVA_PARTS.map(|part| folder.join(part))).filter(|path| path.exists()).collect()
}

/// Returns true for paths in the folders with the settings of Java.
pub(super) fn is_java_setting(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with(JAVA_SETTINGS))
}

fn password_file(user: u32, group: u32) -> String {
    let mut text = String::new();
    if user != 0 && user != NOBODY {
        text.push_str(&format!("{USER_NAME}:x:{user}:{group}::/nonexistent:/bin/sh\n"));
    }
    text + &format!(
        "root:x:0:0::/nonexistent:/bin/sh\nnobody:x:{NOBODY}:{NOBODY}::/nonexistent:/usr/sbin/nologin\n"
    )
}

fn group_file(group: u32) -> String {
    let own = if group == 0 || group == NOBODY { String::new() } else { format!("{USER_NAME}:x:{group}:\n") };
    format!("{own}root:x:0:\nnogroup:x:{NOBODY}:\n")
}

/// Returns the names of the loopback interface. Some runtimes look up the name of their own machine.
fn hosts_file(host_name: &str) -> String {
    format!("127.0.0.1 localhost {host_name}\n::1 localhost ip6-localhost\n")
}

/// Returns the name of this machine, which programs can read anyway (`uname`), or an empty text.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    name.trim().chars().filter(|letter| is_valid(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_and_group_has_exactly_one_entry() {
        for id in [0, 1_000, NOBODY] {
            let users = password_file(id, id);
            let of_user =
                users.lines().filter(|line| line.split(':').nth(2) == Some(&id.to_string())).count();
            let groups = group_file(id);
            let of_group =
                groups.lines().filter(|line| line.split(':').nth(2) == Some(&id.to_string())).count();
            assert_eq!((of_user, of_group), (1, 1), "{users}{groups}");
        }
    }

    #[test]
    fn readable_files_are_not_replaced() {
        let replaced = |readable: &[&str]| {
            let readable: Vec<PathBuf> = readable.iter().map(PathBuf::from).collect();
            memory_files(&readable).replacements.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        assert_eq!(replaced(&["/usr"]), ["/etc/passwd", "/etc/group", "/etc/hosts"].map(PathBuf::from));
        assert_eq!(replaced(&["/etc/hosts", "/etc/passwd"]), [PathBuf::from("/etc/group")]);
        assert_eq!(replaced(&["/etc"]), Vec::<PathBuf>::new());
    }
}
