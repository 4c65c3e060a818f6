//! Integration tests of `shepherd-config`.

#[cfg(test)]
mod broken;
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
mod meaning;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod shown;
