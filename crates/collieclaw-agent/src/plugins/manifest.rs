//! The file `manifest.toml`, which describes a plugin and the arguments and permissions of its tools.

use std::path::Path;
use std::time::Duration;

use collieclaw_gate::RiskLevel;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ward_diag::{
    ConfigFault, FaultReport, InvalidValue, SourceText, Spanned, TomlTable, TomlValue, ValueKind, code,
};

use super::folder::PluginFiles;
use crate::config::{WorkspaceUse, parse_duration};
use crate::tools::{is_tool_name, schema};

pub(crate) const FILE: &str = "manifest.toml";

/// A plugin as described by its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginManifest {
    /// The name of the plugin and of its folder.
    pub name: String,
    pub version: String,
    /// The tools, at least one.
    pub tools: Vec<PluginTool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginTool {
    /// The name by which the model calls the tool.
    pub name: String,
    /// The description that the model reads.
    pub description: String,
    /// The program, which is a file of the plugin or a program of the system, and its arguments.
    pub command: Vec<String>,
    /// The JSON Schema of the arguments.
    pub schema: Value,
    /// The risk level according to the author.
    pub risk: RiskLevel,
    pub network: bool,
    /// The access to the workspace that the tool needs.
    pub workspace: WorkspaceUse,
    /// The time limit, if shorter than the limit for all tools.
    pub timeout: Option<Duration>,
}

const MAX_TOOLS: usize = 64;

const MAX_DESCRIPTION_BYTES: usize = 4096;

impl PluginManifest {
    /// Reads the manifest of a plugin. `shown` is the path that faults mention, and `taken` lists the names
    /// of existing tools.
    ///
    /// # Errors
    /// Returns all faults, each with its position and a hint how to fix it.
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
        let capability = |value: TomlValue<'_>| value.one_of(&[("tool", ())]);
        value
            .non_empty_elements()?
            .into_iter()
            .map(capability)
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Option<Vec<()>>>()
    });
    let before = root.faults().len();
    let tables = root.tables("tools");
    if tables.is_empty() && root.faults().len() == before {
        let what = "a plugin needs at least one tool";
        root.faults().push(
            ConfigFault::new(code::INVALID, root.span(), what).help("describe the tool in `[[tools]]`"),
        );
    }
    if let Some(extra) = tables.get(MAX_TOOLS) {
        let what = format!("a plugin can have at most {MAX_TOOLS} tools");
        root.faults()
            .push(ConfigFault::new(code::INVALID, extra.span(), what).help("split it into two plugins"));
    }
    let tools: Vec<_> = tables.into_iter().map(|table| parse_tool(table, files, taken)).collect();
    let names: Vec<&Spanned<String>> = tools.iter().flat_map(|(name, _)| name).collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(first) = names.iter().take(index).find(|other| other.value == name.value) {
            let what = format!("two tools are named `{}`", name.value);
            root.faults().push(
                ConfigFault::new(code::INVALID, name.span, what)
                    .related(first.span, "first used here")
                    .help("rename one of them"),
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
        if text.trim().is_empty() || text.len() > MAX_DESCRIPTION_BYTES {
            return Err(InvalidValue::new("the description is empty or too long")
                .help("say in a sentence what the tool is for"));
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
        let what = "a tool that writes to the workspace or uses the network can't have a low risk";
        table.faults().push(
            ConfigFault::new(code::INVALID, span, what).help("remove `risk` to use the default, `medium`"),
        );
    }
    table.finish();
    let build = || {
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
    let tool = build();
    (name, tool)
}

/// Parses a program, or a list of a program and its arguments.
fn parse_command(value: TomlValue<'_>, files: &PluginFiles) -> Option<Vec<String>> {
    let program = |text: &str| parse_program(text, files);
    if let ValueKind::Text(_) = value.kind() {
        return value.parse(program).map(|program| vec![program]);
    }
    let words = value.non_empty_elements()?;
    let argument = |(index, value): (usize, TomlValue<'_>)| {
        value.parse(|text| if index == 0 { program(text) } else { parse_argument(text) })
    };
    words.into_iter().enumerate().map(argument).collect::<Vec<_>>().into_iter().collect()
}

/// Parses a file of the plugin, or the bare name of a system program. Other files have no recorded hash, so
/// they can't be run.
fn parse_program(text: &str, files: &PluginFiles) -> Result<String, InvalidValue> {
    let has_parent = text.split('/').any(|part| part == "..");
    if text.is_empty() || text.starts_with(['/', '~', '-']) || has_parent || text.contains('\0') {
        return Err(InvalidValue::new("this is neither a file of the plugin nor the name of a program")
            .help("write `./run.sh` for a file in the plugin's folder, or a name such as `python3`"));
    }
    let name = text.strip_prefix("./").unwrap_or(text);
    match files.is_executable(name) {
        Some(false) => Err(InvalidValue::new(format!("the file `{name}` of the plugin is not executable"))
            .help(format!(
                "run `chmod +x {name}`, or name its interpreter: `command = [\"sh\", \"{name}\"]`"
            ))),
        None if text.contains('/') => {
            Err(InvalidValue::new(format!("no such file `{name}` in the plugin's folder"))
                .help("write `./run.sh` for a file in the folder, or a name such as `python3`"))
        }
        Some(true) | None => Ok(text.to_owned()),
    }
}

fn parse_argument(text: &str) -> Result<String, InvalidValue> {
    if text.contains('\0') {
        return Err(
            InvalidValue::new("an argument must not contain a NUL character").help("remove the character")
        );
    }
    Ok(text.to_owned())
}

/// Parses a schema: a table, a text with JSON, or the name of a JSON file of the plugin.
fn parse_schema(value: TomlValue<'_>, files: &PluginFiles) -> Option<Value> {
    let invalid = |fault: String| {
        InvalidValue::new(fault)
            .help("write it like `{ type = \"object\", properties = { city = { type = \"string\" } } }`")
    };
    let checked = |schema: Value| schema::check_schema(&schema).map_err(invalid).map(|()| schema);
    match value.kind() {
        ValueKind::Text(_) => value.parse(|text| {
            let bytes = if text.trim_start().starts_with('{') {
                text.as_bytes()
            } else {
                let name = text.strip_prefix("./").unwrap_or(text);
                files.bytes(name).ok_or_else(|| {
                    InvalidValue::new("no such file in the plugin's folder")
                        .help("write the schema as a table or as JSON, or name a file")
                })?
            };
            let schema = serde_json::from_slice(bytes)
                .map_err(|error| invalid(format!("the schema is not JSON: {error}")))?;
            checked(schema)
        }),
        _ => {
            let schema = value.table().and_then(|_| value.deserialize())?;
            checked(schema).map_err(|invalid| value.reject(invalid)).ok()
        }
    }
}

fn parse_plugin_name(text: &str) -> Result<String, InvalidValue> {
    let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if (1..=40).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(is_allowed)
    {
        return Ok(text.to_owned());
    }
    Err(InvalidValue::new("this is not a valid plugin name")
        .help("use lower-case letters, digits and `-`, like `weather-report`"))
}

fn parse_version(text: &str) -> Result<String, InvalidValue> {
    if (1..=40).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err(InvalidValue::new("this is not a version").help("write it like `1.0.0`"))
}

fn parse_tool_name(text: &str, taken: &[&str]) -> Result<String, InvalidValue> {
    if !is_tool_name(text) || text.contains("__") {
        return Err(InvalidValue::new("this is not a valid tool name")
            .help("use letters, digits, `-` and single `_`, like `weather_now`"));
    }
    if taken.contains(&text) {
        return Err(
            InvalidValue::new(format!("a tool named `{text}` already exists")).help("choose another name")
        );
    }
    Ok(text.to_owned())
}
