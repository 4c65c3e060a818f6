//! Integration tests of `ward-fuzz`.

#[cfg(test)]
mod runs;
