//! Integration tests of `ward-diag`.

#[cfg(test)]
mod canary;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod invisible;
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
