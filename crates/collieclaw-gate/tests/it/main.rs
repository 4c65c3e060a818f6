//! Integration tests of the gate, mostly tables of hostile and harmless lines, paths and addresses with their
//! verdicts.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod agent_lines;
#[cfg(test)]
mod blocked_cases;
#[cfg(test)]
mod command_addresses;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod executed_programs;
#[cfg(test)]
mod flag_canary;
#[cfg(test)]
mod foreign_tools;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod git_canary;
#[cfg(test)]
mod harmless;
#[cfg(test)]
mod harmless_cases;
#[cfg(test)]
mod high_risk_cases;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_cases;
#[cfg(test)]
mod judged_lines;
#[cfg(test)]
mod modifying_cases;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod planned_redirections;
#[cfg(test)]
mod project_programs;
#[cfg(test)]
mod readonly_cases;
#[cfg(test)]
mod reason_details;
#[cfg(test)]
mod sed_awk_scripts;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod slow_cases;
#[cfg(test)]
mod system_files;
#[cfg(test)]
mod test_machine;
#[cfg(test)]
mod test_random;
