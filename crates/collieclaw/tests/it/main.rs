//! CollieClaw through its real parts.
