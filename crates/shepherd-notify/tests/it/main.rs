//! Integration tests of `shepherd-notify`.

#[cfg(test)]
mod console;
