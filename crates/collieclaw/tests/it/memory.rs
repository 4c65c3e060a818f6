//! The memory on real files and in real processes (C10).

mod clear;
mod crash;
mod damaged_files;
mod disk_errors;
mod hostile_queries;
mod persistence;
mod random_texts;
mod search;
mod support;
