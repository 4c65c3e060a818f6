//! The tree of a shell line: what the shell would see, with the place of every part.

/// A place in the line, in bytes. Inside back-quotes it is the place of the back-quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(pub usize);

/// A whole shell line, or several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// What it runs.
    pub script: Script,
    /// The texts that come with it, by [`HereId`]: expansions are parts of a text unless its mark was quoted.
    pub here_documents: Vec<Word>,
}

/// Which of a line's here-documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HereId(pub usize);

/// Commands one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// Each list of pipelines, in order.
    pub lists: Vec<List>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The first one always runs.
    pub first: Pipeline,
    /// The others, each with what it waits for.
    pub rest: Vec<(Join, Pipeline)>,
    /// Where the `&` is that sends it to the background.
    pub background: Option<At>,
}

impl List {
    /// All pipelines, in order.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, pipeline)| pipeline))
    }
}

/// What the next pipeline of a list waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
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
    pub commands: Vec<Command>,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A program with its words.
    Simple(Simple),
    /// Commands inside a construct of the shell.
    Compound(Compound),
}

/// A program with its words, or assignments alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// Where it begins.
    pub at: At,
    /// `NAME=value` before the first word.
    pub assignments: Vec<Assignment>,
    /// The name of the program and its arguments.
    pub words: Vec<Word>,
    /// In the order in which they are carried out.
    pub redirections: Vec<Redirection>,
}

/// `NAME=value`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Before the `=`.
    pub name: String,
    /// After it.
    pub value: Word,
}

/// Something of the shell that holds commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    /// Where it begins.
    pub at: At,
    /// Which construct.
    pub kind: CompoundKind,
    /// What it runs, in the order of the text.
    pub scripts: Vec<Script>,
    /// The words it looks at: what `for` runs through, what `case` and `[[` compare.
    pub words: Vec<Word>,
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
pub struct Word {
    /// Where it begins.
    pub at: At,
    /// Joined without anything between.
    pub parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text that stays as it is.
    Literal(String),
    /// `*`, `?` or `[…]`, as written.
    Glob(String),
    /// `~` at the beginning of a word, alone or before a slash.
    Home,
    /// What is known only when it runs, or what shells read differently.
    Unknown(Unknown),
}

/// A part of a word that can't be read off the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Where it is.
    pub at: At,
    /// What it is.
    pub kind: UnknownKind,
    /// The commands inside it, which run before the word is known.
    pub scripts: Vec<Script>,
}

/// Why a part of a word can't be read off the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownKind {
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

impl Word {
    /// Its text, if it is known: no pattern, no expansion.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Glob(_) | Part::Home | Part::Unknown(_) => return None,
            }
        }
        Some(text)
    }

    /// The parts that can't be read off the text.
    pub fn unknowns(&self) -> impl Iterator<Item = &Unknown> {
        self.parts.iter().filter_map(|part| match part {
            Part::Unknown(unknown) => Some(unknown),
            Part::Literal(_) | Part::Glob(_) | Part::Home => None,
        })
    }
}

/// Where a file descriptor leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Where it is written.
    pub at: At,
    /// The descriptor that is led elsewhere.
    pub descriptor: u32,
    /// Where to.
    pub target: Target,
}

/// Where a redirection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `< file`
    Read(Word),
    /// `> file` and `>| file`
    Write(Word),
    /// `>> file`
    Append(Word),
    /// `<> file`
    ReadWrite(Word),
    /// `>&2`, `<&0`
    Descriptor(u32),
    /// `>&-`
    Closed,
    /// `<<END`
    HereDocument(HereId),
    /// `<<< word`, `&> file`, `>& file`, `{name}> file`, `|&`: what only some shells know.
    Dialect(Word),
}
