//! The gate against tables: lines, paths and addresses with their verdicts, hostile and harmless.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod harmless;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod world;
