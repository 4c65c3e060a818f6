//! C17, C19.1: thirty files are read, counted and summarised.

use std::fmt::Write as _;

use serde_json::json;

use super::{JobFolder, JobScript};

/// C17, C19.1.
#[test]
fn thirty_files_are_summarised() {
    let notes: Vec<(String, String)> = (1..=30)
        .map(|number| {
            let text = format!(
                "# Topic {number:02}\n\n{}about sheep {number}.\n\nTODO: item {number:02}\n",
                "much ".repeat(number)
            );
            (format!("docs/note-{number:02}.md"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = notes.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let job = JobFolder::create(&files);
    job.trust(&[]);
    let script = JobScript::default()
        .call("file_glob", json!({ "pattern": "docs/*.md" }), "docs/note-30.md")
        .call("file_search", json!({ "pattern": "^TODO", "glob": "*.md" }), "matches: 30")
        .call("file_read", json!({ "path": "docs/note-07.md" }), "# Topic 07")
        .shell("ls docs | wc -l && wc -w docs/*.md | tail -n 1", "30\n")
        .shell("for f in docs/*.md; do head -n 1 \"$f\"; done", "# Topic 01\n# Topic 02\n")
        .shell(
            "for f in docs/*.md; do printf '%s %s\\n' \"$(wc -w < \"$f\")\" \"$(basename \"$f\" .md)\"; done | sort -rn | head -n 2",
            "note-30\n",
        )
        .shell(
            "grep -h '^TODO' docs/*.md | sort -r | awk -F': ' '{ print $2 }' | head -n 2",
            "item 30\nitem 29\n",
        )
        .shell("find docs -name '*.md' -print0 | xargs -0 grep -l sheep | wc -l", "30\n")
        .shell("i=0; while [ $i -lt 3 ]; do i=$((i+1)); sed -n 1p docs/note-0$i.md; done", "# Topic 03\n")
        .shell(
            "tmp=$(mktemp) && ls docs | sort -r > \"$tmp\" && head -n 1 \"$tmp\"; diff <(ls docs) <(sort \"$tmp\") && echo same",
            "note-30.md\nsame\n",
        )
        .shell(
            "python3 - <<'EOF'\nimport collections, pathlib\nwords = collections.Counter(\n    \
             w for p in pathlib.Path('docs').glob('*.md') for w in p.read_text().split())\nprint(words['much'])\nEOF",
            "465\n",
        )
        .shell(
            "{ echo '# Summary'; echo; while read -r f; do title=$(sed -n '1s/^# //p' \"$f\"); \
             echo \"- [$title]($f)\"; done < <(find docs -name '*.md' | sort); } > SUMMARY.md; grep -c '^- ' SUMMARY.md",
            "30\n",
        );
    assert_eq!(job.run(&script), 9, "the number of questions");
    let mut summary = "# Summary\n\n".to_owned();
    for number in 1..=30 {
        writeln!(summary, "- [Topic {number:02}](docs/note-{number:02}.md)").unwrap();
    }
    assert_eq!(job.read("SUMMARY.md"), summary);
}
