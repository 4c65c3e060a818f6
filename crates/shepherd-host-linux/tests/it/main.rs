//! The host with real programs, in every containment this machine gives.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod leavers;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod many;
#[cfg(test)]
mod media;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod recipes;
#[cfg(test)]
mod restart;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_desktop;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_guests;
#[cfg(test)]
#[cfg(feature = "sway")]
mod sway_restart;
#[cfg(test)]
mod users;
