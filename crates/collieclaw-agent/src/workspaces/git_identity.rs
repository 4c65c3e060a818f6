//! Gives `git` in the sandbox the user's name and address for commits, which are usually in `~/.gitconfig`.
//!
//! Nothing else of the user's settings is passed on: others can run commands or hold passwords. Commands can read the new
//! file and not change it, so no line can leave a setting that makes `git` in a later line run something.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use collieclaw_gate::MachineFacts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::ids::random_id;
use crate::security::SystemFacts;

/// The settings that are passed on, as a pattern of `git config --get-regexp`.
const SETTINGS: &str = r"^(user\.(name|email)|init\.defaultbranch)$";

/// The time that `git` has. It reads a few small files, but a command may have put a pipe in the place of one of them.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes the user's settings for commits in a workspace to `file`. Without any, the file is empty: it also takes the place
/// of a `~/.gitconfig` in the commands' own home, which they could write.
pub(super) fn write_git_identity(
    user_home: &Path,
    variables: &BTreeMap<String, String>,
    workspace: &Path,
    file: &Path,
) -> io::Result<()> {
    let before = fs::read_to_string(file).ok();
    let settings = read_settings(user_home, variables, workspace);
    let text = match (settings, &before) {
        (Some(settings), _) => format_settings(&settings),
        (None, Some(_)) => return Ok(()),
        (None, None) => String::new(),
    };
    if before.is_some_and(|before| before == text) {
        return Ok(());
    }
    // Renamed into place, so that another process never reads a part of it.
    let new = file.with_file_name(random_id("gitconfig"));
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, file)
}

/// Asks `git` for the user's settings, which may depend on the place of the workspace (`includeIf`). Returns `None` if
/// `git` doesn't answer.
fn read_settings(
    user_home: &Path,
    variables: &BTreeMap<String, String>,
    workspace: &Path,
) -> Option<Vec<(String, String)>> {
    let mut command = Command::new(SystemFacts.find_program("git")?);
    command.arg("-C").arg(workspace);
    command.args(["config", "--global", "--includes", "--null", "--get-regexp", SETTINGS]);
    command.env_clear().env("HOME", user_home).env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs(variables.get("XDG_CONFIG_HOME").map(|folder| ("XDG_CONFIG_HOME", OsStr::new(folder))));
    let text = read_output(&mut command, GIT_TIMEOUT)?;
    let settings = text.split('\0').filter_map(|entry| entry.split_once('\n'));
    Some(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Runs a program and returns what it prints; `None` if that is no text, or if the program takes longer than the timeout.
fn read_output(command: &mut Command, timeout: Duration) -> Option<String> {
    let deadline = Instant::now() + timeout;
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take().and_then(|mut stdout| {
        let mut bytes = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Err(Errno::INTR) => continue,
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
            let mut part = [0; 4096];
            match stdout.read(&mut part).ok()? {
                0 => return String::from_utf8(bytes).ok(),
                count => bytes.extend(part.get(..count)?),
            }
        }
    });
    // The program has ended, or it is too late for it.
    let _ = child.kill();
    let _ = child.wait();
    output
}

/// Returns settings as a file for `git`. Of several values of a setting, the last one counts.
fn format_settings(settings: &[(String, String)]) -> String {
    let mut text = String::new();
    for (setting, value) in settings {
        let Some((section, name)) = setting.split_once('.') else { continue };
        if value.chars().any(char::is_control) {
            continue;
        }
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        text.push_str(&format!("[{section}]\n\t{name} = \"{value}\"\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(user_settings: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("code/project");
        fs::create_dir_all(&workspace).unwrap();
        fs::write(folder.path().join(".gitconfig"), user_settings).unwrap();
        fs::write(folder.path().join("other"), "[user]\n\temail = work@example.org\n").unwrap();
        let git = SystemFacts.find_program("git").expect("git is missing: cargo xtask setup");
        let made = Command::new(git).args(["init", "-q"]).current_dir(&workspace).env_clear().status();
        assert!(made.unwrap().success());
        let file = folder.path().join("gitconfig");
        write_git_identity(folder.path(), &BTreeMap::new(), &workspace, &file).unwrap();
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn only_the_identity_is_passed_on() {
        let settings = "[user]\n\tname = \"A \\\"B\\\" \\\\ C\"\n\temail = a@example.org\n\tsigningKey = secret\n\
                        [alias]\n\tx = !id\n[credential]\n\thelper = store\n[init]\n\tdefaultBranch = main\n";
        let expected = "[user]\n\tname = \"A \\\"B\\\" \\\\ C\"\n[user]\n\temail = \"a@example.org\"\n\
                        [init]\n\tdefaultbranch = \"main\"\n";
        assert_eq!(written(settings), expected);
        assert_eq!(written("[alias]\n\tx = !id\n"), "");
        assert_eq!(written("[user\n"), "");
    }

    #[test]
    fn the_identity_may_depend_on_the_place_of_the_workspace() {
        let settings = "[user]\n\temail = home@example.org\n[includeIf \"gitdir:~/code/\"]\n\tpath = other\n";
        let text = written(settings);
        assert!(text.ends_with("\temail = \"work@example.org\"\n"), "{text}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_given_up() {
        let answer = |script: &str, timeout| read_output(Command::new("sh").args(["-c", script]), timeout);
        let text = answer("printf a; printf b", Duration::from_secs(60));
        assert_eq!(text.as_deref(), Some("ab"));
        assert_eq!(answer("exec sleep 600", Duration::from_millis(50)), None);
        assert_eq!(answer("printf '\\377'", Duration::from_secs(60)), None);
    }

    #[test]
    fn a_value_with_a_line_break_adds_no_setting() {
        let value = "x\n[alias]\n\ty = !id".to_owned();
        assert_eq!(format_settings(&[("user.name".to_owned(), value)]), "");
    }
}
