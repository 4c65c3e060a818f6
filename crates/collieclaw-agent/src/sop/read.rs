//! Reads the text of a procedure and returns the procedure, or every fault in the text.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use ward_diag::{
    ConfigFault, FaultCollector, FaultReport, InvalidValue, SourceText, Spanned, TomlTable, TomlValue,
    closest, code,
};

use super::{CONTENT, CONTENT_FROM, OnFailure, Sop, SopStep, StepAction};
use crate::tools::Tool;

/// The limit for the number of steps: a longer procedure is a program.
const MAX_STEPS: usize = 1_000;

/// The limit for the length of a name.
const MAX_NAME_BYTES: usize = 64;

/// The rule for names, as shown in error messages.
pub const NAME_RULE: &str = "use lower-case letters, digits, `-` and `_`, at most 64 characters";

/// Returns whether a text can be the name of a procedure or a step.
#[must_use]
pub fn is_sop_name(text: &str) -> bool {
    let letter =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.chars().all(letter) && !text.starts_with(['-', '_'])
}

/// Reads a procedure. `folder` is the name of the folder that holds its file.
///
/// # Errors
/// Fails if the text has faults. The report has all of them, each with its place and its cure.
pub fn read_sop(source: SourceText, folder: &str, tools: &[Box<dyn Tool>]) -> Result<Sop, FaultReport> {
    ward_diag::read(source, |root| read_procedure(root, folder, tools))
}

fn read_procedure(root: &mut TomlTable<'_>, folder: &str, tools: &[Box<dyn Tool>]) -> Option<Sop> {
    let faults = root.faults();
    let name = root.required_with("name", read_name);
    if let Some(name) = name.as_ref().filter(|name| name.value != folder) {
        let fault = format!("the procedure is in the folder `{folder}`, but its name is `{}`", name.value);
        faults.push(
            ConfigFault::new(code::INVALID, name.span, fault).help(format!("write `name = \"{folder}\"`")),
        );
    }
    let description = root.required_with("description", read_text);
    let hint = root.optional_with("hint", read_text).map(|hint| hint.value);
    let tables = root.tables("steps");
    if tables.is_empty() && !root.is_incomplete() {
        let fault = ConfigFault::new(code::INVALID, root.span(), "a procedure needs at least one step");
        faults.push(fault.help("add a step with `[[steps]]`"));
    }
    if let Some(beyond) = tables.get(MAX_STEPS) {
        let fault = format!("a procedure can have at most {MAX_STEPS} steps");
        faults
            .push(ConfigFault::new(code::INVALID, beyond.span(), fault).help("split it into two procedures"));
    }
    let mut known = KnownSteps::default();
    let steps: Vec<Option<SopStep>> =
        tables.into_iter().map(|table| read_step(table, tools, &mut known)).collect();
    let steps = steps.into_iter().collect::<Option<Vec<SopStep>>>()?;
    Some(Sop { name: name?.value, description: description?.value, hint, steps })
}

/// The ids of the steps so far, and whether the steps have an output.
#[derive(Default)]
struct KnownSteps {
    ids: BTreeMap<String, (ward_diag::Span, SopStepOutput)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SopStepOutput {
    Text,
    Nothing,
}

#[derive(Clone, Copy)]
enum SopStepKind {
    Tool,
    Agent,
    Approval,
}

fn read_step(mut table: TomlTable<'_>, tools: &[Box<dyn Tool>], known: &mut KnownSteps) -> Option<SopStep> {
    let faults = table.faults();
    let id = table.required_with("id", read_name);
    let kinds =
        [("tool", SopStepKind::Tool), ("agent", SopStepKind::Agent), ("approval", SopStepKind::Approval)];
    let kind = table.required_with("kind", |value| value.one_of(&kinds));
    let failures = [("abort", OnFailure::Abort), ("continue", OnFailure::Continue)];
    let on_failure = table.optional_with("on_failure", |value| value.one_of(&failures));
    let action = match kind {
        // The valid keys depend on the kind, so without a kind no key is reported as unknown.
        None => {
            table.entries();
            None
        }
        Some(SopStepKind::Tool) => read_call(&mut table, tools, known),
        Some(SopStepKind::Agent) => read_prompt(&mut table).map(|prompt| StepAction::Agent { prompt }),
        Some(SopStepKind::Approval) => read_prompt(&mut table).map(|prompt| StepAction::Approval { prompt }),
    };
    table.finish();
    if let Some(id) = &id {
        let gives = if matches!(kind, Some(SopStepKind::Approval)) {
            SopStepOutput::Nothing
        } else {
            SopStepOutput::Text
        };
        if let Some((before, _)) = known.ids.get(&id.value) {
            let fault = format!("another step already has the id `{}`", id.value);
            let help = "give each step its own id";
            faults.push(ConfigFault::new(code::INVALID, id.span, fault).related(*before, "here").help(help));
        } else {
            known.ids.insert(id.value.clone(), (id.span, gives));
        }
    }
    Some(SopStep { id: id?.value, action: action?, on_failure: on_failure.unwrap_or(OnFailure::Abort) })
}

fn read_prompt(table: &mut TomlTable<'_>) -> Option<String> {
    table.required_with("prompt", read_text).map(|prompt| prompt.value)
}

fn read_call(table: &mut TomlTable<'_>, tools: &[Box<dyn Tool>], known: &KnownSteps) -> Option<StepAction> {
    let faults = table.faults();
    let tool = table.required_with("tool", read_text);
    let args = table.optional_with("args", read_arguments);
    let content_from = table.optional_with(CONTENT_FROM, read_text);
    if let Some(from) = &content_from {
        check_reference(from, known, faults);
    }
    let tool = tool?;
    let Some(found) = tools.iter().find(|found| found.name() == tool.value) else {
        faults.push(unknown_name_fault("tool", &tool, tools.iter().map(|tool| tool.name())));
        return None;
    };
    // Without the key `args`, a fault of the arguments is shown at the name of the tool.
    let mut args = match args {
        Some(args) => args?,
        None => Spanned::new(Map::new(), tool.span),
    };
    let content_from = match take_reference(&**found, &mut args) {
        Some(inside) if content_from.is_some() => {
            let fault = format!("`{CONTENT_FROM}` is set twice: in `args` and beside it");
            faults.push(ConfigFault::new(code::INVALID, inside.span, fault).help("keep only one of them"));
            return None;
        }
        Some(inside) => {
            check_reference(&inside, known, faults);
            Some(inside)
        }
        None => content_from,
    };
    check_arguments(&**found, &args, content_from.as_ref(), faults);
    let content_from = content_from.map(|from| from.value);
    Some(StepAction::Tool { tool: tool.value, args: args.value, content_from })
}

/// Reads the arguments of a call; `Some(None)` if the key is there and its value can't be read.
fn read_arguments(value: TomlValue<'_>) -> Option<Option<Spanned<Map<String, Json>>>> {
    let span = value.span();
    Some(value.deserialize::<Map<String, Json>>().map(|args| Spanned::new(args, span)))
}

/// Takes the key `content_from` out of the arguments, unless the tool has an argument of that name.
fn take_reference(tool: &dyn Tool, args: &mut Spanned<Map<String, Json>>) -> Option<Spanned<String>> {
    if tool.parameters_schema().pointer(&format!("/properties/{CONTENT_FROM}")).is_some() {
        return None;
    }
    // A value of another type stays, and is reported as an unknown argument.
    let from = args.value.get(CONTENT_FROM)?.as_str()?.to_owned();
    args.value.remove(CONTENT_FROM);
    Some(Spanned::new(from, args.span))
}

/// Checks that a reference names an earlier step that has an output.
fn check_reference(from: &Spanned<String>, known: &KnownSteps, faults: &FaultCollector) {
    match known.ids.get(&from.value) {
        Some((_, SopStepOutput::Text)) => {}
        Some((at, SopStepOutput::Nothing)) => faults.push(
            ConfigFault::new(
                code::INVALID,
                from.span,
                format!("the step `{}` has no output, because it asks for an approval", from.value),
            )
            .related(*at, "here")
            .help("name a step of kind `tool` or `agent`"),
        ),
        None => {
            let fault = format!("no earlier step has the id `{}`", from.value);
            let help = match closest(&from.value, known.ids.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "a step can use the output of an earlier step: move that step up, or name another one"
                        .to_owned()
                }
            };
            faults.push(ConfigFault::new(code::UNKNOWN_NAME, from.span, fault).help(help));
        }
    }
}

fn check_arguments(
    tool: &dyn Tool,
    args: &Spanned<Map<String, Json>>,
    content_from: Option<&Spanned<String>>,
    faults: &FaultCollector,
) {
    let mut whole = args.value.clone();
    if let Some(from) = content_from {
        let schema = tool.parameters_schema();
        if schema.pointer(&format!("/properties/{CONTENT}")).is_none() {
            let fault = format!("the tool `{}` has no argument `{CONTENT}` to fill", tool.name());
            let help = "use `content_from` with `file_write`, or let an `agent` step read the result";
            faults.push(ConfigFault::new(code::INVALID, from.span, fault).help(help));
            return;
        }
        // The real content is known only during a run, so any text is used for the check.
        if whole.insert(CONTENT.to_owned(), "text".into()).is_some() {
            let fault = format!("`{CONTENT}` is set twice: here and by `content_from`");
            faults.push(ConfigFault::new(code::INVALID, args.span, fault).help("keep only one of them"));
            return;
        }
    }
    if let Err(bad) = tool.prepare(&Json::Object(whole)) {
        let help = format!("`collieclaw tool list --output json` shows the schema of `{}`", tool.name());
        faults.push(ConfigFault::new(code::INVALID, args.span, bad.to_string()).help(help));
    }
}

fn read_name(value: TomlValue<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    let name = value.parse(|text| match is_sop_name(text) {
        true => Ok(text.to_owned()),
        false => Err(InvalidValue::new("invalid name").help(NAME_RULE)),
    })?;
    Some(Spanned::new(name, span))
}

fn read_text(value: TomlValue<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    value.non_empty_text().map(|text| Spanned::new(text.to_owned(), span))
}

fn unknown_name_fault<'c>(
    what: &str,
    name: &Spanned<String>,
    known: impl Iterator<Item = &'c str> + Clone,
) -> ConfigFault {
    let help = match closest(&name.value, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let listed: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            format!("known: {}", listed.join(", "))
        }
    };
    ConfigFault::new(code::UNKNOWN_NAME, name.span, format!("no such {what} `{}`", name.value)).help(help)
}
