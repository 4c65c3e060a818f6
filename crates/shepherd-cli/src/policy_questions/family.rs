//! The questions about the people: children, logins, bedtimes, parents and the PIN.

use std::collections::BTreeSet;

use shepherd_api::AdminPin;
use shepherd_config::{NightHours, parse_night};
use ward_diag::closest;
use ward_terminal::escape_label;

use super::MachineFacts;
use super::answers::ChildAnswers;
use super::prompt::AnswerSource;
use crate::error::ShepherdCliError;

/// Most children. More names are a mistake.
const MAX_CHILDREN: usize = 20;

/// The longest id that is made of a name.
const MAX_ID: usize = 32;

/// Words that can't be the id of anything in a policy.
const RESERVED_IDS: [&str; 5] = ["all", "auto", "in", "none", "unlimited"];

/// Splits an answer with several parts, such as "Anna, Ben and Cleo" or "Anna und Ben".
pub(super) fn split_list(answer: &str) -> impl Iterator<Item = &str> {
    answer
        .split([',', ';'])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" und "))
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Makes an id of a name: "Jürgen K." becomes `juergen-k`. Names in other scripts are numbered. No id is made twice.
pub(super) fn make_id(name: &str, otherwise: &str, taken: &mut BTreeSet<String>) -> String {
    let mut id = String::new();
    for character in name.to_lowercase().chars() {
        match character {
            'ä' | 'æ' => id.push_str("ae"),
            'ö' | 'ø' | 'œ' => id.push_str("oe"),
            'ü' => id.push_str("ue"),
            'ß' => id.push_str("ss"),
            'á' | 'à' | 'â' | 'ã' | 'å' => id.push('a'),
            'é' | 'è' | 'ê' | 'ë' => id.push('e'),
            'í' | 'ì' | 'î' | 'ï' => id.push('i'),
            'ó' | 'ò' | 'ô' | 'õ' => id.push('o'),
            'ú' | 'ù' | 'û' => id.push('u'),
            'ç' => id.push('c'),
            'ñ' => id.push('n'),
            'a'..='z' | '0'..='9' => id.push(character),
            _ if !id.is_empty() && !id.ends_with('-') => id.push('-'),
            _ => {}
        }
    }
    id.truncate(MAX_ID);
    let id = id.trim_end_matches('-');
    let base = if id.is_empty() || RESERVED_IDS.contains(&id) { otherwise } else { id };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let free = std::iter::once(base.to_owned()).chain(numbered).find(|id| !taken.contains(id));
    let id = free.unwrap_or_default();
    taken.insert(id.clone());
    id
}

pub(super) fn ask_children(prompt: &mut impl AnswerSource) -> Result<Vec<String>, ShepherdCliError> {
    prompt.start_question(1, "Children");
    prompt.ask("What are your children called? (such as Anna, Ben)", None, |answer, prompt| {
        let names: Vec<String> = split_list(answer).map(str::to_owned).collect();
        let distinct: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        if names.is_empty() {
            prompt.complain("Please type a name.");
        } else if names.len() > MAX_CHILDREN {
            prompt.complain(&format!("That is more than {MAX_CHILDREN} names."));
        } else if distinct.len() < names.len() {
            prompt.complain("Two of them have the same name. Please tell them apart.");
        } else {
            return Ok(Some(names));
        }
        Ok(None)
    })
}

pub(super) fn ask_logins(
    names: Vec<String>,
    prompt: &mut impl AnswerSource,
    machine: &MachineFacts,
) -> Result<Vec<ChildAnswers>, ShepherdCliError> {
    prompt.start_question(2, "Logins");
    prompt.say("  Each child needs a login of their own on this computer.");
    let (mut children, mut ids) = (Vec::new(), BTreeSet::new());
    for label in names {
        let id = make_id(&label, "child", &mut ids);
        let suggested = suggest_login(&id, &children, machine);
        let question = format!("{}'s login", escape_label(&label));
        let login = prompt.ask(&question, Some(&suggested), |answer, prompt| {
            if let Some(other) = children.iter().find(|child: &&ChildAnswers| child.login == answer) {
                prompt.complain(&format!(
                    "That is {}'s login. Each child needs their own.",
                    escape_label(&other.label)
                ));
                return Ok(None);
            }
            check_login(answer, prompt, machine)
        })?;
        children.push(ChildAnswers { id, label, login, school_nights: None, weekends: None });
    }
    Ok(children)
}

/// Returns the login that is called like the child, or nearly so; else the one to be created.
fn suggest_login(id: &str, others: &[ChildAnswers], machine: &MachineFacts) -> String {
    let is_free = |name: &&str| {
        machine.own_login.as_deref() != Some(*name) && others.iter().all(|other| other.login != *name)
    };
    let logins: Vec<&str> = machine.accounts.person_names().filter(is_free).collect();
    closest(id, logins.iter().copied()).unwrap_or(id).to_owned()
}

/// Checks a login. One that doesn't exist is kept if the person says so.
fn check_login<P: AnswerSource>(
    answer: &str,
    prompt: &mut P,
    machine: &MachineFacts,
) -> Result<Option<String>, ShepherdCliError> {
    if answer == "root" {
        prompt.complain("`root` is the administrator of the computer, and nobody's own login.");
        return Ok(None);
    }
    let has_other = |character: char| {
        !(character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | '$'))
            || character.is_uppercase()
    };
    if answer.contains(has_other) || answer.starts_with('-') {
        prompt.complain("A login is one word of small letters, digits, `-`, `_` and `.`, such as anna.");
        return Ok(None);
    }
    let mut known = machine.accounts.person_names();
    if known.any(|name| name == answer) {
        return Ok(Some(answer.to_owned()));
    }
    let near = closest(answer, machine.accounts.person_names());
    let meant = near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    prompt.complain(&format!("There is no login `{answer}` on this computer.{meant}"));
    prompt.say(&format!("    You can create it now or later: `sudo adduser {answer}`"));
    Ok(prompt.ask_yes("Use this name?", near.is_none())?.then(|| answer.to_owned()))
}

pub(super) fn ask_bedtimes(
    mut children: Vec<ChildAnswers>,
    prompt: &mut impl AnswerSource,
) -> Result<Vec<ChildAnswers>, ShepherdCliError> {
    prompt.start_question(3, "Bedtime");
    prompt.say("  From when until when is everything closed at night? none means no bedtime.");
    let mut usual = ["20:00-07:00".to_owned(), "21:30-08:00".to_owned()];
    for child in &mut children {
        let name = escape_label(&child.label);
        let questions = [
            format!("{name}, nights before school (Sunday to Thursday)"),
            format!("{name}, weekends (Friday and Saturday)"),
        ];
        let mut nights = [None, None];
        for ((question, usual), night) in questions.iter().zip(&mut usual).zip(&mut nights) {
            *night =
                prompt.ask(question, Some(usual.as_str()), |answer, prompt| check_night(answer, prompt))?;
            // The next child probably has the same.
            *usual = night_text(*night);
        }
        [child.school_nights, child.weekends] = nights;
    }
    Ok(children)
}

#[expect(clippy::option_option, reason = "an invalid answer, and no bedtime")]
fn check_night<P: AnswerSource>(
    answer: &str,
    prompt: &mut P,
) -> Result<Option<Option<NightHours>>, ShepherdCliError> {
    if answer.eq_ignore_ascii_case("none") {
        return Ok(Some(None));
    }
    match parse_night(answer) {
        Ok(night) => Ok(Some(Some(night))),
        Err(error) => {
            prompt.complain(&format!("`{}` {}.", escape_label(answer), error.message));
            prompt.say(&format!("    {}", error.help));
            Ok(None)
        }
    }
}

/// Writes a night as it is typed.
pub(super) fn night_text(night: Option<NightHours>) -> String {
    night.map(NightHours::times_of_day).map_or("none".to_owned(), |(start, end)| format!("{start}-{end}"))
}

pub(super) fn ask_parents(
    children: &[ChildAnswers],
    prompt: &mut impl AnswerSource,
    machine: &MachineFacts,
) -> Result<Vec<String>, ShepherdCliError> {
    prompt.start_question(6, "Parents");
    prompt.say("  Parents may do everything: give time, change rules, answer requests.");
    let is_child = |login: &str| children.iter().any(|child| child.login == login);
    let own = machine.own_login.as_deref().filter(|own| !is_child(own));
    prompt.ask("The parents' logins (such as mama, papa)", own, |answer, prompt| {
        let mut parents: Vec<String> = Vec::new();
        for login in split_list(answer) {
            if is_child(login) {
                prompt.complain(&format!("`{}` is a child's login.", escape_label(login)));
                return Ok(None);
            }
            match check_login(login, prompt, machine)? {
                Some(login) if parents.contains(&login) => {}
                Some(login) => parents.push(login),
                None => return Ok(None),
            }
        }
        Ok((!parents.is_empty()).then_some(parents))
    })
}

pub(super) fn ask_pin(
    prompt: &mut impl AnswerSource,
    can_set_pin: bool,
) -> Result<Option<AdminPin>, ShepherdCliError> {
    prompt.start_question(7, "PIN");
    if !can_set_pin {
        prompt.say(
            "  A PIN keeps a child at your unlocked login from changing the rules. Set it when\n  Shepherd runs with these \
             rules: `sudo shepherd pin set`.",
        );
        return Ok(None);
    }
    prompt.say(
        "  A PIN keeps a child at your unlocked login from changing the rules.\n  What you type isn't shown. Enter means \
         no new PIN.",
    );
    loop {
        let typed = prompt.read_hidden("  New PIN: ")?;
        if typed.is_empty() {
            return Ok(None);
        }
        let pin = match AdminPin::try_from(typed) {
            Ok(pin) => pin,
            Err(error) => {
                prompt.complain(&format!("That can't be a PIN: {error}."));
                continue;
            }
        };
        if prompt.read_hidden("  The same PIN again: ")? == pin.reveal() {
            return Ok(Some(pin));
        }
        prompt.complain("The two PINs differ. Please type it again.");
    }
}
