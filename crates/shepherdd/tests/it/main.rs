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
mod clock_set;
#[cfg(test)]
mod comebacks;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod gifts;
// A guest for QEMU, as the tests of the host have it.
#[cfg(test)]
#[path = "../../../shepherd-host-linux/tests/it/guest.rs"]
mod guest;
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
