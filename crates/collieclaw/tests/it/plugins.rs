//! Plugins through the real program: honest, broken and malicious ones, in shell and in Python (C6.3).

mod hostile;
mod installing;
mod plugin_fixture;
mod running;
