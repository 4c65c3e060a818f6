//! The syntax trees of shell lines, written as text: `«…»` is a part that only a shell knows.

use collieclaw_gate::shell::{
    self, CommandList, CompoundCommand, CompoundKind, ListOperator, Pipeline, Redirection, RedirectionTarget,
    ShellCommand, ShellScript, ShellWord, UnknownPartKind, WordPart,
};

fn show_script(script: &ShellScript) -> String {
    script.lists.iter().map(show_list).collect::<Vec<_>>().join("; ")
}

fn show_list(list: &CommandList) -> String {
    let mut shown = show_pipeline(&list.first);
    for (operator, pipeline) in &list.rest {
        let sign = match operator {
            ListOperator::IfSucceeded => "&&",
            ListOperator::IfFailed => "||",
        };
        shown += &format!(" {sign} {}", show_pipeline(pipeline));
    }
    shown + list.background.map_or("", |_| " &")
}

fn show_pipeline(pipeline: &Pipeline) -> String {
    let commands: Vec<_> = pipeline.commands.iter().map(show_command).collect();
    format!("{}{}", if pipeline.negated { "! " } else { "" }, commands.join(" | "))
}

fn show_command(command: &ShellCommand) -> String {
    match command {
        ShellCommand::Simple(simple) => {
            let set = simple.assignments.iter().map(|set| format!("{}={}", set.name, show_word(&set.value)));
            let words = simple.words.iter().map(show_word);
            let redirections = simple.redirections.iter().map(show_redirection);
            set.chain(words).chain(redirections).collect::<Vec<_>>().join(" ")
        }
        ShellCommand::Compound(compound) => show_compound(compound),
    }
}

fn show_compound(compound: &CompoundCommand) -> String {
    let kind = match &compound.kind {
        CompoundKind::Function(name) => format!("function {name}"),
        kind => format!("{kind:?}").to_lowercase(),
    };
    let words = compound.words.iter().map(show_word);
    let scripts = compound.scripts.iter().map(|script| format!("({})", show_script(script)));
    let redirections = compound.redirections.iter().map(show_redirection);
    let all: Vec<_> = std::iter::once(kind).chain(words).chain(scripts).chain(redirections).collect();
    format!("[{}]", all.join(" "))
}

fn show_redirection(Redirection { descriptor, target, .. }: &Redirection) -> String {
    match target {
        RedirectionTarget::Read(word) => format!("{descriptor}<{}", show_word(word)),
        RedirectionTarget::Write(word) => format!("{descriptor}>{}", show_word(word)),
        RedirectionTarget::Append(word) => format!("{descriptor}>>{}", show_word(word)),
        RedirectionTarget::ReadWrite(word) => format!("{descriptor}<>{}", show_word(word)),
        RedirectionTarget::Descriptor(other) => format!("{descriptor}>&{other}"),
        RedirectionTarget::Closed => format!("{descriptor}>&-"),
        RedirectionTarget::HereDocument(id) => format!("{descriptor}<<#{}", id.0),
        RedirectionTarget::HereString(word) => format!("{descriptor}<<<{}", show_word(word)),
        RedirectionTarget::NonPortable(word) => format!("{descriptor}?{}", show_word(word)),
    }
}

fn show_word(word: &ShellWord) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./=:+".contains(letter);
    let shown = word.parts.iter().map(|part| match part {
        WordPart::Literal(text) if !text.is_empty() && text.chars().all(plain) => text.clone(),
        WordPart::Literal(text) => format!("{text:?}"),
        WordPart::Glob(glob) => format!("«{glob}»"),
        WordPart::Home => "«~»".to_owned(),
        WordPart::Unknown(unknown) => {
            let kind = match unknown.kind {
                UnknownPartKind::Variable => "$",
                UnknownPartKind::CommandSubstitution => "$()",
                UnknownPartKind::ProcessSubstitution => "<()",
                UnknownPartKind::Arithmetic => "$(())",
                UnknownPartKind::Braces => "braces",
                UnknownPartKind::DollarQuote => "$''",
                UnknownPartKind::Tilde => "tilde",
                UnknownPartKind::Pattern => "pattern",
            };
            let scripts = unknown.scripts.iter().map(|script| format!(" {}", show_script(script)));
            format!("«{kind}{}»", scripts.collect::<String>())
        }
    });
    shown.collect()
}

/// Asserts the tree of each line, and the texts of its here-documents after `#`.
fn check(lines: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (line, expected) in lines {
        let shown = match shell::parse(line) {
            Ok(parsed) => {
                let documents = parsed.here_documents.iter().map(|text| format!(" # {}", show_word(text)));
                show_script(&parsed.script) + &documents.collect::<String>()
            }
            Err(error) => format!("error: {}", error.what),
        };
        if shown != *expected {
            wrong.push(format!("({line:?}, {shown:?}),"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn lists_and_pipelines() {
    check(&[
        ("a b; c\nd", "a b; c; d"),
        ("a &&(b)|(c)", "a && [subshell (b)] | [subshell (c)]"),
        ("a && b || c & d", "a && b || c &; d"),
        ("! a | b |\n c", "! a | b | c"),
        ("a |& b", "a 2? | b"),
        ("{ a; } |& b", "[group (a) 2?] | b"),
        ("a;", "a"),
        ("", ""),
        (" # c\n\n a # d", "a"),
        ("a#b", "\"a#b\""),
        ("a &&\n\n b", "a && b"),
        ("! ! a", "error: a command can't start with this word"),
        ("!a", "\"!a\""),
        ("time a", "time a"),
        ("time { a; }", "[group (a)]"),
        ("time (a)", "[subshell (a)]"),
        ("time ! a", "time \"!\" a"),
        ("timer { a", "timer \"{\" a"),
    ]);
}

#[test]
fn constructs() {
    check(&[
        ("if a; then b; fi", "[if (a) (b)]"),
        ("if a; then b; elif c; then d; else e; fi", "[if (a) (b) (c) (d) (e)]"),
        ("if a\nthen b\nfi > x", "[if (a) (b) 1>x]"),
        ("if (a) then (b) fi", "[if ([subshell (a)]) ([subshell (b)])]"),
        ("{ (a) }", "[group ([subshell (a)])]"),
        ("while a; do b; done", "[loop (a) (b)]"),
        ("until a; do b; c; done < x", "[loop (a) (b; c) 0<x]"),
        ("for f in a *.b $c; do d; done", "[for a «*».b «$» (d)]"),
        ("for f; do a; done", "[for (a)]"),
        ("for f\ndo a; done", "[for (a)]"),
        ("for f in; do a; done", "[for (a)]"),
        ("for f in <(a); do b; done", "[for «<() a» (b)]"),
        ("select f in a; do b; done", "[for a (b)]"),
        ("for ((i = $(a); i < 3; i++)); do b; done", "[for «$(()) a» (b)]"),
        ("case $x in a|b) c;; (d) e ;; *) f; esac", "[case «$» a b d «*» (c) (e) (f)]"),
        ("case x in a) ;& b) c ;;& esac", "[case x a b () (c)]"),
        ("case x in\nesac", "[case x]"),
        ("[[ -f $x && $(a) < b ]]", "[test -f «$» «$() a» b]"),
        ("[[ a\n|| b ]] && c", "[test a b] && c"),
        ("[[ a < <(b) ]]", "[test a «<() b»]"),
        ("(a; b) > x", "[subshell (a; b) 1>x]"),
        ("{ a; }", "[group (a)]"),
        ("{a; }", "error: a command can't start with this word"),
        ("((x = 1 + (2)))", "[arithmetic]"),
        ("(($(a)))", "[arithmetic (a)]"),
        ("( (a))", "[subshell ([subshell (a)])]"),
        ("coproc a b", "[coprocess (a b)]"),
        ("coproc N { a; }", "[coprocess ([group (a)])]"),
        ("coproc { a; }", "[coprocess ([group (a)])]"),
        ("coproc { { a; }; }", "[coprocess ([group ([group (a)])])]"),
        ("coproc (a)", "[coprocess ([subshell (a)])]"),
        ("coproc N (a)", "[coprocess ([subshell (a)])]"),
        ("f() { a; }", "[function f ([group (a)])]"),
        ("f ( )\n{ a; }", "[function f ([group (a)])]"),
        ("f() (a)", "[function f ([subshell (a)])]"),
        ("function f { a; }", "[function f ([group (a)])]"),
        ("function f ( ) { a; } > x", "[function f ([group (a) 1>x])]"),
        ("i\\\nf a; then b; f\\\ni", "[if (a) (b)]"),
        ("'if' a", "if a"),
        ("a if", "a if"),
    ]);
}

#[test]
fn words_and_quotes() {
    check(&[
        ("a 'b c' \"d e\" f\\ g", "a \"b c\" \"d e\" \"f g\""),
        ("a'b'\"c\"d", "abcd"),
        ("'' \"\"", "\"\" \"\""),
        ("\"a\\\"b\\$c\\`d\\\\e\\f\"", "\"a\\\"b$c`d\\\\e\\\\f\""),
        ("\"a\\\nb\" c\\\nd", "ab cd"),
        ("a \\\n b", "a b"),
        ("'$x' \"$x\" $x ${x} $1 $@ $# $? $- $$ $! $*", "\"$x\" «$» «$» «$» «$» «$» «$» «$» «$» «$» «$» «$»"),
        ("$\\a ${x%'a}b'}", "\"$a\" «$»"),
        ("x]$[1]", "\"x]\"«$(())»"),
        ("$x1_y.z $ $/ \"$\"", "«$».z \"$\" \"$/\" \"$\""),
        ("${x:-$(a)} ${x:-\"$(b)\"} ${x:-`c`} ${x%'}'}", "«$ a» «$ b» «$ c» «$»"),
        ("${x:-\\}} ${x:-{a}}", "«$» «$»\"}\""),
        ("\"${x:-it's}\" b", "«$» b"),
        ("${x:-'a}", "«$»"),
        ("$(a; b) `c` \"$(d)\" \"`e`\"", "«$() a; b» «$() c» «$() d» «$() e»"),
        ("`a \\`b\\`` \"`a \\\"b\\\"`\" `a \\\"b`", "«$() a «$() b»» «$() a b» «$() a \"\\\"b\"»"),
        ("$((1 + (2) * $(a))) $((\"$(b)\")) $((`c`)) $[1 + 2]", "«$(()) a» «$(()) b» «$(()) c» «$(())»"),
        ("$'a\\'b' $\"c $(d)\"", "«$''» «$''»\"c \"«$() d»"),
        ("<(a) >(b) x<(c)", "«<() a» «<() b» x«<() c»"),
        ("a=1 b+=2 c=", "a=1 b=«$»2 c="),
        ("a[1]=2 b[$(c)]+=3 d", "a=«$»2 b=«$ c»3 d"),
        ("a[1] b", "a«[1]» b"),
        ("a[b[1]]=x a[i + 1]=y", "a=«$»x a=«$»y"),
        ("a['x]$(b)']=c a[\"]\"]=d a[\\]]=e", "a=«$ b»c a=«$»d a=«$»e"),
        ("a['\\']=b c", "a=«$»b c"),
        // An index ends at its bracket, whatever other shells would read there.
        ("a[(i+1)%n]=x b[x>>4]+=1 c", "a=«$»x b=«$»1 c"),
        ("a[(]=x b[i&7]=1 c[i|j]=2 d", "a=«$»x b=«$»1 c=«$»2 d"),
        ("a[${x%]*}]=b c[${x:-${y;}]}]=d e", "a=«$»b c=«$»d e"),
        ("a[{]=b]=c", "a=«$»\"b]=c\""),
        ("a[${x:-$(b)}]=c d", "a=«$ b»c d"),
        ("a[$( (b | c) ; d ])]=e a[$((1))]=f", "a=«$ [subshell (b | c)]; d \"]\"»e a=«$»f"),
        ("ls a[1 #b", "ls \"a[1\""),
        ("a=([0]=x [$(b) + 1]+=y [cd]*)", "a=«$ b»"),
        ("a=(x $(b) 'c d') e", "a=«$ b» e"),
        ("declare -a a=(x $(b)) c", "declare -a a=«$ b» c"),
        ("a b=1 2=c", "a b=1 2=c"),
        ("1a=b", "1a=b"),
    ]);
}

#[test]
fn patterns_braces_and_tildes() {
    check(&[
        ("* a?b *.[ch] [!a-z]", "«*» a«?»b «*».«[ch]» «[!a-z]»"),
        ("[]a] [a] [ [] [!]", "«pattern»\"]a]\" «[a]» \"[\" \"[]\" «pattern»\"!]\""),
        ("[ a ] [ ]", "\"[\" a \"]\" \"[\" \"]\""),
        ("ls [aaaaa [b]", "ls \"[aaaaa\" «[b]»"),
        ("[aaa [b]", "\"[aaa\" «[b]»"),
        ("[[a] x", "«pattern»«[a]» x"),
        ("[a[b x[[y", "\"[a[b\" \"x[[y\""),
        ("[a'b'c", "«pattern»abc"),
        ("[a'b'] [a\\b] [$x] [a", "«pattern»\"ab]\" «pattern»\"ab]\" «pattern»«$»\"]\" \"[a\""),
        ("{a,b} {1..3} {a} {} {a", "\"{a,b\"«braces»\"}\" \"{1..3\"«braces»\"}\" \"{a}\" \"{}\" \"{a\""),
        ("{a,b,c} a,{b}", "\"{a,b,c\"«braces»\"}\" \"a,{b}\""),
        ("a,b} {a.b} x{}y", "\"a,b}\" \"{a.b}\" \"x{}y\""),
        ("'{a,b}' {a\\,b}", "\"{a,b}\" \"{a,b}\""),
        ("~ ~/x ~kim x~ ~:y '~'", "«~» «~»/x «tilde»kim \"x~\" «tilde»:y \"~\""),
        ("a=~:b c=~d", "a=«~»:b c=«tilde»d"),
        ("a=~ b=~/x:~ c=x:~/y ls", "a=«~» b=«~»/x:«~» c=x:«~»/y ls"),
        ("ls a=~ a=b:~ a:~ 1=~", "ls a=«tilde» a=b:«tilde» \"a:~\" \"1=~\""),
        ("ls \\\n~ a\\\n~", "ls «~» a«tilde»"),
    ]);
}

#[test]
fn redirections_and_here_documents() {
    check(&[
        ("a < b > c >> d 2> e <> f", "a 0<b 1>c 1>>d 2>e 0<>f"),
        ("a >| b &> c &>> d <<< e", "a 1>b 1?c 1?d 0<<<e"),
        ("a >&2 2>&1 <&0 >&- 3<&4 >& b", "a 1>&2 2>&1 0>&0 1>&- 3>&4 1?b"),
        ("a 10> b 2 > c a2> d", "a 2 a2 10>b 1>c 1>d"),
        ("> a b", "b 1>a"),
        ("a 0> b 0< c", "a 0>b 0<c"),
        ("exec {fd}> a {fd} \"{fd}\"> b", "exec \"{fd}\" \"{fd}\" 10>a 1>b"),
        ("a >&99999999999", "a 1?99999999999"),
        ("a <<E\nx $y\nE", "a 0<<#0 # \"x \"«$»\"\\n\""),
        ("a <<'E'\nx $y\\\nE\nb", "a 0<<#0; b # \"x $y\\\\\\n\""),
        ("a <<\\E\n$y\nE", "a 0<<#0 # \"$y\\n\""),
        ("a <<-E\n\t\tx\n\tE\nb", "a 0<<#0; b # \"x\\n\""),
        ("a <<E; b\nx\nE\nc", "a 0<<#0; b; c # \"x\\n\""),
        ("a <<E <<F\n1\nE\n2\nF", "a 0<<#0 0<<#1 # \"1\\n\" # \"2\\n\""),
        ("a <<E\nx\\\nE\nE", "a 0<<#0 # \"xE\\n\""),
        ("a <<E\nx\\\\\nE", "a 0<<#0 # \"x\\\\\\n\""),
        ("a <<E\n\\$x \\\"y \\`z `b` $(c)\nE", "a 0<<#0 # \"$x \\\\\\\"y `z \"«$() b»\" \"«$() c»\"\\n\""),
        ("a <<*\nx\n*", "a 0<<#0 # \"x\\n\""),
        ("a <<~\nx\n~", "a 0<<#0 # \"x\\n\""),
        ("a <<E | b\nE", "a 0<<#0 | b # "),
        ("(a <<E\nx\nE\n)", "[subshell (a 0<<#0)] # \"x\\n\""),
    ]);
}
