//! CollieClaw through its real parts.

#[cfg(test)]
mod memory;
