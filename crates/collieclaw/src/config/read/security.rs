//! `[security]`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collieclaw_gate::{
    Address, Autonomy, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS, Host,
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
        rule(text).ok_or_else(|| {
            Invalid::new("this is no domain")
                .help("write it like `example.org`, `*.example.org`, `localhost:8080` or `[::1]:8080`")
        })
    })
}

/// A rule as the gate compares it, read by the gate's own reader: what it can't read it could never match.
fn rule(text: &str) -> Option<String> {
    if text.contains(['/', '?', '#']) {
        return None;
    }
    let address = |host: &str| Address::read(&format!("http://{host}/")).ok();
    if let Some(domain) = text.strip_prefix("*.") {
        let host = address(domain).filter(|_| !domain.contains(':'))?.host;
        return matches!(host, Host::Name(_)).then(|| format!("*.{host}"));
    }
    let read = address(text)?;
    let names_a_port = !text.ends_with(']') && text.contains(':');
    Some(if names_a_port { read.host_and_port() } else { read.host.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_a_domain_is_what_the_gate_will_compare_it_with() {
        for (written, compared) in [
            ("Example.ORG", Some("example.org")),
            ("*.Example.org", Some("*.example.org")),
            ("example.org:8443", Some("example.org:8443")),
            ("localhost:80", Some("localhost:80")),
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("[::1]:8080", Some("[::1]:8080")),
            ("[2001:DB8::1]", Some("2001:db8::1")),
            ("xn--mnchen-3ya.example", Some("xn--mnchen-3ya.example")),
            ("münchen.example", None),
            ("::1", None),
            ("*.example.org:80", None),
            ("*.[::1]", None),
            ("*", None),
            ("http://example.org", None),
            ("example.org/path", None),
            ("me@example.org", None),
            ("example.org:0", None),
            ("", None),
        ] {
            assert_eq!(rule(written).as_deref(), compared, "{written}");
        }
    }
}
