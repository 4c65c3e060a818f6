//! Runs every page of the documentation, with the real program at a real terminal.
//!
//! | block of a page | what is done with it |
//! | --- | --- |
//! | `console` | each line after `$` is typed; what stands below it must come, and the exit code be 0 or the one that its comment names |
//! | `console running` | the same, and the last command goes on until the page ends |
//! | `toml config` | becomes the configuration, and must be valid |
//! | `LANGUAGE file=PATH` | becomes that file; one that begins with `#!` can be run |
//!
//! Other blocks have their own tests or are not tested.
//!
//! The pages show every command (C2).

mod block;
mod match_lines;
mod page;
mod pages;
