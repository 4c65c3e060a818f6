//! Reads the section `[security]`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use collieclaw_gate::{
    AutonomyLevel, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS, UrlHost,
    WebAddress,
};
use ward_diag::{ConfigFault, FaultCollector, InvalidValue, Spanned, TomlTable, TomlValue, code};

use super::ConfigReader;
use super::values::{read_all, set_if_some};
use crate::config::SecuritySettings;

impl ConfigReader<'_> {
    pub(super) fn security(&self, table: Option<TomlTable<'_>>) -> SecuritySettings {
        let mut security = SecuritySettings {
            autonomy: AutonomyLevel::Supervised,
            workspace_only: true,
            forbidden_paths: self.default_forbidden_paths(),
            forbidden_commands: to_set(DEFAULT_FORBIDDEN_COMMANDS),
            allowed_commands: to_set(DEFAULT_ALLOWED_COMMANDS),
            allowed_domains: Vec::new(),
            audit_log: true,
        };
        let Some(mut table) = table else { return security };
        let levels = [
            ("readonly", AutonomyLevel::ReadOnly),
            ("supervised", AutonomyLevel::Supervised),
            ("full", AutonomyLevel::Full),
        ];
        set_if_some(&mut security.autonomy, table.optional_with("autonomy", |value| value.one_of(&levels)));
        set_if_some(&mut security.workspace_only, table.optional("workspace_only"));
        let path = |value: TomlValue<'_>| value.parse(|text| self.context.expand_path(text, Path::new("/")));
        set_if_some(
            &mut security.forbidden_paths,
            table.optional_with("forbidden_paths", |value| read_all(value, path)),
        );
        let forbidden = table.optional_with("forbidden_commands", |value| read_all(value, read_command_name));
        let allowed = table.optional_with("allowed_commands", |value| read_all(value, read_command_name));
        if let (Some(forbidden), Some(allowed)) = (&forbidden, &allowed) {
            report_conflicts(forbidden, allowed, table.faults());
        }
        set_if_some(&mut security.forbidden_commands, forbidden.map(values_of));
        set_if_some(&mut security.allowed_commands, allowed.map(values_of));
        set_if_some(
            &mut security.allowed_domains,
            table.optional_with("allowed_domains", |value| read_all(value, read_domain)),
        );
        set_if_some(&mut security.audit_log, table.optional("audit_log"));
        table.finish();
        security
    }

    fn default_forbidden_paths(&self) -> Vec<PathBuf> {
        let home = &self.context.user_home;
        let path = |text: &&str| text.strip_prefix("~/").map_or_else(|| text.into(), |rest| home.join(rest));
        DEFAULT_FORBIDDEN_PATHS.iter().map(path).collect()
    }
}

fn to_set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn values_of(listed: Vec<Spanned<String>>) -> BTreeSet<String> {
    listed.into_iter().map(|name| name.value).collect()
}

/// Reads the name of a command. Paths are rejected, because rules match commands by name.
fn read_command_name(value: TomlValue<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    let name = value.parse(|text| {
        if text.is_empty()
            || text.contains(|letter: char| letter == '/' || letter.is_whitespace() || letter.is_control())
        {
            Err(InvalidValue::new("this is not the name of a command")
                .help("write the name alone, like `grep`"))
        } else {
            Ok(text.to_owned())
        }
    })?;
    Some(Spanned::new(name, span))
}

fn report_conflicts(forbidden: &[Spanned<String>], allowed: &[Spanned<String>], faults: &FaultCollector) {
    for name in allowed {
        if let Some(other) = forbidden.iter().find(|other| other.value == name.value) {
            faults.push(
                ConfigFault::new(
                    code::INVALID,
                    name.span,
                    format!("`{}` is both allowed and forbidden", name.value),
                )
                .related(other.span, "forbidden here")
                .help("keep it on one of the two lists"),
            );
        }
    }
}

fn read_domain(value: TomlValue<'_>) -> Option<String> {
    value.parse(|text| {
        normalize_domain_rule(text).ok_or_else(|| {
            InvalidValue::new("this is not a domain")
                .help("write it like `example.org`, `*.example.org`, `localhost:8080` or `[::1]:8080`")
        })
    })
}

/// Normalizes a domain rule with the gate's own parser. The gate could never match a rule that its parser
/// rejects.
fn normalize_domain_rule(text: &str) -> Option<String> {
    if text.contains(['/', '?', '#']) {
        return None;
    }
    let address = |host: &str| WebAddress::parse(&format!("http://{host}/")).ok();
    if let Some(domain) = text.strip_prefix("*.") {
        let host = address(domain).filter(|_| !domain.contains(':'))?.host;
        return matches!(host, UrlHost::Name(_)).then(|| format!("*.{host}"));
    }
    let read = address(text)?;
    let names_a_port = !text.ends_with(']') && text.contains(':');
    Some(if names_a_port { read.host_and_port() } else { read.host.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_rules_are_normalized_as_the_gate_compares_them() {
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
            assert_eq!(normalize_domain_rule(written).as_deref(), compared, "{written}");
        }
    }
}
