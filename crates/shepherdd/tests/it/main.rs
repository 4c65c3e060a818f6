//! The real daemon, real programs, a real socket.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod smoke;
