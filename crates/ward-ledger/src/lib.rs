//! One tamper-evident, hash-chained log for every product
