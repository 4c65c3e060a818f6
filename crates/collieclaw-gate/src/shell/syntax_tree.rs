//! The syntax tree of a shell line, with the position of every part.

/// A position in the line, in bytes. For text inside back-quotes or a here-document, the position of its
/// beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytePosition(pub usize);

/// A parsed shell line, which may span several lines of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellLine {
    pub script: ShellScript,
    /// The texts of the here-documents, indexed by [`HereDocumentId`]. Expansions are parsed unless the
    /// delimiter was quoted.
    pub here_documents: Vec<ShellWord>,
}

/// An index into [`ShellLine::here_documents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HereDocumentId(pub usize);

/// Command lists that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellScript {
    pub lists: Vec<CommandList>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandList {
    /// The pipeline that always runs.
    pub first: Pipeline,
    /// The pipelines that run depending on the exit status before them.
    pub rest: Vec<(ListOperator, Pipeline)>,
    /// The position of the `&` that sends the list to the background.
    pub background: Option<BytePosition>,
}

impl CommandList {
    /// Returns all pipelines in order.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, pipeline)| pipeline))
    }
}

/// The operator before a pipeline of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOperator {
    /// `&&`: run if the last pipeline succeeded.
    IfSucceeded,
    /// `||`: run if the last pipeline failed.
    IfFailed,
}

/// Commands joined by `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// True if `!` inverts the exit status.
    pub negated: bool,
    /// At least one command.
    pub commands: Vec<ShellCommand>,
}

/// A command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellCommand {
    Simple(SimpleCommand),
    Compound(CompoundCommand),
}

/// A program with its arguments, or assignments and redirections without a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    pub at: BytePosition,
    /// The assignments before the first word.
    pub assignments: Vec<VariableAssignment>,
    /// The name of the program and its arguments.
    pub words: Vec<ShellWord>,
    /// The redirections, in the order in which they apply.
    pub redirections: Vec<Redirection>,
}

/// An assignment `NAME=value` before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableAssignment {
    pub name: String,
    pub value: ShellWord,
}

/// A shell construct that contains commands, such as a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundCommand {
    pub at: BytePosition,
    pub kind: CompoundKind,
    /// The scripts of the conditions, branches and bodies, in the order of the text.
    pub scripts: Vec<ShellScript>,
    /// The values of a `for`, and the words that `case` and `[[` compare.
    pub words: Vec<ShellWord>,
    /// The redirections after the end of the construct.
    pub redirections: Vec<Redirection>,
}

/// The kind of a [`CompoundCommand`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompoundKind {
    /// Commands in parentheses: `( … )`.
    Subshell,
    /// Commands in braces: `{ …; }`.
    Group,
    If,
    /// A `while` or `until` loop.
    Loop,
    /// A `for` or `select` loop.
    For,
    Case,
    /// A condition in double brackets: `[[ … ]]`.
    Test,
    /// A calculation as a command: `((…))`.
    Arithmetic,
    /// A command that runs beside the shell: `coproc …`.
    Coprocess,
    /// The definition of a function of this name.
    Function(String),
}

/// A word before expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    pub at: BytePosition,
    /// The parts, which follow each other without a gap.
    pub parts: Vec<WordPart>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Text that is not expanded.
    Literal(String),
    /// A pattern as written: `*`, `?` or `[…]`.
    Glob(String),
    /// A `~` at the beginning of a word, alone or before a slash.
    Home,
    /// A part that is known only at run time, or that shells read differently.
    Unknown(UnknownPart),
}

/// A part of a word whose value the text doesn't show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPart {
    pub at: BytePosition,
    pub kind: UnknownPartKind,
    /// The commands inside, which run before the value of the word is known.
    pub scripts: Vec<ShellScript>,
}

/// The reason why the value of an [`UnknownPart`] isn't known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownPartKind {
    /// A parameter: `$name`, `${…}`, `$1` or `$?`.
    Variable,
    /// The output of a command: `$(…)` or back-quotes.
    CommandSubstitution,
    /// A pipe to a command, as a file: `<(…)` or `>(…)`.
    ProcessSubstitution,
    /// A calculation: `$((…))`.
    Arithmetic,
    /// Braces that some shells expand: `{a,b}` or `{1..3}`.
    Braces,
    /// Quotes that some shells decode: `$'…'` or `$"…"`.
    DollarQuote,
    /// A `~user`, a `~+`, or a `~` where only some shells expand it.
    Tilde,
    /// A pattern that shells read differently.
    Pattern,
}

impl ShellWord {
    /// Returns the text of the word; `None` if the word has patterns or expansions.
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

    /// Returns the parts whose values are unknown.
    pub fn unknowns(&self) -> impl Iterator<Item = &UnknownPart> {
        self.parts.iter().filter_map(|part| match part {
            WordPart::Unknown(unknown) => Some(unknown),
            WordPart::Literal(_) | WordPart::Glob(_) | WordPart::Home => None,
        })
    }
}

/// A redirection of a file descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub at: BytePosition,
    /// The descriptor that is redirected.
    pub descriptor: u32,
    pub target: RedirectionTarget,
}

/// The target of a [`Redirection`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectionTarget {
    /// A file after `<`.
    Read(ShellWord),
    /// A file after `>` or `>|`.
    Write(ShellWord),
    /// A file after `>>`.
    Append(ShellWord),
    /// A file after `<>`.
    ReadWrite(ShellWord),
    /// Another descriptor, as in `>&2` and `<&0`.
    Descriptor(u32),
    /// The descriptor is closed with `>&-` or `<&-`.
    Closed,
    /// A here-document after `<<`.
    HereDocument(HereDocumentId),
    /// A text after `<<<`.
    HereString(ShellWord),
    /// A redirection that only some shells know: `&> file`, `>& file`, `{name}> file`, `|&`.
    NonPortable(ShellWord),
}
