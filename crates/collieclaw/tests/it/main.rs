//! CollieClaw through its real parts.

#[cfg(test)]
mod memory;
#[cfg(test)]
mod mock;
