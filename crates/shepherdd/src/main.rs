//! `shepherdd`: the daemon. Everything it does is in the library, which `shepherd up` uses as well.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    shepherdd::run(&shepherdd::DaemonOptions::parse())
}
