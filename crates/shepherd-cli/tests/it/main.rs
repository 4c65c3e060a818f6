//! The command line as a user or a script meets it.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod daemon;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod live;
#[cfg(test)]
mod support;
