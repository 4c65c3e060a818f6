//! Builds the Landlock rule set that allows the trees of a sandbox and denies all other files. See
//! `landlock(7)`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::trees::SandboxTrees;
use super::{Sandbox, SandboxError, SandboxNetwork};
use crate::sys::confinement::MemoryRights;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

/// Newest Landlock ABI whose access rights were reviewed for this sandbox. Older kernels enforce the rights
/// they know.
const NEWEST_KNOWN: ABI = ABI::V9;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

const EXECUTE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});

/// Rights on writable trees. Creating device nodes is left out because they would give access to the raw
/// disk, and creating sockets is left out too.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeFifo | MakeSym | Refer
});

/// Returns the rights on files in memory. The child adds these rules with raw system calls, so rights that a
/// kernel with this ABI doesn't know are left out here; see `landlock(7)`.
pub(super) fn memory_rights(abi: i64) -> MemoryRights {
    let known = match abi {
        ..=1 => AccessFs::from_all(ABI::V1),
        2 => AccessFs::from_all(ABI::V2),
        _ => AccessFs::from_all(ABI::V3),
    };
    MemoryRights { shared_memory: (WRITE & known).bits(), replacement: read_rights(false) }
}

/// Returns the rights to read a folder or a file, which every kernel with Landlock knows.
pub(super) fn read_rights(is_folder: bool) -> u64 {
    if is_folder { READ.bits() } else { BitFlags::from(AccessFs::ReadFile).bits() }
}

/// Creates and fills the rule set. Returns `None` on a kernel without Landlock.
pub(super) fn build_ruleset(
    sandbox: &Sandbox,
    network: SandboxNetwork,
    trees: &SandboxTrees,
    temporary: Option<BorrowedFd<'_>>,
) -> Result<Option<OwnedFd>, SandboxError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST_KNOWN))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST_KNOWN)))
        .map_err(rules_error)?;
    if network == SandboxNetwork::Off {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST_KNOWN)).map_err(rules_error)?;
    }
    let mut rules = ruleset.create().map_err(rules_error)?;
    for (trees, rights) in [(&trees.read, READ), (&trees.execute, EXECUTE), (&trees.write, WRITE)] {
        for tree in trees {
            let rights = if tree.is_folder() { rights } else { rights & AccessFs::from_file(NEWEST_KNOWN) };
            rules = allow(rules, tree, rights)?;
        }
    }
    if let Some(folder) = temporary {
        let rights = if sandbox.can_execute_written_files() { WRITE | EXECUTE } else { WRITE };
        rules = allow(rules, folder, rights)?;
    }
    Ok(rules.into())
}

fn allow(
    rules: RulesetCreated,
    tree: impl AsFd,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, SandboxError> {
    rules.add_rule(PathBeneath::new(tree, rights)).map_err(rules_error)
}

fn rules_error(error: RulesetError) -> SandboxError {
    SandboxError::Rules(Box::new(error))
}
