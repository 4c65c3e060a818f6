//! The real daemon, real programs, a real socket.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod back_to_back;
#[cfg(test)]
mod bypass;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod comebacks;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod gifts;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod smoke;
#[cfg(test)]
mod sway;
#[cfg(test)]
mod units;
#[cfg(test)]
mod unrecorded;
