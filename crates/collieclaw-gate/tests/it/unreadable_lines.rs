//! Lines that the parser refuses, each with the position in bytes and the sentence that names the fault.

use collieclaw_gate::shell;

const AMBIGUOUS_INDEX: &str =
    "shells read this index of an array differently; calculate it in a variable first";

const UNREADABLE_LINES: &[(&str, usize, &str)] = &[
    // Commands and lists.
    ("ls )", 3, "this `)` closes nothing"),
    ("(ls) pwd", 5, "`;` or a new line is missing before this"),
    ("{ (ls) pwd; }", 7, "`;` or a new line is missing before this"),
    ("ls;; pwd", 2, "`;;` and `;&` are allowed only in a `case`"),
    ("ls;& pwd", 2, "`;;` and `;&` are allowed only in a `case`"),
    ("ls |", 4, "a command is missing"),
    ("ls &&", 5, "a command is missing"),
    ("ls ||", 5, "a command is missing"),
    ("ls & && pwd", 5, "a command is missing"),
    ("; ls", 0, "a command is missing"),
    ("!", 1, "a command is missing"),
    ("a b\u{1b}", 3, "the line contains a control character"),
    ("ls\r\npwd", 2, "the line contains a control character"),
    ("ls &\\\n& pwd", 6, "an operator can't continue on the next line"),
    ("ls |\\\n| pwd", 6, "an operator can't continue on the next line"),
    ("ls >\\\n> x", 6, "an operator can't continue on the next line"),
    ("ls <\\\n(pwd)", 6, "an operator can't continue on the next line"),
    ("ls;\\\n; pwd", 5, "an operator can't continue on the next line"),
    // Constructs.
    ("done", 4, "a command can't start with this word"),
    ("ls; fi", 6, "a command can't start with this word"),
    ("then ls", 4, "a command can't start with this word"),
    ("{ ls; )", 6, "a construct such as `if` or `{` is not closed"),
    ("{ ls", 4, "a construct such as `if` or `{` is not closed"),
    ("{ }", 2, "a command is missing"),
    ("( )", 3, "a command is missing"),
    ("(ls", 3, "a parenthesis is not closed"),
    ("if ls; then", 11, "a command is missing"),
    ("if ls; then pwd; else fi", 22, "a command is missing"),
    ("while ls; do pwd; fi", 20, "a command can't start with this word"),
    ("((ls); pwd)", 0, "`((` means different things to different shells; write `( (`"),
    ("for 1 in a; do ls; done", 5, "`for` needs the name of a variable"),
    ("for $x in a; do ls; done", 6, "`for` needs the name of a variable"),
    ("for f in a b; ls; done", 14, "`do` is missing"),
    ("for ((i = 0)); ls; done", 15, "`do` is missing"),
    ("case x y) ls;; esac", 7, "`in` is missing"),
    ("case ; in a) ls;; esac", 5, "a word is missing"),
    ("case x in a b) ls;; esac", 12, "a pattern of this `case` is not closed"),
    ("case x in a) ls", 15, "a branch of this `case` is not closed"),
    ("case x in a) ls;;", 17, "a word is missing"),
    ("[[ a; ls ]]", 4, "a `[[` is not closed"),
    ("[[ a", 4, "a `[[` is not closed"),
    ("function f(x) { ls; }", 11, "the parentheses of a function must be empty"),
    ("f() ls", 6, "a function needs braces"),
    ("function f ls", 13, "a function needs braces"),
    ("ls a (b)", 6, "a parenthesis is not allowed here"),
    ("A=1 f() { ls; }", 6, "a parenthesis is not allowed here"),
    (">x f() { ls; }", 5, "a parenthesis is not allowed here"),
    ("f(x) { ls; }", 2, "a parenthesis is not allowed here"),
    ("declare a (b)", 11, "a parenthesis is not allowed here"),
    ("echo a=(b)", 8, "a parenthesis is not allowed here"),
    ("a=(x", 4, "the elements of an array are not closed"),
    ("a=(x;)", 4, "the elements of an array are not closed"),
    ("declare >x=(b)", 12, "a parenthesis is not allowed here"),
    // An index of an array: `bash` reads up to its bracket, and other shells read words and comments there.
    ("a[1 #$(ls)\n]=b", 0, AMBIGUOUS_INDEX),
    ("a[1 #$(ls)]", 0, AMBIGUOUS_INDEX),
    ("a[1; ls; ]=b", 0, AMBIGUOUS_INDEX),
    ("a[x<(y)]=b", 0, AMBIGUOUS_INDEX),
    ("a[x>(y)]=b", 0, AMBIGUOUS_INDEX),
    ("a[(1)]", 0, AMBIGUOUS_INDEX),
    ("a[x&y] b", 0, AMBIGUOUS_INDEX),
    ("a[${x;}", 0, AMBIGUOUS_INDEX),
    ("a[${x\n}]=b", 0, AMBIGUOUS_INDEX),
    ("a['x] #$(ls)", 0, AMBIGUOUS_INDEX),
    ("a[\\] #$(ls)", 0, AMBIGUOUS_INDEX),
    ("a[$(ls ]", 0, AMBIGUOUS_INDEX),
    ("a[", 0, AMBIGUOUS_INDEX),
    ("a=([1 #$(ls)\n]=b)", 3, AMBIGUOUS_INDEX),
    ("a=([1; ls]=b)", 3, AMBIGUOUS_INDEX),
    ("time a[1 #$(ls)]", 5, AMBIGUOUS_INDEX),
    ("time -p a[1 #$(ls)]", 8, AMBIGUOUS_INDEX),
    ("coproc a b[1 #$(ls)]", 9, AMBIGUOUS_INDEX),
    ("a[1]\\\n=b", 0, "the first word of a command can't continue on the next line"),
    // Words and expansions.
    ("ls \\", 4, "the line ends with a backslash"),
    ("echo a 'b", 7, "this quote is not closed"),
    ("echo a \"b", 7, "this quote is not closed"),
    ("echo \"a'", 5, "this quote is not closed"),
    ("echo $'a", 8, "a quote is not closed"),
    ("echo $'a\\'", 10, "a quote is not closed"),
    ("echo $[1", 8, "a `$[` is not closed"),
    ("echo $[1\n]", 8, "a `$[` is not closed"),
    ("echo $\\\nx", 5, "a `$` can't stand before a line continuation"),
    ("echo $(ls", 9, "a parenthesis is not closed"),
    ("echo ${ ls; }", 7, "`${` with a command means different things to different shells"),
    ("echo ${\tls; }", 7, "`${` with a command means different things to different shells"),
    ("echo ${|x}", 7, "`${` with a command means different things to different shells"),
    ("echo ${x", 8, "a `${` is not closed"),
    ("echo $((1) )", 9, "`$((` is not closed by `))`"),
    ("echo $((1", 9, "a `$((` is not closed"),
    ("echo $(((1))", 11, "`$((` is not closed by `))`"),
    ("echo `ls", 5, "this back-quote is not closed"),
    ("echo `ls\\`", 5, "this back-quote is not closed"),
    // The position of a text inside of back-quotes is that of the back-quotes.
    ("echo `ls )`", 5, "this `)` closes nothing"),
    ("A\\\n=1 ls", 0, "the first word of a command can't continue on the next line"),
    // Redirections and here-documents.
    ("ls >", 4, "the file of a redirection is missing"),
    ("ls > ; pwd", 5, "the file of a redirection is missing"),
    ("echo 2\\\n>x", 5, "a number can't continue on the next line"),
    ("echo 02>x", 5, "shells read a descriptor of several digits differently"),
    ("echo 99999999999>x", 5, "this number is too large for a descriptor"),
    ("cat <<", 6, "the delimiter of a here-document must be a plain word"),
    ("cat <<$x\nx\n$x", 8, "the delimiter of a here-document must be a plain word"),
    ("cat <<`x`\nx\n`x`", 9, "the delimiter of a here-document must be a plain word"),
    ("cat <<'a\nb'\nx\na\nb", 11, "the delimiter of a here-document must be a plain word"),
    ("cat <<{a,b}\nx\n{a,b}", 11, "the delimiter of a here-document must be a plain word"),
    ("cat <<E", 6, "the text of this here-document is missing"),
    ("cat <<E\nx", 6, "the closing delimiter of this here-document is missing"),
    ("cat <<E\nx\n E", 6, "the closing delimiter of this here-document is missing"),
    ("cat <<-E\nx\n E", 7, "the closing delimiter of this here-document is missing"),
    // A line that ends with a backslash continues, so the next one isn't the delimiter.
    ("cat <<E\nx\\\nE", 6, "the closing delimiter of this here-document is missing"),
    ("cat <<E $(ls\n)\nx\nE", 6, "the text of this here-document must come before the end of its construct"),
];

#[test]
fn an_unreadable_line_is_refused_with_its_fault() {
    let mut wrong = Vec::new();
    for (line, position, sentence) in UNREADABLE_LINES {
        let found = shell::parse(line).map_err(|error| (error.at.0, error.what));
        if found.as_ref().err() != Some(&(*position, *sentence)) {
            wrong.push(format!("{line:?}: {:?}", found.map(|_| "parsed")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
