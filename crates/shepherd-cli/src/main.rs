//! `shepherd`: the command line.
fn main() {}
