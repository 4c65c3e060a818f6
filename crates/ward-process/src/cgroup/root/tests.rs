use std::fs;

use tempfile::TempDir;

use super::*;

const OWN_GROUP: &str = "/system.slice/test.service";

/// A folder with the files of a cgroup. The machine that runs the tests may have no controllers in cgroup v2.
struct FakeGroup {
    folder: TempDir,
}

impl FakeGroup {
    fn new(members: &[u32]) -> Self {
        let fake = Self { folder: TempDir::with_prefix("ward-cgroup-").unwrap() };
        fake.write("cgroup.controllers", "cpuset cpu io memory pids");
        fake.write("cgroup.subtree_control", "");
        fake.write("cgroup.procs", &members.iter().map(|pid| format!("{pid}\n")).collect::<String>());
        fake
    }

    /// Adds a leaf, in which a kernel would create the file of members.
    fn with_leaf(self, name: &str) -> Self {
        fs::create_dir(self.folder.path().join(name)).unwrap();
        self.write(&format!("{name}/cgroup.procs"), "");
        self
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap()
    }

    fn location(&self, is_own_group: bool) -> CgroupLocation {
        let (path, proc_path) = (self.folder.path().to_owned(), OWN_GROUP.to_owned());
        CgroupLocation { path, proc_path, is_own_group }
    }

    /// Replaces the list of enabled controllers by a pipe, and returns its reading end. Each write of a real group is a
    /// change, while a plain file would keep only the last one.
    fn record_changes(&self) -> OwnedFd {
        let path = self.folder.path().join("cgroup.subtree_control");
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        // Opened for both directions, a pipe needs no second process.
        rustix::fs::open(&path, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()).unwrap()
    }
}

fn recorded(changes: &OwnedFd) -> String {
    let mut text = [0; 256];
    let length = rustix::io::read(changes, &mut text).unwrap_or(0);
    String::from_utf8_lossy(&text[..length]).into_owned()
}

/// S6.5: on systemd before 254 the daemon starts in the group that it needs for its sessions. A group with processes and
/// controllers becomes a threaded domain, in which the kernel starts no program.
#[test]
fn the_supervisor_leaves_its_group_before_it_enables_controllers() {
    let fake = FakeGroup::new(&[std::process::id()]).with_leaf(OWN_LEAF);
    let changes = fake.record_changes();
    let mut root = CgroupRoot::at(fake.location(true)).unwrap();
    root.location.leave_for_leaf(root.directory.as_fd()).unwrap();
    assert_eq!(fake.read("supervisor-own/cgroup.procs"), "0", "the process that writes enters the leaf");
    assert_eq!(recorded(&changes), "");
    set_controllers(root.directory.as_fd(), '+');
    assert_eq!(recorded(&changes), "+pids+memory+cpu");
    fake.write("supervisor-own/cgroup.procs", "");
    drop(changes);
    // `take_controllers` does both. It enables nothing if it can't leave, as the next test shows.
    fs::remove_file(fake.folder.path().join("cgroup.subtree_control")).unwrap();
    fake.write("cgroup.subtree_control", "");
    root.take_controllers();
    assert_eq!(fake.read("supervisor-own/cgroup.procs"), "0");
    assert_ne!(fake.read("cgroup.subtree_control"), "");
}

#[test]
fn no_controllers_are_enabled_beside_processes_of_others() {
    let fake = FakeGroup::new(&[std::process::id(), 1]).with_leaf(OWN_LEAF);
    let mut root = CgroupRoot::at(fake.location(true)).unwrap();
    root.take_controllers();
    assert_eq!(root.controllers(), CgroupControllers::default());
    assert_eq!(
        (fake.read("supervisor-own/cgroup.procs"), fake.read("cgroup.subtree_control")),
        Default::default()
    );
}

#[test]
fn a_supervisor_with_a_leaf_of_its_own_stays_there() {
    let fake = FakeGroup::new(&[]).with_leaf(GIVEN_LEAF);
    let mut root = CgroupRoot::at(fake.location(false)).unwrap();
    root.take_controllers();
    assert_eq!(fake.read("supervisor/cgroup.procs"), "");
    assert!(!fake.folder.path().join(OWN_LEAF).exists());
    assert_ne!(fake.read("cgroup.subtree_control"), "");
}

/// S9.1: systemd before 254 can't start the next daemon in a group that has controllers and the processes of a session.
#[test]
fn controllers_are_released_for_the_next_supervisor_only_if_the_last_one_made_its_leaf() {
    let fake = FakeGroup::new(&[]).with_leaf(OWN_LEAF);
    let changes = fake.record_changes();
    fake.location(false).release_controllers().unwrap();
    assert_eq!(recorded(&changes), "-pids-memory-cpu");
    let given = FakeGroup::new(&[]).with_leaf(GIVEN_LEAF);
    let changes = given.record_changes();
    given.location(false).release_controllers().unwrap();
    assert_eq!(recorded(&changes), "");
    fs::remove_dir_all(given.folder.path()).unwrap();
    assert!(given.location(false).release_controllers().is_err());
}

#[test]
fn the_cgroup2_mount_is_found_by_its_type_wherever_it_is() {
    let hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                  41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    assert_eq!(find_mount(hybrid), Some((Path::new("/"), "/sys/fs/cgroup/unified".into())));
    let container = "9 1 0:38 /box /mnt/my\\040groups rw shared:3 master:4 - cgroup2 none rw\n";
    assert_eq!(find_mount(container), Some((Path::new("/box"), "/mnt/my groups".into())));
    assert_eq!(find_mount("32 31 0:29 / /sys rw - sysfs sysfs rw\n"), None);
}

#[test]
fn trees_are_siblings_of_the_supervisors_leaf() {
    for leaf in ["supervisor", "supervisor-own", ".control"] {
        assert_eq!(parent_of_leaf(&format!("/g/a.service/{leaf}")), "/g/a.service");
        assert_eq!(parent_of_leaf(&format!("/{leaf}")), "/");
    }
    assert_eq!(parent_of_leaf("/g/a.service"), "/g/a.service");
}
