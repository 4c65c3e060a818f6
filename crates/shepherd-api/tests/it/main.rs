//! Integration tests of `shepherd-api`.

#[cfg(test)]
mod client;
#[cfg(test)]
mod compatibility;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod golden;
#[cfg(test)]
#[cfg(test)]
mod notes;
#[cfg(test)]
mod permission;
#[cfg(test)]
mod pin;
#[cfg(test)]
mod reasons;
#[cfg(test)]
mod schema;
