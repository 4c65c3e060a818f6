//! Tests of the fake host and of the conformance suite.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_detects_flaws;
#[cfg(test)]
mod fake;
