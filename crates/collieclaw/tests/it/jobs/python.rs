//! C16, C17: a failing Python test in a git repository is found, fixed and committed.

use serde_json::json;

use super::{JobFolder, JobScript};

const MODULE: &str = "\"\"\"Prices.\"\"\"


def total(items, discount=0):
    \"\"\"Returns the sum of the items, less a discount in percent.\"\"\"
    amount = sum(price * count for price, count in items)
    return amount - amount * discount
";

const TESTS: &str = "import unittest

from prices import total


class TotalTest(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(total([(2, 3), (1, 4)]), 10)

    def test_discount(self):
        self.assertEqual(total([(100, 1)], discount=10), 90)
";

/// C16, C17.
#[test]
fn a_failing_python_test_is_fixed_and_committed() {
    let job = JobFolder::create(&[
        ("prices.py", MODULE),
        ("tests/__init__.py", ""),
        ("tests/test_prices.py", TESTS),
        (".gitignore", "__pycache__/\n"),
    ])
    .with_git();
    job.trust(&[]);
    let script = JobScript::default()
        .shell("git status --short && git log --oneline -5", "Start the project")
        .shell("ls -la && cat tests/test_prices.py", "test_discount")
        .shell("python3 --version; which python3; echo \"exit $?\"", "exit 0")
        .shell("python3 -m unittest -v 2>&1 | tail -n 20", "AssertionError: -900 != 90")
        .call("file_read", json!({ "path": "prices.py" }), "amount * discount")
        .shell("git blame -L 5,7 prices.py | cut -c1-60; grep -n 'discount' -r --include='*.py' .", "prices.py:7")
        .edit("prices.py", "amount * discount", "amount * discount / 100")
        .shell("git diff --stat && git diff", "+    return amount - amount * discount / 100")
        .shell("python3 -m unittest 2>&1 | tail -n 5; echo \"status ${PIPESTATUS[0]}\"", "OK\nstatus 0")
        .shell(
            "python3 - <<'EOF'\nfrom prices import total\nprint(total([(50, 2)], discount=25))\nEOF",
            "75.0",
        )
        .shell(
            "cat >> tests/test_prices.py <<'EOF'\n\n    def test_free(self):\n        \
             self.assertEqual(total([(5, 1)], discount=100), 0)\nEOF\n\
             PYTHONPATH=. python3 tests/test_prices.py && python3 -m unittest -q tests.test_prices 2>&1 | grep -E '^(Ran|OK)'",
            "Ran 3 tests",
        )
        .shell(
            "git add -A && git commit -q -m \"$(cat <<'EOF'\nTreat the discount as a percentage\n\n\
             It was taken for a fraction.\nEOF\n)\" && git log -1 --format=%B && git status --short",
            "It was taken for a fraction.",
        )
        .shell("n=$(git rev-list --count HEAD); echo \"$n commits\"", "2 commits");
    assert_eq!(job.run(&script), 12, "the number of questions");
    assert!(job.run_outside("python3 -m unittest 2>&1").contains("Ran 3 tests"));
    assert_eq!(job.run_outside("git status --short"), "");
    assert!(job.run_outside("git log --format=%s").starts_with("Treat the discount as a percentage\n"));
}
