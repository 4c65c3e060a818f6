//! Supervised process trees that cannot escape, and a sandbox for them
