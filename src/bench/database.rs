// SPDX-License-Identifier: GPL-2.0-only
//! Real databases, of the bench's own: the distribution's server in a folder of its
//! own, as an unprivileged user, on a Unix socket, filled once by sysbench.
//!
//! 1. What is compared is schedulers: the data fit in memory, and nothing waits for a
//!    disk (no fsync, no durable commit). As a measurement of the database that would
//!    be unfair; between two schedulers it is the same for both.
//! 2. The folder is on a tmpfs where one has room, and goes away with the server. One
//!    that a killed bench has left is removed by the next.
//! 3. PostgreSQL's shared memory is in that folder too: after SIGKILL it would stay
//!    behind in /dev/shm. Dead rows are swept every 5 s, or they would pile up.
//! 4. The server ends with the bench, however that ends.

use std::fs::{read_dir, read_to_string, remove_dir_all};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::bench::command::{self, Interrupted, Running, quoted};
use crate::bench::data::Database;

/// What a server may take for a step: an emulated machine is slow.
const LIMIT: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Both databases, filled, and their logs.
const ROOM: u64 = 600 << 20;
/// Enough rows that clients seldom meet at one, few enough to be there in seconds.
const TABLES: &str = "--tables=4 --table-size=10000";
/// The largest sweep that ships has 256 clients; and some for who looks in.
const CONNECTIONS: u32 = 300;
/// What a folder's name begins with; the number of the bench's process follows.
const FOLDER: &str = "scx_kin-bench-";
/// Where Debian keeps each version's programs.
const POSTGRES: &str = "/usr/lib/postgresql";

/// A program that is not there.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub program: &'static str,
    /// The Debian package that brings it.
    pub package: &'static str,
}

/// What of a database is not there.
pub fn missing(kind: Database) -> Vec<Missing> {
    let needed: &[(&str, &str)] = match kind {
        Database::Pgsql => &[
            ("postgres", "postgresql"),
            ("initdb", "postgresql"),
            ("createdb", "postgresql"),
            ("sysbench", "sysbench"),
        ],
        Database::Mysql => &[
            ("mariadbd", "mariadb-server"),
            ("mariadb-install-db", "mariadb-server"),
            ("mariadb", "mariadb-client"),
            ("sysbench", "sysbench"),
        ],
    };
    let absent = needed.iter().filter(|(program, _)| find(program).is_none());
    absent
        .map(|(program, package)| Missing { program, package })
        .collect()
}

/// Where a program is, by its name or path; of several versions of PostgreSQL's, the
/// newest.
pub fn find(program: &str) -> Option<PathBuf> {
    let versions = read_dir(POSTGRES).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = versions
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let theirs = versions.iter().map(|v| format!("{POSTGRES}/{v}/bin"));
    let path = command::path();
    let folders = theirs.chain(path.split(':').map(str::to_string));
    folders
        .map(|folder| Path::new(&folder).join(program))
        .find(|p| p.is_file())
}

fn program(name: &str) -> Result<String> {
    let path = find(name).with_context(|| format!("{name} is not installed"))?;
    Ok(quoted(&path.to_string_lossy()))
}

/// A server that runs, with its data: it ends before they go.
pub struct Server {
    process: Process,
    folder: TempDir,
}

/// Ends when dropped, the way that it likes.
struct Process {
    kind: Database,
    running: Running,
}

impl Drop for Process {
    /// PostgreSQL's fast shutdown is SIGINT, which MariaDB does not listen to.
    fn drop(&mut self) {
        match self.kind {
            Database::Pgsql => {
                self.running
                    .stop_with(&[libc::SIGINT, libc::SIGQUIT, libc::SIGKILL])
            }
            Database::Mysql => self.running.stop_with(&[libc::SIGTERM, libc::SIGKILL]),
        };
    }
}

impl Server {
    /// Starts one, waits until it answers, and fills it.
    pub fn start(kind: Database, stop: &AtomicBool) -> Result<Server> {
        // PostgreSQL's SIGTERM waits for its clients to leave.
        let (name, last) = match kind {
            Database::Pgsql => ("PostgreSQL", libc::SIGINT),
            Database::Mysql => ("MariaDB", libc::SIGTERM),
        };
        remove_old_folders();
        let user = User::of(kind)?;
        let folder = new_folder(&user)?;
        let path = quoted(&folder.path().to_string_lossy());
        let install = match kind {
            Database::Pgsql => format!(
                "{} -D {path}/data -U postgres --auth=trust --no-sync --locale=C -E UTF8",
                program("initdb")?
            ),
            Database::Mysql => format!(
                "{} --no-defaults --datadir={path}/data --skip-test-db \
                 --auth-root-authentication-method=normal",
                program("mariadb-install-db")?
            ),
        };
        let installing = Running::spawn(user.shell(&install), &install, libc::SIGTERM)?;
        installing
            .wait(LIMIT, stop)
            .with_context(|| name.to_string())?;
        let serve = serve_command(kind, &path)?;
        let running = Running::spawn(user.shell(&format!("exec {serve}")), name, last)?;
        let process = Process { kind, running };
        let mut server = Server { process, folder };
        server.fill(stop).with_context(|| name.to_string())?;
        Ok(server)
    }

    /// Waits until it answers, makes the database, and has sysbench fill it.
    fn fill(&mut self, stop: &AtomicBool) -> Result<()> {
        let path = quoted(&self.folder.path().to_string_lossy());
        let create = match self.process.kind {
            Database::Pgsql => format!("{} -h {path} -U postgres sbtest", program("createdb")?),
            Database::Mysql => {
                let client = program("mariadb")?;
                format!(
                    "{client} --no-defaults -S {path}/socket -u root -e 'create database sbtest'"
                )
            }
        };
        let start = Instant::now();
        while let Err(error) = command::run(&create, LIMIT, stop) {
            let gone = self.process.running.ended()?.is_some();
            ensure!(
                !gone,
                "it did not start:\n    {}",
                self.process.running.last_words()
            );
            if error.is::<Interrupted>() || start.elapsed() > LIMIT {
                return Err(error);
            }
            if stop.load(Ordering::Relaxed) {
                bail!(Interrupted);
            }
            sleep(LOOK_EVERY);
        }
        let options = self.sysbench_options();
        command::run(
            &format!("sysbench oltp_read_write {options} --threads=4 prepare"),
            LIMIT,
            stop,
        )?;
        // A run of one event: it answers, and what was filled is there.
        let ask = format!("sysbench oltp_read_only {options} --events=1 --time=0 run");
        command::run(&ask, LIMIT, stop).map(|_| ())
    }

    /// How sysbench reaches it: what stands for `{db}` in a command.
    pub fn sysbench_options(&self) -> String {
        let path = quoted(&self.folder.path().to_string_lossy());
        let how = match self.process.kind {
            Database::Pgsql => {
                format!(
                    "--db-driver=pgsql --pgsql-host={path} --pgsql-user=postgres --pgsql-db=sbtest"
                )
            }
            Database::Mysql => {
                format!(
                    "--db-driver=mysql --mysql-socket={path}/socket --mysql-user=root --mysql-db=sbtest"
                )
            }
        };
        format!("{how} {TABLES}")
    }

    /// Its processes, those of PostgreSQL's clients too.
    pub fn pids(&self) -> Vec<u32> {
        let first = self.process.running.pid();
        let children = read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        let children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        std::iter::once(first).chain(children).collect()
    }

    /// Ends it and removes its data.
    pub fn stop(self) -> Result<()> {
        let Server { process, folder } = self;
        drop(process);
        let path = folder.path().to_path_buf();
        folder
            .close()
            .with_context(|| format!("removing {}", path.display()))
    }
}

fn serve_command(kind: Database, path: &str) -> Result<String> {
    Ok(match kind {
        Database::Pgsql => format!(
            "{} -D {path}/data -k {path} -c listen_addresses= -c max_connections={CONNECTIONS} \
             -c shared_buffers=128MB -c fsync=off -c synchronous_commit=off \
             -c full_page_writes=off -c max_wal_size=128MB -c autovacuum_naptime=5s \
             -c dynamic_shared_memory_type=mmap",
            program("postgres")?
        ),
        Database::Mysql => format!(
            "{} --no-defaults --datadir={path}/data --socket={path}/socket --skip-networking \
             --pid-file={path}/pid --max-connections={CONNECTIONS} --skip-log-bin \
             --innodb-buffer-pool-size=128M --innodb-log-file-size=32M \
             --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0",
            program("mariadbd")?
        ),
    })
}

/// Who a server runs as: neither of them agrees to be root.
struct User(Option<(u32, u32)>);

impl User {
    /// The package's own user; who is not root is it himself.
    fn of(kind: Database) -> Result<User> {
        // SAFETY: geteuid has no precondition and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(User(None));
        }
        let names = match kind {
            Database::Pgsql => ["postgres", "nobody"],
            Database::Mysql => ["mysql", "nobody"],
        };
        let text = read_to_string("/etc/passwd").context("/etc/passwd")?;
        let ids = |name: &str| {
            let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
            let mut mine = fields.filter(|f| f.len() > 3 && f[0] == name);
            mine.find_map(|f| Some((f[2].parse().ok()?, f[3].parse().ok()?)))
        };
        let found = names.iter().find_map(|name| ids(name));
        found
            .map(|ids| User(Some(ids)))
            .context("no user to run a database as: neither its own nor nobody")
    }

    fn shell(&self, text: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", text]).current_dir("/");
        if let Some((uid, gid)) = self.0 {
            shell.uid(uid).gid(gid);
        }
        shell
    }
}

/// A folder that the user owns, on a tmpfs if one has room for it.
fn new_folder(user: &User) -> Result<TempDir> {
    let shm = Path::new("/dev/shm");
    let place = if room(shm) >= ROOM {
        shm.to_path_buf()
    } else {
        std::env::temp_dir()
    };
    ensure!(
        room(&place) >= ROOM,
        "a database needs {} MiB in {}: set TMPDIR to where there is room",
        ROOM >> 20,
        place.display()
    );
    let prefix = format!("{FOLDER}{}-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(&place);
    let folder = folder.with_context(|| format!("a folder in {}", place.display()))?;
    if let Some((uid, gid)) = user.0 {
        chown(folder.path(), Some(uid), Some(gid)).context("chown")?;
    }
    Ok(folder)
}

/// Free bytes of the file system that a folder is on.
fn room(folder: &Path) -> u64 {
    let Ok(path) = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()) else {
        return 0;
    };
    // SAFETY: all zeroes is a valid statvfs, which the call fills in; the path ends in 0.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &mut stat) {
            0 => stat.f_bavail.saturating_mul(stat.f_frsize),
            _ => 0,
        }
    }
}

/// Those of benches that were killed.
fn remove_old_folders() {
    for place in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        for entry in read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name
                .strip_prefix(FOLDER)
                .and_then(|rest| rest.split('-').next());
            let gone = |pid: &str| !Path::new("/proc").join(pid).exists();
            if pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && gone(pid)) {
                // Somebody else's is theirs to remove.
                let _ = remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_in_the_path() {
        assert!(find("sh").is_some() && find("/bin/sh").is_some());
        assert!(find("no-such-program").is_none() && find("/no/such/program").is_none());
    }
}
