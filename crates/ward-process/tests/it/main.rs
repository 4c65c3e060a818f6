//! Process trees that try to get away, in every containment this host gives.

#[cfg(test)]
mod census;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod handlers;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod leavers;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod output;
#[cfg(test)]
mod reattach;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod without_allocation;
