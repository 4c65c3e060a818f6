//! `cargo xtask test --only units`: all units under a real systemd, in a container, with the installed programs and a
//! second user. Those for a user are started by that user's own service manager.
//!
//! What can be said of the units without running them is in the tests of `shepherdd` and `collieclaw`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::test::Outcome;
use crate::workspace::{Workspace, run_to_end};
use crate::{screen, setup};

mod agent;
mod checks;
mod container;
mod household;
mod service;

use agent::Agent;
use checks::Check;
use container::Stage;
use household::Household;
use service::Service;

/// Runs all of it. Only root can boot a container.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !setup::is_root() {
        let reason = "not root: the units were read, but no systemd was booted to run them";
        return Ok(Outcome::PassedInPart(reason.to_owned()));
    }
    run_to_end(workspace.cargo().args([
        "build",
        "--locked",
        "--quiet",
        "-p",
        "shepherdd",
        "-p",
        "shepherd-cli",
        "-p",
        "collieclaw",
    ]))?;
    let stage = Stage::prepare(workspace)?;
    println!("  the unit of a user");
    carry_out(checks::OF_A_USER, &Household::begin(stage.boot()?, Service::OfAUser)?)?;
    println!("  the agent of a user");
    let agent = Agent::begin(stage.boot()?)?;
    for (sentence, check) in agent::CHECKS {
        let start = Instant::now();
        let result = check(&agent);
        report(sentence, start, &result);
        result.with_context(|| format!("{sentence}\n{}", agent.journal()))?;
    }
    drop(agent);
    println!("  the unit of the system");
    let household = Household::begin(stage.boot()?, Service::OfTheSystem)?;
    carry_out(checks::OF_THE_SYSTEM, &household)?;
    let start = Instant::now();
    let result = power_cut(&stage, household);
    report("a power cut in the middle of a session gives nothing back", start, &result);
    result.map(|()| Outcome::Passed)
}

fn carry_out(checks: &[Check], household: &Household) -> Result<()> {
    for (sentence, check) in checks {
        let start = Instant::now();
        let result = check(household).and_then(|()| household.is_idle());
        report(sentence, start, &result);
        result.with_context(|| format!("{sentence}\n{}", household.journal()))?;
    }
    Ok(())
}

fn report(sentence: &str, start: Instant, result: &Result<()>) {
    let mark = if result.is_ok() { screen::good("✓") } else { screen::bad("✗") };
    println!("  {mark} {}  {sentence}", screen::seconds(start.elapsed()));
}

/// The container is killed and booted again, which gives it another boot id; its data folder stays.
fn power_cut(stage: &Stage, household: Household) -> Result<()> {
    let session = household.launch("evening")?;
    household.program_of(&session)?;
    let before = household.used("evening")?;
    std::thread::sleep(Duration::from_secs(2));
    drop(household);
    let household = Household::begin(stage.boot()?, Service::OfTheSystem)?;
    ensure!(household.session()?.is_none(), "a session survived the reboot");
    let after = household.used("evening")?;
    ensure!(after >= before + Duration::from_secs(2), "{before:?} were used, and {after:?} after the reboot");
    let Some(reason) = household.refusal("evening")? else { bail!("the pause after a session is forgotten") };
    ensure!(reason.contains("cooldown"), "{reason}");
    Ok(())
}

/// A file below the root that a container sees.
fn below(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}
