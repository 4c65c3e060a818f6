//! `manifest.toml`: what a plugin is, and what its tools take, do and reach.

use std::path::Path;
use std::time::Duration;

use collieclaw_gate::RiskLevel;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ward_diag::{
    ConfigFault, FaultReport, InvalidValue, SourceText, Spanned, TomlTable, TomlValue as Toml, ValueKind,
    code,
};

use super::folder::PluginFiles;
use crate::config::{WorkspaceUse, parse_duration};
use crate::tools::{is_tool_name, schema};

/// The name of the file.
pub(crate) const FILE: &str = "manifest.toml";

/// A plugin, as its author describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginManifest {
    /// Its name, and that of its folder.
    pub name: String,
    /// Its version, as the author counts.
    pub version: String,
    /// Its tools, one at least.
    pub tools: Vec<PluginTool>,
}

/// A tool of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginTool {
    /// What the model calls it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The program, a file of the folder or a program of the system, and its arguments.
    pub command: Vec<String>,
    /// Its arguments, as JSON Schema.
    pub schema: Value,
    /// How much it can do, as its author sees it.
    pub risk: RiskLevel,
    /// Whether it needs the network.
    pub network: bool,
    /// What of the workspace it needs.
    pub workspace: WorkspaceUse,
    /// How long it may take, if that is less than other tools.
    pub timeout: Option<Duration>,
}

/// Tools of one plugin.
const MOST_TOOLS: usize = 64;

/// A description is for a model, not a book.
const LONGEST_DESCRIPTION: usize = 4096;

impl PluginManifest {
    /// Reads that of a folder. `shown` is the path that faults name; `taken` are names of tools that there are already.
    ///
    /// # Errors
    /// With every fault, its place and its cure.
    pub fn read(contents: &PluginFiles, shown: &Path, taken: &[&str]) -> Result<Self, FaultReport> {
        let text = contents.bytes(FILE).unwrap_or_default();
        let source = SourceText::from_bytes(shown.join(FILE).display().to_string(), text);
        ward_diag::read(source, |root| parse_manifest(root, contents, taken))
    }
}

fn parse_manifest(root: &mut TomlTable<'_>, files: &PluginFiles, taken: &[&str]) -> Option<PluginManifest> {
    let name = root.required_parsed("name", parse_plugin_name);
    let version = root.required_parsed("version", parse_version);
    root.help_if_missing("capabilities", "write `capabilities = [\"tool\"]`");
    let _ = root.required_with("capabilities", |value| {
        let one = |value: Toml<'_>| value.one_of(&[("tool", ())]);
        value
            .non_empty_elements()?
            .into_iter()
            .map(one)
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Option<Vec<()>>>()
    });
    let before = root.faults().len();
    let tables = root.tables("tools");
    if tables.is_empty() && root.faults().len() == before {
        let what = "a plugin without `[[tools]]` does nothing";
        root.faults()
            .push(ConfigFault::new(code::INVALID, root.span(), what).help("describe a tool in `[[tools]]`"));
    }
    if let Some(extra) = tables.get(MOST_TOOLS) {
        let what = format!("a plugin has {MOST_TOOLS} tools at most");
        root.faults()
            .push(ConfigFault::new(code::INVALID, extra.span(), what).help("make two plugins of it"));
    }
    let tools: Vec<_> = tables.into_iter().map(|table| parse_tool(table, files, taken)).collect();
    let names: Vec<&Spanned<String>> = tools.iter().flat_map(|(name, _)| name).collect();
    for (place, name) in names.iter().enumerate() {
        if let Some(first) = names.iter().take(place).find(|other| other.value == name.value) {
            let what = format!("there are two tools `{}`", name.value);
            root.faults().push(
                ConfigFault::new(code::INVALID, name.span, what)
                    .related(first.span, "the first one")
                    .help("give one of them another name"),
            );
        }
    }
    let tools = tools.into_iter().map(|(_, tool)| tool).collect::<Option<Vec<_>>>();
    Some(PluginManifest { name: name?, version: version?, tools: tools? })
}

fn parse_tool(
    mut table: TomlTable<'_>,
    files: &PluginFiles,
    taken: &[&str],
) -> (Option<Spanned<String>>, Option<PluginTool>) {
    let name = table.required_with("name", |value| {
        let span = value.span();
        value.parse(|text| parse_tool_name(text, taken)).map(|name| Spanned::new(name, span))
    });
    let description = table.required_parsed("description", |text| {
        if text.trim().is_empty() || text.len() > LONGEST_DESCRIPTION {
            return Err(
                InvalidValue::new("this is no description").help("say in a sentence what the tool is for")
            );
        }
        Ok(text.to_owned())
    });
    let command = table.required_with("command", |value| parse_command(value, files));
    let schema = table.required_with("schema", |value| parse_schema(value, files));
    let risks = [("low", RiskLevel::Low), ("medium", RiskLevel::Medium), ("high", RiskLevel::High)];
    let risk = table.optional_with("risk", |value| {
        let span = value.span();
        value.one_of(&risks).map(|risk| Spanned::new(risk, span))
    });
    let network = table.optional("network").unwrap_or(false);
    let uses = [("none", WorkspaceUse::None), ("read", WorkspaceUse::Read), ("write", WorkspaceUse::Write)];
    let workspace =
        table.optional_with("workspace", |value| value.one_of(&uses)).unwrap_or(WorkspaceUse::None);
    let timeout = table.optional_parsed("timeout", parse_duration);
    if let Some(Spanned { value: RiskLevel::Low, span }) = risk
        && (network || workspace == WorkspaceUse::Write)
    {
        let what = "a tool that writes to the workspace or reaches the network is no low risk";
        table
            .faults()
            .push(ConfigFault::new(code::INVALID, span, what).help("leave `risk` out: it is medium then"));
    }
    table.finish();
    let whole = || {
        Some(PluginTool {
            name: name.as_ref()?.value.clone(),
            description: description?,
            command: command?,
            schema: schema?,
            risk: risk.map_or(RiskLevel::Medium, |risk| risk.value),
            network,
            workspace,
            timeout,
        })
    };
    let tool = whole();
    (name, tool)
}

/// A program alone, or with its arguments.
fn parse_command(value: Toml<'_>, files: &PluginFiles) -> Option<Vec<String>> {
    let program = |text: &str| parse_program(text, files);
    if let ValueKind::Text(_) = value.kind() {
        return value.parse(program).map(|program| vec![program]);
    }
    let words = value.non_empty_elements()?;
    let word = |(place, value): (usize, Toml<'_>)| {
        value.parse(|text| if place == 0 { program(text) } else { parse_argument(text) })
    };
    words.into_iter().enumerate().map(word).collect::<Vec<_>>().into_iter().collect()
}

/// A file of the folder, or the bare name of a program of the system. Nothing else is pinned or ours to run.
fn parse_program(text: &str, files: &PluginFiles) -> Result<String, InvalidValue> {
    let leaves = text.split('/').any(|part| part == "..");
    if text.is_empty() || text.starts_with(['/', '~', '-']) || leaves || text.contains('\0') {
        return Err(InvalidValue::new("this is neither a file of the plugin nor a program of the system")
            .help("write `./run.sh` for a file in the plugin's folder, or a name such as `python3`"));
    }
    let name = text.strip_prefix("./").unwrap_or(text);
    match files.is_executable(name) {
        Some(false) => Err(InvalidValue::new(format!(
            "the file `{name}` of the plugin can't be run: it is not executable"
        ))
        .help(format!("`chmod +x {name}`; or name what runs it: `command = [\"sh\", \"{name}\"]`"))),
        None if text.contains('/') => {
            Err(InvalidValue::new(format!("there is no file `{name}` in the plugin's folder"))
                .help("write `./run.sh` for a file that is there, or a name such as `python3`"))
        }
        Some(true) | None => Ok(text.to_owned()),
    }
}

fn parse_argument(text: &str) -> Result<String, InvalidValue> {
    if text.contains('\0') {
        return Err(InvalidValue::new("no argument can hold this").help("leave the character out"));
    }
    Ok(text.to_owned())
}

/// A table, JSON in a text, or a file of the folder with JSON in it.
fn parse_schema(value: Toml<'_>, files: &PluginFiles) -> Option<Value> {
    let wrong = |fault: String| {
        InvalidValue::new(fault)
            .help("write it like `{ type = \"object\", properties = { city = { type = \"string\" } } }`")
    };
    let sound = |schema: Value| schema::check_schema(&schema).map_err(wrong).map(|()| schema);
    match value.kind() {
        ValueKind::Text(_) => value.parse(|text| {
            let bytes = if text.trim_start().starts_with('{') {
                text.as_bytes()
            } else {
                let name = text.strip_prefix("./").unwrap_or(text);
                files.bytes(name).ok_or_else(|| {
                    InvalidValue::new("there is no such file in the plugin's folder")
                        .help("write the schema here, as a table or as JSON, or name a file")
                })?
            };
            let schema = serde_json::from_slice(bytes)
                .map_err(|error| wrong(format!("the schema is not JSON: {error}")))?;
            sound(schema)
        }),
        _ => {
            let schema = value.table().and_then(|_| value.deserialize())?;
            sound(schema).map_err(|invalid| value.reject(invalid)).ok()
        }
    }
}

fn parse_plugin_name(text: &str) -> Result<String, InvalidValue> {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if (1..=40).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(letters)
    {
        return Ok(text.to_owned());
    }
    Err(InvalidValue::new("this is no name of a plugin")
        .help("use lower-case letters, digits and `-`, like `weather-report`"))
}

fn parse_version(text: &str) -> Result<String, InvalidValue> {
    if (1..=40).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err(InvalidValue::new("this is no version").help("write it like `1.0.0`"))
}

fn parse_tool_name(text: &str, taken: &[&str]) -> Result<String, InvalidValue> {
    if !is_tool_name(text) || text.contains("__") {
        return Err(InvalidValue::new("this is no name of a tool")
            .help("use letters, digits, `-` and single `_`, like `weather_now`"));
    }
    if taken.contains(&text) {
        return Err(
            InvalidValue::new(format!("there is a tool `{text}` already")).help("give it another name")
        );
    }
    Ok(text.to_owned())
}
