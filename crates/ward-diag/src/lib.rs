//! TOML in; a typed value or every fault out, with place, fault and cure
