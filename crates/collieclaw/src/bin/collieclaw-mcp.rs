//! `collieclaw-mcp`: speaks the Model Context Protocol for `collieclaw`, which starts it in a sandbox.
//!
//! A program of this package, so that one build makes both programs and they lie in one folder.

fn main() -> std::process::ExitCode {
    collieclaw_mcp_adapter::main()
}
