//! Tests of the stores: as the daemon uses them, and with crashes, full disks and damaged files.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod audit_pages;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod heartbeat;
#[cfg(test)]
mod household_model;
#[cfg(test)]
mod process_kills;
#[cfg(test)]
mod reset;
#[cfg(test)]
mod simulated_crashes;
#[cfg(test)]
mod support;
