//! The real daemon, real programs, a real socket.

#[cfg(test)]
mod harness;
#[cfg(test)]
mod smoke;
