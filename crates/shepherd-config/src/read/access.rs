//! Reads `[access]` (S11.3) and accounts of the operating system.

use shepherd_api::ClientRole;
use shepherd_core::policy::SystemAccount;
use ward_diag::{InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::key_advice::{self, PolicySection};
use super::values;
use crate::raw::{RawAccess, RawAccount};

/// The lists of accounts and their roles.
const LISTS: [(&str, ClientRole); 3] =
    [("admins", ClientRole::Admin), ("shells", ClientRole::Shell), ("observers", ClientRole::Observer)];

/// Reads the table `[access]`.
pub(super) fn read_access(mut table: TomlTable<'_>) -> RawAccess {
    let mut rules = Vec::new();
    for (key, role) in LISTS {
        let listed = table.optional_with(key, read_accounts).unwrap_or_default();
        rules.extend(listed.into_iter().map(|account| (account, role)));
    }
    let others = table.optional_with("others", read_others).flatten();
    key_advice::finish_table(table, PolicySection::Access);
    RawAccess { rules, others }
}

fn read_others(value: TomlValue<'_>) -> Option<Option<ClientRole>> {
    if matches!(value.kind(), ValueKind::Text("admin" | "admins")) {
        let message = "not everybody can be an administrator, because administrators can change every rule";
        value.reject(
            InvalidValue::new(message)
                .code(code::NOT_ALLOWED)
                .help("name the administrators: `admins = [\"anna\", \"@parents\"]`"),
        );
        return None;
    }
    value.one_of(&[
        ("nothing", None),
        ("observe", Some(ClientRole::Observer)),
        ("shell", Some(ClientRole::Shell)),
    ])
}

pub(super) fn read_accounts(value: TomlValue<'_>) -> Option<Vec<RawAccount>> {
    Some(values::read_valid(value.elements()?, |element| Some(element.spanned(read_account(element)?))))
}

/// Reads a user by name or number, or a group with `@` before it.
fn read_account(value: TomlValue<'_>) -> Option<SystemAccount> {
    let account = match value.kind() {
        ValueKind::Integer(number) => u32::try_from(number).ok().filter(is_valid_id).map(SystemAccount::Uid),
        ValueKind::Text(text) => match text.strip_prefix('@') {
            Some(group) => parse_account(group, SystemAccount::Group, SystemAccount::Gid),
            None => parse_account(text, SystemAccount::User, SystemAccount::Uid),
        },
        _ => None,
    };
    if account.is_none() {
        let message = format!("{} is not an account", value.quoted());
        let help = "write a user as \"anna\" or 1000, and a group as \"@family\" or \"@100\"";
        value.reject(InvalidValue::new(message).help(help));
    }
    account
}

/// Parses a name or a number. Digits alone are always a number.
fn parse_account(
    name: &str,
    by_name: fn(String) -> SystemAccount,
    by_number: fn(u32) -> SystemAccount,
) -> Option<SystemAccount> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return name.parse().ok().filter(is_valid_id).map(by_number);
    }
    values::is_account_name(name).then(|| by_name(name.to_owned()))
}

/// Returns false for the highest number, which the kernel uses for "no user".
fn is_valid_id(number: &u32) -> bool {
    *number != u32::MAX
}

/// Formats an account as in a policy.
pub(crate) fn format_account(account: &SystemAccount) -> String {
    match account {
        SystemAccount::User(name) => values::escape_name(name),
        SystemAccount::Uid(number) => number.to_string(),
        SystemAccount::Group(name) => format!("@{}", values::escape_name(name)),
        SystemAccount::Gid(number) => format!("@{number}"),
    }
}
