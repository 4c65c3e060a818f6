//! Integration tests of `shepherd-ipc`.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod authority;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod crowds;
#[cfg(test)]
mod events;
#[cfg(test)]
mod frame;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod pin;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod support;
