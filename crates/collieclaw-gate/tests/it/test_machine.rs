//! A small machine in memory, with files, folders and links, and a policy for it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use collieclaw_gate::{
    AutonomyLevel, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS, GatePolicy,
    GateReason, GateVerdict, MachineFacts, PathBounds, PathStatus, ReasonWeight, judge_shell,
};

/// A file system entry.
enum TestMachineNode {
    File { link_count: u64 },
    Folder,
    Link(&'static str),
    Device,
}

/// A machine in memory that answers the gate's questions.
pub(crate) struct GateTestMachine {
    nodes: BTreeMap<PathBuf, TestMachineNode>,
}

impl GateTestMachine {
    pub(crate) fn new() -> Self {
        let mut nodes = BTreeMap::new();
        for folder in [
            "/",
            "/w",
            "/w/src",
            "/w/src/deep",
            "/w/.git",
            "/w/my dir",
            "/w/kept",
            "/w/links",
            "/w/lost",
            "/w/two",
            "/w/n",
            "/w/n/.git",
            "/w/n/.vault",
            "/w/n/src",
            "/etc",
            "/home",
            "/home/kid",
            "/tmp",
            "/usr",
            "/usr/bin",
            "/dev",
            "/proc",
            "/proc/self",
        ] {
            nodes.insert(folder.into(), TestMachineNode::Folder);
        }
        for file in [
            "/w/README.md",
            "/w/a.txt",
            "/w/b.txt",
            "/w/src/main.rs",
            "/w/two/a.txt",
            "/w/two/shared.txt",
            "/w/src/lib.rs",
            "/w/src/deep/x.rs",
            "/w/src/deep/rm",
            "/w/package.json",
            "/w/run.sh",
            "/w/ls",
            "/w/.hidden",
            "/w/my dir/n.txt",
            "/w/kept/secret",
            "/w/n/.vault/key",
            "/w/n/src/shared.rs",
            "/w/n/shared.txt",
            "/w/n/x.txt",
            "/etc/passwd",
            "/home/kid/.bashrc",
            "/usr/bin/ls",
            "/usr/bin/cat",
            "/usr/bin/grep",
            "/usr/bin/rm",
        ] {
            nodes.insert(file.into(), TestMachineNode::File { link_count: 1 });
        }
        nodes.insert("/w/shared.txt".into(), TestMachineNode::File { link_count: 2 });
        nodes.insert("/w/src/shared.rs".into(), TestMachineNode::File { link_count: 2 });
        nodes.insert("/w/out".into(), TestMachineNode::Link("/etc"));
        nodes.insert("/w/passwd".into(), TestMachineNode::Link("/etc/passwd"));
        nodes.insert("/w/link-to-ls".into(), TestMachineNode::Link("/usr/bin/ls"));
        nodes.insert("/tmp/link-to-script".into(), TestMachineNode::Link("/w/run.sh"));
        nodes.insert("/w/inner".into(), TestMachineNode::Link("src"));
        nodes.insert("/w/chain".into(), TestMachineNode::Link("inner/../passwd"));
        nodes.insert("/w/links/b.txt".into(), TestMachineNode::Link("../b.txt"));
        nodes.insert("/w/links/deep".into(), TestMachineNode::Link("../src/deep"));
        nodes.insert("/w/lost/link".into(), TestMachineNode::Link("nowhere"));
        nodes.insert("/w/round".into(), TestMachineNode::Link("round"));
        nodes.insert("/w/gone".into(), TestMachineNode::Link("/tmp/not-there"));
        nodes.insert("/w/pipe".into(), TestMachineNode::Device);
        nodes.insert("/dev/null".into(), TestMachineNode::Device);
        nodes.insert("/dev/sda".into(), TestMachineNode::Device);
        nodes.insert("/proc/self/root".into(), TestMachineNode::Link("/"));
        nodes.insert("/bin".into(), TestMachineNode::Link("usr/bin"));
        Self { nodes }
    }

    /// Resolves a path as the kernel does; `None` if links form a loop.
    fn follow(&self, path: &Path, links: usize) -> Option<PathBuf> {
        let mut place = PathBuf::from("/");
        let mut rest = path.components();
        while let Some(component) = rest.next() {
            match component {
                Component::RootDir => place = PathBuf::from("/"),
                Component::ParentDir => {
                    place.pop();
                }
                Component::Normal(name) => {
                    let next = place.join(name);
                    if let Some(TestMachineNode::Link(target)) = self.nodes.get(&next) {
                        if links == 0 {
                            return None;
                        }
                        return self.follow(&place.join(target).join(rest.as_path()), links - 1);
                    }
                    place = next;
                }
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Some(place)
    }
}

impl MachineFacts for GateTestMachine {
    fn inspect_path(&self, path: &Path) -> PathStatus {
        let Some(leads_to) = self.follow(path, 40) else { return PathStatus::Unreachable };
        let names_a_folder = path.as_os_str().to_string_lossy().ends_with('/');
        match self.nodes.get(&leads_to) {
            Some(TestMachineNode::File { .. }) if names_a_folder => PathStatus::Unreachable,
            Some(TestMachineNode::File { link_count }) => {
                PathStatus::File { leads_to, link_count: *link_count }
            }
            Some(TestMachineNode::Folder) => PathStatus::Folder { leads_to },
            Some(TestMachineNode::Device) => PathStatus::Special { leads_to },
            Some(TestMachineNode::Link(_)) => PathStatus::Unreachable,
            None => PathStatus::Missing { leads_to },
        }
    }

    fn names_in(&self, folder: &Path) -> Option<Vec<String>> {
        let folder = self.follow(folder, 40)?;
        let beneath = self.nodes.keys().filter(|path| path.parent() == Some(&folder));
        beneath.map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        (!name.contains('/') && !name.is_empty()).then(|| Path::new("/usr/bin").join(name))
    }
}

/// Returns the policy of a new installation with additional allowed commands.
pub(crate) fn policy(extra_allowed: &str) -> GatePolicy {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let listed: Vec<_> =
        DEFAULT_ALLOWED_COMMANDS.iter().copied().chain(extra_allowed.split_whitespace()).collect();
    GatePolicy {
        autonomy: AutonomyLevel::Supervised,
        workspace: "/w".into(),
        bounds: PathBounds::Workspace,
        user_home: "/home/kid".into(),
        own_home: "/home/kid/.collieclaw".into(),
        own_files: Vec::new(),
        forbidden_paths: DEFAULT_FORBIDDEN_PATHS
            .iter()
            // A forbidden path that exists in the workspace, and another that doesn't exist yet.
            .chain(&["/w/kept/secret", "/w/.vault"])
            .map(|path| PathBuf::from(path.replace('~', "/home/kid")))
            .collect(),
        forbidden_commands: names(DEFAULT_FORBIDDEN_COMMANDS),
        allowed_commands: names(&listed),
        allowed_domains: ["example.org", "*.docs.example", "127.0.0.1:8080"].map(str::to_owned).to_vec(),
        command_network: Default::default(),
        pinned_programs: BTreeMap::new(),
        allowed_scripts: BTreeMap::new(),
        project_programs: Default::default(),
        command_cache: None,
    }
}

/// Judges a shell line with additional allowed commands.
pub(crate) fn judge_line(line: &str, autonomy: AutonomyLevel, extra_allowed: &str) -> GateVerdict {
    judge_shell(line, autonomy, &policy(extra_allowed), &GateTestMachine::new()).verdict
}

/// Returns the heaviest weight in a verdict, and the sorted codes of the reasons with that weight.
pub(crate) fn heaviest_reasons(verdict: &GateVerdict) -> (ReasonWeight, Vec<&'static str>) {
    let weight = verdict.reasons.iter().map(GateReason::weight).max().expect("a verdict has a reason");
    let mut codes: Vec<_> =
        verdict.reasons.iter().filter(|reason| reason.weight() == weight).map(GateReason::code).collect();
    codes.sort_unstable();
    codes.dedup();
    (weight, codes)
}
