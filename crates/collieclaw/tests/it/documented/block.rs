//! Parses the fenced blocks of a page, and the commands in its terminal blocks.

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocBlock {
    /// The line number of the fence, from 1.
    pub(crate) line: usize,
    /// The info string after the fence.
    pub(crate) info: String,
    pub(crate) text: String,
}

/// A command with its expected output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocCommand {
    pub(crate) command: String,
    /// The expected lines in order. A command without lines here is not compared.
    pub(crate) shown: Vec<String>,
}

pub(crate) fn blocks(page: &str) -> Vec<DocBlock> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        blocks.push(DocBlock { line: number + 1, info: info.to_owned(), text: text.join("\n") + "\n" });
    }
    blocks
}

/// Parses `$ command` with its output below. A backslash at the end of a line joins the next line.
pub(crate) fn parse_commands(text: &str) -> Vec<DocCommand> {
    let mut all: Vec<DocCommand> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(DocCommand { command: command.to_owned(), shown: Vec::new() }),
            (None, Some(last)) if goes_on => {
                last.command.push('\n');
                last.command.push_str(line);
            }
            (None, Some(last)) => last.shown.push(line.to_owned()),
            (None, None) => panic!("`{line}` comes of no command"),
        }
        goes_on = line.ends_with('\\');
    }
    all
}

impl DocCommand {
    /// Returns the exit code that its comment names, if any.
    pub(crate) fn exit_code(&self) -> i32 {
        let named = self.command.split_once("exit code ").map(|(_, rest)| rest);
        let digits: Option<String> =
            named.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect());
        digits.map_or(0, |digits| digits.parse().unwrap_or_else(|error| panic!("{error} in {self:?}")))
    }
}

#[test]
fn commands_are_read_with_their_expected_output() {
    let page = "text\n```console\n$ one \\\n  more   # exit code 5: no\nshown\n$ two\n```\n```toml\nx\n```\n";
    let blocks = blocks(page);
    assert_eq!(
        blocks.iter().map(|block| (block.line, block.info.as_str())).collect::<Vec<_>>(),
        [(2, "console"), (8, "toml")]
    );
    let typed = parse_commands(&blocks[0].text);
    assert_eq!(typed[0].command, "one \\\n  more   # exit code 5: no");
    assert_eq!((typed[0].shown.as_slice(), typed[0].exit_code()), (["shown".to_owned()].as_slice(), 5));
    assert_eq!((typed[1].command.as_str(), typed[1].exit_code()), ("two", 0));
}
