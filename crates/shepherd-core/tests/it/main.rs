//! The judge on trial: windows, quotas, sessions, grants, clocks, crashes.

#[cfg(test)]
mod harness;
#[cfg(test)]
mod random;
#[cfg(test)]
mod sessions;
