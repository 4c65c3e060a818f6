//! C16, C17, C19.1: a JavaScript project with npm tests is refactored.

use serde_json::json;

use super::{JobFolder, JobScript};

const PACKAGE: &str = r#"{"name": "cart", "version": "1.0.0", "private": true,
  "scripts": {"test": "node --test", "lint": "node --check src/cart.js"}}
"#;
const UTIL: &str = "exports.calcSum = (items) => items.reduce((sum, item) => sum + item.price, 0);\n";
const CART: &str =
    "const { calcSum } = require('./util');\nexports.checkout = (items) => ({ total: calcSum(items) });\n";
const TESTS: &str = "const test = require('node:test');
const assert = require('node:assert');
const { checkout } = require('../src/cart');
test('checkout adds the prices', () => assert.strictEqual(checkout([{ price: 2 }, { price: 3 }]).total, 5));
";

/// C16, C17.
#[test]
fn a_javascript_module_is_renamed_and_npm_tests_pass() {
    let job = JobFolder::create(&[
        ("package.json", PACKAGE),
        ("src/util.js", UTIL),
        ("src/cart.js", CART),
        ("test/cart.test.js", TESTS),
    ])
    .with_git();
    job.trust(&[]);
    let script = JobScript::default()
        .shell(
            "cat package.json && find . -name '*.js' -not -path './node_modules/*' | sort",
            "./test/cart.test.js",
        )
        .shell("npm test 2>&1 | tail -n 15", "# pass 1")
        .shell("grep -rn \"calcSum\" --include='*.js' . | sort", "./src/util.js:1:")
        .call("file_search", json!({ "pattern": "require\\('\\./util'\\)" }), "src/cart.js:1")
        .call("file_move", json!({ "from": "src/util.js", "to": "src/prices.js" }), "moved")
        .edit("src/cart.js", "'./util'", "'./prices'")
        .shell("sed -i 's/calcSum/sumPrices/g' src/*.js && grep -rn 'sumPrices' src | wc -l", "3\n[exit_code: 0")
        .shell(
            "for f in src/*.js; do node --check \"$f\" && echo \"ok $f\"; done",
            "ok src/cart.js\nok src/prices.js",
        )
        .shell("npm test 2>&1 | grep -E '^# (pass|fail)'", "# pass 1\n# fail 0")
        .shell("npm run lint --silent; echo \"exit $?\"", "exit 0")
        .shell(
            "NODE_ENV=test CI=1 npm test --silent > /tmp/out.txt 2>&1; grep -c '^ok' /tmp/out.txt || tail -n 5 /tmp/out.txt",
            "1\n[exit_code: 0",
        )
        .shell(
            "node -e \"const { checkout } = require('./src/cart'); console.log(checkout([{ price: 4 }]))\"",
            "{ total: 4 }",
        )
        .call("file_write", json!({ "path": "README.md", "content": "# Cart\n\nRun `npm test`.\n" }), "created")
        .shell(
            "git add -A && git commit -qm 'Rename util to prices' && git show --stat --format=%s HEAD | cat",
            "Rename util to prices",
        );
    assert_eq!(job.run(&script), 13, "the number of questions");
    assert!(job.read("src/cart.js").contains("const { sumPrices } = require('./prices');"));
    assert!(job.run_outside("npm test 2>&1").contains("# pass 1"));
    assert_eq!(job.run_outside("git status --short"), "");
}
