//! The tree of a shell line: what the shell would see, with the place of every part.

/// A place in the line, in bytes. Inside back-quotes it is the place of the back-quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytePosition(pub usize);

/// A whole shell line, or several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellLine {
    /// What it runs.
    pub script: ShellScript,
    /// The texts that come with it, by [`HereDocumentId`]: expansions are parts of a text unless its mark was quoted.
    pub here_documents: Vec<ShellWord>,
}

/// Which of a line's here-documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HereDocumentId(pub usize);

/// Commands one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellScript {
    /// Each list of pipelines, in order.
    pub lists: Vec<CommandList>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandList {
    /// The first one always runs.
    pub first: Pipeline,
    /// The others, each with what it waits for.
    pub rest: Vec<(ListOperator, Pipeline)>,
    /// Where the `&` is that sends it to the background.
    pub background: Option<BytePosition>,
}

impl CommandList {
    /// All pipelines, in order.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, pipeline)| pipeline))
    }
}

/// What the next pipeline of a list waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOperator {
    /// `&&`
    IfSucceeded,
    /// `||`
    IfFailed,
}

/// Commands joined by `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Whether `!` turns its result round.
    pub negated: bool,
    /// One at least.
    pub commands: Vec<ShellCommand>,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellCommand {
    /// A program with its words.
    Simple(SimpleCommand),
    /// Commands inside a construct of the shell.
    Compound(CompoundCommand),
}

/// A program with its words, or assignments alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Where it begins.
    pub at: BytePosition,
    /// `NAME=value` before the first word.
    pub assignments: Vec<VariableAssignment>,
    /// The name of the program and its arguments.
    pub words: Vec<ShellWord>,
    /// In the order in which they are carried out.
    pub redirections: Vec<Redirection>,
}

/// `NAME=value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableAssignment {
    /// Before the `=`.
    pub name: String,
    /// After it.
    pub value: ShellWord,
}

/// Something of the shell that holds commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundCommand {
    /// Where it begins.
    pub at: BytePosition,
    /// Which construct.
    pub kind: CompoundKind,
    /// What it runs, in the order of the text.
    pub scripts: Vec<ShellScript>,
    /// The words it looks at: what `for` runs through, what `case` and `[[` compare.
    pub words: Vec<ShellWord>,
    /// After its end.
    pub redirections: Vec<Redirection>,
}

/// Which construct of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompoundKind {
    /// `( … )`
    Subshell,
    /// `{ …; }`
    Group,
    /// `if`
    If,
    /// `while` or `until`
    Loop,
    /// `for` or `select`
    For,
    /// `case`
    Case,
    /// `[[ … ]]`
    Test,
    /// `name() …`
    Function(String),
}

/// One word, before the shell has expanded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// Where it begins.
    pub at: BytePosition,
    /// Joined without anything between.
    pub parts: Vec<WordPart>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Text that stays as it is.
    Literal(String),
    /// `*`, `?` or `[…]`, as written.
    Glob(String),
    /// `~` at the beginning of a word, alone or before a slash.
    Home,
    /// What is known only when it runs, or what shells read differently.
    Unknown(UnknownPart),
}

/// A part of a word that can't be read off the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPart {
    /// Where it is.
    pub at: BytePosition,
    /// What it is.
    pub kind: UnknownPartKind,
    /// The commands inside it, which run before the word is known.
    pub scripts: Vec<ShellScript>,
}

/// Why a part of a word can't be read off the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownPartKind {
    /// `$name`, `${…}`, `$1`, `$?`
    Variable,
    /// `$(…)` or back-quotes
    CommandSubstitution,
    /// `<(…)` or `>(…)`
    ProcessSubstitution,
    /// `$((…))`
    Arithmetic,
    /// `{a,b}` or `{1..3}`, which some shells expand
    Braces,
    /// `$'…'` or `$"…"`, which some shells decode
    DollarQuote,
    /// `~user`, `~+`, or a `~` where only some shells expand it
    Tilde,
    /// A pattern that shells understand differently
    Pattern,
}

impl ShellWord {
    /// Its text, if it is known: no pattern, no expansion.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                WordPart::Literal(literal) => text.push_str(literal),
                WordPart::Glob(_) | WordPart::Home | WordPart::Unknown(_) => return None,
            }
        }
        Some(text)
    }

    /// The parts that can't be read off the text.
    pub fn unknowns(&self) -> impl Iterator<Item = &UnknownPart> {
        self.parts.iter().filter_map(|part| match part {
            WordPart::Unknown(unknown) => Some(unknown),
            WordPart::Literal(_) | WordPart::Glob(_) | WordPart::Home => None,
        })
    }
}

/// Where a file descriptor leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Where it is written.
    pub at: BytePosition,
    /// The descriptor that is led elsewhere.
    pub descriptor: u32,
    /// Where to.
    pub target: RedirectionTarget,
}

/// Where a redirection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectionTarget {
    /// `< file`
    Read(ShellWord),
    /// `> file` and `>| file`
    Write(ShellWord),
    /// `>> file`
    Append(ShellWord),
    /// `<> file`
    ReadWrite(ShellWord),
    /// `>&2`, `<&0`
    Descriptor(u32),
    /// `>&-`
    Closed,
    /// `<<END`
    HereDocument(HereDocumentId),
    /// `<<< word`, `&> file`, `>& file`, `{name}> file`, `|&`: what only some shells know.
    NonPortable(ShellWord),
}
