//! Integration tests of `ward-ledger`: ordinary use, crashes and tampering.

#[cfg(test)]
mod adoption;
#[cfg(test)]
mod append;
#[cfg(test)]
mod break_details;
#[cfg(test)]
mod canonical;
#[cfg(test)]
mod completeness;
#[cfg(test)]
mod concurrent_writers;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod forgery;
#[cfg(test)]
mod format_document;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod read;
#[cfg(test)]
mod replaced_log;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tamper;
