//! Virtual machines of driver `qemu`, which has these arguments:
//!
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `memory` | MiB, or a text such as `2G` | 1024 |
//! | `cpus` | processors | 1 |
//! | `disk` | images; the extension `.qcow2` means `qcow2`, others `raw` | none |
//! | `cdrom` | read-only images | none |
//! | `snapshot` | whether changes to disks are discarded | false |
//! | `kernel`, `initrd`, `append` | a Linux kernel to start without a disk | none |
//! | `machine` | QEMU's machine type | QEMU's own |
//! | `accel` | `kvm` or `tcg` | `kvm` if available, else `tcg` |
//! | `display` | `none`, `gtk`, `sdl`, … | `gtk` |
//! | `network` | `none` or `user` | `none` |
//! | `serial` | `none`, or `log` for the session's output | `none` |
//! | `program` | the QEMU to run | `qemu-system-x86_64` |
//! | `extra` | further arguments, as they are | none |
//!
//! The machine is stopped by its power button, then by its monitor, then by a signal.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::Value;

use super::arguments::{DriverArguments, text_or_number};
use super::{LaunchCommand, LaunchCommandBuilder};
use crate::launch_error::LaunchError;
use crate::stop_method::StopMethod;

/// The default QEMU program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

const KEYS: &str = "`memory`, `cpus`, `disk`, `cdrom`, `snapshot`, `kernel`, `initrd`, `append`, `machine`, \
                    `accel`, `display`, `network`, `serial`, `program` and `extra`";

impl LaunchCommandBuilder<'_> {
    pub(super) fn qemu(&self, args: &BTreeMap<String, Value>) -> Result<LaunchCommand, LaunchError> {
        let mut arguments = DriverArguments::new("driver `qemu`", args);
        let program = arguments.text("program")?.unwrap_or_else(|| QEMU.to_owned());
        let socket = self.socket_folder.join("qmp");
        let mut command = QemuCommandLine(vec![program.into()]);
        command.add(["-nodefaults", "-no-user-config"]);
        let mut monitor = OsString::from("unix:");
        monitor.push(escape_commas(socket.as_os_str())?);
        monitor.push(",server=on,wait=off");
        command.add([OsString::from("-qmp"), monitor]);
        hardware(&mut command, &mut arguments)?;
        media(&mut command, &mut arguments)?;
        boot(&mut command, &mut arguments)?;
        add_devices(&mut command, &mut arguments)?;
        command.add(arguments.texts("extra")?);
        arguments.reject_unknown(KEYS)?;
        let mut launch = self.plain_command(command.0);
        launch.needs_socket_folder = true;
        launch.stop_methods = vec![
            StopMethod::PowerDown { socket: socket.clone() },
            StopMethod::QuitMachine { socket },
            StopMethod::Signal,
        ];
        Ok(launch)
    }
}

struct QemuCommandLine(Vec<OsString>);

impl QemuCommandLine {
    fn add(&mut self, words: impl IntoIterator<Item = impl Into<OsString>>) {
        self.0.extend(words.into_iter().map(Into::into));
    }
}

fn hardware(command: &mut QemuCommandLine, arguments: &mut DriverArguments<'_>) -> Result<(), LaunchError> {
    let memory = arguments.take("memory", text_or_number, "a number of MiB, or a text such as `2G`")?;
    command.add(["-m".to_owned(), memory.unwrap_or_else(|| "1024".to_owned())]);
    let cpus = arguments.take("cpus", Value::as_u64, "a number")?.unwrap_or(1);
    command.add(["-smp".to_owned(), cpus.to_string()]);
    if let Some(machine) = arguments.text("machine")? {
        command.add(["-machine".to_owned(), machine]);
    }
    match arguments.text("accel")? {
        Some(accel) => command.add(["-accel".to_owned(), accel]),
        // QEMU tries these in order.
        None => command.add(["-accel", "kvm", "-accel", "tcg"]),
    }
    Ok(())
}

fn media(command: &mut QemuCommandLine, arguments: &mut DriverArguments<'_>) -> Result<(), LaunchError> {
    for disk in arguments.texts("disk")? {
        // QEMU must not detect the format from the contents: a guest could write a header into a raw disk that names a
        // file of the host.
        let format = if disk.ends_with(".qcow2") { "qcow2" } else { "raw" };
        command.add([
            "-drive".to_owned(),
            format!("file={},format={format},if=virtio", disk.replace(',', ",,")),
        ]);
    }
    for image in arguments.texts("cdrom")? {
        let image = image.replace(',', ",,");
        command.add(["-drive".to_owned(), format!("file={image},format=raw,media=cdrom,readonly=on")]);
    }
    if arguments.take("snapshot", Value::as_bool, "true or false")?.unwrap_or(false) {
        command.add(["-snapshot"]);
    }
    Ok(())
}

fn boot(command: &mut QemuCommandLine, arguments: &mut DriverArguments<'_>) -> Result<(), LaunchError> {
    for (key, option) in [("kernel", "-kernel"), ("initrd", "-initrd"), ("append", "-append")] {
        if let Some(value) = arguments.text(key)? {
            command.add([option.to_owned(), value]);
        }
    }
    Ok(())
}

fn add_devices(
    command: &mut QemuCommandLine,
    arguments: &mut DriverArguments<'_>,
) -> Result<(), LaunchError> {
    let display = arguments.text("display")?.unwrap_or_else(|| "gtk".to_owned());
    if display != "none" {
        command.add(["-vga", "std"]);
    }
    command.add(["-display".to_owned(), display]);
    match arguments.text("network")?.as_deref() {
        None | Some("none") => command.add(["-nic", "none"]),
        Some("user") => command.add(["-nic", "user,model=virtio-net-pci"]),
        Some(other) => {
            return Err(LaunchError::new(
                format!("invalid value `network = \"{other}\"` for driver `qemu`"),
                "`network` must be `none` or `user`; anything else goes into `extra`",
            ));
        }
    }
    match arguments.text("serial")?.as_deref() {
        None | Some("none") => Ok(()),
        Some("log") => {
            command.add(["-serial", "stdio"]);
            Ok(())
        }
        Some(other) => Err(LaunchError::new(
            format!("invalid value `serial = \"{other}\"` for driver `qemu`"),
            "`serial` must be `none` or `log`",
        )),
    }
}

/// Escapes a path for a QEMU option, in which a comma separates parts.
fn escape_commas(path: &std::ffi::OsStr) -> Result<String, LaunchError> {
    path.to_str().map(|path| path.replace(',', ",,")).ok_or_else(|| {
        LaunchError::new("the path of the socket folder is not UTF-8", "choose another folder for the daemon")
    })
}
