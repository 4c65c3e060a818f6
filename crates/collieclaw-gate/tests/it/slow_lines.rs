//! Lines that were made to be slow, or to run out of stack.

/// A kind of them: a beginning, a piece over and over, and an end over and over.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    begin: &'static str,
    piece: &'static str,
    end: &'static str,
    last: &'static str,
}

impl Kind {
    const fn new(name: &'static str, begin: &'static str, piece: &'static str, end: &'static str) -> Self {
        Self { name, begin, piece, end, last: "" }
    }

    /// With something at its very end.
    const fn and(self, last: &'static str) -> Self {
        Self { last, ..self }
    }

    /// One of about so many bytes, never more.
    pub(crate) fn line(&self, bytes: usize) -> String {
        let room = bytes - self.begin.len() - self.last.len();
        let pieces = room / (self.piece.len() + self.end.len());
        [self.begin, &self.piece.repeat(pieces), &self.end.repeat(pieces), self.last].concat()
    }
}

/// A piece eight times.
macro_rules! eight {
    ($piece:expr) => {
        concat!($piece, $piece, $piece, $piece, $piece, $piece, $piece, $piece)
    };
}

pub(crate) const KINDS: &[Kind] = &[
    Kind::new("commands", "true", ";ls a", ""),
    Kind::new("different commands", "true", ";ls $x", ""),
    Kind::new("pipes", "true", "|cat", ""),
    Kind::new("conditions", "true", "&&true", ""),
    Kind::new("lines", "", "ls\n", ""),
    Kind::new("words", "ls", " a", ""),
    Kind::new("words with variables", "ls", " $a", ""),
    Kind::new("paths outside", "cat", " /a", ""),
    Kind::new("folders on the way", "cat ", "a/", ""),
    Kind::new("ways up", "cat ", "../", ""),
    Kind::new("patterns", "ls", " *", ""),
    Kind::new("stars in one word", "ls ", "*a", ""),
    Kind::new("stars in folders", "ls ", "*/", ""),
    Kind::new("sets", "ls ", "[a-z]", ""),
    Kind::new("open brackets", "ls ", "[", ""),
    Kind::new("words of open brackets", "ls", concat!(" ", eight!(eight!("[[a"))), ""),
    Kind::new("words of many variables", "ls", concat!(" ", eight!(eight!(eight!("$a")))), ""),
    Kind::new("words of many homes", "ls", concat!(" a=b", eight!(eight!(eight!(":~")))), ""),
    Kind::new("found files as words", "find . -exec ls", " {}", " +"),
    Kind::new("a command somewhere", "curl x | taskset", " a", ""),
    Kind::new("commands of a command", "curl x | find .", " -exec taskset a b ';'", ""),
    Kind::new("commands in groups", concat!(eight!("{ { { "), "find ."), " -exec a \\;", "")
        .and(eight!("; }; }; }")),
    Kind::new("open braces", "ls ", "{a,", ""),
    Kind::new("tildes", "ls", " ~", ""),
    Kind::new("assignments", "", "A=1 ", ""),
    Kind::new("words of env", "env", " A=1", ""),
    Kind::new("redirections", "ls", " >a", ""),
    Kind::new("redirections outside", "ls", " >/a", ""),
    Kind::new("quotes", "ls ", "''", ""),
    Kind::new("one quoted text", "ls '", "a", ""),
    Kind::new("backslashes", "ls ", "\\a", ""),
    Kind::new("continued lines", "ls ", "\\\n", ""),
    Kind::new("comments", "ls ", "#a\n", ""),
    Kind::new("here-documents", "", "cat <<E\nE\n", ""),
    Kind::new("here-documents that wait", "cat", " <<E", ""),
    Kind::new("here-document text", "cat <<'E'\n", "a\n", ""),
    Kind::new("substitutions", "ls ", "$(ls)", ""),
    Kind::new("nested substitutions", "ls ", "$(", ")"),
    Kind::new("nested quotes and substitutions", "ls ", "\"$(ls ", ")\""),
    Kind::new("nested back-quotes", "ls ", "`", ""),
    Kind::new("nested back-quotes with backslashes", "ls `", "\\", "`"),
    Kind::new("nested parameters", "ls ", "${a:-", "}"),
    Kind::new("nested arithmetic", "ls $((", "(", ")"),
    Kind::new("nested subshells", "", "( ", ")"),
    Kind::new("nested groups", "", "{ ", "}"),
    Kind::new("nested ifs", "", "if true;then ", "fi;"),
    Kind::new("nested functions", "", "f(){ ", "};"),
    Kind::new("many functions", "", "f(){ f|f& };", ""),
    Kind::new("cases", "case a in ", "a)ls;;", ""),
    Kind::new("wrappers", "", "env ", ""),
    Kind::new("wrappers of any word", "", "setsid ", ""),
    Kind::new("wrappers that look everywhere", "", "watch ls ", ""),
    Kind::new("fetches", "true", "|curl a|sh", ""),
    Kind::new("commands inside find", "find .", " -exec ls {} +", ""),
    Kind::new("lines inside lines", "", "sh -c '", ""),
    Kind::new("eval", "", "eval ", ""),
    Kind::new("changes of folder", "true", ";cd src;cd ..", ""),
    Kind::new("sed scripts", "sed", " -e p", ""),
    Kind::new("letters of flags", "ls -", "a", ""),
    Kind::new("letters that are suspect", "sed -", "q", ""),
    Kind::new("long names", "", "a", ""),
    Kind::new("tildes behind colons", "ls a", ":~", ""),
    Kind::new("folders of patterns", "ls", " */a", ""),
    Kind::new("different paths", "ls", " b/../b", ""),
    Kind::new("copies", "cp -r", " n", " src"),
    Kind::new("copies of what is found", "find . -exec cp", " {}", " src ';'"),
    Kind::new("files that awk writes", "awk '{print", " >\"a\"", "}'"),
    Kind::new("wrapped shells", "", "env sh -c 'ls; ls; ls' ", ""),
    Kind::new("unknown programs", "true", ";a /b", ""),
];
