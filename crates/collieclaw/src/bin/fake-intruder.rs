//! A malicious program for tests: tries each attack named in its arguments and prints the outcome.
//!
//! `fake-intruder tcp 4000 udp 4000 unix PATH abstract NAME link FROM TO chmod PATH truncate PATH kill PID allocate GIGABYTES`

#![expect(clippy::print_stdout, reason = "the test reads its output")]

use std::io::{self, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

fn main() {
    let mut words = std::env::args().skip(1);
    while let Some(verb) = words.next() {
        let mut word = || words.next().unwrap_or_default();
        let result = attempt(&verb, &mut word);
        match result {
            Ok(()) => println!("{verb}: done"),
            Err(error) => println!("{verb}: {error}"),
        }
    }
}

fn attempt(verb: &str, word: &mut dyn FnMut() -> String) -> io::Result<()> {
    match verb {
        "tcp" => TcpStream::connect(format!("127.0.0.1:{}", word()))?.write_all(b"stolen"),
        "udp" => {
            let address = format!("127.0.0.1:{}", word());
            UdpSocket::bind("127.0.0.1:0")?.send_to(b"stolen", address).map(drop)
        }
        "unix" => UnixStream::connect(word())?.write_all(b"stolen"),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(word())?;
            UnixDatagram::unbound()?.send_to_addr(b"stolen", &address).map(drop)
        }
        "link" => std::fs::hard_link(word(), word()),
        "chmod" => std::fs::set_permissions(word(), PermissionsExt::from_mode(0o777)),
        "truncate" => std::fs::File::options().write(true).open(word())?.set_len(0),
        "kill" => {
            let number = word().parse().map_err(io::Error::other)?;
            let process = rustix::process::Pid::from_raw(number).ok_or(io::ErrorKind::InvalidInput)?;
            Ok(rustix::process::kill_process(process, rustix::process::Signal::KILL)?)
        }
        "allocate" => {
            let gigabytes: usize = word().parse().map_err(io::Error::other)?;
            Vec::<u8>::new().try_reserve_exact(gigabytes << 30).map_err(|_| io::ErrorKind::OutOfMemory.into())
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}
