//! Integration tests of `shepherd-util`.

#[cfg(test)]
mod clock;
#[cfg(test)]
mod duration;
#[cfg(test)]
mod id;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod rate;
