//! The table of system calls that the seccomp filter denies.
//!
//! Ordinary tools need none of these calls. Each gives access to other processes, to the machine as a whole,
//! or to a part of the kernel with many known bugs. `EPERM` means "denied". `ENOSYS` means "not on this
//! kernel" and makes libraries fall back to an older call whose arguments the filter can check.

use libc::c_long;

/// Calls that fail with `EPERM`, whatever the arguments.
pub(super) const EPERM_CALLS: &[c_long] = &[
    // Access to memory, descriptors and keys of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // System V and POSIX memory, semaphores and queues, which all programs of a user share and file rules
    // don't cover.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Changes to mounts and namespaces, and file handles, by which a program could get around the file rules.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Administration of the machine: reboot, kernel modules, swap, quotas, host name, clock.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_nfsservctl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    // Parts of the kernel with a long list of vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    LSM_SET_SELF_ATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Calls that fail with `ENOSYS`, because callers know how to do without them.
pub(super) const ENOSYS_CALLS: &[c_long] = &[
    // Its flags are in memory, which a filter can't read. Libraries fall back to `clone`.
    libc::SYS_clone3,
    // io_uring performs other operations, such as opening sockets, without passing this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // They make a file without a path, which is executable even if no rule allows execution.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // Its mode is in memory too. Libraries fall back to `openat`.
    libc::SYS_openat2,
    // They report names of files in folders that the sandbox can't list. Tools fall back to polling.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // They list all mounts, as `/proc/self/mountinfo` does, which is closed too.
    STATMOUNT,
    LISTMOUNT,
];

/// Flags that `clone` must not have. A new namespace would give the program new privileges inside of it, and
/// `CLONE_PARENT` would make the new process a child of the caller's parent, which may be our supervisor.
/// `CLONE_UNTRACED` would hide the new process from the tracer that has its programs judged.
pub(super) const CLONE_FLAGS: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_PARENT,
    libc::CLONE_UNTRACED,
];

/// `ioctl` requests that insert input into the terminal, and so could type commands into the shell that
/// started us. See `ioctl_tty(2)`.
pub(super) const TERMINAL_REQUESTS: &[libc::Ioctl] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Calls that change limits or scheduling of the process whose pid is their first argument, or of the caller
/// if that is 0; only 0 is allowed. Otherwise a program could slow down its own supervisor, or end it with a
/// processor time limit of a second. Landlock doesn't restrict these calls.
pub(super) const OWN_PROCESS_ONLY: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The set-user-ID and set-group-ID bits. Another user who executes such a file would run it as our user,
/// outside of any sandbox.
pub(super) const PRIVILEGED_MODES: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls that set the mode of a file, with the index of the mode argument.
pub(super) const MODE_SETTING_CALLS: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that may create a file, with the indices of the flags and mode arguments. The mode counts only with
/// one of [`CREATING_FLAGS`]; otherwise callers pass no mode and the register holds any value.
pub(super) const OPEN_CALLS: &[(c_long, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Flags that make `open` create a file. `O_TMPFILE` includes the bit of `O_DIRECTORY`, which doesn't create
/// anything.
pub(super) const CREATING_FLAGS: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Number of the newest call that was reviewed for this table, `mseal` of Linux 6.10. Newer calls fail with
/// `ENOSYS` until somebody has reviewed them.
pub(super) const NEWEST_KNOWN: u32 = 462;

/// Call numbers above 423 are the same on every architecture. The libc crate doesn't define these everywhere.
const FCHMODAT2: c_long = 452;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;
const LSM_SET_SELF_ATTR: c_long = 460;
