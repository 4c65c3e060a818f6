//! Integration tests of `ward-sqlite`.

#[cfg(test)]
mod database_files;
