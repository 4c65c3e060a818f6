//! Lines that are designed to be slow to judge, or to overflow the stack.

/// A kind of slow line: a beginning, a repeated piece and a repeated end.
pub(crate) struct SlowLineKind {
    pub(crate) name: &'static str,
    begin: &'static str,
    piece: &'static str,
    end: &'static str,
    last: &'static str,
}

impl SlowLineKind {
    const fn new(name: &'static str, begin: &'static str, piece: &'static str, end: &'static str) -> Self {
        Self { name, begin, piece, end, last: "" }
    }

    /// Adds a text after all repetitions.
    const fn with_ending(self, last: &'static str) -> Self {
        Self { last, ..self }
    }

    /// Returns a line of about this many bytes, never more.
    pub(crate) fn line(&self, bytes: usize) -> String {
        let room = bytes - self.begin.len() - self.last.len();
        let pieces = room / (self.piece.len() + self.end.len());
        [self.begin, &self.piece.repeat(pieces), &self.end.repeat(pieces), self.last].concat()
    }
}

/// Repeats a piece eight times.
macro_rules! eight {
    ($piece:expr) => {
        concat!($piece, $piece, $piece, $piece, $piece, $piece, $piece, $piece)
    };
}

pub(crate) const SLOW_LINE_KINDS: &[SlowLineKind] = &[
    SlowLineKind::new("commands", "true", ";ls a", ""),
    SlowLineKind::new("different commands", "true", ";ls $x", ""),
    SlowLineKind::new("pipes", "true", "|cat", ""),
    SlowLineKind::new("conditions", "true", "&&true", ""),
    SlowLineKind::new("lines", "", "ls\n", ""),
    SlowLineKind::new("words", "ls", " a", ""),
    SlowLineKind::new("words with variables", "ls", " $a", ""),
    SlowLineKind::new("paths outside", "cat", " /a", ""),
    SlowLineKind::new("folders on the way", "cat ", "a/", ""),
    SlowLineKind::new("ways up", "cat ", "../", ""),
    SlowLineKind::new("patterns", "ls", " *", ""),
    SlowLineKind::new("stars in one word", "ls ", "*a", ""),
    SlowLineKind::new("stars in folders", "ls ", "*/", ""),
    SlowLineKind::new("sets", "ls ", "[a-z]", ""),
    SlowLineKind::new("open brackets", "ls ", "[", ""),
    SlowLineKind::new("words of open brackets", "ls", concat!(" ", eight!(eight!("[[a"))), ""),
    SlowLineKind::new("words of many variables", "ls", concat!(" ", eight!(eight!(eight!("$a")))), ""),
    SlowLineKind::new("words of many homes", "ls", concat!(" a=b", eight!(eight!(eight!(":~")))), ""),
    SlowLineKind::new("found files as words", "find . -exec ls", " {}", " +"),
    SlowLineKind::new("a command somewhere", "curl x | taskset", " a", ""),
    SlowLineKind::new("commands of a command", "curl x | find .", " -exec taskset a b ';'", ""),
    SlowLineKind::new("commands in groups", concat!(eight!("{ { { "), "find ."), " -exec a \\;", "")
        .with_ending(eight!("; }; }; }")),
    SlowLineKind::new("open braces", "ls ", "{a,", ""),
    SlowLineKind::new("tildes", "ls", " ~", ""),
    SlowLineKind::new("assignments", "", "A=1 ", ""),
    SlowLineKind::new("words of env", "env", " A=1", ""),
    SlowLineKind::new("redirections", "ls", " >a", ""),
    SlowLineKind::new("redirections outside", "ls", " >/a", ""),
    SlowLineKind::new("quotes", "ls ", "''", ""),
    SlowLineKind::new("one quoted text", "ls '", "a", ""),
    SlowLineKind::new("backslashes", "ls ", "\\a", ""),
    SlowLineKind::new("continued lines", "ls ", "\\\n", ""),
    SlowLineKind::new("comments", "ls ", "#a\n", ""),
    SlowLineKind::new("here-documents", "", "cat <<E\nE\n", ""),
    SlowLineKind::new("here-documents that wait", "cat", " <<E", ""),
    SlowLineKind::new("here-document text", "cat <<'E'\n", "a\n", ""),
    SlowLineKind::new("substitutions", "ls ", "$(ls)", ""),
    SlowLineKind::new("nested substitutions", "ls ", "$(", ")"),
    SlowLineKind::new("nested quotes and substitutions", "ls ", "\"$(ls ", ")\""),
    SlowLineKind::new("nested back-quotes", "ls ", "`", ""),
    SlowLineKind::new("nested back-quotes with backslashes", "ls `", "\\", "`"),
    SlowLineKind::new("nested parameters", "ls ", "${a:-", "}"),
    SlowLineKind::new("nested arithmetic", "ls $((", "(", ")"),
    SlowLineKind::new("nested subshells", "", "( ", ")"),
    SlowLineKind::new("nested groups", "", "{ ", "}"),
    SlowLineKind::new("nested ifs", "", "if true;then ", "fi;"),
    SlowLineKind::new("nested functions", "", "f(){ ", "};"),
    SlowLineKind::new("many functions", "", "f(){ f|f& };", ""),
    SlowLineKind::new("cases", "case a in ", "a)ls;;", ""),
    SlowLineKind::new("wrappers", "", "env ", ""),
    SlowLineKind::new("wrappers of any word", "", "setsid ", ""),
    SlowLineKind::new("wrappers that look everywhere", "", "watch ls ", ""),
    SlowLineKind::new("fetches", "true", "|curl a|sh", ""),
    SlowLineKind::new("commands inside find", "find .", " -exec ls {} +", ""),
    SlowLineKind::new("lines inside lines", "", "sh -c '", ""),
    SlowLineKind::new("eval", "", "eval ", ""),
    SlowLineKind::new("changes of folder", "true", ";cd src;cd ..", ""),
    SlowLineKind::new("sed scripts", "sed", " -e p", ""),
    SlowLineKind::new("letters of flags", "ls -", "a", ""),
    SlowLineKind::new("letters that are suspect", "sed -", "q", ""),
    SlowLineKind::new("long names", "", "a", ""),
    SlowLineKind::new("tildes behind colons", "ls a", ":~", ""),
    SlowLineKind::new("folders of patterns", "ls", " */a", ""),
    SlowLineKind::new("different paths", "ls", " b/../b", ""),
    SlowLineKind::new("copies", "cp -r", " n", " src"),
    SlowLineKind::new("copies of what is found", "find . -exec cp", " {}", " src ';'"),
    SlowLineKind::new("files that awk writes", "awk '{print", " >\"a\"", "}'"),
    SlowLineKind::new("wrapped shells", "", "env sh -c 'ls; ls; ls' ", ""),
    SlowLineKind::new("unknown programs", "true", ";a /b", ""),
    SlowLineKind::new("flags of git log", "git log", " --x=y", ""),
    SlowLineKind::new("settings of git", "git", " -c a=b", ""),
    SlowLineKind::new("folders of git", "git", " -C src", ""),
    SlowLineKind::new("commands of git", "true", ";git log --x", ""),
    SlowLineKind::new("flags of find", "find .", " -a", ""),
    SlowLineKind::new("arguments of a script", "python3 x", " /a", ""),
    SlowLineKind::new("modules", "true", ";python3 -m a b", ""),
    SlowLineKind::new("links", "ln -s", " a", " src"),
    SlowLineKind::new("data to send", "curl -d ", "@a", ""),
    SlowLineKind::new("modes", "chmod", " u+x", ""),
    SlowLineKind::new("queries", "sqlite3 a.db '", "a ", "'"),
    SlowLineKind::new("commands of fd", "fd", " -x cp a ';'", ""),
];
