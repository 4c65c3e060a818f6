//! Programs of `jq`: most only transform JSON, others read files.

use crate::script_effects::check;

const JQ: &str = "jq 'SCRIPT' package.json";

#[test]
fn jq_transforms_json() {
    check(
        JQ,
        None,
        &[
            ".import",
            ".a.include",
            "$import | .",
            "{import: 1}",
            "{a: .b, include}",
            "{include, a: 1}",
            "[import]",
            "(include)",
            "import | .a",
            ".a | import",
            "import_x | reimport",
            "\"import x\"",
            "\"a\\\"import x\"",
            ". # import x\n",
            "\"#\" | .import",
            ".modulemeta | $modulemeta",
            "\"modulemeta\"",
        ],
    );
}

#[test]
fn jq_can_read_other_files() {
    check(
        JQ,
        Some("possibly read another file"),
        &[
            "import \"x\" as x; .",
            "include \"x\"; .",
            "  include\t\"x\"; .",
            "\"a\" | modulemeta",
            "{modulemeta: 1}",
            "\"\\(import \"x\" as x; .)\"",
            "# \\\nimport \"x\" as x; .",
            ". # include \"x\"",
            ".a | import \"x\" as $x; .",
            "\"import x",
            "{import \"x\" as x}",
        ],
    );
}
