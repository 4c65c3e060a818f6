//! Text in; a procedure, or every fault of it, out.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use ward_diag::{Fault, Faults, Invalid, Report, Source, Spanned, Table, Value, closest, code};

use super::{Action, CONTENT, OnFailure, Sop, Step};
use crate::tools::Tool;

/// More is a program, not a procedure.
const MOST_STEPS: usize = 1_000;

/// No name is longer.
const LONGEST_NAME: usize = 64;

/// What a name is made of, in words.
pub const NAME_RULE: &str = "write it with small letters, digits, `-` and `_`, at most 64 of them";

/// Whether a text can name a procedure or a step.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let letter =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(letter) && !text.starts_with(['-', '_'])
}

/// Reads a procedure. `folder` is the name of the folder it lies in.
///
/// # Errors
/// With every fault that can be found, each with its place and its cure.
pub fn read(source: Source, folder: &str, tools: &[Box<dyn Tool>]) -> Result<Sop, Report> {
    ward_diag::read(source, |root| procedure(root, folder, tools))
}

fn procedure(root: &mut Table<'_>, folder: &str, tools: &[Box<dyn Tool>]) -> Option<Sop> {
    let faults = root.faults();
    let name = root.required_with("name", named);
    if let Some(name) = name.as_ref().filter(|name| name.value != folder) {
        let fault = format!("this procedure lies in the folder `{folder}` and is called `{}`", name.value);
        faults.push(Fault::new(code::INVALID, name.span, fault).help(format!("write `name = \"{folder}\"`")));
    }
    let description = root.required_with("description", filled);
    let hint = root.optional_with("hint", filled).map(|hint| hint.value);
    let tables = root.tables("steps");
    if tables.is_empty() && !root.is_incomplete() {
        let fault = Fault::new(code::INVALID, root.span(), "a procedure has at least one step");
        faults.push(fault.help("begin one with `[[steps]]`"));
    }
    if let Some(beyond) = tables.get(MOST_STEPS) {
        let fault = format!("a procedure has at most {MOST_STEPS} steps");
        faults.push(Fault::new(code::INVALID, beyond.span(), fault).help("make two of it"));
    }
    let mut known = Known::default();
    let steps: Vec<Option<Step>> = tables.into_iter().map(|table| step(table, tools, &mut known)).collect();
    let steps = steps.into_iter().collect::<Option<Vec<Step>>>()?;
    Some(Sop { name: name?.value, description: description?.value, hint, steps })
}

/// The ids so far, and whether their steps give anything.
#[derive(Default)]
struct Known {
    ids: BTreeMap<String, (ward_diag::Span, Gives)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Text,
    Nothing,
}

#[derive(Clone, Copy)]
enum Kind {
    Tool,
    Agent,
    Approval,
}

fn step(mut table: Table<'_>, tools: &[Box<dyn Tool>], known: &mut Known) -> Option<Step> {
    let faults = table.faults();
    let id = table.required_with("id", named);
    let kinds = [("tool", Kind::Tool), ("agent", Kind::Agent), ("approval", Kind::Approval)];
    let kind = table.required_with("kind", |value| value.one_of(&kinds));
    let failures = [("abort", OnFailure::Abort), ("continue", OnFailure::Continue)];
    let on_failure = table.optional_with("on_failure", |value| value.one_of(&failures));
    let action = match kind {
        // Which keys belong here is not known: none of them is called unknown.
        None => {
            table.entries();
            None
        }
        Some(Kind::Tool) => call(&mut table, tools, known),
        Some(Kind::Agent) => prompt(&mut table).map(|prompt| Action::Agent { prompt }),
        Some(Kind::Approval) => prompt(&mut table).map(|prompt| Action::Approval { prompt }),
    };
    table.finish();
    if let Some(id) = &id {
        let gives = if matches!(kind, Some(Kind::Approval)) { Gives::Nothing } else { Gives::Text };
        if let Some((before, _)) = known.ids.get(&id.value) {
            let fault = format!("there is a step `{}` already", id.value);
            let help = "give each step an id of its own";
            faults.push(Fault::new(code::INVALID, id.span, fault).related(*before, "here").help(help));
        } else {
            known.ids.insert(id.value.clone(), (id.span, gives));
        }
    }
    Some(Step { id: id?.value, action: action?, on_failure: on_failure.unwrap_or(OnFailure::Abort) })
}

fn prompt(table: &mut Table<'_>) -> Option<String> {
    table.required_with("prompt", filled).map(|prompt| prompt.value)
}

fn call(table: &mut Table<'_>, tools: &[Box<dyn Tool>], known: &Known) -> Option<Action> {
    let faults = table.faults();
    let tool = table.required_with("tool", filled);
    let args = table.optional_with("args", arguments);
    let content_from = table.optional_with("content_from", filled);
    if let Some(from) = &content_from {
        earlier(from, known, faults);
    }
    let tool = tool?;
    let Some(found) = tools.iter().find(|found| found.name() == tool.value) else {
        faults.push(unknown("tool", &tool, tools.iter().map(|tool| tool.name())));
        return None;
    };
    // Without a key, the arguments are wrong where the tool is named.
    let args = match args {
        Some(args) => args?,
        None => Spanned::new(Map::new(), tool.span),
    };
    fits(&**found, &args, content_from.as_ref(), faults);
    let content_from = content_from.map(|from| from.value);
    Some(Action::Tool { tool: tool.value, args: args.value, content_from })
}

/// `Some(None)` where there are some and they can't be read.
fn arguments(value: Value<'_>) -> Option<Option<Spanned<Map<String, Json>>>> {
    let span = value.span();
    Some(value.deserialize::<Map<String, Json>>().map(|args| Spanned::new(args, span)))
}

/// Only a step that comes before, and gives something, can be referred to.
fn earlier(from: &Spanned<String>, known: &Known, faults: &Faults) {
    match known.ids.get(&from.value) {
        Some((_, Gives::Text)) => {}
        Some((at, Gives::Nothing)) => faults.push(
            Fault::new(code::INVALID, from.span, format!("the step `{}` gives nothing: it asks", from.value))
                .related(*at, "here")
                .help("name a step of kind `tool` or `agent`"),
        ),
        None => {
            let fault = format!("no step `{}` comes before this one", from.value);
            let help = match closest(&from.value, known.ids.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "a step can use what earlier ones gave, so move that one up, or name another".to_owned()
                }
            };
            faults.push(Fault::new(code::UNKNOWN_NAME, from.span, fault).help(help));
        }
    }
}

fn fits(
    tool: &dyn Tool,
    args: &Spanned<Map<String, Json>>,
    content_from: Option<&Spanned<String>>,
    faults: &Faults,
) {
    let mut whole = args.value.clone();
    if let Some(from) = content_from {
        let schema = tool.parameters_schema();
        if schema.pointer(&format!("/properties/{CONTENT}")).is_none() {
            let fault = format!("`{}` has no argument `{CONTENT}` that this could fill", tool.name());
            let help = "use it with `file_write`, or let an `agent` step read the result";
            faults.push(Fault::new(code::INVALID, from.span, fault).help(help));
            return;
        }
        // What it will be is known when the run is there.
        if whole.insert(CONTENT.to_owned(), "text".into()).is_some() {
            let fault = format!("`{CONTENT}` is given twice, here and by `content_from`");
            faults.push(Fault::new(code::INVALID, args.span, fault).help("keep one of the two"));
            return;
        }
    }
    if let Err(bad) = tool.prepare(&Json::Object(whole)) {
        let help = format!("`collieclaw tool list --output json` has the schema of `{}`", tool.name());
        faults.push(Fault::new(code::INVALID, args.span, bad.to_string()).help(help));
    }
}

fn named(value: Value<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    let name = value.parse(|text| match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(Invalid::new("this is no name").help(NAME_RULE)),
    })?;
    Some(Spanned::new(name, span))
}

fn filled(value: Value<'_>) -> Option<Spanned<String>> {
    let span = value.span();
    value.filled_text().map(|text| Spanned::new(text.to_owned(), span))
}

fn unknown<'c>(what: &str, name: &Spanned<String>, known: impl Iterator<Item = &'c str> + Clone) -> Fault {
    let help = match closest(&name.value, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let listed: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            format!("there are {}", listed.join(", "))
        }
    };
    Fault::new(code::UNKNOWN_NAME, name.span, format!("there is no {what} `{}`", name.value)).help(help)
}
