//! What a shell line would do, in words of our own that outlive the names in the code. A change of these words is a new
//! [`VERSION`](super::VERSION).

use std::path::Path;

use collieclaw_gate::plan::{
    Act, Join, PlannedCommand, PlannedList, PlannedPipeline, PlannedRedirection, To,
};
use serde_json::{Value, json};

pub(super) fn of(lists: &[PlannedList]) -> Value {
    lists.iter().map(list).collect()
}

fn list(PlannedList { first, rest }: &PlannedList) -> Value {
    let joined = |(join, next): &(Join, PlannedPipeline)| {
        let word = match join {
            Join::IfSucceeded => "and",
            Join::IfFailed => "or",
        };
        json!([word, pipeline(next)])
    };
    json!({ "first": pipeline(first), "rest": rest.iter().map(joined).collect::<Value>() })
}

fn pipeline(PlannedPipeline { negated, commands }: &PlannedPipeline) -> Value {
    json!({ "not": negated, "commands": commands.iter().map(command).collect::<Value>() })
}

fn command(PlannedCommand { act, folder, redirections }: &PlannedCommand) -> Value {
    let act = match act {
        Act::Run { program, words, variables } => {
            json!({ "run": path(program), "words": words, "variables": variables })
        }
        Act::Enter(folder) => json!({ "enter": path(folder) }),
        Act::Nothing => json!("nothing"),
    };
    let streams: Value = redirections.iter().map(redirection).collect();
    json!({ "act": act, "in": path(folder), "streams": streams })
}

fn redirection(PlannedRedirection { descriptor, to }: &PlannedRedirection) -> Value {
    let to = match to {
        To::Read(file) => json!({ "read": file }),
        To::Write(file) => json!({ "write": file }),
        To::Append(file) => json!({ "append": file }),
        To::Copy(other) => json!({ "copy": other }),
        To::Text(text) => json!({ "text": text }),
        To::Null => json!("null"),
    };
    json!([descriptor, to])
}

/// What is no text is its bytes: two paths are never the same words.
fn path(path: &Path) -> Value {
    path.to_str().map_or_else(|| json!(path.as_os_str().as_encoded_bytes()), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipts::hash_of;
    use std::os::unix::ffi::OsStrExt;

    /// These words are in files of people: they change with the version, and with nothing else.
    #[test]
    fn the_words_for_a_line_are_these() {
        let run = |redirections| PlannedCommand {
            act: Act::Run {
                program: "/usr/bin/cat".into(),
                words: vec!["cat".into(), "a".into()],
                variables: vec![("LANG".into(), "C".into())],
            },
            folder: "/home/kid/work".into(),
            redirections,
        };
        let plain = |act| PlannedCommand { act, folder: "/".into(), redirections: Vec::new() };
        let one = |command| PlannedPipeline { negated: false, commands: vec![command] };
        let to = [
            To::Read("r".into()),
            To::Write("w".into()),
            To::Append("a".into()),
            To::Copy(1),
            To::Text("t".into()),
            To::Null,
        ];
        let streams = (0..).zip(to).map(|(descriptor, to)| PlannedRedirection { descriptor, to }).collect();
        let odd = std::ffi::OsStr::from_bytes(b"/\xff").into();
        let lists = [PlannedList {
            first: PlannedPipeline { negated: true, commands: vec![run(streams), run(Vec::new())] },
            rest: vec![
                (Join::IfSucceeded, one(plain(Act::Enter(odd)))),
                (Join::IfFailed, one(plain(Act::Nothing))),
            ],
        }];
        let cat = |streams: Value| {
            json!({ "act": { "run": "/usr/bin/cat", "words": ["cat", "a"], "variables": [["LANG", "C"]] },
                "in": "/home/kid/work", "streams": streams })
        };
        let streams = json!([[0, { "read": "r" }], [1, { "write": "w" }], [2, { "append": "a" }], [3, { "copy": 1 }],
            [4, { "text": "t" }], [5, "null"]]);
        let then =
            |act: Value| json!({ "not": false, "commands": [{ "act": act, "in": "/", "streams": [] }] });
        let expected = json!([{
            "first": { "not": true, "commands": [cat(streams), cat(json!([]))] },
            "rest": [["and", then(json!({ "enter": [47, 255] }))], ["or", then(json!("nothing"))]],
        }]);
        assert_eq!(of(&lists), expected);
        assert!(hash_of(&expected).is_ok());
    }
}
