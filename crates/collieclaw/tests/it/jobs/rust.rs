//! C16, C17, C19.5: a Rust project is built, fixed and tested offline with the user's toolchain.

use serde_json::json;

use super::{JobFolder, JobScript};
use crate::toolchains::rust_toolchain;

const MANIFEST: &str = "[package]\nname = \"flock\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LIBRARY: &str = "/// Counts the sheep.
pub fn count(sheep: &[&str]) -> usize {
    sheep.len() - 1
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_all() {
        assert_eq!(super::count(&[\"a\", \"b\"]), 2);
    }
}
";
const PROGRAM: &str = "fn main() {\n    println!(\"{} sheep\", flock::count(&[\"a\", \"b\", \"c\"]));\n}\n";
const BUILD_SCRIPT: &str = "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n";

/// C17, C19.5.
#[test]
fn a_failing_rust_test_is_fixed_offline() {
    let toolchain = rust_toolchain();
    let mut job = JobFolder::create(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", LIBRARY),
        ("src/main.rs", PROGRAM),
        ("build.rs", BUILD_SCRIPT),
    ]);
    job.search_path = format!("{}:/usr/bin:/bin", toolchain.join("bin").display());
    // Without the shims of rustup, the toolchain is all that the user has of it.
    job.variables.push(("RUSTUP_HOME", toolchain));
    job.trust(&[]);
    let script = JobScript::default()
        .shell("ls && cat Cargo.toml && rustc --version && cargo --version", "cargo 1.")
        .shell("cargo build --offline 2>&1 | tail -n 5", "Finished")
        .shell("cargo test --offline 2>&1 | grep -E '^test |panicked' | head -n 20", "counts_all ... FAILED")
        .call("file_search", json!({ "pattern": "fn count", "glob": "*.rs" }), "src/lib.rs:2")
        .edit("src/lib.rs", "sheep.len() - 1", "sheep.len()")
        .shell("RUST_BACKTRACE=1 cargo test --offline 2>&1 | tail -n 30", "test tests::counts_all ... ok")
        .shell("cargo test --offline -q 2>&1 | tail -n 20; echo \"exit ${PIPESTATUS[0]}\"", "exit 0")
        .shell("cargo run --offline -q", "3 sheep")
        .shell("cargo build --offline -q && ./target/debug/flock | head -n 1", "3 sheep")
        .shell(
            "out=$(cargo run -q --offline) && [[ $out == \"3 sheep\" ]] && echo \"as expected\"",
            "as expected",
        )
        .shell(
            "cargo check --offline --message-format=short 2>&1 | grep -c warning || true",
            "0\n[exit_code: 0",
        )
        .shell("cat src/*.rs | wc -l; du -sh target | cut -f1", "15\n");
    assert_eq!(job.run(&script), 11, "the number of questions");
    assert!(job.path.join("target/debug/flock").exists());
    assert!(job.read("src/lib.rs").contains("    sheep.len()\n"));
}
