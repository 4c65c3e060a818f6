//! Who may do what at the daemon's socket (S11.3), and who is whom to the operating system.

use shepherd_api::Role;
use shepherd_core::policy::Account;
use ward_diag::{Invalid, Shape, Table, Value, code};

use super::values;
use crate::raw::{RawAccess, RawAccount};

/// The lists, and what whoever is in one may do.
const LISTS: [(&str, Role); 3] =
    [("admins", Role::Admin), ("shells", Role::Shell), ("observers", Role::Observer)];

/// `[access]`.
pub(super) fn access(mut table: Table<'_>) -> RawAccess {
    let mut rules = Vec::new();
    for (key, role) in LISTS {
        let listed = table.optional_with(key, accounts).unwrap_or_default();
        rules.extend(listed.into_iter().map(|account| (account, role)));
    }
    let others = table.optional_with("others", others).flatten();
    table.finish();
    RawAccess { rules, others }
}

fn others(value: Value<'_>) -> Option<Option<Role>> {
    if matches!(value.shape(), Shape::Text("admin" | "admins")) {
        let message = "not everybody can be an administrator: whoever is could do away with every rule";
        value.refuse(
            Invalid::new(message)
                .code(code::NOT_ALLOWED)
                .help("name those who are: `admins = [\"anna\", \"@parents\"]`"),
        );
        return None;
    }
    value.one_of(&[("nothing", None), ("observe", Some(Role::Observer)), ("shell", Some(Role::Shell))])
}

/// A list of accounts.
pub(super) fn accounts(value: Value<'_>) -> Option<Vec<RawAccount>> {
    Some(values::each(value.elements()?, |element| Some(element.spanned(account(element)?))))
}

/// A user by name or number; a group with `@` before it.
fn account(value: Value<'_>) -> Option<Account> {
    let account = match value.shape() {
        Shape::Integer(number) => u32::try_from(number).ok().filter(is_number).map(Account::Uid),
        Shape::Text(text) => match text.strip_prefix('@') {
            Some(group) => named(group, Account::Group, Account::Gid),
            None => named(text, Account::User, Account::Uid),
        },
        _ => None,
    };
    if account.is_none() {
        let message = format!("{} is no account", value.quoted());
        let help = "write a user as \"anna\" or 1000, and a group as \"@family\" or \"@100\"";
        value.refuse(Invalid::new(message).help(help));
    }
    account
}

/// No name consists of digits only: that is a number.
fn named(name: &str, by_name: fn(String) -> Account, by_number: fn(u32) -> Account) -> Option<Account> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return name.parse().ok().filter(is_number).map(by_number);
    }
    values::is_account_name(name).then(|| by_name(name.to_owned()))
}

/// The highest number is the kernel's way to say "nobody in particular".
fn is_number(number: &u32) -> bool {
    *number != u32::MAX
}

/// An account as it is written.
pub(crate) fn written(account: &Account) -> String {
    match account {
        Account::User(name) => values::shown(name),
        Account::Uid(number) => number.to_string(),
        Account::Group(name) => format!("@{}", values::shown(name)),
        Account::Gid(number) => format!("@{number}"),
    }
}
