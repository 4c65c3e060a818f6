//! The JSON form of a shell plan, from which the hash of an approval is computed. Its words don't depend on names in the
//! code; changing one of them requires a new [`SUBJECT_VERSION`](super::SUBJECT_VERSION).

use std::path::Path;

use collieclaw_gate::plan::{
    ListOperator, PlannedAction, PlannedCommand, PlannedList, PlannedPipeline, PlannedRedirection,
    PlannedTarget,
};
use serde_json::{Value, json};

pub(super) fn plan_to_json(lists: &[PlannedList]) -> Value {
    lists.iter().map(list_to_json).collect()
}

fn list_to_json(PlannedList { first, rest }: &PlannedList) -> Value {
    let following = |(operator, pipeline): &(ListOperator, PlannedPipeline)| {
        let word = match operator {
            ListOperator::IfSucceeded => "and",
            ListOperator::IfFailed => "or",
        };
        json!([word, pipeline_to_json(pipeline)])
    };
    json!({ "first": pipeline_to_json(first), "rest": rest.iter().map(following).collect::<Value>() })
}

fn pipeline_to_json(PlannedPipeline { negated, commands }: &PlannedPipeline) -> Value {
    json!({ "not": negated, "commands": commands.iter().map(command_to_json).collect::<Value>() })
}

fn command_to_json(PlannedCommand { action, folder, redirections }: &PlannedCommand) -> Value {
    let action = match action {
        PlannedAction::Run { program, words, variables } => {
            json!({ "run": path_to_json(program), "words": words, "variables": variables })
        }
        PlannedAction::ChangeFolder(folder) => json!({ "enter": path_to_json(folder) }),
        PlannedAction::Nothing => json!("nothing"),
    };
    let streams: Value = redirections.iter().map(redirection_to_json).collect();
    json!({ "act": action, "in": path_to_json(folder), "streams": streams })
}

fn redirection_to_json(PlannedRedirection { descriptor, target }: &PlannedRedirection) -> Value {
    let target = match target {
        PlannedTarget::Read(file) => json!({ "read": file }),
        PlannedTarget::Write(file) => json!({ "write": file }),
        PlannedTarget::Append(file) => json!({ "append": file }),
        PlannedTarget::Duplicate(other) => json!({ "copy": other }),
        PlannedTarget::Text(text) => json!({ "text": text }),
        PlannedTarget::Null => json!("null"),
    };
    json!([descriptor, target])
}

/// Returns a path as text, or as a list of bytes if it is not valid UTF-8, so that different paths never look alike.
fn path_to_json(path: &Path) -> Value {
    path.to_str().map_or_else(|| json!(path.as_os_str().as_encoded_bytes()), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipts::hash_json;
    use std::os::unix::ffi::OsStrExt;

    /// These words are stored in users' files. They may change only together with the version.
    #[test]
    fn the_json_form_of_a_plan_is_stable() {
        let run = |redirections| PlannedCommand {
            action: PlannedAction::Run {
                program: "/usr/bin/cat".into(),
                words: vec!["cat".into(), "a".into()],
                variables: vec![("LANG".into(), "C".into())],
            },
            folder: "/home/kid/work".into(),
            redirections,
        };
        let plain = |act| PlannedCommand { action: act, folder: "/".into(), redirections: Vec::new() };
        let one = |command| PlannedPipeline { negated: false, commands: vec![command] };
        let to = [
            PlannedTarget::Read("r".into()),
            PlannedTarget::Write("w".into()),
            PlannedTarget::Append("a".into()),
            PlannedTarget::Duplicate(1),
            PlannedTarget::Text("t".into()),
            PlannedTarget::Null,
        ];
        let streams =
            (0..).zip(to).map(|(descriptor, to)| PlannedRedirection { descriptor, target: to }).collect();
        let odd = std::ffi::OsStr::from_bytes(b"/\xff").into();
        let lists = [PlannedList {
            first: PlannedPipeline { negated: true, commands: vec![run(streams), run(Vec::new())] },
            rest: vec![
                (ListOperator::IfSucceeded, one(plain(PlannedAction::ChangeFolder(odd)))),
                (ListOperator::IfFailed, one(plain(PlannedAction::Nothing))),
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
        assert_eq!(plan_to_json(&lists), expected);
        assert!(hash_json(&expected).is_ok());
    }
}
