//! `cargo xtask test --only units`: runs all systemd units in a container with a real systemd, the installed programs and a
//! second user. User units are started by that user's own service manager.
//!
//! The tests of `shepherdd` and `collieclaw` check the unit files without running them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::test::StepOutcome;
use crate::workspace::{CargoWorkspace, run_to_end};
use crate::{setup, terminal};

mod agent;
mod checks;
mod container;
mod installation;
mod logins;
mod service_scope;

use agent::AgentService;
use checks::InstallationCheck;
use container::ContainerSetup;
pub(crate) use container::{build_container, has_container};
use installation::InstalledShepherd;
use service_scope::ServiceScope;

/// Runs the checks of all units. Only root can boot a container.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<StepOutcome> {
    if !setup::is_root() {
        let reason = "not root: the unit files were checked, but not run under systemd";
        return Ok(StepOutcome::PassedInPart(reason.to_owned()));
    }
    // The step `build` has built the programs already. Building some packages alone would build most libraries again,
    // with other features.
    run_to_end(workspace.linting_command().args(["test", "--workspace", "--no-run", "--locked", "--quiet"]))?;
    let stage = ContainerSetup::prepare(workspace)?;
    println!("  Shepherd's user unit");
    run_checks(checks::USER_CHECKS, &InstalledShepherd::start(stage.boot()?, ServiceScope::User)?)?;
    println!("  CollieClaw's user unit");
    let agent = AgentService::start(stage.boot()?)?;
    for (sentence, check) in agent::CHECKS {
        let start = Instant::now();
        let result = check(&agent);
        print_result(sentence, start, &result);
        result.with_context(|| format!("{sentence}\n{}", agent.journal()))?;
    }
    drop(agent);
    println!("  Shepherd's system unit");
    let installation = InstalledShepherd::start(stage.boot()?, ServiceScope::System)?;
    run_checks(checks::SYSTEM_CHECKS, &installation)?;
    println!("  Log-ins");
    run_checks(logins::LOGIN_CHECKS, &installation)?;
    let start = Instant::now();
    let result = power_cut(&stage, installation);
    print_result("a power cut during a session gives no time back", start, &result);
    result.map(|()| StepOutcome::Passed)
}

fn run_checks(checks: &[InstallationCheck], installation: &InstalledShepherd) -> Result<()> {
    for (sentence, check) in checks {
        let start = Instant::now();
        let result = check(installation).and_then(|()| installation.assert_idle());
        print_result(sentence, start, &result);
        result.with_context(|| format!("{sentence}\n{}", installation.journal()))?;
    }
    Ok(())
}

fn print_result(sentence: &str, start: Instant, result: &Result<()>) {
    let mark = if result.is_ok() { terminal::success("✓") } else { terminal::failure("✗") };
    println!("  {mark} {}  {sentence}", terminal::seconds(start.elapsed()));
}

/// Kills the container and boots it again, with another boot id and the same data folder.
fn power_cut(stage: &ContainerSetup, installation: InstalledShepherd) -> Result<()> {
    let session = installation.launch("evening")?;
    installation.wait_for_program(&session)?;
    let before = installation.usage_of("evening")?;
    std::thread::sleep(Duration::from_secs(2));
    drop(installation);
    let installation = InstalledShepherd::start(stage.boot()?, ServiceScope::System)?;
    ensure!(installation.current_session()?.is_none(), "a session survived the reboot");
    let after = installation.usage_of("evening")?;
    ensure!(
        after >= before + Duration::from_secs(2),
        "the recorded usage was {before:?} before the reboot and {after:?} after it"
    );
    let Some(reason) = installation.launch_refusal("evening")? else {
        bail!("the cooldown of the session is lost")
    };
    ensure!(reason.contains("cooldown"), "{reason}");
    Ok(())
}

/// Converts a path in the container to a path below the container's root folder.
fn path_in_root(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}
