//! `collieclaw-mcp`: the adapter for the Model Context Protocol. `collieclaw` starts it in a sandbox.
//!
//! It belongs to this package so that one build produces both programs in the same folder.

fn main() -> std::process::ExitCode {
    collieclaw_mcp_adapter::main()
}
