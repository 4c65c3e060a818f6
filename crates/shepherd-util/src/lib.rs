//! The vocabulary of Shepherd: clocks, ids, durations, paths, rate limits
