//! The questions about the rules: time, programs and warnings.

use std::time::Duration;

use shepherd_util::{format_duration, parse_duration};
use ward_terminal::{display_width, escape_label, pad_or_truncate, truncate};

use super::MachineFacts;
use super::answers::{ChosenProgram, PlayTime, ProgramLaunch};
use super::family::split_list;
use super::installed_programs::MenuProgram;
use super::prompt::AnswerSource;
use crate::error::ShepherdCliError;

const DAY: Duration = Duration::from_hours(24);

/// The earliest warning. An earlier one is a mistake.
const MAX_WARNING: Duration = Duration::from_hours(2);

pub(super) fn ask_minutes(prompt: &mut impl AnswerSource) -> Result<PlayTime, ShepherdCliError> {
    prompt.start_question(4, "Minutes a day");
    prompt.say("  How long may each child play a day, all games together? none means no limit.");
    let weekdays = prompt
        .ask("Minutes from Monday to Friday", Some("60"), |answer, prompt| check_minutes(answer, prompt))?;
    // Half as much again, in steps of five minutes.
    let more = |time: Duration| (time.as_secs() / 2 * 3).div_ceil(300) * 5;
    let usual = weekdays.map_or("none".to_owned(), |time| more(time).min(1440).to_string());
    let weekends = prompt.ask("Minutes on Saturday and Sunday", Some(&usual), |answer, prompt| {
        check_minutes(answer, prompt)
    })?;
    Ok(PlayTime { weekdays, weekends })
}

#[expect(clippy::option_option, reason = "an invalid answer, and no limit")]
fn check_minutes<P: AnswerSource>(
    answer: &str,
    prompt: &mut P,
) -> Result<Option<Option<Duration>>, ShepherdCliError> {
    if matches!(answer.to_lowercase().as_str(), "none" | "unlimited") {
        return Ok(Some(None));
    }
    match parse_minutes(answer).filter(|time| *time <= DAY) {
        Some(time) => Ok(Some(Some(time))),
        None => {
            prompt.complain("Please type minutes, such as 60, or a time of at most a day, such as 1h30m.");
            Ok(None)
        }
    }
}

/// Parses whole minutes, also with "min" after them, or a time with units.
fn parse_minutes(answer: &str) -> Option<Duration> {
    let number = answer.strip_suffix("min").unwrap_or(answer).trim_end();
    let minutes =
        number.parse::<u64>().ok().and_then(|minutes| minutes.checked_mul(60)).map(Duration::from_secs);
    let compact: String = answer.split_whitespace().collect();
    minutes.or_else(|| parse_duration(&compact).ok()).filter(|time| !time.is_zero())
}

pub(super) fn ask_programs(
    prompt: &mut impl AnswerSource,
    machine: &MachineFacts,
) -> Result<Vec<ChosenProgram>, ShepherdCliError> {
    prompt.start_question(5, "Programs, and which of them are free");
    prompt.say("  What may your children start? Only these programs start through Shepherd.");
    let all = &machine.programs.programs;
    let mut shown: Vec<&MenuProgram> = all.iter().filter(|program| program.is_for_children).collect();
    let question = if shown.is_empty() {
        prompt.say("  No games are in the menu of this computer.");
        "Commands such as tuxmath; more shows all programs"
    } else {
        print_choice(shown.iter().map(|program| program.label.as_str()), prompt, machine.width);
        "Numbers or commands (1, 3, tuxmath); more shows all programs"
    };
    let mut chosen = prompt.ask(question, None, |answer, prompt| {
        if answer.eq_ignore_ascii_case("more") {
            shown = all.iter().collect();
            print_choice(shown.iter().map(|program| program.label.as_str()), prompt, machine.width);
            return Ok(None);
        }
        let mut chosen: Vec<ChosenProgram> = Vec::new();
        for part in split_list(answer) {
            let Some(program) = choose_program(part, &shown, prompt, machine)? else { return Ok(None) };
            if chosen.iter().all(|other| other.launch != program.launch) {
                chosen.push(program);
            }
        }
        Ok((!chosen.is_empty()).then_some(chosen))
    })?;
    prompt.say("  Learning can be free: its time isn't limited and doesn't count as play.");
    print_choice(chosen.iter().map(|program| program.label.as_str()), prompt, machine.width);
    let free = prompt.ask("Which are free? Numbers, or none", Some("none"), |answer, prompt| {
        if answer.eq_ignore_ascii_case("none") {
            return Ok(Some(Vec::new()));
        }
        let numbers = answer.split([',', ' ']).filter(|part| !part.is_empty());
        let numbers: Option<Vec<usize>> = numbers
            .map(|part| part.parse().ok().filter(|number| (1..=chosen.len()).contains(number)))
            .collect();
        if numbers.is_none() {
            prompt.complain(&format!("Please type numbers from 1 to {}, or none.", chosen.len()));
        }
        Ok(numbers)
    })?;
    for (index, program) in chosen.iter_mut().enumerate() {
        program.is_free = free.contains(&(index + 1));
    }
    Ok(chosen)
}

/// Finds the program that a part of the answer means: the number of a shown one, or a command.
fn choose_program<P: AnswerSource>(
    part: &str,
    shown: &[&MenuProgram],
    prompt: &mut P,
    machine: &MachineFacts,
) -> Result<Option<ChosenProgram>, ShepherdCliError> {
    let new = |label: &str, launch| ChosenProgram { label: label.to_owned(), launch, is_free: false };
    if let Ok(number) = part.parse::<usize>() {
        let program = number.checked_sub(1).and_then(|index| shown.get(index));
        if program.is_none() {
            prompt.complain(&format!("There is no program {number} in the list."));
        }
        return Ok(program.map(|program| new(&program.label, program.launch.clone())));
    }
    let by_label = machine.programs.programs.iter().find(|known| known.label.eq_ignore_ascii_case(part));
    if let Some(program) = by_label {
        return Ok(Some(new(&program.label, program.launch.clone())));
    }
    let argv: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
    let Some(program) = argv.first().cloned() else { return Ok(None) };
    if !machine.programs.has_program(&program) {
        let shown = escape_label(&program);
        prompt.complain(&format!("There is no program `{shown}` on this computer."));
        if !prompt.ask_yes("Use it, and install it later?", false)? {
            return Ok(None);
        }
    }
    let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&program).to_owned();
    let known = machine.programs.programs.iter().find(|known| match &known.launch {
        ProgramLaunch::Command(known) => *known == argv,
        ProgramLaunch::Flatpak(_) => false,
    });
    let label = known.map_or(name, |known| known.label.clone());
    Ok(Some(new(&label, ProgramLaunch::Command(argv))))
}

/// Shows numbered names in as many columns as fit.
fn print_choice<'l>(labels: impl Iterator<Item = &'l str>, prompt: &mut impl AnswerSource, width: usize) {
    const LONGEST: usize = 30;
    let cells: Vec<String> = labels
        .enumerate()
        .map(|(index, label)| format!("{:>3} {}", index + 1, truncate(&escape_label(label), LONGEST)))
        .collect();
    let widest = cells.iter().map(|cell| display_width(cell)).max().unwrap_or(0) + 2;
    let columns = (width.saturating_sub(2) / widest.max(1)).clamp(1, 3);
    for row in cells.chunks(columns) {
        let line: String = row.iter().map(|cell| pad_or_truncate(cell, widest)).collect();
        prompt.say(&format!("  {}", line.trim_end()));
    }
}

pub(super) fn ask_warnings(prompt: &mut impl AnswerSource) -> Result<Vec<Duration>, ShepherdCliError> {
    prompt.start_question(8, "Notifications");
    prompt.say("  Your children see a notification before a program is ended, also at bedtime.");
    prompt.ask("How many minutes before? Or none", Some("10, 5, 1"), |answer, prompt| {
        if answer.eq_ignore_ascii_case("none") {
            return Ok(Some(Vec::new()));
        }
        let times = answer.split([',', ' ']).filter(|part| !part.is_empty());
        let times: Option<Vec<Duration>> =
            times.map(|part| parse_minutes(part).filter(|time| *time <= MAX_WARNING)).collect();
        let Some(mut times) = times.filter(|times| !times.is_empty()) else {
            prompt.complain("Please type minutes from 1 to 120, such as 10, 5, 1.");
            return Ok(None);
        };
        times.sort_unstable_by(|one, other| other.cmp(one));
        times.dedup();
        Ok(Some(times))
    })
}

/// Writes a time as in a policy.
pub(super) fn time_text(time: Option<Duration>) -> String {
    time.map_or("unlimited".to_owned(), format_duration)
}
