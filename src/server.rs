// SPDX-License-Identifier: GPL-2.0-only
//! The stats socket: target "top" for anything that reads scx statistics, and
//! "ctl" for this program's own subcommands. Root only.
//!
//! Requests arrive on threads of scx_stats and are answered by the thread that
//! owns the scheduler, in [`Server::serve`]; nothing but the `Desk` is shared.
//! (The channels that scx_stats offers spin and sched_yield() before they sleep,
//! ten times a second: the scheduler would count its own loader.)

use std::collections::{BTreeMap, VecDeque};
use std::fs::{create_dir_all, metadata, remove_file};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use scx_stats::prelude::*;
use scx_stats::{StatsField, StatsFieldAttrs, StatsKind, StatsStructAttrs};
use serde_json::{Map, Value, json};

use crate::metrics::{Sample, percentile_fields};
use crate::tables::COUNTERS;
use crate::wire::{CTL, OP, OP_GET, OP_SET, OP_SINCE_SET, OP_TOTAL, SOCKET, WORDS};
use crate::wire::{OP_WATCH, OP_WATCHED, PID, SECONDS, WATCH};

/// How long a server that is about to end may keep the socket.
const LEAVING_STEPS: u32 = 30;
const LEAVING_STEP: Duration = Duration::from_millis(100);
/// Rights of group and others, which the socket must not have.
const NOT_OURS: libc::mode_t = 0o077;

/// What a client wants to know or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// See wire::OP_GET.
    Get,
    /// See wire::OP_SET.
    Set(Vec<String>),
    /// See wire::OP_TOTAL.
    Total,
    /// See wire::OP_SINCE_SET.
    SinceSet,
    /// See wire::OP_WATCH: whom, and for how many seconds.
    Watch(u32, u64),
    /// See wire::OP_WATCHED.
    Watched(u64),
}

/// The answer, as JSON.
pub type Reply = Result<Value, String>;

type Args = BTreeMap<String, String>;

/// Where requests wait for the scheduler's thread.
#[derive(Default)]
struct Desk {
    waiting: Mutex<VecDeque<(Request, Sender<Reply>)>>,
    bell: Condvar,
}

impl Desk {
    fn ask(&self, request: Request) -> Result<Value> {
        let (reply, answered): (Sender<Reply>, Receiver<Reply>) = channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back((request, reply));
        drop(waiting);
        self.bell.notify_one();
        answered.recv()?.map_err(|error| anyhow!(error))
    }

    /// Leaves a request whose answer nobody waits for.
    fn tell(&self, request: Request) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back((request, channel().0));
        drop(waiting);
        self.bell.notify_one();
    }

    fn ask_sample(&self, request: Request) -> Result<Sample> {
        Ok(serde_json::from_value(self.ask(request)?)?)
    }

    fn take(&self, wait: Duration) -> Option<(Request, Sender<Reply>)> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let until = self
            .bell
            .wait_timeout_while(waiting, wait, |waiting| waiting.is_empty());
        until.unwrap_or_else(PoisonError::into_inner).0.pop_front()
    }
}

/// The socket, for as long as it lives.
pub struct Server {
    /// Dropped first: its file is removed after it.
    server: Option<StatsServer<(), ()>>,
    desk: Arc<Desk>,
    inode: Option<u64>,
}

impl Server {
    /// Opens the socket. A file that nobody listens on is replaced; one that
    /// somebody answers on is not.
    pub fn launch() -> Result<Server> {
        if let Some(dir) = Path::new(SOCKET).parent() {
            create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        }
        wait_for_free_socket()?;
        let desk = Arc::new(Desk::default());
        // SAFETY: umask cannot fail; no other thread creates files here.
        let umask = unsafe { libc::umask(NOT_OURS) };
        let launched = StatsServer::new(server_data(&desk))
            .set_path(SOCKET)
            .launch();
        // SAFETY: as above.
        unsafe { libc::umask(umask) };
        let server = launched.with_context(|| format!("opening {SOCKET}"))?;
        let inode = metadata(SOCKET).ok().map(|file| file.ino());
        Ok(Server {
            server: Some(server),
            desk,
            inode,
        })
    }

    /// Answers one request, if one comes within `wait`.
    pub fn serve(&self, wait: Duration, answer: impl FnOnce(Request) -> Reply) {
        if let Some((request, reply)) = self.desk.take(wait) {
            // The thread that asks may be gone by now: its loss.
            let _ = reply.send(answer(request));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.server.take());
        // Not if another scheduler has put its own socket there.
        if metadata(SOCKET).ok().map(|file| file.ino()) == self.inode {
            let _ = remove_file(SOCKET);
        }
    }
}

/// Writes what the statistics mean; --help-stats.
pub fn describe(out: &mut Vec<u8>) -> Result<()> {
    server_data(&Arc::default()).describe_meta(out, None)
}

fn wait_for_free_socket() -> Result<()> {
    for _ in 0..LEAVING_STEPS {
        if UnixStream::connect(SOCKET).is_err() {
            return Ok(());
        }
        sleep(LEAVING_STEP);
    }
    bail!("another program answers on {SOCKET}: end it first")
}

fn server_data(desk: &Arc<Desk>) -> StatsServerData<(), ()> {
    let (for_top, for_ctl) = (desk.clone(), desk.clone());
    let open_top = move |_: (&_, &_)| open_top(for_top.clone());
    let open_ctl = move |_: (&_, &_)| open_ctl(for_ctl.clone());
    let top = StatsOps {
        open: Box::new(open_top),
        close: None,
    };
    let ctl = StatsOps {
        open: Box::new(open_ctl),
        close: None,
    };
    StatsServerData::new()
        .add_meta(top_meta())
        .add_ops("top", top)
        .add_ops(CTL, ctl)
}

/// "top" tells each reader what came since it asked last; at first, since the
/// last change of a setting.
fn open_top(desk: Arc<Desk>) -> Result<Box<dyn StatsReader<(), ()>>> {
    let mut first = Some(desk.ask_sample(Request::SinceSet)?);
    let mut last = desk.ask_sample(Request::Total)?;
    Ok(Box::new(move |_: &Args, _: (&_, &_)| {
        if let Some(sample) = first.take() {
            return Ok(flat(&sample));
        }
        let now = desk.ask_sample(Request::Total)?;
        let delta = now.since(&last);
        last = now;
        Ok(flat(&delta))
    }))
}

fn open_ctl(desk: Arc<Desk>) -> Result<Box<dyn StatsReader<(), ()>>> {
    let mut session = Session { desk, watch: None };
    Ok(Box::new(move |args: &Args, _: (&_, &_)| {
        let words = || args.get(WORDS).cloned().unwrap_or_default();
        session.ask(match args.get(OP).map(String::as_str) {
            Some(OP_GET) => Request::Get,
            Some(OP_SET) => Request::Set(words().split(' ').map(str::to_string).collect()),
            Some(OP_TOTAL) => Request::Total,
            Some(OP_SINCE_SET) => Request::SinceSet,
            Some(OP_WATCH) => Request::Watch(number(args, PID)?, number(args, SECONDS)?),
            Some(OP_WATCHED) => Request::Watched(number(args, WATCH)?),
            other => bail!("unknown operation {other:?}"),
        })
    }))
}

/// One client of "ctl". When it goes, killed or not, its watch ends with it.
struct Session {
    desk: Arc<Desk>,
    watch: Option<u64>,
}

impl Session {
    fn ask(&mut self, request: Request) -> Result<Value> {
        match request {
            Request::Watch(..) => {
                let watch = self.desk.ask(request)?;
                self.watch = watch.as_u64();
                Ok(watch)
            }
            Request::Watched(_) => {
                self.watch = None;
                self.desk.ask(request)
            }
            _ => self.desk.ask(request),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(watch) = self.watch {
            self.desk.tell(Request::Watched(watch));
        }
    }
}

fn number<N: FromStr>(args: &Args, name: &str) -> Result<N> {
    let number = args.get(name).and_then(|text| text.parse().ok());
    number.ok_or_else(|| anyhow!("{name} is not a number that fits"))
}

/// A sample as "top" shows it: one flat list, which every exporter understands.
fn flat(sample: &Sample) -> Value {
    let mut all = Map::new();
    all.insert("epoch".into(), json!(sample.epoch));
    all.insert("seconds".into(), json!(sample.seconds));
    all.extend(
        sample
            .counters
            .iter()
            .map(|(name, n)| (name.clone(), json!(n))),
    );
    all.extend(
        sample
            .percentiles()
            .into_iter()
            .map(|(name, n)| (name, json!(n))),
    );
    Value::Object(all)
}

/// The description of [`flat`], out of the same tables. (scx_stats_derive would
/// want a struct with a field for each counter: the list once more.)
fn top_meta() -> StatsMeta {
    let field = |kind, help: &str| StatsField {
        data: StatsData::Datum(kind),
        attrs: StatsFieldAttrs {
            desc: Some(help.into()),
            ..StatsFieldAttrs::default()
        },
    };
    let mut fields = BTreeMap::new();
    let epoch = "changes of settings so far";
    fields.insert("epoch".into(), field(StatsKind::U64, epoch));
    let seconds = "length of the stretch of time that the counters are of";
    fields.insert("seconds".into(), field(StatsKind::Float, seconds));
    for row in COUNTERS.iter() {
        fields.insert(row.name.into(), field(StatsKind::U64, row.help));
    }
    for (name, help) in percentile_fields() {
        fields.insert(name, field(StatsKind::U64, &help));
    }
    let attrs = StatsStructAttrs {
        top: Some("true".into()),
        desc: Some("what scx_kin did since it was asked last".into()),
        ..StatsStructAttrs::default()
    };
    StatsMeta {
        name: "Metrics".into(),
        attrs,
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    /// What a client asks, and what the scheduler's thread sees of it.
    fn seen(desk: &Desk, answer: Reply) -> Request {
        let (request, reply) = desk.take(WAIT).expect("a request");
        let _ = reply.send(answer);
        request
    }

    fn args(op: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let pairs = [("target", CTL), (OP, op)].into_iter().chain(more.to_vec());
        pairs.map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn a_watch_ends_with_the_connection_of_its_client() {
        let path = std::env::temp_dir().join(format!("scx_kin-{}", std::process::id()));
        let desk = Arc::new(Desk::default());
        let server = StatsServer::new(server_data(&desk)).set_path(&path);
        let server = server.launch().expect("a socket");
        let client = StatsClient::new().set_path(&path);
        let client = std::thread::spawn(move || {
            let mut client = client.connect(Some(10_000)).expect("connected");
            let more = [(PID, "42"), (SECONDS, "5")];
            let first: Value = client.request("stats", args(OP_WATCH, &more)).expect("one");
            let second = client.request::<Value>("stats", args(OP_WATCH, &more));
            let wrong = client.request::<Value>("stats", args(OP_WATCH, &[(PID, "-1")]));
            (first, second.is_err(), wrong.is_err())
        });
        assert_eq!(seen(&desk, Ok(json!(7))), Request::Watch(42, 5));
        let busy = Err("pid 42 is being watched".into());
        assert_eq!(seen(&desk, busy), Request::Watch(42, 5));
        assert_eq!(client.join().expect("asked"), (json!(7), true, true));
        assert_eq!(seen(&desk, Ok(Value::Null)), Request::Watched(7));
        drop(server);
        let _ = remove_file(path);
    }
}
