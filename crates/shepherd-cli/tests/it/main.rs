//! The command line as a user or a script meets it.

#[cfg(test)]
mod commands;
