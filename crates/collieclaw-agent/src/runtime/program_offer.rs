//! Programs that the operator allows while a turn runs, because a call was refused only for want of them (C16).

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use collieclaw_gate::GatePolicy;

use crate::tools::ToolchainAccess;

/// Allows programs in the workspace.
pub trait ProgramAllower {
    /// Returns the files of programs that could be allowed; `None` if one of them can't be.
    fn find_programs(&self, names: &[String]) -> Option<Vec<OfferedProgram>>;

    /// Writes the permission into the rules of the workspace, and returns the rules that are in force then.
    ///
    /// # Errors
    /// Fails with the reason if the rules can't be changed.
    fn allow(&self, names: &[String]) -> Result<UpdatedRules, String>;
}

/// A program that the operator is offered to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedProgram {
    pub name: String,
    /// The file that would run.
    pub path: PathBuf,
}

/// The rules of a workspace after the operator has allowed a program.
#[derive(Debug, Clone)]
pub struct UpdatedRules {
    pub policy: GatePolicy,
    pub policy_hash: String,
    pub toolchain: ToolchainAccess,
}

/// The changes that the operator makes to the rules of a tool gateway while it is in use.
#[derive(Default)]
pub struct RuleUpdates {
    allower: Option<Box<dyn ProgramAllower>>,
    current: RefCell<Option<Rc<UpdatedRules>>>,
}

impl RuleUpdates {
    #[must_use]
    pub fn new(allower: Box<dyn ProgramAllower>) -> Self {
        Self { allower: Some(allower), current: RefCell::default() }
    }

    /// Returns the updated rules; `None` if the original ones are in force.
    pub(super) fn current(&self) -> Option<Rc<UpdatedRules>> {
        self.current.borrow().clone()
    }

    pub(super) fn find_programs(&self, names: &[String]) -> Option<Vec<OfferedProgram>> {
        self.allower.as_ref()?.find_programs(names)
    }

    /// Allows programs from now on.
    pub(super) fn allow(&self, names: &[String]) -> Result<(), String> {
        let Some(allower) = &self.allower else { return Err("programs can't be allowed here".to_owned()) };
        let updated = allower.allow(names)?;
        *self.current.borrow_mut() = Some(Rc::new(updated));
        Ok(())
    }
}
