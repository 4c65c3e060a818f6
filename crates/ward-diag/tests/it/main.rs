//! Integration tests of `ward-diag`.

#[cfg(test)]
mod json;
#[cfg(test)]
mod meaning;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod strange;
#[cfg(test)]
mod suggestions;
#[cfg(test)]
mod syntax;
