//! The gate against tables: lines, paths and addresses with their verdicts, hostile and harmless.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod blocked_lines;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod changing_lines;
#[cfg(test)]
mod details;
#[cfg(test)]
mod dice;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod harmless;
#[cfg(test)]
mod harmless_lines;
#[cfg(test)]
mod high_lines;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_lines;
#[cfg(test)]
mod looking_lines;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod slow_lines;
#[cfg(test)]
mod world;
