// SPDX-License-Identifier: GPL-2.0-only
//! What must be true before anything is touched: each answered by one line.

use std::fs::read_to_string;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

const SCHED_EXT: &str = "/sys/kernel/sched_ext";
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Oldest kernel that the BPF side is tested on.
const OLDEST_KERNEL: (u32, u32) = (6, 16);
/// How long a scheduler that was killed may take to leave.
const LEAVING_STEPS: u32 = 20;
const LEAVING_STEP: Duration = Duration::from_millis(50);

/// Says what keeps the scheduler from running here, if anything does.
pub fn check() -> Result<()> {
    // SAFETY: geteuid has no precondition and cannot fail.
    let user = unsafe { libc::geteuid() };
    ensure!(
        user == 0,
        "only root may load a scheduler: start it with sudo"
    );

    let release = release();
    let (major, minor) = OLDEST_KERNEL;
    if let Some(version) = parse_version(&release) {
        ensure!(
            version >= OLDEST_KERNEL,
            "kernel {release} is too old: {major}.{minor} or newer is needed"
        );
    }
    ensure!(
        Path::new(SCHED_EXT).is_dir(),
        "kernel {release} has no sched_ext: one built with CONFIG_SCHED_CLASS_EXT=y is needed"
    );
    ensure!(
        Path::new(BTF).exists(),
        "kernel {release} has no {BTF}: one built with CONFIG_DEBUG_INFO_BTF=y is needed"
    );
    ensure!(
        scx_utils::compat::function_tracer_available(),
        "kernel {release} has no function tracer: one built with CONFIG_FUNCTION_TRACER=y is needed"
    );
    wait_for_none_running()
}

/// The sched_ext scheduler that runs, if one does.
pub fn running_scheduler() -> Option<String> {
    let state = read_to_string(format!("{SCHED_EXT}/state")).ok()?;
    if state.trim() == "disabled" {
        return None;
    }
    let name = read_to_string(format!("{SCHED_EXT}/root/ops")).unwrap_or_default();
    match name.trim() {
        "" => Some(format!("one that is {}", state.trim())),
        name => Some(name.to_string()),
    }
}

/// Fails with the name of the scheduler that runs; one that is about to leave
/// gets a moment to do so.
fn wait_for_none_running() -> Result<()> {
    for _ in 0..LEAVING_STEPS {
        if running_scheduler().is_none() {
            return Ok(());
        }
        sleep(LEAVING_STEP);
    }
    match running_scheduler() {
        None => Ok(()),
        Some(name) => bail!("another sched_ext scheduler is running: {name}"),
    }
}

fn release() -> String {
    let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_string()
}

/// Major and minor number of the running kernel, if its name begins with them.
pub fn kernel_version() -> Option<(u32, u32)> {
    parse_version(&release())
}

/// Major and minor number of a release such as 6.16.3-cloud-amd64 or 7.3-rc1.
fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse_version("6.16.3+deb13-cloud-amd64"), Some((6, 16)));
        assert_eq!(parse_version("7.3-rc1"), Some((7, 3)));
        assert!(parse_version("6.9.0") < Some(OLDEST_KERNEL));
        assert!(parse_version("10.0") > Some(OLDEST_KERNEL));
        assert_eq!(parse_version("custom"), None);
    }
}
