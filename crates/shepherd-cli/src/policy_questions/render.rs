//! Writes the answers as a policy, with comments and with examples that hold.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use shepherd_config::NightHours;
use shepherd_util::format_duration;

use super::answers::{ChildAnswers, ChosenProgram, PolicyAnswers, ProgramLaunch};
use super::family::{make_id, night_text};
use super::rules::time_text;

/// The times of day at which an example may show that a program is allowed.
const EXAMPLE_HOURS: [u16; 6] = [15, 17, 11, 18, 9, 8];

/// Returns the policy.
pub(super) fn render_policy(answers: &PolicyAnswers) -> String {
    let mut ids = BTreeSet::new();
    let ids: Vec<String> =
        answers.programs.iter().map(|program| make_id(&program.label, "program", &mut ids)).collect();
    let mut text = String::from(
        "# The rules of your family, from your answers. Change them at any time: docs/policy.md explains every key.\n\
         # `shepherd policy check FILE` checks the file, and `sudo shepherd reload` puts it into force.\n\
         config_version = 1\n\n",
    );
    text.push_str(
        "# Examples, each with the result that you expect while no time is used yet. If a result is different, the whole\n\
         # file is refused, so that you can't break a rule by accident. If you change a rule, change its example, too.\n",
    );
    let examples: String =
        examples(answers, &ids).iter().map(|example| format!("  {},\n", quote(example))).collect();
    push(&mut text, format_args!("expect = [\n{examples}]\n"));
    text.push_str(
        "\n# Your children. `label` is the name that you read, `accounts` is the child's login. `bedtime` closes everything\n\
         # at night: school nights are the nights before Monday to Friday.\n",
    );
    for child in &answers.children {
        push_child(&mut text, child);
    }
    let parents: Vec<String> = answers.parents.iter().map(|parent| quote(parent)).collect();
    text.push_str("# The parents' logins. Parents may do everything.\n[access]\n");
    push(&mut text, format_args!("admins = [{}]\n", parents.join(", ")));
    push_defaults(&mut text, answers);
    push_budget(&mut text, answers);
    text.push_str(
        "\n# The programs. `argv` is the program to start; options follow in quotes of their own: [\"game\", \"--fullscreen\"].\n",
    );
    for (program, id) in answers.programs.iter().zip(&ids) {
        push_program(&mut text, program, id, has_limit(answers));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = text.write_fmt(line);
}

/// Returns a text in quotes. Escapes of JSON are also escapes of TOML, and the answers have no control characters.
fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn has_limit(answers: &PolicyAnswers) -> bool {
    answers.minutes.weekdays.is_some() || answers.minutes.weekends.is_some()
}

fn push_child(text: &mut String, child: &ChildAnswers) {
    push(text, format_args!("[profiles.{}]\nlabel = {}\n", child.id, quote(&child.label)));
    push(text, format_args!("accounts = [{}]\n", quote(&child.login)));
    let (school, weekends) = (night_text(child.school_nights), night_text(child.weekends));
    match (child.school_nights, child.weekends) {
        (None, None) => {}
        (one, other) if one == other => push(text, format_args!("bedtime = \"{school}\"\n")),
        _ => push(
            text,
            format_args!("bedtime = {{ school_nights = \"{school}\", weekends = \"{weekends}\" }}\n"),
        ),
    }
    text.push('\n');
}

fn push_defaults(text: &mut String, answers: &PolicyAnswers) {
    text.push_str(
        "\n# For all programs: no hours besides bedtime. For hours, write for example\n\
         # windows = [{ days = \"weekdays\", from = \"15:00\", to = \"18:30\" }] in place of `always`.\n[defaults]\nalways = true\n",
    );
    let warnings: Vec<String> = answers.warnings.iter().map(|time| quote(&format_duration(*time))).collect();
    if !warnings.is_empty() {
        text.push_str("# Your children see these as notifications on the desktop.\n");
        push(text, format_args!("warnings = [{}]\n", warnings.join(", ")));
    }
}

fn push_budget(text: &mut String, answers: &PolicyAnswers) {
    if !has_limit(answers) {
        return;
    }
    let (weekdays, weekends) = (time_text(answers.minutes.weekdays), time_text(answers.minutes.weekends));
    text.push_str("\n# The time that all games share. Each child has it for themselves.\n[budgets.games]\nlabel = \"Games\"\n");
    if weekdays == weekends {
        push(text, format_args!("daily = \"{weekdays}\"\n"));
    } else {
        push(text, format_args!("daily = {{ weekdays = \"{weekdays}\", weekends = \"{weekends}\" }}\n"));
    }
}

fn push_program(text: &mut String, program: &ChosenProgram, id: &str, has_limit: bool) {
    push(text, format_args!("[[entries]]\nid = \"{id}\"\nlabel = {}\n", quote(&program.label)));
    match &program.launch {
        ProgramLaunch::Command(argv) => {
            let argv: Vec<String> = argv.iter().map(|word| quote(word)).collect();
            push(text, format_args!("argv = [{}]\n", argv.join(", ")));
        }
        ProgramLaunch::Flatpak(app) => {
            let app = quote(app);
            push(text, format_args!("kind = \"custom\"\ntype = \"flatpak\"\npayload = {{ app = {app} }}\n"));
        }
    }
    if program.is_free {
        text.push_str(
            "# Learning is free: the time is recorded, but counts against no limit.\ncost = \"free\"\n",
        );
    } else if has_limit {
        text.push_str("budgets = [\"games\"]\n");
    }
    text.push('\n');
}

/// Returns examples of each child's bedtime, and of what a child may do on a Monday.
fn examples(answers: &PolicyAnswers, ids: &[String]) -> Vec<String> {
    let mut examples = Vec::new();
    let Some(first) = ids.first() else { return examples };
    for child in &answers.children {
        // The nights from Sunday to Monday and from Friday to Saturday.
        for (night, evening, morning) in [(child.school_nights, "sun", "mon"), (child.weekends, "fri", "sat")]
        {
            let Some((start, _)) = night.map(NightHours::times_of_day) else { continue };
            let day = if start.minutes() < 12 * 60 { morning } else { evening };
            examples.push(format!("{day} {start} {}/{first}: bedtime", child.id));
        }
        let hour = EXAMPLE_HOURS.into_iter().find(|hour| is_awake_on_monday(child, hour * 60));
        let Some(hour) = hour else { continue };
        // One program that counts, and one that is free.
        for is_free in [false, true] {
            let mut programs = answers.programs.iter().zip(ids);
            let Some((program, id)) = programs.find(|(program, _)| program.is_free == is_free) else {
                continue;
            };
            let outcome = outcome(answers, child, program, hour);
            examples.push(format!("mon {hour:02}:00 {}/{id}: {outcome}", child.id));
        }
    }
    examples
}

/// Returns whether it isn't bedtime at a minute of an ordinary Monday.
fn is_awake_on_monday(child: &ChildAnswers, minute: u16) -> bool {
    let Some((start, end)) = child.school_nights.map(NightHours::times_of_day) else { return true };
    let (start, end) = (start.minutes(), end.minutes());
    if start <= end { !(start..end).contains(&minute) } else { (end..start).contains(&minute) }
}

/// Returns the result for a program: exactly the time of a day, if nothing else ends it before.
fn outcome(answers: &PolicyAnswers, child: &ChildAnswers, program: &ChosenProgram, hour: u16) -> String {
    let start = child.school_nights.map(|night| night.times_of_day().0.minutes());
    // Bedtime or the next day, whose time is another one.
    let end = start.filter(|start| *start > hour * 60).unwrap_or(24 * 60);
    let awake = Duration::from_secs(u64::from(end - hour * 60) * 60);
    match answers.minutes.weekdays.filter(|time| !program.is_free && *time < awake) {
        Some(time) => format!("allow {}", format_duration(time)),
        None => "allow".to_owned(),
    }
}
