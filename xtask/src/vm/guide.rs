//! Types `docs/install.md` in the guest: each block that begins with ```` ```sh guest ````, line by line, as the parent. A block
//! that begins with ```` ```text guest ```` shows lines that the block before it must print; `…` stands for text that changes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::guest::RunningGuest;
use super::image::PARENT;
use crate::package::BuiltPackages;

/// The guide, as it was when this program was compiled.
const GUIDE: &str = include_str!("../../../docs/install.md");

/// The folder of the package, as the guide names it. In the guest, the parent's home takes the place of the sources.
const PACKAGE_FOLDER: &str = "target/package";

/// The longest time from the installation of the package until Shepherd is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Answers to `adduser`: a password twice, five empty fields, a yes, and no further groups.
const ADDUSER_ANSWERS: &[&str] = &["horse staple", "horse staple", "", "", "", "", "", "y", "n"];

/// A step of the guide.
#[derive(Debug, PartialEq, Eq)]
enum GuideStep {
    /// The parent types this line.
    Type(String),
    /// The lines typed since the last such step have printed these lines, in this order.
    Expect(Vec<String>),
}

/// Types the guide, and checks that Shepherd is ready in time.
pub(super) fn install(guest: &RunningGuest, packages: &BuiltPackages) -> Result<()> {
    let package = packages.shepherd.file_name().context("the package has no name")?.to_string_lossy();
    let folder = format!("/home/{PARENT}/{PACKAGE_FOLDER}");
    guest.root(&format!("mkdir -p {folder}"))?;
    guest.upload(&packages.shepherd, &format!("{folder}/{package}"))?;
    let mut installed = None;
    let mut printed = String::new();
    for step in guide_steps(GUIDE)? {
        let line = match step {
            GuideStep::Type(line) => line,
            GuideStep::Expect(expected) => {
                let missing = find_missing_line(&expected, &printed);
                ensure!(
                    missing.is_none(),
                    "the guide shows `{}`, but was printed:\n{printed}",
                    missing.unwrap_or_default()
                );
                printed.clear();
                continue;
            }
        };
        let before = Instant::now();
        printed += &type_line(guest, &line)?;
        // The last question of `adduser` has no line end.
        printed.push('\n');
        if line.contains("apt install") {
            guest.root("shepherd health")?;
            installed = Some(before.elapsed());
        }
    }
    let took = installed.context("the guide has no line with `apt install`")?;
    ensure!(
        took <= READY_WITHIN || !packages.is_shipped,
        "installing took {took:?}, more than {READY_WITHIN:?}"
    );
    println!("  ready {:.0} s after `apt install`", took.as_secs_f64());
    Ok(())
}

/// Types a line, and returns what it printed.
fn type_line(guest: &RunningGuest, line: &str) -> Result<String> {
    let done = if line.contains("adduser") {
        guest.type_as(PARENT, line, ADDUSER_ANSWERS)?
    } else {
        guest.run_as(PARENT, line)?
    };
    let printed = String::from_utf8_lossy(&[&done.stdout[..], &done.stderr[..]].concat()).into_owned();
    ensure!(done.status.success(), "`{line}` failed:\n{printed}");
    Ok(printed)
}

/// Returns the first expected line that doesn't follow the ones before it.
fn find_missing_line<'e>(expected: &'e [String], printed: &str) -> Option<&'e str> {
    let mut lines = printed.lines();
    expected.iter().find(|pattern| !lines.any(|line| matches_line(pattern, line))).map(String::as_str)
}

/// Returns true if a line is as shown. `…` stands for any text.
fn matches_line(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else { return pattern == line };
    let Some(line) = line.strip_prefix(start) else { return false };
    (0..=line.len()).any(|at| line.get(at..).is_some_and(|line| matches_line(rest, line)))
}

/// Returns the steps of the guide. A block of TOML with the word `policy` after it is the policy that the parent saves.
fn guide_steps(guide: &str) -> Result<Vec<GuideStep>> {
    let mut steps = Vec::new();
    let mut block: Option<(&str, Vec<&str>)> = None;
    for line in guide.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(kind)) => block = Some((kind, Vec::new())),
            (Some((_, content)), None) => content.push(line),
            (Some(_), Some(_)) => match block.take() {
                Some(("sh guest", content)) => {
                    steps.extend(content.iter().map(|line| GuideStep::Type((*line).to_owned())));
                }
                Some(("text guest", content)) => {
                    steps.push(GuideStep::Expect(content.iter().map(|line| (*line).to_owned()).collect()));
                }
                Some(("toml guest policy", content)) => steps.push(GuideStep::Type(save_policy(&content))),
                _ => {}
            },
            (None, None) => {}
        }
    }
    if steps.is_empty() {
        bail!("docs/install.md has no block that begins with ```sh guest");
    }
    Ok(steps)
}

/// Returns the line that does what the parent does in an editor.
fn save_policy(content: &[&str]) -> String {
    format!("sudo tee /etc/shepherd/policy.toml >/dev/null <<'POLICY'\n{}\nPOLICY", content.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_for_the_guest_are_typed_in_their_order() {
        let guide = "```sh\nno\n```\n```sh guest\na\nb\n```\ntext\n```text guest\nc\n```\n```toml guest policy\nx = 1\n```\n";
        let steps = guide_steps(guide).unwrap();
        let typed = |line: &str| GuideStep::Type(line.to_owned());
        assert_eq!(steps[..3], [typed("a"), typed("b"), GuideStep::Expect(vec!["c".to_owned()])]);
        assert_eq!(steps[3], typed(&save_policy(&["x = 1"])));
        assert!(guide_steps("no block").is_err());
    }

    #[test]
    fn the_guide_installs_the_package_from_the_folder_in_which_it_is_made() {
        let steps = guide_steps(GUIDE).unwrap();
        let install = format!("sudo apt install -y ./{PACKAGE_FOLDER}/shepherd_");
        let is_install =
            |step: &&GuideStep| matches!(step, GuideStep::Type(line) if line.starts_with(&install));
        assert_eq!(steps.iter().filter(is_install).count(), 1, "{steps:?}");
    }

    #[test]
    fn shown_lines_must_be_printed_in_their_order() {
        let missing = |expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
            find_missing_line(&expected, "ready, up 3 seconds\n  more\n✓ done\n").map(str::to_owned)
        };
        assert_eq!(missing(&["ready, up …", "✓ done"]), None);
        assert_eq!(missing(&["ready… 3 …"]), None);
        assert_eq!(missing(&["✓ done", "ready, up …"]), Some("ready, up …".to_owned()));
        for other in ["ready", "…up", "done", "✓ done…!"] {
            assert_eq!(missing(&[other]), Some(other.to_owned()));
        }
    }
}
