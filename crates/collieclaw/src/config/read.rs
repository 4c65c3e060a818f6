//! Text in; a configuration, or every fault of it, out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_gate::{
    Autonomy, DEFAULT_ALLOWED_COMMANDS, DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS,
};
use ward_diag::{Fault, Faults, Invalid, Report, Shape, Source, Span, Spanned, Table, Value, closest, code};

use super::expand::{Surroundings, duration};
use super::place::real;
use super::{
    Backend, Channels, CliChannel, Config, Limits, MemoryFile, Model, Providers, ReceiptFile, Security,
};
use crate::net::Link;

/// What a new installation offers to the model (C3.1).
pub(super) const DEFAULT_TOOLS: &[&str] = &["file_read", "file_list", "time", "memory_search", "shell"];

/// Keys under which people put what must not be shown.
const SECRETS: &[&str] = &["api_key", "key", "token", "password", "secret", "api_key_env"];

/// Reads a configuration. `tools` are the names of all tools there are.
///
/// # Errors
/// With every fault that can be found, each with its place and its cure.
pub fn read(source: Source, surroundings: &Surroundings, tools: &[&str]) -> Result<Config, Report> {
    let reader = Reader { surroundings, tools };
    ward_diag::read(source.hide_values_of(SECRETS.iter().copied()), |root| reader.config(root))
}

struct Reader<'r> {
    surroundings: &'r Surroundings,
    tools: &'r [&'r str],
}

impl Reader<'_> {
    fn config(&self, root: &mut Table<'_>) -> Option<Config> {
        let user_home = self.surroundings.user_home.clone();
        let workspace_dir = self
            .path(root, "workspace_dir", &user_home)
            .unwrap_or_else(|| Spanned::nowhere(user_home.join("collieclaw-workspace")));
        let security = self.security(root.table("security"));
        let providers = self.providers(root.table("providers"));
        let default_provider = root
            .optional_with("default_provider", filled)
            .unwrap_or_else(|| Spanned::nowhere("local".to_owned()));
        let default_model = root.optional_with("default_model", filled).map(|model| model.value);
        let channels = Channels { cli: self.cli(root.table("channels")) };
        let memory = self.memory(root.table("memory"), &workspace_dir);
        let receipts = self.receipts(root.table("receipts"), &workspace_dir);
        let limits = limits(root.table("limits"));
        let faults = root.faults();
        self.own_home_is_apart(&workspace_dir, faults);

        let chosen = providers.models.get(&default_provider.value);
        if chosen.is_none() && !root.is_incomplete() {
            let names = providers.models.keys().map(String::as_str);
            faults.push(unknown("provider", &default_provider, names, "add it as `[providers.models.NAME]`"));
        }
        let default_model = default_model.or_else(|| chosen.map(|model| model.model().to_owned()));
        Some(Config {
            workspace_dir: workspace_dir.value,
            default_provider: default_provider.value,
            default_model: default_model.unwrap_or_default(),
            security,
            providers,
            channels,
            memory,
            receipts,
            limits,
        })
    }

    fn security(&self, table: Option<Table<'_>>) -> Security {
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

    fn providers(&self, table: Option<Table<'_>>) -> Providers {
        let mut models = BTreeMap::from([
            ("local".to_owned(), Model::Mock { model: "mock".to_owned(), fixture: None }),
            ("openai_compatible".to_owned(), default_server()),
        ]);
        let Some(mut table) = table else { return Providers { models } };
        let mut members = Vec::new();
        if let Some(mut named) = table.table("models") {
            for (name, value) in named.entries() {
                if let Some(model) =
                    value.table().and_then(|table| self.model(name.value, table, &mut members))
                {
                    models.insert(name.value.to_owned(), model);
                }
            }
            named.finish();
        }
        for reliable in &members {
            lead_to_models(reliable, &models, table.faults());
        }
        table.finish();
        Providers { models }
    }

    fn model(
        &self,
        name: &str,
        mut table: Table<'_>,
        members: &mut Vec<Spanned<(String, Vec<String>)>>,
    ) -> Option<Model> {
        let kinds = [
            ("mock", Kind::Mock),
            ("openai-compatible", Kind::OpenAiCompatible),
            ("reliable", Kind::Reliable),
        ];
        let kind = match name {
            // What is there by default need not say again what it is.
            "local" | "openai_compatible" => table
                .optional_with("kind", |value| value.one_of(&kinds))
                .or(Some(if name == "local" { Kind::Mock } else { Kind::OpenAiCompatible })),
            _ => table.required_with("kind", |value| value.one_of(&kinds)),
        };
        let model = match kind {
            None => {
                // Which keys belong here is not known: none of them is called unknown.
                table.entries();
                None
            }
            Some(Kind::Mock) => Some(Model::Mock {
                model: text_or(&mut table, "model", "mock"),
                fixture: self.path(&mut table, "fixture", &self.surroundings.home).map(|path| path.value),
            }),
            Some(Kind::OpenAiCompatible) => self.server(&mut table, name),
            Some(Kind::Reliable) => {
                let listed = |value: Value<'_>| {
                    let span = value.span();
                    let names = all_filled(value)?;
                    members.push(Spanned::new((name.to_owned(), names.clone()), span));
                    Some(Model::Reliable { providers: names })
                };
                table.required_with("providers", listed)
            }
        };
        if let Some(value) = table.value("api_key") {
            value.refuse(Invalid::new("a key does not belong into this file").help(
                "put it into a variable of the environment, and name that: `api_key_env = \"MY_KEY\"`",
            ));
        }
        table.finish();
        model
    }

    fn server(&self, table: &mut Table<'_>, name: &str) -> Option<Model> {
        let faults = table.faults();
        let base_url = |value: Value<'_>| {
            // Somebody may have put a password before the host.
            if matches!(value.shape(), Shape::Text(text) if text.contains('@')) {
                faults.hide(value.span());
            }
            value.parse(|text| self.surroundings.expand(text).and_then(|url| server_url(&url)))
        };
        let (base_url, model) = if name == "openai_compatible" {
            let base_url =
                table.optional_with("base_url", base_url).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
            (Some(base_url), Some(text_or(table, "model", DEFAULT_SERVER_MODEL)))
        } else {
            let model = table.required_with("model", filled).map(|model| model.value);
            (table.required_with("base_url", base_url), model)
        };
        let variable = |value: Value<'_>| value.parse(variable_name);
        let usual = if name == "openai_compatible" { DEFAULT_KEY_VARIABLE } else { "" };
        let api_key_env = table.optional_with("api_key_env", variable).unwrap_or_else(|| usual.to_owned());
        Some(Model::OpenAiCompatible { base_url: base_url?, model: model?, api_key_env })
    }

    fn cli(&self, table: Option<Table<'_>>) -> CliChannel {
        let mut cli = CliChannel {
            enabled: true,
            tools_allow: DEFAULT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
        };
        let Some(mut channels) = table else { return cli };
        if let Some(mut table) = channels.table("cli") {
            put(&mut cli.enabled, table.optional("enabled"));
            let listed: Option<Vec<Spanned<String>>> = table.optional("tools_allow");
            for tool in listed.iter().flatten() {
                if !self.tools.contains(&tool.value.as_str()) {
                    table.faults().push(unknown(
                        "tool",
                        tool,
                        self.tools.iter().copied(),
                        "see `collieclaw tool list`",
                    ));
                }
            }
            put(&mut cli.tools_allow, listed.map(|tools| tools.into_iter().map(|tool| tool.value).collect()));
            table.finish();
        }
        channels.finish();
        cli
    }

    fn memory(&self, table: Option<Table<'_>>, workspace: &Spanned<PathBuf>) -> MemoryFile {
        let home = &self.surroundings.home;
        let mut memory =
            MemoryFile { backend: Backend::Sqlite, path: home.join("memory.db"), recent_turns: 40 };
        let Some(mut table) = table else { return memory };
        put(
            &mut memory.backend,
            table.optional_with("backend", |value| value.one_of(&[("sqlite", Backend::Sqlite)])),
        );
        let path = self.path(&mut table, "path", home);
        self.out_of_reach(path.as_ref(), workspace, table.faults());
        put(&mut memory.path, path.map(|path| path.value));
        let most = |value: Value<'_>| value.integer_in(0..=10_000).and_then(|turns| turns.try_into().ok());
        put(&mut memory.recent_turns, table.optional_with("recent_turns", most));
        table.finish();
        memory
    }

    fn receipts(&self, table: Option<Table<'_>>, workspace: &Spanned<PathBuf>) -> ReceiptFile {
        let home = &self.surroundings.home;
        let mut receipts = ReceiptFile { enabled: true, path: home.join("tool_receipts.log") };
        let Some(mut table) = table else { return receipts };
        put(&mut receipts.enabled, table.optional("enabled"));
        let path = self.path(&mut table, "path", home);
        self.out_of_reach(path.as_ref(), workspace, table.faults());
        put(&mut receipts.path, path.map(|path| path.value));
        table.finish();
        receipts
    }

    /// What the agent writes it must not be able to rewrite (C7.4).
    fn out_of_reach(&self, path: Option<&Spanned<PathBuf>>, workspace: &Spanned<PathBuf>, faults: &Faults) {
        let Some(path) = path else { return };
        let [file, folder, home] =
            [&path.value, &workspace.value, &self.surroundings.home].map(|path| real(path));
        if file.starts_with(folder) && !file.starts_with(home) {
            faults.push(
                Fault::new(
                    code::INVALID,
                    path.span,
                    "this lies in the workspace, where the agent could change it",
                )
                .related(workspace.span, "the workspace")
                .help("leave the key out, and it lies in CollieClaw's own folder"),
            );
        }
    }

    /// A folder that holds CollieClaw's own could be moved away with it.
    fn own_home_is_apart(&self, workspace: &Spanned<PathBuf>, faults: &Faults) {
        let (home, workspace_folder) = (real(&self.surroundings.home), real(&workspace.value));
        let fault = if workspace_folder.starts_with(&home) {
            "the workspace lies in CollieClaw's own folder, which no tool may touch"
        } else if home.starts_with(&workspace_folder) {
            "the workspace holds CollieClaw's own folder, and with it the rules"
        } else {
            return;
        };
        let help = "choose another folder, such as `~/collieclaw-workspace`";
        faults.push(Fault::new(code::INVALID, workspace.span, fault).help(help));
    }

    fn path(&self, table: &mut Table<'_>, key: &str, base: &Path) -> Option<Spanned<PathBuf>> {
        table.optional_with(key, |value| {
            let span = value.span();
            value.parse(|text| self.surroundings.path(text, base)).map(|path| Spanned::new(path, span))
        })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Mock,
    OpenAiCompatible,
    Reliable,
}

pub(super) const DEFAULT_SERVER: &str = "http://localhost:1234/v1";
pub(super) const DEFAULT_SERVER_MODEL: &str = "local-model";
pub(super) const DEFAULT_KEY_VARIABLE: &str = "OPENAI_API_KEY";

fn default_server() -> Model {
    Model::OpenAiCompatible {
        base_url: DEFAULT_SERVER.to_owned(),
        model: DEFAULT_SERVER_MODEL.to_owned(),
        api_key_env: DEFAULT_KEY_VARIABLE.to_owned(),
    }
}

fn limits(table: Option<Table<'_>>) -> Limits {
    let mut limits = Limits {
        max_tool_rounds: 5,
        max_response_bytes: 1 << 20,
        tool_timeout: Duration::from_secs(30),
        shell_timeout: Duration::from_secs(15),
        http_timeout: Duration::from_secs(20),
        provider_timeout: Duration::from_secs(120),
    };
    let Some(mut table) = table else { return limits };
    let rounds = |value: Value<'_>| value.integer_in(0..=100).and_then(|rounds| rounds.try_into().ok());
    put(&mut limits.max_tool_rounds, table.optional_with("max_tool_rounds", rounds));
    let bytes = |value: Value<'_>| value.integer_in(1_024..=1 << 26).and_then(|bytes| bytes.try_into().ok());
    put(&mut limits.max_response_bytes, table.optional_with("max_response_bytes", bytes));
    for (key, limit) in [
        ("tool_timeout", &mut limits.tool_timeout),
        ("shell_timeout", &mut limits.shell_timeout),
        ("http_timeout", &mut limits.http_timeout),
        ("provider_timeout", &mut limits.provider_timeout),
    ] {
        put(limit, table.optional_parsed(key, duration));
    }
    table.finish();
    limits
}

fn put<T>(into: &mut T, read: Option<T>) {
    if let Some(read) = read {
        *into = read;
    }
}

fn owned(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn names(listed: Vec<Spanned<String>>) -> BTreeSet<String> {
    listed.into_iter().map(|name| name.value).collect()
}

fn filled(value: Value<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    value.filled_text().map(|text| Spanned::new(text.to_owned(), span))
}

fn text_or(table: &mut Table<'_>, key: &str, default: &str) -> String {
    table.optional_with(key, filled).map_or_else(|| default.to_owned(), |text| text.value)
}

/// Every element is read before the first bad one ends it, so that all are reported.
fn all<'v, T>(value: Value<'v>, read: impl Fn(Value<'v>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = value.elements()?.into_iter().map(read).collect();
    read.into_iter().collect()
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

fn server_url(url: &str) -> Result<String, Invalid> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if host.contains('@') {
        return Err(Invalid::new("a name or a password does not belong into an address")
            .help("put the key into a variable of the environment, and name that in `api_key_env`"));
    }
    if host.is_empty() || url.contains(['?', '#']) || Link::read(url).is_err() {
        return Err(
            Invalid::new("this is no address of a server").help("write it like `http://localhost:1234/v1`")
        );
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// What is refused is not quoted: somebody may have put the key itself here.
fn variable_name(text: &str) -> Result<String, Invalid> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name || text.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(Invalid::new("this is no name of a variable")
            .help("name the variable that holds the key, like `OPENAI_API_KEY`"))
    }
}

fn all_filled(value: Value<'_>) -> Option<Vec<String>> {
    let read: Vec<Option<String>> =
        value.filled_elements()?.into_iter().map(|name| name.filled_text().map(str::to_owned)).collect();
    read.into_iter().collect()
}

/// Members answer themselves: a list of lists could go round in a circle.
fn lead_to_models(
    reliable: &Spanned<(String, Vec<String>)>,
    models: &BTreeMap<String, Model>,
    faults: &Faults,
) {
    let (name, members) = &reliable.value;
    for member in members {
        let known = models.iter().filter(|(_, model)| !matches!(model, Model::Reliable { .. }));
        if !known.clone().any(|(known, _)| known == member) {
            let member = Spanned::new(member.clone(), reliable.span);
            let what = format!("provider for `{name}` to fall back on called");
            faults.push(unknown(
                &what,
                &member,
                known.map(|(name, _)| name.as_str()),
                "a `reliable` one can't be a member",
            ));
        }
    }
}

fn unknown<'c>(
    what: &str,
    name: &Spanned<String>,
    known: impl Iterator<Item = &'c str> + Clone,
    otherwise: &str,
) -> Fault {
    let listed = known.clone().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let help = match closest(&name.value, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {listed}; {otherwise}"),
    };
    let span: Span = name.span;
    Fault::new(code::UNKNOWN_NAME, span, format!("there is no {what} `{}`", name.value)).help(help)
}
