//! Integration tests of `ward-diag`.

#[cfg(test)]
mod invisible_characters;
#[cfg(test)]
mod json;
#[cfg(test)]
mod large_inputs;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod secret_leaks;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod semantic_faults;
#[cfg(test)]
mod suggestions;
#[cfg(test)]
mod syntax;
#[cfg(test)]
mod unusual_files;
#[cfg(test)]
mod value_faults;
