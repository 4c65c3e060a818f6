//! The folders and variables with which the programs of a workspace run: toolchains of the user's home to read, caches
//! of the workspace to write.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use collieclaw_gate::WORKSPACE_PRESETS;
use rustix::fs::{Mode, OFlags};

use super::cargo_seed::seed_cargo_home;
use super::git_identity::write_git_identity;
use super::rules::{PinnedProgram, WorkspaceNetwork, WorkspaceRules};
use super::store::WorkspaceStore;
use crate::config::resolve_real_path;
use crate::security::remove_tree;
use crate::tools::ToolchainAccess;

/// The folders from which toolchains are found.
#[derive(Debug, Clone, Copy)]
pub struct ToolchainPlaces<'p> {
    /// The user's home, with symlinks resolved.
    pub user_home: &'p Path,
    /// CollieClaw's own home, with symlinks resolved.
    pub own_home: &'p Path,
    /// The user's environment, for `RUSTUP_HOME`, `CARGO_HOME` and `XDG_CACHE_HOME`.
    pub variables: &'p BTreeMap<String, String>,
}

/// Returns the toolchains of a workspace, and creates its cache folders. They are outside of CollieClaw's home, which
/// stays closed to all tools.
///
/// # Errors
/// Fails if the cache folders can't be created.
pub fn toolchain_access(rules: &WorkspaceRules, places: &ToolchainPlaces<'_>) -> io::Result<ToolchainAccess> {
    if rules.needs_cache() {
        let cache = places.cache_folder(&rules.path);
        create_cache_folder(&cache)?;
        for folder in CACHE_FOLDERS {
            create_cache_folder(&cache.join(folder))?;
        }
        seed_cargo_home(&places.folder_of("CARGO_HOME", ".cargo"), &cache.join("cargo"));
        let identity = git_identity_file(&cache);
        write_git_identity(places.user_home, places.variables, &rules.path, &identity)?;
    }
    Ok(plan_toolchain_access(rules, places))
}

/// Creates a folder of a cache, in place of a file or a symlink that a command has left there, and lets the user in again.
fn create_cache_folder(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        fs::remove_file(folder)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // A command may replace the folder at any time, so this opens the folder itself, for which no permission is needed.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())?;
    fs::set_permissions(format!("/proc/self/fd/{}", opened.as_raw_fd()), Permissions::from_mode(0o700))
}

/// Returns the toolchains of a workspace without creating anything.
#[must_use]
pub fn plan_toolchain_access(rules: &WorkspaceRules, places: &ToolchainPlaces<'_>) -> ToolchainAccess {
    if !rules.needs_cache() {
        return ToolchainAccess::default();
    }
    let cache = places.cache_folder(&rules.path);
    let cargo = places.folder_of("CARGO_HOME", ".cargo");
    let mut read: BTreeSet<PathBuf> = rules.toolchain_folders.clone();
    for pinned in rules.programs.values() {
        read.extend(places.folders_of_program(pinned));
    }
    if rules.allowed_commands.contains("cargo") {
        read.extend(["registry", "git"].map(|part| cargo.join(part)));
        read.insert(places.folder_of("RUSTUP_HOME", ".rustup"));
    }
    if rules.allowed_commands.contains("go") {
        read.insert(places.go_downloads());
    }
    let mut read: Vec<PathBuf> =
        read.into_iter().filter_map(|folder| places.readable_folder(&folder)).collect();
    // A script of the workspace may be executed, although the workspace as a whole may not.
    read.extend(rules.scripts.keys().filter(|script| script.is_file()).cloned());
    let identity = git_identity_file(&cache);
    read.extend(identity.is_file().then(|| identity.clone()));
    let mut program_folders: Vec<PathBuf> = Vec::new();
    for folder in rules.programs.values().filter_map(|pinned| pinned.found.parent()) {
        if !program_folders.iter().any(|known| known == folder) {
            program_folders.push(folder.to_owned());
        }
    }
    ToolchainAccess {
        closed: places.secrets(&read),
        write: vec![cache.clone()],
        program_folders,
        environment: [
            places.environment(rules, &cache),
            vec![("GIT_CONFIG_GLOBAL".to_owned(), identity.into())],
        ]
        .concat(),
        read,
    }
}

/// Returns the file with the user's name for commits. It is beside the cache, which commands can change.
fn git_identity_file(cache: &Path) -> PathBuf {
    cache.with_extension("gitconfig")
}

/// The folders in the cache of a workspace.
const CACHE_FOLDERS: [&str; 9] = ["home", "cargo", "npm", "pip", "go-build", "go-mod", "go", "xdg", "uv"];

/// The variables that send programs to the folders of the cache.
const CACHE_VARIABLES: [(&str, &str); 9] = [
    ("HOME", "home"),
    ("CARGO_HOME", "cargo"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
    ("GOPATH", "go"),
    ("XDG_CACHE_HOME", "xdg"),
    ("UV_CACHE_DIR", "uv"),
];

/// Variables that keep programs from waiting for a network that isn't there. Everything that works without a network
/// still works: caches, folders and files.
const OFFLINE_VARIABLES: [(&str, &str); 7] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
    ("PIP_RETRIES", "0"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("UV_OFFLINE", "1"),
    // A `go.mod` may ask for another version of Go, which would be downloaded.
    ("GOTOOLCHAIN", "local"),
    // The modules come from the user's own downloads, which `go` has checked before.
    ("GOSUMDB", "off"),
];

/// Variables that name a toolchain's own folder, with its usual place in the home.
const TOOLCHAIN_VARIABLES: [(&str, &str); 3] =
    [("RUSTUP_HOME", ".rustup"), ("NVM_DIR", ".nvm"), ("PYENV_ROOT", ".pyenv")];

/// The parts of any installation, beside the folder with its programs.
const INSTALLATION_PARTS: [&str; 6] = ["include", "lib", "lib32", "lib64", "libexec", "share"];

/// Installations that need more: a file or folder by which each is recognised, and its other parts.
const INSTALLATION_KINDS: [(&str, &[&str]); 5] = [
    // Homebrew.
    ("Cellar", &["Cellar", "opt"]),
    // Python environments.
    ("pyvenv.cfg", &["pyvenv.cfg"]),
    // Conda.
    ("conda-meta", &["conda-meta", "envs", "pkgs", "ssl"]),
    // Go.
    ("src/runtime", &["VERSION", "go.env", "pkg", "src"]),
    // Java.
    ("lib/modules", &["conf", "jmods", "release"]),
];

/// Secrets that no preset names because they are not in a fixed place of the home.
const SECRET_NAMES: [&str; 6] =
    [".npmrc", "etc/npmrc", ".netrc", ".pypirc", "credentials", "credentials.toml"];

impl ToolchainPlaces<'_> {
    /// Returns the cache folder of a workspace. Two homes of CollieClaw don't share it.
    #[must_use]
    pub fn cache_folder(&self, workspace: &Path) -> PathBuf {
        let id = WorkspaceStore::id(&self.own_home.join(workspace.strip_prefix("/").unwrap_or(workspace)));
        self.all_caches().join(id)
    }

    /// Removes what commands of a workspace have left in their home and caches, and the user's name for commits.
    ///
    /// # Errors
    /// Fails if a part can't be removed. A missing part is no error.
    pub fn remove_cache(&self, workspace: &Path) -> io::Result<()> {
        let cache = self.cache_folder(workspace);
        let removed = [fs::remove_file(git_identity_file(&cache)), remove_tree(&cache)];
        let is_failure = |result: &io::Result<()>| {
            result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        };
        removed.into_iter().find(is_failure).unwrap_or(Ok(()))
    }

    /// Returns the folder with the caches of all workspaces, with symlinks resolved: the kernel reports real paths, and
    /// the gate compares them.
    #[must_use]
    pub fn all_caches(&self) -> PathBuf {
        let variable = self.variables.get("XDG_CACHE_HOME").map(PathBuf::from);
        let caches =
            variable.filter(|folder| folder.is_absolute()).unwrap_or_else(|| self.user_home.join(".cache"));
        resolve_real_path(&caches.join("collieclaw"))
    }

    fn folder_of(&self, variable: &str, usual: &str) -> PathBuf {
        let named = self.variables.get(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        named.unwrap_or_else(|| self.user_home.join(usual))
    }

    fn go_downloads(&self) -> PathBuf {
        self.folder_of("GOPATH", "go").join("pkg/mod/cache/download")
    }

    /// Returns the folders that a program needs: those it was found in, and the parts of the installation around them.
    fn folders_of_program(&self, pinned: &PinnedProgram) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for path in [&pinned.found, &pinned.real] {
            let Some(folder) = path.parent() else { continue };
            folders.push(folder.to_owned());
            // `X/bin/program` belongs to the installation in X.
            let is_bin = folder.file_name().is_some_and(|name| name == "bin" || name == "shims");
            let around = folder.parent().filter(|_| is_bin);
            folders.extend(around.into_iter().flat_map(|around| self.parts_of_installation(around)));
        }
        // A rustup shim starts the real program from here.
        if pinned.real.file_name().is_some_and(|name| name == "rustup") {
            folders.push(self.folder_of("RUSTUP_HOME", ".rustup"));
        }
        folders
    }

    /// Returns the parts of an installation that its programs need. Other files beside them are no concern of the
    /// programs: `~/X` may be somebody's project.
    fn parts_of_installation(&self, around: &Path) -> Vec<PathBuf> {
        // These hold much more than one installation.
        let shared = [self.user_home.join(".local"), self.folder_of("CARGO_HOME", ".cargo")];
        if self.user_home.starts_with(around) || shared.iter().any(|shared| shared == around) {
            return Vec::new();
        }
        if self.is_in_known_toolchain(around) {
            return vec![around.to_owned()];
        }
        let kinds = INSTALLATION_KINDS.iter().filter(|(mark, _)| around.join(mark).exists());
        let special = kinds.flat_map(|(_, parts)| *parts);
        // A symlink to another place is no part of the installation.
        let real = around.canonicalize().unwrap_or_else(|_| around.to_owned());
        let is_inside = |part: &PathBuf| part.canonicalize().is_ok_and(|part| part.starts_with(&real));
        INSTALLATION_PARTS.iter().chain(special).map(|part| around.join(part)).filter(is_inside).collect()
    }

    /// Returns true for a folder of a toolchain manager whose secrets we know.
    fn is_in_known_toolchain(&self, folder: &Path) -> bool {
        let known = WORKSPACE_PRESETS.iter().flat_map(|preset| preset.toolchain_folders);
        let mut known = known.filter_map(|known| known.strip_prefix("~/"));
        known.any(|known| folder.starts_with(self.user_home.join(known)))
    }

    /// Returns the real path of a folder, or of a file of an installation, that may be shown in the sandbox.
    fn readable_folder(&self, folder: &Path) -> Option<PathBuf> {
        let real = folder.canonicalize().ok()?;
        let is_too_much = self.user_home.starts_with(&real) || self.own_home.starts_with(&real);
        (!is_too_much && !real.starts_with(self.own_home)).then_some(real)
    }

    /// Returns the files with passwords and tokens in the readable folders, also those of usual names that don't exist
    /// yet.
    fn secrets(&self, read: &[PathBuf]) -> Vec<PathBuf> {
        let patterns: BTreeSet<&str> =
            WORKSPACE_PRESETS.iter().flat_map(|preset| preset.secret_patterns).copied().collect();
        let mut secrets: BTreeSet<PathBuf> =
            patterns.into_iter().flat_map(|pattern| expand_pattern(pattern, self.user_home)).collect();
        let other_names = read.iter().flat_map(|folder| SECRET_NAMES.iter().map(|name| folder.join(name)));
        secrets.extend(other_names.filter(|path| path.exists()));
        let is_shown = |path: &PathBuf| read.iter().any(|folder| path.starts_with(folder));
        secrets.into_iter().filter(is_shown).collect()
    }

    fn environment(&self, rules: &WorkspaceRules, cache: &Path) -> Vec<(String, OsString)> {
        let set = |name: &str, value: OsString| (name.to_owned(), value);
        let mut variables: Vec<_> =
            CACHE_VARIABLES.iter().map(|(name, folder)| set(name, cache.join(folder).into())).collect();
        for (name, usual) in TOOLCHAIN_VARIABLES {
            let folder = self.folder_of(name, usual);
            if folder.is_dir() {
                variables.push(set(name, folder.into()));
            }
        }
        if rules.network == WorkspaceNetwork::None {
            variables.extend(OFFLINE_VARIABLES.iter().map(|(name, value)| set(name, (*value).into())));
            let downloads = self.go_downloads();
            let mut modules = OsString::from("off");
            if downloads.is_dir() {
                modules = OsString::from("file://");
                modules.push(&downloads);
            }
            variables.push(set("GOPROXY", modules));
        }
        variables
    }
}

/// Returns the files that a pattern means. `*` in place of a folder stands for every folder there, and then only existing
/// files count: other parts of a toolchain have to stay readable as a whole.
fn expand_pattern(pattern: &str, user_home: &Path) -> Vec<PathBuf> {
    let below = pattern.strip_prefix("~/").unwrap_or(pattern);
    let (folder, name) = below.rsplit_once('/').unwrap_or(("", below));
    if !folder.contains('*') {
        return expand_name(&user_home.join(below));
    }
    let folders = folder.split('/').fold(vec![user_home.to_owned()], |found, part| match part {
        "*" => found.iter().flat_map(|folder| folders_in(folder)).collect(),
        part => found.iter().map(|folder| folder.join(part)).collect(),
    });
    folders.iter().map(|folder| folder.join(name)).filter(|path| path.exists()).collect()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Returns the files that a path means. A `*` in its name stands for any text; with none in its place, the file counts even
/// if it doesn't exist yet.
fn expand_name(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((start, end)) = name.split_once('*') else { return vec![path.to_owned()] };
    let mut files = vec![path.with_file_name(format!("{start}{end}"))];
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let matches = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
    };
    files.extend(entries.filter(matches).map(|entry| entry.path()));
    files
}
