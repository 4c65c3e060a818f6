//! Tests of the policy engine: windows, quotas, sessions, grants, clocks, crashes.

#[cfg(test)]
mod advance_grants;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod bedtime;
#[cfg(test)]
mod calendar;
#[cfg(test)]
mod client_display;
#[cfg(test)]
mod clock_changes;
#[cfg(test)]
mod clock_corrections;
#[cfg(test)]
mod clock_recovery;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod dst;
#[cfg(test)]
mod effects;
#[cfg(test)]
mod engine_driver;
#[cfg(test)]
mod engine_invariants;
#[cfg(test)]
mod extra_runs;
#[cfg(test)]
mod grant_and_clock_abuse;
#[cfg(test)]
mod grant_ceilings;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod heartbeats;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod missed_warnings;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod policy_references;
#[cfg(test)]
mod power_cut_charging;
#[cfg(test)]
mod queries;
#[cfg(test)]
mod quotas;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod reload_and_requests;
#[cfg(test)]
mod repeated_warnings;
#[cfg(test)]
mod replanning_and_charging;
#[cfg(test)]
mod reported_state;
#[cfg(test)]
mod request_limits;
#[cfg(test)]
mod revoked_grants;
#[cfg(test)]
mod rule_details;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod slots;
#[cfg(test)]
mod transitions;
#[cfg(test)]
mod unrecorded_grants;
#[cfg(test)]
mod usage_reports;
#[cfg(test)]
mod views;
