// SPDX-License-Identifier: GPL-2.0-only
//! Shell commands that are waited for, but not for ever, and end with the bench.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How soon Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(50);
/// How long a command may take to leave after SIGINT, and then after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);
/// Folders of programs that an ordinary user's PATH lacks.
const MORE_FOLDERS: &str = ":/usr/sbin:/sbin:/usr/local/sbin";
/// Lines of a command's last words in an error.
const LAST_WORDS: usize = 5;

/// Ctrl-C, or another signal that asks the bench to end.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// A shell command that runs, in a process group of its own: Ctrl-C reaches it
/// through the bench alone, and what it started ends with it.
pub struct Running {
    child: Child,
    output: File,
    text: String,
    ended: bool,
}

/// What a command came to.
pub struct Done {
    /// Both of its output streams.
    pub output: String,
    /// From its start to its end.
    pub seconds: f64,
}

impl Running {
    /// Starts a shell command.
    pub fn start(text: &str) -> Result<Running> {
        let mut shell = Command::new("sh");
        shell.args(["-c", text]);
        Running::spawn(shell, text, libc::SIGTERM)
    }

    /// Starts a command that goes by a name, and gets a signal when the bench is gone.
    pub fn spawn(mut command: Command, name: &str, last: i32) -> Result<Running> {
        let output = tempfile::tempfile().context("a temporary file")?;
        command.env("LC_ALL", "C").env("PATH", path());
        command.process_group(0).stdin(Stdio::null());
        command
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        let prepare = move || {
            die_with_parent(last)?;
            listen_to_signals();
            Ok(())
        };
        // SAFETY: both are async-signal-safe. They come after a change of the user, which
        // would undo the first.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().with_context(|| name.to_string())?;
        Ok(Running {
            child,
            output,
            text: name.into(),
            ended: false,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself, and how.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.ended |= status.is_some();
        Ok(status)
    }

    /// What it has said so far.
    pub fn output(&mut self) -> String {
        let mut bytes = vec![];
        // Its own offset: the child's writes move the shared one, and must go on at the end.
        let path = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&self.output)
        );
        let read = File::open(path).and_then(|mut file| {
            file.rewind()?;
            file.read_to_end(&mut bytes)
        });
        read.map_or(String::new(), |_| {
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }

    /// Asks it to end as Ctrl-C does, and sees to it that it does.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        self.stop_with(&[libc::SIGINT, libc::SIGTERM, libc::SIGKILL])
    }

    /// The same by other signals, one after the other.
    pub fn stop_with(&mut self, signals: &[i32]) -> Option<ExitStatus> {
        if self.ended {
            return None;
        }
        for signal in signals {
            self.signal(*signal);
            let start = Instant::now();
            while start.elapsed() < PATIENCE {
                match self.ended() {
                    Ok(None) => sleep(TICK / 10),
                    Ok(status) => {
                        // What it started and left behind.
                        self.signal(libc::SIGKILL);
                        return status;
                    }
                    Err(_) => return None,
                }
            }
        }
        None
    }

    /// Waits for its end; its failure, and that of taking longer than the limit, is an
    /// error.
    pub fn wait(mut self, limit: Duration, stop: &AtomicBool) -> Result<Done> {
        let start = Instant::now();
        let pid = self.pid();
        let (tell, told) = channel();
        // Waits in the kernel: the end is seen when it comes, not at the next look.
        spawn(move || {
            wait_without_reaping(pid);
            let _ = tell.send(Instant::now());
        });
        loop {
            match told.recv_timeout(TICK) {
                Ok(end) => return self.finish((end - start).as_secs_f64()),
                Err(RecvTimeoutError::Disconnected) => bail!("waiting for {}", self.text),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    self.stop();
                    return Err(Interrupted.into());
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() > limit => {
                    self.stop();
                    bail!("it took longer than {} s: {}", limit.as_secs(), self.text);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn finish(&mut self, seconds: f64) -> Result<Done> {
        let status = self.child.wait()?;
        self.ended = true;
        // What it left behind would disturb the next run.
        self.signal(libc::SIGKILL);
        if status.success() {
            return Ok(Done {
                output: self.output(),
                seconds,
            });
        }
        let how = match status.signal() {
            Some(signal) => format!("signal {signal}"),
            None => format!("code {}", status.code().unwrap_or(-1)),
        };
        let last_words = self.last_words();
        bail!("it ended with {how}: {}\n    {last_words}", self.text)
    }

    fn signal(&self, signal: i32) {
        let group = self.child.id() as i32;
        // SAFETY: no memory is involved. The group is the child's own, and keeps its
        // number for as long as anything is in it.
        unsafe { libc::killpg(group, signal) };
    }

    /// Its last lines, for an error.
    pub fn last_words(&mut self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.trim().lines().collect();
        match lines.as_slice() {
            [] => "it said nothing".into(),
            lines => lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n    "),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.stop();
        }
    }
}

/// Runs a shell command to its end; see [`Running::wait`].
pub fn run(text: &str, limit: Duration, stop: &AtomicBool) -> Result<Done> {
    Running::start(text)?.wait(limit, stop)
}

/// Leaves the child to be waited for by its owner: until then its number is its own.
fn wait_without_reaping(pid: u32) {
    // SAFETY: siginfo_t is plain memory that the call fills in.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT);
    }
}

/// For a child before its exec: to get a signal when the bench ends, however that
/// comes about.
fn die_with_parent(signal: i32) -> std::io::Result<()> {
    // SAFETY: plain numbers.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// For a child before its exec: whoever started the bench in the background of a
/// shell had it ignore SIGINT, and its children with it.
fn listen_to_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: no handler of ours is involved.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Where programs are looked for.
pub fn path() -> String {
    std::env::var("PATH").unwrap_or_default() + MORE_FOLDERS
}

/// A text in `' '` for the shell.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn run_it(text: &str) -> Result<Done> {
        run(text, LIMIT, &AtomicBool::new(false))
    }

    #[test]
    fn what_a_command_leaves_behind_ends_with_it() {
        let done = run_it("sleep 1000 & echo $!").expect("a command");
        assert!(done.seconds < 10.0);
        let stat = format!("/proc/{}/stat", done.output.trim());
        let start = Instant::now();
        let gone = || std::fs::read_to_string(&stat).map_or(true, |s| s.contains(") Z"));
        while !gone() {
            assert!(start.elapsed() < LIMIT, "it is still there");
            sleep(TICK);
        }
    }

    #[test]
    fn a_command_that_fails_says_how_and_its_last_words() {
        let error = run_it("echo one; echo two >&2; exit 3")
            .err()
            .expect("a failure");
        let text = error.to_string();
        assert!(text.contains("code 3") && text.contains("two"), "{text}");
        let error = run_it("kill -9 $$").err().expect("a failure").to_string();
        assert!(error.contains("signal 9"), "{error}");
    }

    #[test]
    fn a_command_that_takes_too_long_and_one_that_is_interrupted_are_stopped() {
        let stop = AtomicBool::new(false);
        let error = run("sleep 1000", Duration::from_millis(200), &stop).err();
        assert!(error.expect("a limit").to_string().contains("longer than"));
        stop.store(true, Ordering::Relaxed);
        let error = run("sleep 1000", LIMIT, &stop).err().expect("an end");
        assert!(error.is::<Interrupted>());
    }

    #[test]
    fn a_quoted_text_is_one_word_whatever_is_in_it() {
        let text = "it's \"$HOME\" `here`";
        let done = run_it(&format!("printf %s {}", quoted(text))).expect("printf");
        assert_eq!(done.output, text);
    }
}
