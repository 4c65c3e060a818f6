//! The memory on real files and in real processes (C10).

mod clearing;
mod crash;
mod damage;
mod disk;
mod hostile;
mod keeping;
mod random;
mod searching;
mod support;
