//! The system calls that no tool needs, as a table.
//!
//! Each is a way to other processes, to the machine, or to a part of the kernel that is mostly
//! known for its faults. `EPERM` says no; `ENOSYS` says "not on this kernel", which makes libraries
//! take the older call that a filter can look into.

use libc::c_long;

/// Answered with `EPERM`, whatever the arguments.
pub(super) const EPERM_CALLS: &[c_long] = &[
    // Other processes: their memory, their descriptors, their keys.
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
    // Memory and queues that all programs of a user share, out of reach of file rules.
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
    // Another view of the file system, which file rules were not made for.
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
    // The machine.
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
    // Parts of the kernel with a long list of faults.
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

/// Answered with `ENOSYS`, because callers know what to do without.
pub(super) const ENOSYS_CALLS: &[c_long] = &[
    // Its flags lie in memory, where a filter can't look: libraries fall back to `clone`.
    libc::SYS_clone3,
    // It carries out other calls, sockets among them, past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // A file without a path, executable where no rule allows execution.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // Its mode lies in memory too: libraries fall back to `openat`.
    libc::SYS_openat2,
    // They tell the names of files in folders that can't be listed; tools look again and again.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // They tell where everything is mounted, as a file in `/proc` does that is closed.
    STATMOUNT,
    LISTMOUNT,
];

/// Flags that `clone` may not be given: namespaces, each a fresh set of privileges over something,
/// and a child that is not the caller's but its parent's, which is our supervisor.
pub(super) const CLONE_FLAGS: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_PARENT,
];

/// Requests that type on the terminal of whoever started us.
pub(super) const TERMINAL_REQUESTS: &[libc::Ioctl] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Calls that change limits or scheduling of the process whose number is their first argument, and
/// of the caller if that is 0. Without this a program could slow down its own supervisor, or end it
/// by a processor limit of a second: Landlock has no word in these.
pub(super) const OWN_PROCESS_ONLY: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The right of a file to run as its owner or its group. Whoever else can execute the file would act
/// in the name of our user, outside of any sandbox.
pub(super) const PRIVILEGED_MODES: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls that set the mode of a file, with the place of the mode among the arguments.
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

/// Calls that may create a file, with the places of flags and mode. Without one of
/// [`CREATING_FLAGS`] the mode is whatever lay in the register.
pub(super) const OPEN_CALLS: &[(c_long, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// The flags that make `open` create a file. `O_TMPFILE` contains `O_DIRECTORY`, which does not.
pub(super) const CREATING_FLAGS: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// The newest call that was weighed for this table, `mseal` of Linux 6.10. Later ones do not exist
/// in the sandbox until someone has looked at them.
pub(super) const NEWEST_KNOWN: u32 = 462;

/// Numbers above 423 are the same on every architecture; libc does not have these everywhere.
const FCHMODAT2: c_long = 452;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;
const LSM_SET_SELF_ATTR: c_long = 460;
