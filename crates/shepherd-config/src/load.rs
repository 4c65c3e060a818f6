//! From a text to a policy.

use shepherd_core::policy::Policy;
use ward_diag::{FaultReport, SourceText, read as read_source};

use crate::{compile, expect, read};

/// A first policy for whoever has none: it loads, and starts nothing that a machine does not have.
pub const STARTER_POLICY: &str = include_str!("../../../policies/starter.toml");

/// A policy that was found to be right.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Policy,
    /// How many examples it carries, all of which came out as the file says.
    pub examples: usize,
}

/// Reads a policy. The name is what people know the text by, usually its path.
///
/// # Errors
/// Every fault of the text, in its order, each with its place, what is wrong and what would be right.
pub fn load(name: &str, text: &str) -> Result<LoadedPolicy, FaultReport> {
    load_source(SourceText::new(name, text))
}

/// Reads a policy from the bytes of a file. What is not UTF-8 is a fault like any other.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(name: &str, bytes: &[u8]) -> Result<LoadedPolicy, FaultReport> {
    load_source(SourceText::from_bytes(name, bytes))
}

fn load_source(source: SourceText) -> Result<LoadedPolicy, FaultReport> {
    read_source(source, |root| {
        let faults = root.faults();
        let raw = read::read_policy(root)?;
        let policy = compile::compile_policy(&raw, faults)?;
        expect::check_examples(&raw.examples, &policy, faults);
        Some(LoadedPolicy { policy, examples: raw.examples.len() })
    })
}
