//! Integration tests of `ward-process`, run in every containment that this host offers.

#[cfg(test)]
mod containments;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod escapees;
#[cfg(test)]
mod exec_judge;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod member_snapshot;
#[cfg(test)]
mod membership;
#[cfg(test)]
mod output;
#[cfg(test)]
mod process_spec;
#[cfg(test)]
mod reattach;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod signal_handlers;
#[cfg(test)]
mod user_processes;
#[cfg(test)]
mod without_allocation;
