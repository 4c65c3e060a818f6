//! Carrying out a plan: lists, pipelines and commands as a shell would, each command in its own sandbox.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use collieclaw_gate::plan::{Act, Join, Plan, PlannedCommand, PlannedList, PlannedPipeline};
use collieclaw_gate::{Facts, Risk, judge_again};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use ward_diag::Chain;
use ward_process::{Exit, Ladder, SpawnError, Tree, TreeId};

use super::super::room::{MOST_PROCESSES, Room};
use super::super::{Context, ToolResult};
use super::collect::{Collected, Taken};
use super::streams::{Stream, Streams, Unopened};
use super::told::{LineEnd, code, is_not_kept, level, told};
use crate::security::SystemFacts;

/// What a shell returns for a program that is not there, and for one that can't be run.
const NOT_FOUND: Exit = Exit::Code(127);
const NOT_RUN: Exit = Exit::Code(126);

/// A redirection that could not be carried out.
const NOT_REDIRECTED: Exit = Exit::Code(1);

/// A tree whose program has ended is given this long to end by itself, which nearly all do at once.
const LAST_MOMENT: Duration = Duration::from_millis(20);

/// Where the kernel doesn't count processes we do, this often.
const COUNT_EVERY: Duration = Duration::from_millis(50);

/// Why a line goes no further.
enum Stop {
    End(LineEnd),
    /// The machine can't run anything safely.
    Refused(String),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Refused(format!("could not watch it: {errno}"))
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(format!("could not watch it: {error}"))
    }
}

/// A command of a pipeline.
struct Member {
    /// `None` if nothing had to be started.
    tree: Option<Tree>,
    exit: Option<Exit>,
}

/// Whose news ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    OfMembers,
    OfOthers,
}

/// Carries out one line.
pub(crate) struct Carrier<'a> {
    context: &'a Context<'a>,
    room: Room,
    time: Duration,
    deadline: Instant,
    stdout: Collected,
    stderr: Collected,
    /// Trees whose program has ended: what is left of them ends with the line.
    left: Vec<Tree>,
    sandbox: Option<String>,
    /// When we count next; `None` where the kernel counts.
    counts: Option<Instant>,
    /// What the whole line was found to be, where each of its commands was judged.
    was: Option<Risk>,
}

impl<'a> Carrier<'a> {
    pub(crate) fn new(context: &'a Context<'a>, room: Room, time: Duration) -> Result<Self, String> {
        let most = context.bounds.max_response_bytes;
        let collected = || Collected::new(most).map_err(|errno| format!("no pipe for its output: {errno}"));
        Ok(Self {
            context,
            room,
            time,
            deadline: Instant::now() + time,
            stdout: collected()?,
            stderr: collected()?,
            left: Vec::new(),
            sandbox: None,
            counts: None,
            was: None,
        })
    }

    /// Carries out a plan.
    pub(super) fn carry_out(mut self, plan: &Plan, was: Risk) -> ToolResult {
        self.was = Some(was);
        let most = self.context.bounds.max_response_bytes;
        let end = self.lists(plan.lists());
        self.end(end).told(most)
    }

    /// Runs one program that is no part of a plan.
    pub(crate) fn run(mut self, command: PlannedCommand) -> Ran {
        let end = self.pipeline(&PlannedPipeline { negated: false, commands: vec![command] });
        self.end(end)
    }

    /// Hands a line to a real shell.
    pub(super) fn hand_over(self, line: &str) -> ToolResult {
        let Some(program) = SystemFacts.program("bash") else {
            return ToolResult::failed(
                "nothing was run: only bash could run this line, and it is not installed",
            );
        };
        let words = ["bash", "--noprofile", "--norc", "-c", line].map(str::to_owned).to_vec();
        let act = Act::Run { program, words, variables: Vec::new() };
        let folder = self.context.workspace.path().to_owned();
        let most = self.context.bounds.max_response_bytes;
        self.run(PlannedCommand { act, folder, redirections: Vec::new() }).told(most)
    }

    fn lists(&mut self, lists: &[PlannedList]) -> Result<Exit, Stop> {
        let mut exit = Exit::Code(0);
        for list in lists {
            exit = self.pipeline(&list.first)?;
            for (join, pipeline) in &list.rest {
                let runs = match join {
                    Join::IfSucceeded => code(exit) == 0,
                    Join::IfFailed => code(exit) != 0,
                };
                if runs {
                    exit = self.pipeline(pipeline)?;
                }
            }
        }
        Ok(exit)
    }

    fn pipeline(&mut self, pipeline: &PlannedPipeline) -> Result<Exit, Stop> {
        self.may_go_on()?;
        let mut members = Vec::new();
        let result = self.members(pipeline, &mut members).and_then(|()| self.wait(&mut members));
        let exit = members.last().and_then(|member| member.exit).unwrap_or(Exit::Unknown);
        self.left.extend(members.into_iter().filter_map(|member| member.tree));
        result?;
        self.let_go()?;
        Ok(match (pipeline.negated, code(exit)) {
            (false, _) => exit,
            (true, 0) => Exit::Code(1),
            (true, _) => Exit::Code(0),
        })
    }

    /// How much time is left, unless it is time to stop.
    fn may_go_on(&self) -> Result<Duration, Stop> {
        if self.context.cancel.why().is_some() {
            return Err(Stop::End(LineEnd::Cancelled));
        }
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Stop::End(LineEnd::TimedOut(self.time))),
            left => Ok(left),
        }
    }

    /// Lets go of trees that have ended, each of which holds descriptors: a line may have any number of commands.
    fn let_go(&mut self) -> Result<(), Stop> {
        for mut tree in std::mem::take(&mut self.left) {
            if tree.poll_ended()?.is_none() {
                self.left.push(tree);
            }
        }
        Ok(())
    }

    fn members(&mut self, pipeline: &PlannedPipeline, members: &mut Vec<Member>) -> Result<(), Stop> {
        let mut input = Stream::Nowhere;
        for (place, command) in pipeline.commands.iter().enumerate() {
            let is_last = place + 1 == pipeline.commands.len();
            let (output, next) = if is_last {
                (self.stdout.writer(), Stream::Nowhere)
            } else {
                let (reader, writer): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC)?;
                (Some(Rc::new(writer)), Stream::Open(Rc::new(reader)))
            };
            let streams =
                Streams::new(std::mem::replace(&mut input, next), output.into(), self.stderr.writer().into());
            members.push(self.command(command, streams)?);
        }
        Ok(())
    }

    fn command(&mut self, command: &PlannedCommand, mut streams: Streams) -> Result<Member, Stop> {
        // Before its files are opened, and what was in them is gone.
        self.is_still_fit(command)?;
        let ended = |exit| Ok(Member { tree: None, exit: Some(exit) });
        let access = self.context.workspace.under(self.context.policy);
        if let Err(Unopened { what, error }) =
            streams.redirect(&command.redirections, &command.folder, access)
        {
            self.stderr.say(&format!("collieclaw: `{what}` {error}\n"));
            return ended(NOT_REDIRECTED);
        }
        match &command.act {
            Act::Nothing => ended(Exit::Code(0)),
            Act::Enter(folder) => match access.folder(folder) {
                Ok(_) => ended(Exit::Code(0)),
                Err(error) => {
                    self.stderr.say(&format!("collieclaw: `{}` {error}\n", folder.display()));
                    Err(Stop::End(LineEnd::Ran(NOT_REDIRECTED)))
                }
            },
            Act::Run { program, words, variables } => {
                let order = self.room.order(program, words, variables, &command.folder);
                let order = streams.give_to(order)?;
                self.start(program, order)
            }
        }
    }

    /// What ran before may have moved or linked what a command is about: it is judged by what is there now.
    fn is_still_fit(&self, command: &PlannedCommand) -> Result<(), Stop> {
        let judged = self.was.and_then(|was| judge_again(command, was, self.context.policy, &SystemFacts));
        match judged {
            None => Ok(()),
            Some(reason) => Err(Stop::Refused(format!("by now {}", reason.detail()))),
        }
    }

    fn start(&mut self, program: &Path, order: ward_process::Order) -> Result<Member, Stop> {
        match self.room.supervisor().spawn(next_id().map_err(Stop::Refused)?, order) {
            Ok(tree) => {
                self.sandbox.get_or_insert_with(|| level(&tree));
                if tree
                    .limit_reports()
                    .iter()
                    .any(|report| report.limit == "processes" && is_not_kept(report))
                {
                    self.counts.get_or_insert_with(Instant::now);
                }
                Ok(Member { tree: Some(tree), exit: None })
            }
            Err(error) => {
                let exit = without_program(&error).ok_or_else(|| Stop::Refused(Chain(&error).to_string()))?;
                self.stderr.say(&format!("collieclaw: {}: {}\n", program.display(), Chain(&error)));
                Ok(Member { tree: None, exit: Some(exit) })
            }
        }
    }

    /// Waits until the program of each member has ended, or until it is time to stop.
    fn wait(&mut self, members: &mut [Member]) -> Result<(), Stop> {
        let mut news = News::OfMembers;
        loop {
            let (out, err) = (self.stdout.take()?, self.stderr.take()?);
            if news == News::OfMembers {
                for member in &mut *members {
                    member.look()?;
                }
                if members.iter().all(|member| member.exit.is_some()) {
                    return Ok(());
                }
            }
            let mut time = self.may_go_on()?;
            self.count(members)?;
            if let Some(next) = self.counts {
                time = time.min(next.saturating_duration_since(Instant::now()));
            }
            if [out, err].contains(&Taken::Some) {
                time = Duration::ZERO;
            }
            news = self.sleep(members, time)?;
        }
    }

    fn count(&mut self, members: &[Member]) -> Result<(), Stop> {
        let now = Instant::now();
        match &mut self.counts {
            Some(next) if *next <= now => *next = now + COUNT_EVERY,
            _ => return Ok(()),
        }
        let trees = members.iter().filter_map(|member| member.tree.as_ref()).chain(&self.left);
        let count: usize = trees.map(|tree| tree.processes().len()).sum();
        let most = usize::try_from(MOST_PROCESSES).unwrap_or(usize::MAX);
        if count > most { Err(Stop::End(LineEnd::TooMany(most))) } else { Ok(()) }
    }

    fn sleep(&self, members: &[Member], time: Duration) -> Result<News, Stop> {
        let ours = [std::os::fd::AsFd::as_fd(self.context.cancel), self.stdout.as_fd(), self.stderr.as_fd()];
        let mut fds: Vec<PollFd<'_>> = ours
            .into_iter()
            .chain(members.iter().flat_map(Member::news))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, Timespec::try_from(time).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let of_members = fds.iter().skip(ours.len()).any(|fd| !fd.revents().is_empty());
        Ok(if of_members { News::OfMembers } else { News::OfOthers })
    }

    /// Ends what is left.
    fn end(mut self, end: Result<Exit, Stop>) -> Ran {
        let in_time = end.is_ok();
        for mut tree in std::mem::take(&mut self.left) {
            let ended = in_time && matches!(tree.wait(Some(LAST_MOMENT)), Ok(Some(_)));
            if !ended && let Err(error) = self.room.supervisor().stop(&mut tree, Ladder::force()) {
                self.stderr.say(&format!("collieclaw: {}\n", Chain(&error)));
            }
        }
        self.stdout.close();
        self.stderr.close();
        let end = match end {
            Ok(exit) => Ok(LineEnd::Ran(exit)),
            Err(Stop::End(end)) => Ok(end),
            Err(Stop::Refused(why)) => Err(format!("it could not be run: {why}")),
        };
        Ran { end, stdout: self.stdout, stderr: self.stderr, sandbox: self.sandbox }
    }
}

/// What came of it.
pub(crate) struct Ran {
    /// How it ended; why it could not be run safely, if so.
    pub(crate) end: Result<LineEnd, String>,
    pub(crate) stdout: Collected,
    pub(crate) stderr: Collected,
    /// What of the sandbox was in force.
    pub(crate) sandbox: Option<String>,
}

impl Ran {
    fn told(self, most: usize) -> ToolResult {
        let result = match self.end {
            Ok(end) => told(end, &self.stdout, &self.stderr, most),
            Err(why) => ToolResult::failed(why),
        };
        ToolResult { sandbox: self.sandbox, ..result }
    }
}

impl Member {
    fn look(&mut self) -> std::io::Result<()> {
        if let (Some(tree), None) = (&mut self.tree, self.exit) {
            self.exit = match tree.program_exit()? {
                Some(exit) => Some(exit),
                None => tree.poll_ended()?.map(|ended| ended.exit),
            };
        }
        Ok(())
    }

    fn news(&self) -> impl Iterator<Item = std::os::fd::BorrowedFd<'_>> {
        let tree = self.tree.as_ref().filter(|_| self.exit.is_none());
        tree.into_iter().flat_map(|tree| [Some(tree.readiness()), tree.program_readiness()]).flatten()
    }
}

/// What a shell would return for a program that did not start; `None` if it is not the program's fault.
fn without_program(error: &SpawnError) -> Option<Exit> {
    let SpawnError::Start { source, .. } = error else { return None };
    match Errno::from_io_error(source)? {
        Errno::NOENT | Errno::NOTDIR => Some(NOT_FOUND),
        Errno::ACCESS | Errno::NOEXEC | Errno::TOOBIG => Some(NOT_RUN),
        _ => None,
    }
}

/// A name that no other tree of this machine has.
pub(crate) fn next_id() -> Result<TreeId, String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("collieclaw-{}-{number}", std::process::id());
    name.parse().map_err(|error| format!("no name for it: {error}"))
}
