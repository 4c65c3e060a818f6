//! Runs a plan: lists, pipelines and commands as in a shell, each command in its own sandbox.

use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use collieclaw_gate::plan::{
    ListOperator, PlannedAction, PlannedCommand, PlannedList, PlannedPipeline, ShellPlan,
};
use collieclaw_gate::{
    GatePolicy, MachineFacts, OtherProcesses, RiskLevel, can_start_programs, may_change_script,
    rejudge_command,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use ward_diag::ErrorChain;
use ward_process::{ExecJudge, ProcessExit, ProcessTree, StopLadder, TreeId};

use super::super::line_proxy::LineProxy;
use super::super::memory_watch::{exceeds_memory, needs_memory_watch};
use super::super::tool_sandbox::{MAX_MEMORY, MAX_PROCESSES, ToolSandbox};
use super::super::{ToolContext, ToolResult};
use super::exec_judge::{FirstProgram, JudgingRules, LineJudge, SharedCommandLog, shorten_command};
use super::execution_output::ExecutionOutput;
use super::output_capture::{CapturedStream, ReadProgress};
use super::pipeline_member::{PipelineMember, spawn_failure_exit};
use super::report::{LineEnd, exit_code, is_unenforced, sandbox_level};
use super::streams::{CommandStreams, RedirectionError, StreamTarget};
use crate::security::SystemFacts;

const EXIT_REDIRECTION_FAILED: ProcessExit = ProcessExit::Code(1);

/// The time that a tree may take to end after its program has ended. Most trees end at once.
const EXIT_GRACE: Duration = Duration::from_millis(20);

/// The interval at which processes are counted and their memory is measured if the kernel doesn't limit them.
const PROCESS_COUNT_INTERVAL: Duration = Duration::from_millis(50);

/// The reason why a line ends early.
enum LineStop {
    End(LineEnd),
    /// The rest of the line can't run safely. The text says what could not be done, and why.
    Refused(String),
}

impl LineStop {
    /// Returns the reason that a program could not be started.
    fn not_started(program: &Path, error: impl Display) -> Self {
        Self::Refused(format!("could not run `{}`: {error}", program.display()))
    }
}

/// An error while a program runs.
impl From<Errno> for LineStop {
    fn from(errno: Errno) -> Self {
        Self::from(std::io::Error::from(errno))
    }
}

impl From<std::io::Error> for LineStop {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(format!("could not watch the command: {error}"))
    }
}

/// The source of the event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeSource {
    Members,
    Others,
}

/// Runs one line.
pub(crate) struct PlanExecutor<'a> {
    context: &'a ToolContext<'a>,
    tool_sandbox: ToolSandbox,
    timeout: Duration,
    deadline: Instant,
    stdout: CapturedStream,
    stderr: CapturedStream,
    /// Trees whose program has ended. Remaining processes are killed at the end of the line.
    leftover_trees: Vec<ProcessTree>,
    sandbox: Option<String>,
    /// The time of the next count; `None` if the kernel limits the number of processes and their memory.
    next_count: Option<Instant>,
    proxy: LineProxy,
    /// The risk of the whole line, if the gate has judged its commands.
    line_risk: Option<RiskLevel>,
    /// The programs of the line.
    log: SharedCommandLog,
    /// The policy for the threads that judge executed programs; `None` if programs aren't judged when they are executed.
    judged_by: Option<Arc<GatePolicy>>,
}

impl<'a> PlanExecutor<'a> {
    pub(crate) fn new(
        context: &'a ToolContext<'a>,
        tool_sandbox: ToolSandbox,
        time: Duration,
    ) -> Result<Self, String> {
        let max_bytes = context.bounds.max_response_bytes;
        let collected = || {
            CapturedStream::new(max_bytes)
                .map_err(|errno| format!("could not create a pipe for the output: {errno}"))
        };
        let proxy = LineProxy::start(context, &tool_sandbox, time)?;
        Ok(Self {
            context,
            tool_sandbox,
            proxy,
            timeout: time,
            deadline: Instant::now() + time,
            stdout: collected()?,
            stderr: collected()?,
            leftover_trees: Vec::new(),
            sandbox: None,
            next_count: None,
            line_risk: None,
            log: SharedCommandLog::default(),
            judged_by: None,
        })
    }

    /// Has every program judged when it is executed.
    pub(super) fn judging_executions(self) -> Self {
        Self { judged_by: Some(Arc::new(self.context.policy.clone())), ..self }
    }

    /// Runs a plan.
    pub(super) fn run_plan(mut self, plan: &ShellPlan, was: RiskLevel) -> ToolResult {
        self.line_risk = Some(was);
        let max_bytes = self.context.bounds.max_response_bytes;
        let end = self.run_lists(plan.lists());
        self.finish(end).into_tool_result(max_bytes)
    }

    /// Runs one program outside a plan.
    pub(crate) fn run_command(mut self, command: PlannedCommand) -> ExecutionOutput {
        let end = self.run_pipeline(&PlannedPipeline { negated: false, commands: vec![command] });
        self.finish(end)
    }

    /// Passes a line of this risk to bash.
    pub(super) fn run_in_bash(mut self, line: &str, risk: RiskLevel) -> ToolResult {
        let Some(program) = SystemFacts.find_program("bash") else {
            return ToolResult::failed("nothing was run: this line needs bash, which is not installed");
        };
        let words = ["bash", "--noprofile", "--norc", "-c", line].map(str::to_owned).to_vec();
        let max_bytes = self.context.bounds.max_response_bytes;
        let folder = self.context.workspace.path();
        let streams =
            CommandStreams::new(StreamTarget::Null, self.stdout.writer().into(), self.stderr.writer().into());
        let end = self.time_left().and_then(|_| {
            let spec = self.tool_sandbox.prepare_spawn(&program, &words, &[], folder);
            let attached = streams.attach_to(spec);
            let spec = attached.map_err(|error| LineStop::not_started(&program, error))?;
            drop(streams);
            let judge = self.judge_for(FirstProgram::LineShell, risk, OtherProcesses::Waiting);
            let mut members = vec![self.spawn_member(&program, spec, judge)?];
            self.finish_members(&mut members)
        });
        self.finish(end).into_tool_result(max_bytes)
    }

    /// Returns the judge of a tree, if programs are judged when they are executed.
    fn judge_for(
        &self,
        first: FirstProgram,
        line_risk: RiskLevel,
        neighbours: OtherProcesses,
    ) -> Option<Box<dyn ExecJudge>> {
        let policy = Arc::clone(self.judged_by.as_ref()?);
        let caches = self.context.toolchain.write.iter().cloned();
        let writable = std::iter::once(policy.workspace.clone()).chain(caches).collect();
        let rules = JudgingRules { policy, line_risk, writable, neighbours };
        Some(Box::new(LineJudge::new(rules, self.log.clone(), first)))
    }

    /// Returns whether another command of a pipeline could swap the script that a command runs.
    fn neighbours_of(&self, command: &PlannedCommand, pipeline: &PlannedPipeline) -> OtherProcesses {
        let policy = self.context.policy;
        let PlannedAction::Run { program, .. } = &command.action else { return OtherProcesses::Waiting };
        let is_dangerous = |other: &PlannedCommand| {
            !std::ptr::eq(other, command) && may_change_script(other, program, policy, &SystemFacts)
        };
        if policy.allowed_scripts.contains_key(program) && pipeline.commands.iter().any(is_dangerous) {
            OtherProcesses::MayRun
        } else {
            OtherProcesses::Waiting
        }
    }

    fn run_lists(&mut self, lists: &[PlannedList]) -> Result<ProcessExit, LineStop> {
        let mut exit = ProcessExit::Code(0);
        for list in lists {
            exit = self.run_pipeline(&list.first)?;
            for (join, pipeline) in &list.rest {
                let runs = match join {
                    ListOperator::IfSucceeded => exit_code(exit) == 0,
                    ListOperator::IfFailed => exit_code(exit) != 0,
                };
                if runs {
                    exit = self.run_pipeline(pipeline)?;
                }
            }
        }
        Ok(exit)
    }

    fn run_pipeline(&mut self, pipeline: &PlannedPipeline) -> Result<ProcessExit, LineStop> {
        self.time_left()?;
        let mut members = Vec::new();
        let exit = match self.start_pipeline(pipeline, &mut members) {
            Ok(()) => self.finish_members(&mut members)?,
            Err(stop) => {
                self.leftover_trees.extend(members.into_iter().filter_map(|member| member.tree));
                return Err(stop);
            }
        };
        Ok(match (pipeline.negated, exit_code(exit)) {
            (false, _) => exit,
            (true, 0) => ProcessExit::Code(1),
            (true, _) => ProcessExit::Code(0),
        })
    }

    /// Waits for the programs of all members, and returns the exit of the last one.
    fn finish_members(&mut self, members: &mut Vec<PipelineMember>) -> Result<ProcessExit, LineStop> {
        let result = self.wait_for_members(members);
        let exit = members.last().and_then(|member| member.exit).unwrap_or(ProcessExit::Unknown);
        self.leftover_trees.extend(members.drain(..).filter_map(|member| member.tree));
        result?;
        self.release_ended_trees()?;
        if self.log.refusal().is_some() {
            // The tree was killed; `into_tool_result` reports the refusal.
            return Err(LineStop::End(LineEnd::Exited(exit)));
        }
        Ok(exit)
    }

    /// Returns the time that is left, or the reason to stop.
    fn time_left(&self) -> Result<Duration, LineStop> {
        if self.context.cancel.reason().is_some() {
            return Err(LineStop::End(LineEnd::Cancelled));
        }
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(LineStop::End(LineEnd::TimedOut(self.timeout))),
            left => Ok(left),
        }
    }

    /// Drops trees that have ended. Each holds descriptors, and a line may have any number of commands.
    fn release_ended_trees(&mut self) -> Result<(), LineStop> {
        for mut tree in std::mem::take(&mut self.leftover_trees) {
            if tree.poll_ended()?.is_none() {
                self.leftover_trees.push(tree);
            }
        }
        Ok(())
    }

    fn start_pipeline(
        &mut self,
        pipeline: &PlannedPipeline,
        members: &mut Vec<PipelineMember>,
    ) -> Result<(), LineStop> {
        let mut input = StreamTarget::Null;
        for (place, command) in pipeline.commands.iter().enumerate() {
            let is_last = place + 1 == pipeline.commands.len();
            let (output, next) = if is_last {
                (self.stdout.writer(), StreamTarget::Null)
            } else {
                let (reader, writer): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC)
                    .map_err(|errno| LineStop::Refused(format!("could not create a pipe: {errno}")))?;
                (Some(Rc::new(writer)), StreamTarget::Open(Rc::new(reader)))
            };
            let streams = CommandStreams::new(
                std::mem::replace(&mut input, next),
                output.into(),
                self.stderr.writer().into(),
            );
            let neighbours = self.neighbours_of(command, pipeline);
            members.push(self.start_command(command, streams, neighbours)?);
        }
        Ok(())
    }

    fn start_command(
        &mut self,
        command: &PlannedCommand,
        mut streams: CommandStreams,
        neighbours: OtherProcesses,
    ) -> Result<PipelineMember, LineStop> {
        // Checked before the redirections open files, because opening may truncate them.
        self.recheck_command(command)?;
        let ended = |exit| Ok(PipelineMember { tree: None, exit: Some(exit) });
        let access = self.context.workspace.access_under(self.context.policy);
        if let Err(RedirectionError { what, error }) =
            streams.redirect(&command.redirections, &command.folder, access)
        {
            self.stderr.append_message(&format!("collieclaw: `{what}` {error}\n"));
            return ended(EXIT_REDIRECTION_FAILED);
        }
        match &command.action {
            PlannedAction::Nothing => ended(ProcessExit::Code(0)),
            PlannedAction::ChangeFolder(folder) => match access.open_folder(folder) {
                Ok(_) => ended(ProcessExit::Code(0)),
                Err(error) => {
                    self.stderr.append_message(&format!("collieclaw: `{}` {error}\n", folder.display()));
                    Err(LineStop::End(LineEnd::Exited(EXIT_REDIRECTION_FAILED)))
                }
            },
            PlannedAction::Run { program, words, variables } => {
                let spec = self.tool_sandbox.prepare_spawn(program, words, variables, &command.folder);
                let attached = streams.attach_to(spec);
                let spec = attached.map_err(|error| LineStop::not_started(program, error))?;
                let risk = self.line_risk.filter(|risk| can_start_programs(&command.action, *risk));
                let judge = risk.and_then(|risk| self.judge_for(FirstProgram::Planned, risk, neighbours));
                if judge.is_none() {
                    self.log.add_run(&program.display().to_string(), words);
                }
                self.spawn_member(program, spec, judge)
            }
        }
    }

    /// Judges a command again, because earlier commands may have moved or linked its files.
    fn recheck_command(&self, command: &PlannedCommand) -> Result<(), LineStop> {
        let judged =
            self.line_risk.and_then(|was| rejudge_command(command, was, self.context.policy, &SystemFacts));
        let (Some(reason), PlannedAction::Run { words, .. }) = (judged, &command.action) else {
            return Ok(());
        };
        Err(LineStop::Refused(format!(
            "could not run `{}`: a file has changed since the line was judged, and now {}",
            shorten_command(words),
            reason.detail()
        )))
    }

    fn spawn_member(
        &mut self,
        program: &Path,
        spec: ward_process::ProcessSpec,
        judge: Option<Box<dyn ExecJudge>>,
    ) -> Result<PipelineMember, LineStop> {
        let (supervisor, id) = (self.tool_sandbox.supervisor(), next_tree_id().map_err(LineStop::Refused)?);
        let spawned = match judge {
            Some(judge) => supervisor.spawn_judged(id, spec, judge),
            None => supervisor.spawn(id, spec),
        };
        match spawned {
            Ok(mut tree) => {
                self.sandbox.get_or_insert_with(|| sandbox_level(&tree));
                self.proxy.serve(&mut tree).map_err(|error| {
                    LineStop::Refused(format!("could not serve the network of the command: {error}"))
                })?;
                let reports = tree.limit_reports().iter();
                let counts =
                    reports.clone().any(|report| report.limit == "processes" && is_unenforced(report));
                if counts || needs_memory_watch(&tree) {
                    self.next_count.get_or_insert_with(|| Instant::now() + PROCESS_COUNT_INTERVAL);
                }
                Ok(PipelineMember { tree: Some(tree), exit: None })
            }
            Err(error) => {
                let exit = spawn_failure_exit(&error)
                    .ok_or_else(|| LineStop::not_started(program, ErrorChain(&error)))?;
                self.stderr.append_message(&format!(
                    "collieclaw: {}: {}\n",
                    program.display(),
                    ErrorChain(&error)
                ));
                Ok(PipelineMember { tree: None, exit: Some(exit) })
            }
        }
    }

    /// Waits until the programs of all members have ended, or until the line has to stop.
    fn wait_for_members(&mut self, members: &mut [PipelineMember]) -> Result<(), LineStop> {
        let mut wake_source = WakeSource::Members;
        loop {
            let (out, err) = (self.stdout.read_available()?, self.stderr.read_available()?);
            if wake_source == WakeSource::Members {
                for member in &mut *members {
                    member.poll_exit()?;
                }
                if members.iter().all(|member| member.exit.is_some()) {
                    return Ok(());
                }
            }
            let mut time = self.time_left()?;
            self.enforce_watched_limits(members)?;
            if let Some(next) = self.next_count {
                time = time.min(next.saturating_duration_since(Instant::now()));
            }
            if [out, err].contains(&ReadProgress::More) {
                time = Duration::ZERO;
            }
            wake_source = self.poll_events(members, time)?;
        }
    }

    /// Ends a line with too many processes or too much memory, at an interval.
    fn enforce_watched_limits(&mut self, members: &[PipelineMember]) -> Result<(), LineStop> {
        let now = Instant::now();
        match &mut self.next_count {
            Some(next) if *next <= now => *next = now + PROCESS_COUNT_INTERVAL,
            _ => return Ok(()),
        }
        let trees: Vec<&ProcessTree> =
            members.iter().filter_map(|member| member.tree.as_ref()).chain(&self.leftover_trees).collect();
        let count: usize = trees.iter().map(|tree| tree.processes().len()).sum();
        let max_processes = usize::try_from(MAX_PROCESSES).unwrap_or(usize::MAX);
        if count > max_processes {
            return Err(LineStop::End(LineEnd::TooManyProcesses(max_processes)));
        }
        if exceeds_memory(&trees, MAX_MEMORY) {
            return Err(LineStop::End(LineEnd::TooMuchMemory(MAX_MEMORY)));
        }
        Ok(())
    }

    fn poll_events(&self, members: &[PipelineMember], time: Duration) -> Result<WakeSource, LineStop> {
        let ours = [std::os::fd::AsFd::as_fd(self.context.cancel), self.stdout.as_fd(), self.stderr.as_fd()];
        let mut fds: Vec<PollFd<'_>> = ours
            .into_iter()
            .chain(members.iter().flat_map(PipelineMember::wake_fds))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, Timespec::try_from(time).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let of_members = fds.iter().skip(ours.len()).any(|fd| !fd.revents().is_empty());
        Ok(if of_members { WakeSource::Members } else { WakeSource::Others })
    }

    /// Kills the remaining processes and collects the output.
    fn finish(mut self, end: Result<ProcessExit, LineStop>) -> ExecutionOutput {
        let is_complete = end.is_ok();
        for mut tree in std::mem::take(&mut self.leftover_trees) {
            let ended = is_complete && matches!(tree.wait(Some(EXIT_GRACE)), Ok(Some(_)));
            if !ended && let Err(error) = self.tool_sandbox.supervisor().stop(&mut tree, StopLadder::force())
            {
                self.stderr.append_message(&format!("collieclaw: {}\n", ErrorChain(&error)));
            }
        }
        self.stdout.drain();
        self.stderr.drain();
        for notice in self.log.take_notices() {
            self.stderr.append_message(&format!("collieclaw: {notice}\n"));
        }
        let end = match end {
            Ok(exit) => Ok(LineEnd::Exited(exit)),
            Err(LineStop::End(end)) => Ok(end),
            Err(LineStop::Refused(why)) => Err(why),
        };
        let network = self.proxy.finish();
        ExecutionOutput {
            end,
            stdout: self.stdout,
            stderr: self.stderr,
            sandbox: self.sandbox,
            network,
            refusal: self.log.refusal(),
            commands: self.log.take_commands(),
        }
    }
}

/// Returns an id that no other tree on this machine has.
///
/// # Errors
/// Fails if the id is not valid.
pub fn next_tree_id() -> Result<TreeId, String> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("collieclaw-{}-{number}", std::process::id());
    name.parse().map_err(|error| format!("could not name the process tree: {error}"))
}
