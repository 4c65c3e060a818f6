//! Loads a policy from its text: reads, compiles and checks it.

use shepherd_core::policy::Policy;
use ward_diag::{FaultReport, SourceText, read_with_warnings};

use crate::{compile, expect, read};

/// The starter policy. Its programs exist on every machine.
pub const STARTER_POLICY: &str = include_str!("../../../policies/starter.toml");

/// A valid policy, ready for the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPolicy {
    pub policy: Policy,
    /// The number of examples in the policy, all of which passed.
    pub examples: usize,
    /// Values that are valid but probably not meant, each with its place and a cure.
    pub warnings: Vec<String>,
}

/// Loads a policy. The name appears in messages and is usually the path of the file.
///
/// # Errors
/// Returns every fault in the order of the text, each with its place, a message and help.
pub fn load(name: &str, text: &str) -> Result<LoadedPolicy, FaultReport> {
    load_source(SourceText::new(name, text))
}

/// Loads a policy from the bytes of a file. Bytes that are not UTF-8 are reported as faults.
///
/// # Errors
/// Fails like [`load`].
pub fn load_bytes(name: &str, bytes: &[u8]) -> Result<LoadedPolicy, FaultReport> {
    load_source(SourceText::from_bytes(name, bytes))
}

fn load_source(source: SourceText) -> Result<LoadedPolicy, FaultReport> {
    let read = read_with_warnings(source, |root| {
        let faults = root.faults();
        let raw = read::read_policy(root)?;
        let policy = compile::compile_policy(&raw, faults)?;
        expect::check_examples(&raw.examples, &policy, faults);
        Some(LoadedPolicy { policy, examples: raw.examples.len(), warnings: Vec::new() })
    });
    read.map(|(loaded, warnings)| LoadedPolicy { warnings: warnings.lines(), ..loaded })
}
