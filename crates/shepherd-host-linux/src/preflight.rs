//! Checks whether the entries of a policy can run on this machine, without starting anything.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shepherd_api::EntryKind;
use shepherd_core::policy::{Policy, PolicyEntry};
use shepherd_util::{EntryId, ProfileId, parse_passwd};

use crate::environment;
use crate::launch_command::{LaunchCommandBuilder, LaunchResources};
use crate::launch_error::LaunchError;
use crate::logind::logind_is_running;
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

/// Entries that a sentence names. A policy may have a thousand.
const MAX_NAMED_ENTRIES: usize = 10;

impl fmt::Display for MissingRequirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.entries.iter().take(MAX_NAMED_ENTRIES);
        let names: Vec<String> = named.map(|entry| format!("`{entry}`")).collect();
        let noun = if self.entries.len() == 1 { "entry" } else { "entries" };
        let more = match self.entries.len().saturating_sub(MAX_NAMED_ENTRIES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        write!(formatter, "{noun} {}{more}: {}", names.join(", "), self.sentence)
    }
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
        let entry_errors = match entry.kind.is_login() {
            true => check_logind(),
            false => check_entry(entry, &resources, options),
        };
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

/// Checks that this machine can tell when somebody logs in.
fn check_logind() -> Vec<LaunchError> {
    if logind_is_running() {
        return Vec::new();
    }
    let message = "systemd-logind doesn't run here, so nobody whose login is limited could log in";
    vec![LaunchError::new(message, "install `libpam-systemd`")]
}

/// Returns the entries that a daemon of root's never starts for some profiles, because the policy names no account for
/// them.
#[must_use]
pub fn find_entries_without_account(policy: &Policy) -> Vec<MissingRequirement> {
    let mut missing: Vec<(Vec<&ProfileId>, Vec<EntryId>)> = Vec::new();
    for entry in policy.entries().iter().filter(|entry| !entry.kind.is_login()) {
        let lacks_account = |profile: &&ProfileId| {
            policy.system_account(entry, profile).is_none_or(|account| account == "root")
        };
        let profiles: Vec<&ProfileId> = profiles_of(policy, entry).filter(lacks_account).collect();
        match missing.iter_mut().find(|(known, _)| *known == profiles) {
            _ if profiles.is_empty() => {}
            Some((_, entries)) => entries.push(entry.entry_id.clone()),
            None => missing.push((profiles, vec![entry.entry_id.clone()])),
        }
    }
    let requirement = |(profiles, entries): (Vec<&ProfileId>, _)| {
        let sentence = describe_missing_logins(policy, &profiles);
        MissingRequirement { entries, sentence }
    };
    missing.into_iter().map(requirement).collect()
}

/// Says that some profiles have no account, and what to write into the policy.
fn describe_missing_logins(policy: &Policy, profiles: &[&ProfileId]) -> String {
    let is_default = |profile: &ProfileId| *profile == ProfileId::default();
    let line = |profile: &ProfileId| format!("`accounts = [\"{profile}\"]`");
    let (cause, cure) = match profiles {
        // A policy without profiles has the default one.
        [only] if is_default(only) => (
            ", because no child's login is filled in".to_owned(),
            "write `[profiles.anna]`, and below it `accounts = [\"anna\"]`, with your child's login in place of `anna`"
                .to_owned(),
        ),
        [only] => (
            format!(" for profile `{only}`, because it names no login"),
            format!("write the child's login below `[profiles.{only}]`, such as {}", line(only)),
        ),
        [first, ..] => {
            let names: Vec<String> = profiles.iter().map(|profile| format!("`{profile}`")).collect();
            let example = format!("{} below `[profiles.{first}]`", line(first));
            (
                format!(" for profiles {}, because they name no login", names.join(", ")),
                format!("write each child's login below the child's header, such as {example}"),
            )
        }
        [] => return String::new(),
    };
    let has_others = |profile: &ProfileId| {
        policy.rules().profiles.get(profile).is_some_and(|known| !known.accounts.is_empty())
    };
    let remark = if profiles.iter().any(|profile| has_others(profile)) {
        " (root, a group or a number is not enough)"
    } else {
        ""
    };
    format!("would run as root{cause}, and Shepherd starts nothing as root; {cure}{remark}")
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
    if let Err(error) = find_installed_program(name, &command.environment) {
        return Err(error_for_joined_words(entry, &command.environment).unwrap_or(error));
    }
    match command.directory.filter(|folder| is_missing(folder)) {
        Some(folder) => Err(LaunchError::new(
            format!("folder `{}` does not exist", folder.display()),
            "create it, or correct `cwd`",
        )),
        None => Ok(()),
    }
}

fn find_installed_program(name: &OsString, environment: &[(OsString, OsString)]) -> Result<(), LaunchError> {
    let program = resolve_program(name, environment)?;
    if is_missing(&program) {
        let message = format!("program `{}` not found", program.display());
        return Err(LaunchError::new(message, "install it, or correct its path"));
    }
    Ok(())
}

/// Returns the error for an `argv` whose first element is a program with its options. A path may have spaces, so it is
/// split only if its first word is a program.
fn error_for_joined_words(entry: &PolicyEntry, environment: &[(OsString, OsString)]) -> Option<LaunchError> {
    let EntryKind::Process { argv, .. } = &entry.kind else { return None };
    let (joined, others) = argv.split_first()?;
    let mut words = joined.split_whitespace();
    let program = words.next()?;
    words.clone().next()?;
    if program.contains('/') && find_installed_program(&program.into(), environment).is_err() {
        return None;
    }
    let all = std::iter::once(program).chain(words).chain(others.iter().map(String::as_str));
    let quoted: Vec<String> = all.map(|word| format!("{word:?}")).collect();
    let help = format!("write each option in quotes of its own: `argv = [{}]`", quoted.join(", "));
    Some(LaunchError::new(format!("program `{joined}` not found"), help))
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
    fn options_within_the_quotes_of_the_program_are_written_apart() {
        let sentences = |argv: &str| {
            let text = format!("config_version = 1\n[[entries]]\nid = \"x\"\nargv = {argv}\nalways = true\n");
            let policy =
                shepherd_config::load("policy.toml", &text).unwrap_or_else(|report| panic!("{report}"));
            let missing = find_missing_requirements(&policy.policy, &LinuxHostOptions::new(PathBuf::new()));
            missing.into_iter().map(|missing| missing.sentence).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            sentences(r#"["no-such-game --fullscreen", "-x"]"#),
            "program `no-such-game --fullscreen` not found; write each option in quotes of its own: \
             `argv = [\"no-such-game\", \"--fullscreen\", \"-x\"]`"
        );
        assert!(sentences(r#"["/bin/sh -c"]"#).ends_with(r#"`argv = ["/bin/sh", "-c"]`"#));
        assert_eq!(
            sentences(r#"["/nonexistent/My Game"]"#),
            "program `/nonexistent/My Game` not found; install it, or correct its path"
        );
        assert!(sentences(r#"["Sh"]"#).ends_with("did you mean `sh`?"), "{}", sentences(r#"["Sh"]"#));
        assert!(sentences(r#"["tuxmath.desktop"]"#).contains("behind `Exec=` in the file `tuxmath.desktop`"));
        assert!(sentences(r#"["~/game"]"#).contains("write the whole path"));
    }

    #[test]
    fn a_sentence_about_many_entries_names_the_first_ones() {
        let about = |count: usize| {
            let entries = (0..count).map(|number| format!("e{number}").parse().unwrap()).collect();
            MissingRequirement { entries, sentence: "broken".to_owned() }.to_string()
        };
        assert_eq!(about(1), "entry `e0`: broken");
        assert_eq!(about(2), "entries `e0`, `e1`: broken");
        assert!(about(12).ends_with("`e8`, `e9` and 2 more: broken"), "{}", about(12));
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
    fn an_entry_without_an_account_for_some_profile_would_run_as_root_and_the_cure_is_named() {
        let missing = |from: &str, to: &str| {
            let text = POLICY.replace(from, to);
            let policy =
                shepherd_config::load("policy.toml", &text).unwrap_or_else(|report| panic!("{report}"));
            let missing = find_entries_without_account(&policy.policy);
            let line = |MissingRequirement { entries, sentence }: MissingRequirement| {
                let entries: Vec<&str> = entries.iter().map(EntryId::as_str).collect();
                format!("{}: {sentence}", entries.join(" "))
            };
            missing.into_iter().map(line).collect::<Vec<_>>()
        };
        const NEVER: &str = "and Shepherd starts nothing as root; write";
        assert_eq!(
            missing("", ""),
            [format!(
                "of-all: would run as root for profile `ben`, because it names no login, {NEVER} the child's login below \
                 `[profiles.ben]`, such as `accounts = [\"ben\"]` (root, a group or a number is not enough)"
            )]
        );
        let of_root = missing("[\"nobody\"]", "[\"root\"]");
        assert_eq!(of_root.len(), 2, "{of_root:?}");
        assert!(of_root[0].starts_with("of-anna: would run as root for profile `anna`, "), "{of_root:?}");
        assert!(
            of_root[1].starts_with("of-all: would run as root for profiles `anna`, `ben`, "),
            "{of_root:?}"
        );
        let fresh =
            "config_version = 1\n[[entries]]\nid = \"tuxmath\"\nargv = [\"tuxmath\"]\nalways = true\n";
        assert_eq!(
            missing(POLICY, fresh),
            [format!(
                "tuxmath: would run as root, because no child's login is filled in, {NEVER} `[profiles.anna]`, and below it \
                 `accounts = [\"anna\"]`, with your child's login in place of `anna`"
            )]
        );
        let with_user = missing("config_version = 1", "config_version = 1\n[defaults]\nuser = \"nobody\"");
        assert_eq!(with_user, Vec::<String>::new());
    }
}
