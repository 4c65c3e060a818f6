//! Integration tests of `shepherd-config`.

#[cfg(test)]
mod bedtime;
#[cfg(test)]
mod broken;
#[cfg(test)]
mod compiled_policy;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod enforcement;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod policy_description;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod warnings;
