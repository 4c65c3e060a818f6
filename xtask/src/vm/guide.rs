//! Types `docs/install.md` in the guest: each block that begins with ```` ```sh guest ````, line by line, as the parent.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::guest::RunningGuest;
use super::image::PARENT;
use crate::package::BuiltPackages;

/// The guide, as it was when this program was compiled.
const GUIDE: &str = include_str!("../../../docs/install.md");

/// The longest time from the installation of the package until Shepherd is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Answers to `adduser`: a password twice, five empty fields, a yes, and no further groups.
const ADDUSER_ANSWERS: &[&str] = &["horse staple", "horse staple", "", "", "", "", "", "y", "n"];

/// Types the guide, and checks that Shepherd is ready in time.
pub(super) fn install(guest: &RunningGuest, packages: &BuiltPackages) -> Result<()> {
    let package = packages.shepherd.file_name().context("the package has no name")?.to_string_lossy();
    guest.upload(&packages.shepherd, &format!("/home/{PARENT}/{package}"))?;
    let mut installed = None;
    for line in guide_lines(GUIDE)? {
        let before = Instant::now();
        type_line(guest, &line)?;
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

fn type_line(guest: &RunningGuest, line: &str) -> Result<()> {
    let done = if line.contains("adduser") {
        guest.type_as(PARENT, line, ADDUSER_ANSWERS)?
    } else {
        guest.run_as(PARENT, line)?
    };
    let printed = [&done.stdout[..], &done.stderr[..]].concat();
    ensure!(done.status.success(), "`{line}` failed:\n{}", String::from_utf8_lossy(&printed));
    Ok(())
}

/// Returns the lines to type. A block of TOML with the word `policy` after it is the policy that the parent saves.
fn guide_lines(guide: &str) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut block: Option<(&str, Vec<&str>)> = None;
    for line in guide.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(kind)) => block = Some((kind, Vec::new())),
            (Some((_, content)), None) => content.push(line),
            (Some(_), Some(_)) => match block.take() {
                Some(("sh guest", content)) => lines.extend(content.iter().map(|line| (*line).to_owned())),
                Some(("toml guest policy", content)) => lines.push(save_policy(&content)),
                _ => {}
            },
            (None, None) => {}
        }
    }
    if lines.is_empty() {
        bail!("docs/install.md has no block that begins with ```sh guest");
    }
    Ok(lines)
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
        let guide = "```sh\nno\n```\n```sh guest\na\nb\n```\ntext\n```toml guest policy\nx = 1\n```\n";
        let typed = guide_lines(guide).unwrap();
        assert_eq!(typed[..2], ["a", "b"]);
        assert!(typed[2].ends_with("<<'POLICY'\nx = 1\nPOLICY"), "{}", typed[2]);
        assert!(guide_lines("no block").is_err());
    }
}
