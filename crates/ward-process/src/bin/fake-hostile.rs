//! A test double that tries one attack and reports the outcome by its exit code.
//!
//! `fake-hostile ATTACK [ARGUMENT…]` exits with 0 if the attack succeeded, with 10 if it was refused, with 11
//! if this machine lacks something that the attack needs, with 12 if it failed for any other reason and so
//! tested nothing, and with 2 if the attack is unknown. No attack is harmful: they read the given file, write
//! a line, or make calls with arguments that change nothing.
#![expect(unsafe_code, reason = "most attacks are raw system calls")]

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::process::ExitCode;

/// Request number as a register value; libc defines it in the width of its `ioctl`.
const TIOCSTI: usize = 0x5412;

/// Call number, the same on every architecture; libc doesn't define it everywhere.
const LISTMOUNT: libc::c_long = 458;

const SUCCEEDED: u8 = 0;
const UNKNOWN: u8 = 2;
const REFUSED: u8 = 10;
const UNSUPPORTED: u8 = 11;
const BROKEN: u8 = 12;

#[expect(clippy::print_stderr, reason = "a failing test shows the reason of the refusal")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(outcome) =
        attack_files(&words).or_else(|| attack_network(&words)).or_else(|| attack_kernel(&words))
    else {
        eprintln!("no such attack: {words:?}");
        return ExitCode::from(UNKNOWN);
    };
    match outcome {
        Ok(()) => ExitCode::from(SUCCEEDED),
        Err(error) => {
            eprintln!("{words:?}: {error}");
            ExitCode::from(kind_of(&error))
        }
    }
}

fn kind_of(error: &io::Error) -> u8 {
    match error.raw_os_error() {
        // `EXDEV` is Landlock's error for moving a file between trees. `EISCONN` and `EAFNOSUPPORT` mean that
        // a connected socket, or one of another family, can't be used to reach a service.
        Some(
            libc::EPERM
            | libc::EACCES
            | libc::EROFS
            | libc::ENOSYS
            | libc::EXDEV
            | libc::EISCONN
            | libc::EAFNOSUPPORT,
        ) => REFUSED,
        None if error.kind() == io::ErrorKind::PermissionDenied => REFUSED,
        // File handles or extended attributes are not supported here, or the limit of namespaces is reached.
        Some(libc::EOPNOTSUPP | libc::ENOSPC) => UNSUPPORTED,
        _ => BROKEN,
    }
}

fn attack_files(words: &[&str]) -> Option<io::Result<()>> {
    Some(match *words {
        ["read", path] => fs::read(path).map(drop),
        ["list", path] => fs::read_dir(path).map(drop),
        ["write", path] => {
            OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(b"hostile\n"))
        }
        ["create", path] => OpenOptions::new().write(true).create_new(true).open(path).map(drop),
        ["truncate", path] => {
            let path = c_string(path);
            syscall(libc::SYS_truncate, &[path.as_ptr().addr(), 0])
        }
        ["change-mode", path] => {
            fs::metadata(path).and_then(|metadata| fs::set_permissions(path, metadata.permissions()))
        }
        ["change-times", path] => {
            let path = c_string(path);
            syscall(libc::SYS_utimensat, &[at_cwd(), path.as_ptr().addr(), 0, 0])
        }
        ["change-attribute", path] => {
            let path = c_string(path);
            let [name, value] = [c"user.hostile", c"1"].map(|text| text.as_ptr().addr());
            syscall(libc::SYS_setxattr, &[path.as_ptr().addr(), name, value, 1, 0])
        }
        ["remove", path] => fs::remove_file(path),
        ["hard-link", from, to] => fs::hard_link(from, to).and_then(|()| fs::read(to)).map(drop),
        ["rename", from, to] => fs::rename(from, to),
        ["write-through-link", target, link] => {
            // An earlier attempt may have created the symlink, which is allowed.
            let _ = fs::remove_file(link);
            std::os::unix::fs::symlink(target, link).and_then(|()| fs::write(link, "hostile\n"))
        }
        ["execute", path] => std::process::Command::new(path).status().map(drop),
        ["execute-privileged", path] => {
            // The program at the path is a copy of this double.
            std::process::Command::new(path)
                .arg("privileged")
                .status()
                .and_then(|status| gained_if(status.success()))
        }
        // SAFETY: these calls access no memory.
        ["privileged"] => gained_if(unsafe { libc::geteuid() != libc::getuid() }),
        ["make-privileged", path] => {
            let path = c_string(path);
            syscall(libc::SYS_fchmodat, &[at_cwd(), path.as_ptr().addr(), 0o4755])
        }
        ["create-privileged", path] => {
            let path = c_string(path);
            let flags = number((libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY).into());
            syscall(libc::SYS_openat, &[at_cwd(), path.as_ptr().addr(), flags, 0o4755])
        }
        ["socket-file", path] => {
            let path = c_string(path);
            let mode = libc::S_IFSOCK | 0o600;
            syscall(libc::SYS_mknodat, &[at_cwd(), path.as_ptr().addr(), number(mode.into()), 0])
        }
        ["block-device", path] => {
            let path = c_string(path);
            let mode = libc::S_IFBLK | 0o600;
            // Device number 7:0 is the first loop device.
            syscall(libc::SYS_mknodat, &[at_cwd(), path.as_ptr().addr(), number(mode.into()), 0x700])
        }
        ["file-handle", path] => file_handle(path),
        ["execute-memory"] => execute_memory(),
        _ => return None,
    })
}

fn attack_network(words: &[&str]) -> Option<io::Result<()>> {
    Some(match *words {
        ["udp", to] => {
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"hostile", to)).map(drop)
        }
        ["tcp", to] => TcpStream::connect(to).map(drop),
        ["unix", path] => UnixStream::connect(path).map(drop),
        ["abstract", name] => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address))
            .map(drop),
        ["packet"] => {
            syscall(libc::SYS_socket, &[number(libc::AF_PACKET.into()), number(libc::SOCK_RAW.into()), 0])
        }
        ["netlink"] => {
            syscall(libc::SYS_socket, &[number(libc::AF_NETLINK.into()), number(libc::SOCK_RAW.into()), 0])
        }
        ["socketpair"] => UnixStream::pair().map(drop),
        ["send-from-pair", kind, path] => pair_of(kind).and_then(|pair| send_to(pair.as_raw_fd(), path)),
        ["connect-pair", kind, path] => pair_of(kind).and_then(|pair| connect(pair.as_raw_fd(), path)),
        ["send-from-internet", path] => {
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| send_to(socket.as_raw_fd(), path))
        }
        _ => return None,
    })
}

fn attack_kernel(words: &[&str]) -> Option<io::Result<()>> {
    let pid = words.get(1).and_then(|pid| pid.parse::<usize>().ok()).unwrap_or(0);
    Some(match words.first().copied()? {
        "signal" => syscall(libc::SYS_kill, &[pid, number(libc::SIGCONT.into())]),
        "ptrace" => syscall(libc::SYS_ptrace, &[number(libc::PTRACE_SEIZE.into()), pid, 0, 0]),
        "read-memory" => read_memory(pid),
        "limit" => {
            let mut limit = [0_u64; 2];
            let at = limit.as_mut_ptr().addr();
            let resource = libc::RLIMIT_CORE as usize;
            syscall(libc::SYS_prlimit64, &[pid, resource, 0, at])
                .and_then(|()| syscall(libc::SYS_prlimit64, &[pid, resource, at, 0]))
        }
        "renice" => syscall(libc::SYS_setpriority, &[0, pid, 19]),
        "schedule" => {
            let mut mask = [0_u64; 16];
            let at = mask.as_mut_ptr().addr();
            let size = size_of_val(&mask);
            syscall(libc::SYS_sched_getaffinity, &[pid, size, at])
                .and_then(|()| syscall(libc::SYS_sched_setaffinity, &[pid, size, at]))
        }
        "enter-namespace" => fs::File::open(format!("/proc/{pid}/ns/uts")).and_then(|file| {
            let fd = file.as_raw_fd();
            syscall(libc::SYS_setns, &[number(fd.into()), 0])
        }),
        "mount" => {
            let target = c_string(words.get(1)?);
            let [source, kind] = [c"none", c"tmpfs"].map(|text| text.as_ptr().addr());
            syscall(libc::SYS_mount, &[source, target.as_ptr().addr(), kind, 0, 0])
                .and_then(|()| syscall(libc::SYS_umount2, &[target.as_ptr().addr(), 0]))
        }
        "unshare" => syscall(libc::SYS_unshare, &[number(libc::CLONE_NEWUSER.into())]),
        "clone-namespace" => clone_into_namespace(),
        "keyring" => syscall(libc::SYS_keyctl, &[0, usize::MAX - 2, 1]),
        "bpf" => {
            // BPF_MAP_CREATE of an array map: type 2, key of 4 bytes, value of 4 bytes, one entry.
            let mut attributes = [0_u32; 32];
            attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
            syscall(libc::SYS_bpf, &[0, attributes.as_ptr().addr(), size_of_val(&attributes)])
        }
        "io-uring" => {
            let mut parameters = [0_u8; 120];
            syscall(libc::SYS_io_uring_setup, &[1, parameters.as_mut_ptr().addr()])
        }
        "watch-folder" => {
            let path = c_string(words.get(1)?);
            let everything = number(libc::IN_ALL_EVENTS.into());
            syscall_value(libc::SYS_inotify_init1, &[0]).and_then(|watch| {
                syscall(libc::SYS_inotify_add_watch, &[number(watch), path.as_ptr().addr(), everything])
            })
        }
        "watch-files" => syscall(libc::SYS_fanotify_init, &[0, 0]),
        "list-mounts" => {
            // struct mnt_id_req: its size, LSMT_ROOT (all ones), and the mount id to start from.
            let request = [24_u64, u64::MAX, 0];
            let mut mounts = [0_u64; 4];
            syscall(LISTMOUNT, &[request.as_ptr().addr(), mounts.as_mut_ptr().addr(), mounts.len(), 0])
        }
        "shared-memory" => syscall(libc::SYS_shmget, &[0, 4096, 0o600]),
        "personality" => syscall(libc::SYS_personality, &[0x0004_0000]),
        "kernel-log" => syscall(libc::SYS_syslog, &[10, 0, 0]),
        "host-name" => {
            // struct utsname has fields of 65 bytes; the second field is the host name.
            let mut names = [0_u8; 6 * 65];
            syscall(libc::SYS_uname, &[names.as_mut_ptr().addr()]).and_then(|()| {
                let name = names.get(65..130).unwrap_or_default();
                let length = name.iter().position(|byte| *byte == 0).unwrap_or(0);
                syscall(libc::SYS_sethostname, &[name.as_ptr().addr(), length])
            })
        }
        "capabilities" => {
            let header = [0x2008_0522_u32, 0];
            let mut sets = [0_u32; 6];
            syscall(libc::SYS_capget, &[header.as_ptr().addr(), sets.as_mut_ptr().addr()])
                .and_then(|()| gained_if(sets != [0; 6]))
        }
        // Any error but the filter's EPERM counts as success, because standard input is no terminal here.
        "type-on-terminal" => match syscall(libc::SYS_ioctl, &[0, TIOCSTI, c"x".as_ptr().addr()]) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
            _ => Ok(()),
        },
        _ => return None,
    })
}

/// Creates a pair of Unix sockets and returns one end. The other end stays open until this program exits.
fn pair_of(kind: &str) -> io::Result<UnixDatagram> {
    let kind = match kind {
        "stream" => libc::SOCK_STREAM,
        "packets" => libc::SOCK_SEQPACKET,
        "raw" => libc::SOCK_RAW,
        _ => libc::SOCK_DGRAM,
    };
    let mut ends = [0_i32; 2];
    let family = number(libc::AF_UNIX.into());
    syscall(libc::SYS_socketpair, &[family, number(kind.into()), 0, ends.as_mut_ptr().addr()])?;
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { UnixDatagram::from_raw_fd(ends[0]) })
}

fn send_to(socket: i32, path: &str) -> io::Result<()> {
    let (address, length) = address_of(path);
    let (text, at) = (b"hostile", std::ptr::from_ref(&address).addr());
    syscall(libc::SYS_sendto, &[number(socket.into()), text.as_ptr().addr(), text.len(), 0, at, length])
}

fn connect(socket: i32, path: &str) -> io::Result<()> {
    let (address, length) = address_of(path);
    syscall(libc::SYS_connect, &[number(socket.into()), std::ptr::from_ref(&address).addr(), length])
}

fn address_of(path: &str) -> (libc::sockaddr_un, usize) {
    const LOCAL: libc::sa_family_t = 1;
    let mut address = libc::sockaddr_un { sun_family: LOCAL, sun_path: [0; 108] };
    for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    (address, size_of::<libc::sockaddr_un>())
}

fn file_handle(path: &str) -> io::Result<()> {
    const HANDLE_BYTES: u32 = 128;
    let path = c_string(path);
    // struct file_handle: size, type, and then the handle itself.
    let mut handle = [0_u32; 2 + HANDLE_BYTES as usize / 4];
    handle[0] = HANDLE_BYTES;
    let mut mount = 0_i32;
    let at = handle.as_mut_ptr().addr();
    let mount_at = std::ptr::from_mut(&mut mount).addr();
    syscall(libc::SYS_name_to_handle_at, &[at_cwd(), path.as_ptr().addr(), at, mount_at, 0])?;
    syscall(libc::SYS_open_by_handle_at, &[at_cwd(), at, number(libc::O_RDONLY.into())])
}

/// Executes a copy of `true` from memory, without a file. It exits with 0, which means success.
fn execute_memory() -> io::Result<()> {
    let fd = syscall_value(libc::SYS_memfd_create, &[c"x".as_ptr().addr(), 0])?;
    let path = format!("/proc/self/fd/{fd}");
    fs::write(&path, fs::read("/usr/bin/true")?)?;
    let arguments = [c"true".as_ptr(), std::ptr::null()];
    let nothing = [std::ptr::null::<libc::c_char>()];
    let [arguments, nothing] = [arguments.as_ptr().addr(), nothing.as_ptr().addr()];
    syscall(
        libc::SYS_execveat,
        &[number(fd), c"".as_ptr().addr(), arguments, nothing, number(libc::AT_EMPTY_PATH.into())],
    )
}

fn read_memory(pid: usize) -> io::Result<()> {
    // Any address will do, because EFAULT already means that access to the process was permitted.
    let mut byte = [0_u8; 1];
    let mut part = [byte.as_mut_ptr().addr(), 1];
    let at = part.as_mut_ptr().addr();
    match syscall(libc::SYS_process_vm_readv, &[pid, at, 1, at, 1, 0]) {
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
        other => other,
    }
}

fn clone_into_namespace() -> io::Result<()> {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    match syscall_value(libc::SYS_clone, &[number(flags.into()), 0, 0, 0, 0])? {
        0 => std::process::exit(0),
        child => syscall(libc::SYS_wait4, &[number(child), 0, 0, 0]),
    }
}

fn gained_if(success: bool) -> io::Result<()> {
    if success { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("an argument contains no NUL")
}

fn at_cwd() -> usize {
    number(libc::AT_FDCWD.into())
}

fn number(value: i64) -> usize {
    usize::from_ne_bytes(value.to_ne_bytes())
}

fn syscall(number: libc::c_long, arguments: &[usize]) -> io::Result<()> {
    syscall_value(number, arguments).map(drop)
}

fn syscall_value(number: libc::c_long, arguments: &[usize]) -> io::Result<i64> {
    let mut rest = arguments.iter().copied().chain(std::iter::repeat(0));
    let [a, b, c, d, e, f] = std::array::from_fn(|_| rest.next().unwrap_or(0));
    // SAFETY: every attack passes addresses of live buffers of the length that the call requires, and the
    // program exits right after it.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
