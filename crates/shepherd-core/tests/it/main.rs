//! The judge on trial: windows, quotas, sessions, grants, clocks, crashes.

#[cfg(test)]
mod advance;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod dst;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod mended;
#[cfg(test)]
mod mended_attacks;
#[cfg(test)]
mod mended_lives;
#[cfg(test)]
mod mended_power_cuts;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod pulses;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod quotas;
#[cfg(test)]
mod random;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod references;
#[cfg(test)]
mod reviewed;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod transitions;
#[cfg(test)]
mod undo;
