//! CollieClaw through its real parts.

#[cfg(test)]
mod acceptance;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod ask_user;
#[cfg(test)]
mod config;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod estop;
#[cfg(test)]
mod facts;
#[cfg(test)]
mod feel;
#[cfg(test)]
mod files;
#[cfg(test)]
mod files_race;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod ground;
#[cfg(test)]
mod http;
#[cfg(test)]
mod http_server;
#[cfg(test)]
mod http_tool;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod live;
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
mod openai_hostile;
#[cfg(test)]
mod openai_peer;
#[cfg(test)]
mod openai_stream;
#[cfg(test)]
mod openai_torn;
#[cfg(test)]
mod out_of_reach;
#[cfg(test)]
mod pdf_extract;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod service;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod shell_differential;
#[cfg(test)]
mod shell_output;
#[cfg(test)]
mod signing;
#[cfg(test)]
mod slow_disk;
#[cfg(test)]
mod sop;
#[cfg(test)]
mod support;
#[cfg(test)]
mod talk;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod web_search;
#[cfg(test)]
mod workshop;
