//! Integration tests of CollieClaw with its real parts.

#[cfg(test)]
mod acceptance;
#[cfg(test)]
mod allow;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod ask_user;
#[cfg(test)]
mod command_feedback;
#[cfg(test)]
mod command_network;
#[cfg(test)]
mod config;
#[cfg(test)]
mod crash_recovery;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod estop;
#[cfg(test)]
mod file_tools;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod http_fetch;
#[cfg(test)]
mod http_server;
#[cfg(test)]
mod http_tool;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod judged_programs;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod onboard;
#[cfg(test)]
mod openai;
#[cfg(test)]
mod openai_broken_streams;
#[cfg(test)]
mod openai_hostile;
#[cfg(test)]
mod openai_independent_server;
#[cfg(test)]
mod openai_stream;
#[cfg(test)]
mod pdf_extract;
#[cfg(test)]
mod pinned_programs;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod process_escape;
#[cfg(test)]
mod project_instructions;
#[cfg(test)]
mod project_programs;
#[cfg(test)]
mod prompt;
#[cfg(test)]
mod protected_files;
#[cfg(test)]
mod receipt_signing;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod secret_leaks;
#[cfg(test)]
mod service;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod shell_differential;
#[cfg(test)]
mod shell_output;
#[cfg(test)]
mod sop;
#[cfg(test)]
mod streaming_answers;
#[cfg(test)]
mod support;
#[cfg(test)]
mod system_facts;
#[cfg(test)]
mod test_workspace;
#[cfg(test)]
mod tool_timeouts;
#[cfg(test)]
mod toolchains;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod web_search;
#[cfg(test)]
mod workspace_files;
#[cfg(test)]
mod workspace_limits;
#[cfg(test)]
mod workspace_races;
#[cfg(test)]
mod workspaces;
