//! `[security]`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collieclaw_gate::{
    Autonomy, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS,
};
use ward_diag::{Fault, Faults, Invalid, Spanned, Table, Value, code};

use super::Reader;
use super::words::{all, put};
use crate::config::Security;

impl Reader<'_> {
    pub(super) fn security(&self, table: Option<Table<'_>>) -> Security {
        let mut security = Security {
            autonomy: Autonomy::Supervised,
            workspace_only: true,
            forbidden_paths: self.default_forbidden_paths(),
            forbidden_commands: owned(DEFAULT_FORBIDDEN_COMMANDS),
            allowed_commands: owned(DEFAULT_ALLOWED_COMMANDS),
            allowed_domains: Vec::new(),
            audit_log: true,
        };
        let Some(mut table) = table else { return security };
        let levels = [
            ("readonly", Autonomy::ReadOnly),
            ("supervised", Autonomy::Supervised),
            ("full", Autonomy::Full),
        ];
        put(&mut security.autonomy, table.optional_with("autonomy", |value| value.one_of(&levels)));
        put(&mut security.workspace_only, table.optional("workspace_only"));
        let path = |value: Value<'_>| value.parse(|text| self.surroundings.path(text, Path::new("/")));
        put(&mut security.forbidden_paths, table.optional_with("forbidden_paths", |value| all(value, path)));
        let forbidden = table.optional_with("forbidden_commands", |value| all(value, command));
        let allowed = table.optional_with("allowed_commands", |value| all(value, command));
        if let (Some(forbidden), Some(allowed)) = (&forbidden, &allowed) {
            on_both_lists(forbidden, allowed, table.faults());
        }
        put(&mut security.forbidden_commands, forbidden.map(names));
        put(&mut security.allowed_commands, allowed.map(names));
        put(
            &mut security.allowed_domains,
            table.optional_with("allowed_domains", |value| all(value, domain)),
        );
        put(&mut security.audit_log, table.optional("audit_log"));
        table.finish();
        security
    }

    fn default_forbidden_paths(&self) -> Vec<PathBuf> {
        let home = &self.surroundings.user_home;
        let path = |text: &&str| text.strip_prefix("~/").map_or_else(|| text.into(), |rest| home.join(rest));
        DEFAULT_FORBIDDEN_PATHS.iter().map(path).collect()
    }
}

fn owned(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn names(listed: Vec<Spanned<String>>) -> BTreeSet<String> {
    listed.into_iter().map(|name| name.value).collect()
}

/// A command by its last name: rules know no paths.
fn command(value: Value<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    let name = value.parse(|text| {
        if text.is_empty()
            || text.contains(|letter: char| letter == '/' || letter.is_whitespace() || letter.is_control())
        {
            Err(Invalid::new("this is no name of a command").help("write the name alone, like `grep`"))
        } else {
            Ok(text.to_owned())
        }
    })?;
    Some(Spanned::new(name, span))
}

fn on_both_lists(forbidden: &[Spanned<String>], allowed: &[Spanned<String>], faults: &Faults) {
    for name in allowed {
        if let Some(other) = forbidden.iter().find(|other| other.value == name.value) {
            faults.push(
                Fault::new(code::INVALID, name.span, format!("`{}` is allowed and forbidden", name.value))
                    .related(other.span, "forbidden here")
                    .help("keep it on one of the two lists"),
            );
        }
    }
}

fn domain(value: Value<'_>) -> Option<String> {
    value.parse(|text| {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let name = host.strip_prefix("*.").unwrap_or(host);
        let letters =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '[' | ']' | ':');
        let is_host = !name.is_empty() && name.chars().all(letters);
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if is_host && is_port {
            Ok(text.to_ascii_lowercase())
        } else {
            Err(Invalid::new("this is no domain")
                .help("write it like `example.org`, `*.example.org` or `localhost:8080`"))
        }
    })
}
