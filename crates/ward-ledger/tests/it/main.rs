//! The ledger as a product uses it, and as those who tamper with it do.

#[cfg(test)]
mod adopt;
#[cfg(test)]
mod append;
#[cfg(test)]
mod canonical;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod document;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod forge;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod read;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tamper;
