//! Judges words with a meaning of their own: settings of `git`, file modes, data to send, commands of `sqlite3`.

use std::path::Path;

use super::git_settings::{SettingEffect, setting_effect};
use super::{CommandFolder, ShellEvaluation, sqlite};
use crate::address::{self, HttpMethod, WebAddress};
use crate::path::{LONGEST_PATH, PathAccess, steers_programs};
use crate::programs::{ParsedArgument, WordMeaning};
use crate::reason::GateReason;

/// The maximum number of files in one value of `curl -d`.
const MAX_SENT_FILES: usize = 32;

impl ShellEvaluation<'_> {
    /// Judges a word whose meaning only one or a few programs know.
    pub(super) fn judge_special_word(
        &mut self,
        name: &str,
        meaning: WordMeaning,
        text: &str,
        cwd: &CommandFolder,
    ) {
        match meaning {
            WordMeaning::FileMode => self.judge_file_mode(name, text, cwd),
            WordMeaning::SentData => self.judge_sent_data(text, cwd),
            WordMeaning::Repository => self.judge_repository(name, text, cwd),
            WordMeaning::SqliteInput => {
                if let Some(effect) = sqlite::find_side_effect(text) {
                    self.add_argument_reason(name, text, effect);
                }
            }
            WordMeaning::GitSetting => {
                let (setting, value) =
                    text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
                if setting_effect(setting, value) != SettingEffect::Harmless {
                    self.add_argument_reason(name, text, "possibly run a command");
                }
            }
            WordMeaning::LastingGitSetting => {
                self.judge_changed_setting(name, text.split_once('=').map_or(text, |(setting, _)| setting));
            }
            WordMeaning::GitFolder => {
                self.judge_path(text, PathAccess::Read, cwd);
                self.judge_path(".", PathAccess::Write, cwd);
            }
            WordMeaning::SteeringPath => {
                self.findings.add(GateReason::ExecutableConfig { path: text.to_owned() });
            }
            // The caller judges the other meanings; a word that reaches this place was not judged.
            _ => self.add_argument_reason(name, text, None),
        }
    }

    /// Judges a setting that `git` keeps.
    pub(super) fn judge_changed_setting(&mut self, name: &str, setting: &str) {
        match setting_effect(setting, None) {
            SettingEffect::Harmless => {}
            SettingEffect::Steers => {
                self.findings.add(GateReason::ExecutableConfig { path: setting.to_owned() });
            }
            SettingEffect::Unknown => {
                self.add_argument_reason(name, setting, "keep a setting that the gate doesn't know");
            }
        }
    }

    /// Judges a repository: an address, a name such as `origin`, or a folder.
    fn judge_repository(&mut self, name: &str, text: &str, cwd: &CommandFolder) {
        if text.contains("::") {
            // `ext::command` runs the command.
            return self.add_argument_reason(name, text, "run a helper program");
        }
        match text.strip_prefix("file://") {
            Some(path) => self.judge_path(path, PathAccess::Read, cwd),
            None if text.contains("://") => {}
            None => self.judge_possible_path(text, cwd),
        }
    }

    /// Judges the address that a command connects to.
    pub(super) fn judge_address(&mut self, text: &str, method: HttpMethod) {
        // `curl` and `wget` take a host without a scheme for one of the web.
        let address = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        match WebAddress::parse(&address) {
            // Commands have a loopback interface of their own, on which nothing of this machine listens.
            Ok(parsed) if parsed.is_loopback() && !parsed.is_listed_with_port(self.policy) => {
                self.findings.add(GateReason::OwnLoopback { address: parsed.host_and_port() });
            }
            _ => address::judge(&address, method, self.policy, &mut self.findings),
        }
    }

    /// Remembers the file of a download, and refuses a name that `git` or `hg` obeys.
    pub(super) fn judge_downloaded_name(&mut self, address: &str, cwd: &CommandFolder) {
        let path = address.split(['?', '#']).next().unwrap_or_default();
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if steers_programs(Path::new(name)) {
            self.findings.add(GateReason::ExecutableConfig { path: name.to_owned() });
        }
        self.add_downloaded_file(name, cwd);
    }

    fn judge_file_mode(&mut self, name: &str, text: &str, cwd: &CommandFolder) {
        if !is_file_mode(text) {
            self.judge_path(text, PathAccess::Write, cwd);
        } else if sets_special_bits(text) {
            self.add_argument_reason(name, text, "let others run a file with its owner's permissions");
        }
    }

    /// Judges the files in data that `curl` sends: `@file`, `name=@file`, `name=<file`.
    fn judge_sent_data(&mut self, text: &str, cwd: &CommandFolder) {
        let before = |place: usize| text.get(..place).unwrap_or_default();
        let places = text.match_indices(['@', '<']);
        let places = places.filter(|(place, sign)| *sign == "@" || before(*place).ends_with('='));
        for (count, (place, _)) in places.enumerate() {
            if count == MAX_SENT_FILES {
                return self.add_limit_exceeded("the data names more files than the gate can check");
            }
            let file = text.get(place + 1..).unwrap_or_default();
            let end = file.char_indices().take(LONGEST_PATH).find(|(_, letter)| matches!(letter, ';' | ','));
            // Without an end in reach, the text is a path if it is short enough to be one.
            let end = end.map(|(end, _)| end).or_else(|| (file.len() <= LONGEST_PATH).then_some(file.len()));
            let Some(file) = end.and_then(|end| file.get(..end)) else { continue };
            let is_whole_value = before(place).is_empty() || before(place).ends_with('=');
            if is_whole_value && !matches!(file, "" | "-") {
                self.judge_path(file, PathAccess::Read, cwd);
            } else {
                self.judge_possible_path(file, cwd);
            }
        }
    }
}

/// Returns true for an argument that makes a program send data.
pub(super) fn sends_data(found: &ParsedArgument<'_>) -> bool {
    matches!(found, ParsedArgument::Value(WordMeaning::SentData, text) if !matches!(*text, "GET" | "HEAD" | "OPTIONS"))
}

/// Returns true if a program saves what it fetches under the name in the address. `curl` does so only with a flag, which
/// may be one that the gate doesn't know (`--remote-name-all`).
pub(super) fn saves_by_name(name: &str, found: &[ParsedArgument<'_>]) -> bool {
    let may_save = |found: &ParsedArgument<'_>| {
        matches!(
            found,
            ParsedArgument::RemoteName | ParsedArgument::SideEffect(..) | ParsedArgument::UnknownFlag(_)
        )
    };
    name != "curl" || found.iter().any(may_save)
}

/// Returns true for permissions such as `755`, `u+x,go-w` or `a=rX`.
fn is_file_mode(text: &str) -> bool {
    let is_octal = |text: &str| text.len() <= 5 && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let is_clause = |clause: &str| {
        let change = clause.trim_start_matches(['u', 'g', 'o', 'a']);
        change.starts_with(['+', '-', '='])
            && change.chars().all(|letter| "+-=rwxXstugo".contains(letter) || letter.is_ascii_digit())
    };
    !text.is_empty() && (is_octal(text) || text.split(',').all(is_clause))
}

/// Returns true if permissions contain the setuid, setgid or sticky bit.
fn sets_special_bits(text: &str) -> bool {
    let leading = text.trim_start_matches('0');
    let octal = text.bytes().all(|digit| digit.is_ascii_digit()) && leading.len() > 3;
    octal || text.contains(['s', 't'])
}

#[cfg(test)]
mod tests {
    use super::{is_file_mode, sets_special_bits};

    #[test]
    fn modes_are_told_from_paths() {
        for mode in
            ["755", "0644", "u+x", "+x", "a+rX", "go-w", "u=rwx,go=rx", "4755", "u+s", "+t", "=", "g=u"]
        {
            assert!(is_file_mode(mode), "{mode}");
        }
        for path in ["", "a", "x.sh", "/etc/passwd", "888", "u+x/y", "..", "u+z"] {
            assert!(!is_file_mode(path), "{path}");
        }
        for mode in ["4755", "2755", "u+s", "+t", "1777", "ug=s", "04755"] {
            assert!(sets_special_bits(mode), "{mode}");
        }
        for mode in ["755", "0644", "00644", "u+x", "a=rX"] {
            assert!(!sets_special_bits(mode), "{mode}");
        }
    }
}
