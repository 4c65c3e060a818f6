//! A test process that stores exchanges in a memory file: `fake-rememberer FILE CONVERSATION COUNT`.
//!
//! It prints how many turns it finds (`opened 7`) and a line for each stored exchange (`kept 8`). An exchange has two to
//! five turns, and each turn states the number of turns. With `hold` as the count, the process reads a conversation,
//! prints `holding`, and keeps the file open until standard input ends. Errors go to standard error.

use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use collieclaw_agent::memory::{ConversationExchange, ConversationMemory, ConversationTurn};
use collieclaw_providers::ChatRole;
use jiff::Timestamp;
use serde_json::{Map, json};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if even standard error is closed.
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, conversation, count] = arguments.as_slice() else {
        return Err("usage: fake-rememberer FILE CONVERSATION COUNT|hold".into());
    };
    let memory = ConversationMemory::open(Path::new(file))?;
    print_line(&format!("opened {}", memory.turn_count()?))?;
    if count == "hold" {
        memory.conversation(conversation)?;
        print_line("holding")?;
        io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let begun = memory.conversation(conversation)?.iter().filter(|turn| turn.role == ChatRole::User).count();
    for number in (begun..).take(count.parse()?) {
        memory.persist(&exchange(conversation, number)?)?;
        print_line(&format!("kept {number}"))?;
    }
    Ok(())
}

fn print_line(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

fn exchange(conversation: &str, number: usize) -> Result<ConversationExchange, jiff::Error> {
    let turns = 2 + number % 4;
    let timestamp = Timestamp::from_second(1_800_000_000)?;
    let turn = |place: usize| ConversationTurn {
        conversation_id: conversation.to_owned(),
        turn_id: format!("{number}-{place}"),
        timestamp,
        role: if place == 0 { ChatRole::User } else { ChatRole::Assistant },
        content: format!("exchange {number} has turn number {place}. {}", "And so on. ".repeat(number % 50)),
        tool_calls: Vec::new(),
        tool_results: Vec::new(),
        provider: "local".to_owned(),
        model: "mock".to_owned(),
        metadata: Map::from_iter([("turns".to_owned(), json!(turns))]),
    };
    Ok(ConversationExchange { turns: (0..turns).map(turn).collect() })
}
