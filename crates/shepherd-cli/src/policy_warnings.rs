//! Warnings about a policy that is valid but probably not meant, or does not fit this machine: missing accounts, programs
//! and files, children who are administrators, a household without parents, modes whose dates are over, and an unsafe
//! policy file.
//!
//! Warnings do not make a policy invalid. It may be for another machine, or written before a game is installed.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rustix::process::geteuid;
use shepherd_api::{ClientRole, Command, CommandReply};
use shepherd_config::LoadedPolicy;
use shepherd_host_linux::{LinuxHostOptions, find_entries_without_account, find_missing_requirements};
use shepherd_ipc::{
    AccessRules, AccountResolveError, BlockingClient, ClientOptions, SystemAccounts, resolve_access,
};
use shepherd_util::{EnvironmentVariables, ErrorChain, ProfileId, ShepherdPaths};
use ward_diag::closest;
use ward_terminal::{TextTone, escape_label, paint};

use crate::context::CommandContext;
use crate::daemon::DaemonConnection;
use crate::output::ConsoleOutput;

pub(crate) fn collect_warnings(loaded: &LoadedPolicy, file: &Path, context: &CommandContext) -> Vec<String> {
    let policy = &loaded.policy;
    let mut warnings = loaded.warnings.clone();
    warnings.extend(account_warnings(loaded));
    // Nothing is started, so the folder for session logs is not used.
    let options = LinuxHostOptions::new(PathBuf::new());
    let is_for_root = is_for_root(file);
    let without_account = find_entries_without_account(policy).into_iter().filter(|_| is_for_root);
    warnings.extend(missing_parent_warning(loaded).filter(|_| is_for_root));
    let missing = find_missing_requirements(policy, &options).into_iter().chain(without_account);
    warnings.extend(missing.map(|requirement| requirement.to_string()));
    let zone = policy.rules().zone.clone().unwrap_or_else(TimeZone::system);
    warnings.extend(past_dates_warning(loaded, Timestamp::now().to_zoned(zone).date()));
    warnings.extend(shepherdd::policy_exposure_warnings(file));
    warnings.extend(failed_host_check(context));
    warnings
}

/// Prints warnings to standard error.
pub(crate) fn print_warnings(warnings: &[String], output: &mut ConsoleOutput) {
    for warning in warnings {
        output.print_note(&format!("{}: {warning}", paint(TextTone::Warn, "warning")));
    }
}

/// Returns the warnings about the policy in force. There are none if the daemon doesn't show the policy.
pub(crate) fn warnings_in_force(daemon: &mut DaemonConnection<'_>) -> Vec<String> {
    let Ok(CommandReply::Policy { text: Some(text), path, .. }) = daemon.send_command(&Command::GetPolicy {})
    else {
        return Vec::new();
    };
    let path = path.unwrap_or_default();
    match shepherd_config::load(&path, &text) {
        Ok(loaded) => collect_warnings(&loaded, Path::new(&path), daemon.context()),
        // A newer daemon may know more keys than this program.
        Err(_) => Vec::new(),
    }
}

/// Returns whether the daemon uses exactly this text, if this is the policy file of the daemon and the user may read the
/// daemon's policy.
pub(crate) fn is_in_force(file: &Path, bytes: &[u8], context: &CommandContext) -> Option<bool> {
    let socket = context.socket().ok()?;
    let daemons = [ShepherdPaths::system(context.environment()), context.paths()];
    let paths = daemons.into_iter().flatten().find(|paths| paths.socket == socket)?;
    if std::fs::canonicalize(paths.policy).ok()? != std::fs::canonicalize(file).ok()? {
        return None;
    }
    let options = ClientOptions::new(socket, "shepherd policy check");
    let reply = BlockingClient::connect(&options).ok()?.call(Command::GetPolicy {}).ok()?;
    let CommandReply::Policy { text, .. } = reply else { return None };
    Some(text.is_some_and(|text| text.as_bytes() == bytes))
}

/// Returns the detail of the daemon's host check if a daemon runs and can't launch anything.
fn failed_host_check(context: &CommandContext) -> Option<String> {
    let options = ClientOptions::new(context.socket().ok()?, "shepherd policy check");
    let reply = BlockingClient::connect(&options).ok()?.call(Command::Health {}).ok()?;
    let CommandReply::Health { health } = reply else { return None };
    let failed = health.checks.into_iter().find(|check| check.name == "host" && !check.passed)?;
    Some(format!("the daemon on this machine: {}", escape_label(&failed.detail)))
}

/// Returns true if the policy is for a daemon that runs as root.
fn is_for_root(file: &Path) -> bool {
    let system_policy = || ShepherdPaths::system(&EnvironmentVariables::new()).map(|paths| paths.policy);
    geteuid().is_root() || system_policy().is_ok_and(|policy| policy == file)
}

/// Returns a warning for each account that this machine does not have, and for each child who is an administrator.
fn account_warnings(loaded: &LoadedPolicy) -> Vec<String> {
    let rules = loaded.policy.rules();
    match SystemAccounts::read() {
        Ok(accounts) => {
            let (access, faults) =
                resolve_access(&rules.access, &rules.profiles, geteuid().as_raw(), &accounts);
            let unknown = faults.iter().map(|fault| account_warning(fault, &accounts));
            unknown.chain(administrator_warnings(&access, &accounts)).collect()
        }
        Err(error) => vec![ErrorChain(&error).to_string()],
    }
}

/// Describes a fault of an account, with the login that was probably meant.
fn account_warning(fault: &AccountResolveError, accounts: &SystemAccounts) -> String {
    match fault {
        AccountResolveError::UnknownUser(name) if accounts.group_id(name).is_some() => format!(
            "`{name}` is a group of this machine and no login; write \"@{name}\" for all its members, or the login of a person"
        ),
        AccountResolveError::UnknownUser(name) => match closest(name, accounts.person_names()) {
            Some(near) => format!(
                "no such user `{name}` on this machine; did you mean `{near}`? If not, create the login with `sudo adduser \
                 {name}`"
            ),
            None => fault.to_string(),
        },
        AccountResolveError::UnknownGroup(_) | AccountResolveError::TwoProfiles { .. } => fault.to_string(),
    }
}

/// Returns a warning for each account of a profile that is also an administrator.
fn administrator_warnings(access: &AccessRules, accounts: &SystemAccounts) -> Vec<String> {
    let is_admin = |role: Option<&ClientRole>| role == Some(&ClientRole::Admin);
    let sentence = |account: String, profile: &ProfileId| {
        format!(
            "{account} of profile `{profile}` is also an administrator, so the child can change every rule; remove the \
             account from `admins` (or from the group that `admins` names), or set a PIN with `shepherd pin set`"
        )
    };
    let users = access.profiles.iter().filter(|(uid, _)| **uid == 0 || is_admin(access.users.get(uid)));
    let user_warnings = users.map(|(uid, profile)| {
        let name = accounts.user_name(*uid).map_or_else(|| uid.to_string(), |name| format!("`{name}`"));
        sentence(format!("user {name}"), profile)
    });
    let groups = access.group_profiles.iter().filter(|(gid, _)| is_admin(access.groups.get(gid)));
    let group_warnings = groups.map(|(gid, profile)| sentence(format!("group {gid}"), profile));
    user_warnings.chain(group_warnings).collect()
}

/// Returns a warning if the policy names the logins of children, but no parent.
fn missing_parent_warning(loaded: &LoadedPolicy) -> Option<String> {
    let rules = loaded.policy.rules();
    let has_child = rules.profiles.values().any(|profile| !profile.accounts.is_empty());
    let has_parent = rules.access.rules.iter().any(|(_, role)| *role == ClientRole::Admin);
    (has_child && !has_parent).then(|| {
        "no login is a parent, so only `sudo shepherd …` can give time; fill in the parents' logins: `[access]`, and \
         below it `admins = [\"mama\"]`"
            .to_owned()
    })
}

/// Returns a warning if all dates of modes are over, so that the calendar never changes the mode again.
fn past_dates_warning(loaded: &LoadedPolicy, today: Date) -> Option<String> {
    let latest = loaded.policy.rules().modes.by_date.iter().map(|(_, to, _)| *to).max()?;
    (latest.date() < today).then(|| {
        format!(
            "all days in `[[modes.dates]]` are over, the last one on {latest}; add new ones, or remove them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> LoadedPolicy {
        shepherd_config::load("policy.toml", &format!("config_version = 1\n{text}"))
            .unwrap_or_else(|report| panic!("{report}"))
    }

    #[test]
    fn a_child_who_is_an_administrator_causes_a_warning() {
        let accounts = SystemAccounts::parse(
            "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\nben:x:1001:1001::/home/ben:/bin/sh\n\
             mum:x:1002:1002::/home/mum:/bin/sh\n",
            "parents:x:200:mum,anna\nkids:x:300:ben\n",
        );
        let warnings = |text: &str| {
            let loaded = load(text);
            let rules = loaded.policy.rules();
            let (access, faults) = resolve_access(&rules.access, &rules.profiles, 1002, &accounts);
            assert_eq!(faults, []);
            administrator_warnings(&access, &accounts)
        };
        let profiles = "[profiles.anna]\naccounts = [\"anna\"]\n[profiles.ben]\naccounts = [\"ben\"]\n";
        assert_eq!(warnings(&format!("{profiles}[access]\nadmins = [\"mum\"]")), Vec::<String>::new());
        assert_eq!(
            warnings(&format!("{profiles}[access]\nadmins = [\"@parents\", 1001]")),
            ["anna", "ben"].map(|name| format!(
                "user `{name}` of profile `{name}` is also an administrator, so the child can change every rule; remove \
                 the account from `admins` (or from the group that `admins` names), or set a PIN with `shepherd pin set`"
            ))
        );
        let by_group = warnings("[profiles.kids]\naccounts = [\"@kids\"]\n[access]\nadmins = [\"@300\"]");
        assert_eq!(by_group.len(), 2);
        assert!(by_group[0].starts_with("user `ben` of profile `kids`"), "{by_group:?}");
        assert!(by_group[1].starts_with("group 300 of profile `kids`"), "{by_group:?}");
    }

    #[test]
    fn only_a_login_of_a_person_is_suggested_for_a_missing_one() {
        let accounts = SystemAccounts::parse(
            "bin:x:2:2:bin:/bin:/bin/sh\ntom1:x:1001:1001::/home/tom1:/usr/sbin/nologin\nanna:x:1000:1000::/home/anna:/bin/sh\n\
             nobody:x:65534:65534::/:/bin/sh\n",
            "kids:x:300:anna\n",
        );
        let warning =
            |name: &str| account_warning(&AccountResolveError::UnknownUser(name.to_owned()), &accounts);
        assert!(warning("ana").contains("did you mean `anna`?"), "{}", warning("ana"));
        assert!(warning("kids").contains("write \"@kids\""), "{}", warning("kids"));
        for name in ["ben", "tom", "nobodi"] {
            assert!(warning(name).contains("`whoami` shows your own"), "{}", warning(name));
        }
    }

    #[test]
    fn a_policy_with_children_and_without_parents_causes_a_warning() {
        let profile = "[profiles.anna]\naccounts = [\"anna\"]\n";
        let warning = |text: &str| missing_parent_warning(&load(text));
        let expected = "no login is a parent, so only `sudo shepherd …` can give time; fill in the parents' logins: \
                        `[access]`, and below it `admins = [\"mama\"]`";
        assert_eq!(warning(profile).as_deref(), Some(expected));
        let with_observer = format!("{profile}[access]\nobservers = [\"oma\"]\nadmins = []");
        assert_eq!(warning(&with_observer).as_deref(), Some(expected));
        assert_eq!(warning(&format!("{profile}[access]\nadmins = [\"@parents\"]")), None);
        assert_eq!(warning("[profiles.anna]\nlabel = \"Anna\""), None);
        assert_eq!(warning(""), None);
    }

    #[test]
    fn mode_dates_are_noticed_once_all_are_over() {
        let loaded = load(
            "[modes]\nnames = [\"school\", \"holiday\"]\n[[modes.dates]]\nmode = \"holiday\"\nfrom = 2025-12-23\n\
             to = 2026-01-06\n[[modes.dates]]\nmode = \"holiday\"\non = 2025-10-03\n",
        );
        assert_eq!(past_dates_warning(&loaded, Date::constant(2026, 1, 6)), None);
        assert_eq!(
            past_dates_warning(&loaded, Date::constant(2026, 1, 7)).as_deref(),
            Some(
                "all days in `[[modes.dates]]` are over, the last one on 2026-01-06; add new ones, or remove them"
            )
        );
        assert_eq!(past_dates_warning(&load(""), Date::constant(2026, 1, 7)), None);
    }
}
