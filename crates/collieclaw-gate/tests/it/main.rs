//! Integration tests of the gate, mostly tables of hostile and harmless lines, paths and addresses with their
//! verdicts.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod agent_lines;
#[cfg(test)]
mod arguments;
#[cfg(test)]
mod blocked_cases;
#[cfg(test)]
mod command_addresses;
#[cfg(test)]
mod command_folders;
#[cfg(test)]
mod destructive_commands;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod downloaded_code;
#[cfg(test)]
mod executed_programs;
mod executed_variables;
#[cfg(test)]
mod flag_canary;
#[cfg(test)]
mod foreign_tools;
#[cfg(test)]
mod found_files;
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
mod jq_programs;
#[cfg(test)]
mod judged_lines;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod modifying_cases;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod patterns;
#[cfg(test)]
mod permits;
#[cfg(test)]
mod pinned_programs;
#[cfg(test)]
mod planned_redirections;
#[cfg(test)]
mod project_programs;
#[cfg(test)]
mod readonly_cases;
#[cfg(test)]
mod reason_details;
#[cfg(test)]
mod rechecks;
#[cfg(test)]
mod script_effects;
#[cfg(test)]
mod sed_awk_scripts;
#[cfg(test)]
mod shell_builtins;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod slow_cases;
#[cfg(test)]
mod special_words;
#[cfg(test)]
mod syntax_trees;
#[cfg(test)]
mod system_files;
#[cfg(test)]
mod test_machine;
#[cfg(test)]
mod test_random;
#[cfg(test)]
mod unreadable_lines;
#[cfg(test)]
mod variables;
