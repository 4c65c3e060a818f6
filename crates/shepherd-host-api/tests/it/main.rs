//! The fake host: that it holds to what every host must, and does what its script says.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod fake;
