//! Checks whether the entries of a policy can run on this machine, without starting anything.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shepherd_api::EntryKind;
use shepherd_core::policy::{Policy, PolicyEntry};
use shepherd_util::{EntryId, ProfileId, parse_passwd};

use crate::environment;
use crate::launch_command::{LaunchCommandBuilder, LaunchResources};
use crate::launch_error::LaunchError;
use crate::options::LinuxHostOptions;
use crate::start_job::{find_user, refuse_root, resolve_program};

/// A missing requirement, with all entries that can't be started because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRequirement {
    /// The entries, in the order of the policy.
    pub entries: Vec<EntryId>,
    /// The requirement that is missing, and the cure.
    pub sentence: String,
}

/// Checks all entries of a policy as a host with these options would start them.
///
/// The check can't know what only the kernel decides, such as whether a user may read a folder, or whether a program
/// works.
#[must_use]
pub fn find_missing_requirements(policy: &Policy, options: &LinuxHostOptions) -> Vec<MissingRequirement> {
    let rules = policy.rules();
    let resources = LaunchResources { libraries: rules.libraries.clone(), drivers: rules.drivers.clone() };
    let mut missing: Vec<MissingRequirement> = Vec::new();
    for entry in policy.entries() {
        let entry_errors = check_entry(entry, &resources, options);
        for LaunchError { message, help } in entry_errors.into_iter().chain(check_files(policy, entry)) {
            let sentence = format!("{message}; {help}");
            match missing.iter_mut().find(|known| known.sentence == sentence) {
                Some(known) => known.entries.push(entry.entry_id.clone()),
                None => missing.push(MissingRequirement { entries: vec![entry.entry_id.clone()], sentence }),
            }
        }
    }
    missing
}

/// Returns the entries that a daemon of root's never starts, because the policy names no account for some profile.
#[must_use]
pub fn find_entries_without_account(policy: &Policy) -> Option<MissingRequirement> {
    let lacks_account = |entry: &&PolicyEntry| {
        profiles_of(policy, entry)
            .any(|profile| policy.system_account(entry, profile).is_none_or(|account| account == "root"))
    };
    let entries: Vec<EntryId> =
        policy.entries().iter().filter(lacks_account).map(|entry| entry.entry_id.clone()).collect();
    let sentence = "would run as root, and a Shepherd that runs as root starts nothing as root; set `user` in the entry or in \
                    `[defaults]`, or name a user in the `accounts` of each profile"
        .to_owned();
    (!entries.is_empty()).then_some(MissingRequirement { entries, sentence })
}

/// Returns the profiles that may use an entry.
fn profiles_of<'p>(policy: &'p Policy, entry: &'p PolicyEntry) -> impl Iterator<Item = &'p ProfileId> {
    let is_allowed =
        |profile: &&ProfileId| entry.profiles.as_ref().is_none_or(|allowed| allowed.contains(*profile));
    policy.rules().profiles.keys().filter(is_allowed)
}

/// Checks the images of a virtual machine and the application of a Flatpak entry.
fn check_files(policy: &Policy, entry: &PolicyEntry) -> Vec<LaunchError> {
    match &entry.kind {
        EntryKind::Vm { driver, args } if driver == "qemu" => {
            let images = ["disk", "cdrom", "kernel", "initrd"].into_iter().flat_map(|key| {
                let paths = args.get(key).map(texts).unwrap_or_default();
                paths.into_iter().map(move |path| (key, path))
            });
            let missing = images.filter(|(_, path)| is_missing(Path::new(path)));
            missing
                .map(|(key, path)| {
                    let message = format!("file `{path}` does not exist");
                    LaunchError::new(message, format!("create it, or correct `{key}`"))
                })
                .collect()
        }
        EntryKind::Custom { type_name, payload } if type_name == "flatpak" => {
            let app = payload.get("app").unwrap_or(payload).as_str();
            let folders = flatpak_folders(homes_of(policy, entry));
            let missing =
                app.filter(|app| folders.iter().all(|folder| is_missing(&folder.join("app").join(app))));
            let error = |app: &str| {
                let message = format!("Flatpak app `{app}` is not installed");
                LaunchError::new(message, format!("run `flatpak install {app}`, or correct `app`"))
            };
            missing.map(error).into_iter().collect()
        }
        EntryKind::Process { .. }
        | EntryKind::Vm { .. }
        | EntryKind::Media { .. }
        | EntryKind::Custom { .. } => Vec::new(),
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// Returns the folders of Flatpak installations: the system's and those of users.
fn flatpak_folders(homes: Vec<PathBuf>) -> Vec<PathBuf> {
    let of_users = homes.into_iter().map(|home| home.join(".local/share/flatpak"));
    std::iter::once(PathBuf::from("/var/lib/flatpak")).chain(of_users).collect()
}

/// Returns the home folders of the users that an entry may run as.
fn homes_of(policy: &Policy, entry: &PolicyEntry) -> Vec<PathBuf> {
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    let passwd = String::from_utf8_lossy(&passwd);
    let own = rustix::process::geteuid().as_raw();
    let home_of = |account: Option<&str>| {
        let is_user = |name: &str, uid: u32| account.map_or(uid == own, |account| account == name);
        parse_passwd(&passwd).find(|line| is_user(line.name, line.uid)).and_then(|line| line.home)
    };
    profiles_of(policy, entry)
        .filter_map(|profile| home_of(policy.system_account(entry, profile)))
        .map(PathBuf::from)
        .collect()
}

fn check_entry(
    entry: &PolicyEntry,
    resources: &LaunchResources,
    options: &LinuxHostOptions,
) -> Vec<LaunchError> {
    let (user, bad_user) = match entry.run.user.as_deref().map(find_user) {
        Some(Ok(user)) => {
            let refused = refuse_root(&user, options.as_root).err();
            (Some(user), refused)
        }
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let environment = environment::base(&options.environment, &options.search_path, user.as_ref());
    let builder = LaunchCommandBuilder { resources, environment, socket_folder: &options.socket_folder };
    bad_user.into_iter().chain(check_program(entry, &builder).err()).collect()
}

fn check_program(entry: &PolicyEntry, builder: &LaunchCommandBuilder<'_>) -> Result<(), LaunchError> {
    let command = builder.build(&entry.kind)?;
    let name = command.argv.first().ok_or_else(LaunchError::empty_command)?;
    let program = resolve_program(name, &command.environment)?;
    if is_missing(&program) {
        let message = format!("program `{}` not found", program.display());
        return Err(LaunchError::new(message, "install it, or correct its path"));
    }
    match command.directory.filter(|folder| is_missing(folder)) {
        Some(folder) => Err(LaunchError::new(
            format!("folder `{}` does not exist", folder.display()),
            "create it, or correct `cwd`",
        )),
        None => Ok(()),
    }
}

/// Returns whether a path certainly doesn't exist. A path that can't be accessed may exist.
fn is_missing(path: &Path) -> bool {
    path.metadata()
        .is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RunAsRoot;
    use crate::user::UnixUser;

    const POLICY: &str = r#"
config_version = 1
[profiles.anna]
accounts = ["nobody"]
[profiles.ben]
accounts = [54321, "@54321"]
[[entries]]
id = "named"
argv = ["sh"]
user = "nobody"
always = true
[[entries]]
id = "of-anna"
argv = ["sh"]
profiles = ["anna"]
always = true
[[entries]]
id = "of-all"
argv = ["sh"]
always = true
[[entries]]
id = "machine"
kind = "vm"
driver = "qemu"
args = { disk = ["/dev/null", "/nonexistent/disk.qcow2"], cdrom = "/nonexistent/disc.iso", program = "sh" }
user = "nobody"
always = true
[[entries]]
id = "paint"
kind = "custom"
type = "flatpak"
payload = { app = "org.example.NotInstalled" }
user = "nobody"
always = true
"#;

    fn policy() -> Policy {
        shepherd_config::load("policy.toml", POLICY).unwrap_or_else(|report| panic!("{report}")).policy
    }

    #[test]
    fn missing_images_and_flatpak_apps_are_found() {
        let missing = find_missing_requirements(&policy(), &LinuxHostOptions::new(PathBuf::new()));
        let sentences: Vec<String> = missing
            .iter()
            .map(|missing| format!("{}: {}", missing.entries[0], missing.sentence))
            // The machine may lack Flatpak, too.
            .filter(|sentence| !sentence.contains("program `flatpak`"))
            .collect();
        assert_eq!(
            sentences,
            [
                "machine: file `/nonexistent/disk.qcow2` does not exist; create it, or correct `disk`",
                "machine: file `/nonexistent/disc.iso` does not exist; create it, or correct `cdrom`",
                "paint: Flatpak app `org.example.NotInstalled` is not installed; run `flatpak install \
                 org.example.NotInstalled`, or correct `app`",
            ]
        );
    }

    #[test]
    fn root_is_refused_under_any_name_unless_it_is_allowed() {
        let user = |uid| UnixUser { name: "toor".into(), uid, gid: 0, gids: vec![0], home: "/root".into() };
        let refusal = refuse_root(&user(0), RunAsRoot::Never).unwrap_err();
        assert_eq!(refusal.message, "user `toor` is root, and no limit can be enforced on root");
        assert!(refuse_root(&user(0), RunAsRoot::WithoutAccount).is_ok());
        assert!(refuse_root(&user(1000), RunAsRoot::Never).is_ok());
    }

    #[test]
    fn an_entry_without_an_account_for_some_profile_would_run_as_root() {
        let missing = find_entries_without_account(&policy()).unwrap();
        let entries: Vec<&str> = missing.entries.iter().map(EntryId::as_str).collect();
        assert_eq!(entries, ["of-all"]);
        let of_root = POLICY.replace("accounts = [\"nobody\"]", "accounts = [\"root\"]");
        let of_root = shepherd_config::load("policy.toml", &of_root).unwrap().policy;
        assert_eq!(find_entries_without_account(&of_root).unwrap().entries.len(), 2);
        let with_user =
            POLICY.replace("config_version = 1", "config_version = 1\n[defaults]\nuser = \"nobody\"");
        let with_user = shepherd_config::load("policy.toml", &with_user).unwrap().policy;
        assert_eq!(find_entries_without_account(&with_user), None);
    }
}
