//! Integration tests of `shepherd-text`.

#[cfg(test)]
mod durations;
#[cfg(test)]
mod login;
#[cfg(test)]
mod reasons;
#[cfg(test)]
mod times;
#[cfg(test)]
mod warnings;
