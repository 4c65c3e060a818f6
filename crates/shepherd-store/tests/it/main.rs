//! The stores as the daemon uses them, and as crashes, full disks and flipped bits do.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod begin;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod household;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod lives;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod pulse;
#[cfg(test)]
mod support;
