//! The files that a program in the sandbox may reach.

use std::path::{Path, PathBuf};

use collieclaw_gate::{GatePolicy, NEEDED_ETC_FILES};
use ward_process::sandbox::{Sandbox, SandboxNetwork, SandboxStrictness, TemporaryFiles};

use super::{SandboxAccess, WorkspaceAccess, system_files, toolchain_trees};

/// Files that can make programs which the operator runs in the workspace later execute commands. Existing
/// ones are read-only in the sandbox; new ones are handled by `shell/vcs_guard`.
pub(crate) const VCS_CONFIG_PATHS: &[&str] =
    &[".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".hg/hgrc"];

/// The parts of a forbidden `/etc` that programs with unlimited network access need as well: name resolution.
const ETC_NETWORK_ALLOWLIST: &[&str] = &["/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf"];

/// The system's folder for temporary files. A program finds a folder of its own there, unless it would hide something
/// that the program needs.
const TEMPORARY_FOLDER: &str = "/tmp";

/// Builds the sandbox: the read-only system, the workspace as far as `access` allows, and nothing else.
pub(super) fn build_sandbox(system: &Sandbox, access: &SandboxAccess, policy: &GatePolicy) -> Sandbox {
    let workspace = &policy.workspace;
    let own = own_files(policy);
    let closed: Vec<&Path> =
        policy.forbidden_paths.iter().chain([&policy.own_home]).chain(&own).map(PathBuf::as_path).collect();
    let with_network = if access.network == SandboxNetwork::On { ETC_NETWORK_ALLOWLIST } else { &[] };
    let is_needed = |tree: &Path| {
        NEEDED_ETC_FILES.iter().chain(with_network).any(|needed| tree == Path::new(needed))
            || system_files::is_java_setting(tree)
    };
    let part =
        |tree: &PathBuf| if is_needed(tree) { vec![tree.clone()] } else { exclude_closed(tree, &closed) };
    let open = |trees: &[PathBuf]| trees.iter().flat_map(part).collect::<Vec<_>>();
    // Landlock rules can only add access, so forbidden paths inside the workspace are covered by mounts.
    // Symlinks are not covered, because the policy lists their targets as well.
    let is_there = |path: &Path| path.canonicalize().is_ok_and(|place| place == path);
    let inside = |path: &&&Path| path.starts_with(workspace) && is_there(path);
    // A file `.git` names the repository elsewhere that this folder belongs to.
    let git_file = Some(workspace.join(".git")).filter(|path| path.is_file());
    let vcs_config = VCS_CONFIG_PATHS.iter().map(|name| workspace.join(name)).chain(git_file);
    let read = open(&system.read);
    let memory_files = Some(system_files::memory_files(&read));
    let mut sandbox = Sandbox {
        read,
        write: system.write.clone(),
        execute: open(&system.execute),
        closed: closed.iter().filter(inside).map(|path| path.to_path_buf()).collect(),
        read_only: vcs_config.filter(|path| is_there(path)).collect(),
        network: access.network,
        temporary: TemporaryFiles::Private,
        home: access.toolchain.home(),
        memory_files,
        strictness: SandboxStrictness::Essentials,
    };
    sandbox.execute.extend(access.own_program.iter().cloned().chain(open(&access.programs)));
    let toolchain = toolchain_trees::open_toolchain(&access.toolchain, &closed);
    sandbox.execute.extend(toolchain.execute);
    match access.workspace {
        WorkspaceAccess::Closed => {
            sandbox.closed.clear();
            sandbox.read_only.clear();
        }
        WorkspaceAccess::Read => sandbox.read.push(workspace.clone()),
        WorkspaceAccess::Write => sandbox.write.push(workspace.clone()),
        WorkspaceAccess::Execute => {
            sandbox.write.push(workspace.clone());
            sandbox.execute.push(workspace.clone());
            // Programs that were built into a cache run like those that were built in the workspace.
            sandbox.execute.extend(toolchain.write.iter().cloned());
        }
    }
    sandbox.write.extend(toolchain.write);
    let mut trees = sandbox.read.iter().chain(&sandbox.write).chain(&sandbox.execute);
    if !trees.any(|tree| tree.starts_with(TEMPORARY_FOLDER)) {
        sandbox.temporary = TemporaryFiles::PrivateTmp;
    }
    sandbox
}

/// Returns CollieClaw's own files outside its home that exist now.
fn own_files(policy: &GatePolicy) -> Vec<PathBuf> {
    let elsewhere = policy.own_files.iter().filter(|file| !file.starts_with(&policy.own_home));
    let siblings = elsewhere.filter_map(|file| std::fs::read_dir(file.parent()?).ok()).flatten().flatten();
    siblings.map(|entry| entry.path()).filter(|path| policy.is_own(path)).collect()
}

/// Returns a readable tree without the closed paths. If it contains a closed path, its other parts are listed
/// one by one.
pub(super) fn exclude_closed(tree: &Path, closed: &[&Path]) -> Vec<PathBuf> {
    if closed.iter().any(|path| tree.starts_with(path)) {
        return Vec::new();
    }
    if !closed.iter().any(|path| path.starts_with(tree)) {
        return vec![tree.to_owned()];
    }
    // A folder that can't be listed can't be read either.
    let parts = std::fs::read_dir(tree).into_iter().flatten().flatten();
    let is_link = |part: &std::fs::DirEntry| part.file_type().is_ok_and(|kind| kind.is_symlink());
    parts.filter(|part| !is_link(part)).flat_map(|part| exclude_closed(&part.path(), closed)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::toolchain_access::ToolchainAccess;
    use super::*;

    #[test]
    fn closed_paths_are_excluded_from_readable_trees() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["a/b/secret", "a/b/open", "a/c", "d"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::os::unix::fs::symlink("a/b", at("link")).unwrap();
        let secret = at("a/b/secret");
        let mut parts = exclude_closed(folder.path(), &[&secret]);
        parts.sort();
        assert_eq!(parts, [at("a/b/open"), at("a/c"), at("d")]);
        assert_eq!(exclude_closed(&at("d"), &[&secret]), [at("d")]);
        assert_eq!(exclude_closed(&at("a/b/secret/deep"), &[&secret]), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_the_needed_parts_of_a_forbidden_etc_can_be_read() {
        let policy = GatePolicy {
            autonomy: collieclaw_gate::AutonomyLevel::Supervised,
            workspace: "/nowhere/workspace".into(),
            bounds: collieclaw_gate::PathBounds::Workspace,
            user_home: "/nowhere".into(),
            own_home: "/nowhere/.collieclaw".into(),
            own_files: Vec::new(),
            forbidden_paths: vec!["/etc".into()],
            forbidden_commands: Default::default(),
            allowed_commands: Default::default(),
            allowed_domains: Vec::new(),
            command_network: Default::default(),
            pinned_programs: Default::default(),
            allowed_scripts: Default::default(),
            project_programs: Default::default(),
            command_cache: None,
        };
        let trees =
            ["/etc/ld.so.cache", "/etc/passwd", "/etc/hosts", "/etc/ssl/certs", "/etc/gitconfig", "/etc"];
        let system = Sandbox { read: trees.map(PathBuf::from).to_vec(), ..Sandbox::default() };
        let check = |network, expected: &[&str]| {
            let access = SandboxAccess {
                workspace: WorkspaceAccess::Closed,
                network,
                own_program: None,
                programs: Vec::new(),
                toolchain: ToolchainAccess::default(),
                timeout: Duration::from_secs(1),
            };
            let read = build_sandbox(&system, &access, &policy).read;
            assert_eq!(read, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        };
        check(SandboxNetwork::Off, &["/etc/ld.so.cache", "/etc/ssl/certs"]);
        check(SandboxNetwork::On, &["/etc/ld.so.cache", "/etc/hosts", "/etc/ssl/certs"]);
    }
}
