//! Integration tests of `shepherd-ipc`.

#[cfg(test)]
mod access_rules;
#[cfg(test)]
mod accounts;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod connection_limits;
#[cfg(test)]
mod events;
#[cfg(test)]
mod frame;
#[cfg(test)]
mod hostile_input;
#[cfg(test)]
mod pin;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod support;
