// SPDX-License-Identifier: GPL-2.0-only
//! Loads: threads that spin or sleep under given attributes, and real programs.

use std::fs::{self, File};
use std::hint::spin_loop;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

pub fn nr_cpus() -> usize {
    std::thread::available_parallelism().expect("CPUs").get()
}

/// Runs a program to its end and returns what it printed; it must succeed.
#[track_caller]
pub fn run(words: &str) -> String {
    let mut parts = words.split_whitespace();
    let out = Command::new(parts.next().expect("a command"))
        .args(parts)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{words}: {e}"));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{words}: {}\n{text}{err}", out.status);
    text
}

/// Restricts a thread, 0 being this one, to some CPUs.
#[track_caller]
pub fn pin(tid: i32, cpus: impl IntoIterator<Item = usize>) {
    // SAFETY: an all-zero cpu_set_t is an empty set; CPU_SET checks its bound.
    let ok = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(tid, size_of_val(&set), &set) == 0
    };
    assert!(ok, "sched_setaffinity: {}", std::io::Error::last_os_error());
}

/// Sets the nice value of this thread.
#[track_caller]
pub fn nice(value: i32) {
    // SAFETY: plain numbers. 0 is this thread, as everywhere in Linux.
    let ok = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) == 0 };
    assert!(ok, "setpriority: {}", std::io::Error::last_os_error());
}

/// Sets the scheduling policy of this thread; priority 1 for the realtime ones.
#[track_caller]
pub fn policy(policy: i32) {
    let realtime = policy == libc::SCHED_FIFO || policy == libc::SCHED_RR;
    let param = libc::sched_param {
        sched_priority: i32::from(realtime),
    };
    // SAFETY: the struct lives to the end of the call.
    let ok = unsafe { libc::sched_setscheduler(0, policy, &param) == 0 };
    assert!(
        ok,
        "sched_setscheduler: {}",
        std::io::Error::last_os_error()
    );
}

pub fn burn(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        spin_loop();
    }
}

/// CPU seconds that a thread of this process has had.
fn cpu_time(tid: i32) -> f64 {
    let path = format!("/proc/self/task/{tid}/schedstat");
    let text = fs::read_to_string(&path).expect(&path);
    let ns = text.split_whitespace().next().expect("a number");
    ns.parse::<f64>().expect("a number") / 1e9
}

/// Threads that do the same thing again and again until they are dropped.
pub struct Crew {
    stop: Arc<AtomicBool>,
    threads: Vec<(i32, JoinHandle<()>)>,
}

impl Crew {
    /// Starts `n` threads: each calls `setup` with its number once, then `work`.
    #[track_caller]
    pub fn start(
        n: usize,
        setup: impl Fn(usize) + Send + Sync + 'static,
        work: impl Fn() + Send + Sync + 'static,
    ) -> Crew {
        let stop = Arc::new(AtomicBool::new(false));
        let (setup, work) = (Arc::new(setup), Arc::new(work));
        let (tell, told) = mpsc::channel();
        let mut threads = Vec::new();
        for i in 0..n {
            let (stop, setup, work, tell) =
                (stop.clone(), setup.clone(), work.clone(), tell.clone());
            let thread = spawn(move || {
                setup(i);
                // SAFETY: always succeeds.
                let _ = tell.send(unsafe { libc::gettid() });
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            });
            threads.push((told.recv().expect("the thread's setup to succeed"), thread));
        }
        Crew { stop, threads }
    }

    /// Threads that never sleep.
    pub fn hogs(n: usize, setup: impl Fn(usize) + Send + Sync + 'static) -> Crew {
        Crew::start(n, setup, || burn(Duration::from_micros(100)))
    }

    /// Threads that work for `busy`, then sleep for `pause`.
    pub fn sleepers(
        n: usize,
        busy: Duration,
        pause: Duration,
        setup: impl Fn(usize) + Send + Sync + 'static,
    ) -> Crew {
        Crew::start(n, setup, move || {
            burn(busy);
            sleep(pause);
        })
    }

    /// Threads in the order of their numbers.
    pub fn tids(&self) -> Vec<i32> {
        self.threads.iter().map(|(tid, _)| *tid).collect()
    }

    pub fn pin_all(&self, cpus: std::ops::Range<usize>) {
        for (tid, _) in &self.threads {
            pin(*tid, cpus.clone());
        }
    }

    /// CPU seconds that each gets in the given time.
    pub fn shares(&self, time: Duration) -> Vec<f64> {
        let read = || self.threads.iter().map(|(tid, _)| cpu_time(*tid));
        let before: Vec<f64> = read().collect();
        sleep(time);
        read().zip(before).map(|(now, then)| now - then).collect()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for (_, thread) in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A thread that waits for timers which another one sets on CPU 0: each wakes it
/// from there, while it ran last on CPU 1.
pub fn timers_elsewhere() -> [Crew; 2] {
    // SAFETY: plain numbers; the descriptor is owned from here on.
    let timer = unsafe { OwnedFd::from_raw_fd(libc::timerfd_create(libc::CLOCK_MONOTONIC, 0)) };
    let timer = Arc::new(File::from(timer));
    let set = timer.clone();
    let setter = Crew::start(
        1,
        |_| pin(0, [0]),
        move || {
            // SAFETY: all zeroes is a valid timer; the struct outlives the call.
            unsafe {
                let mut time: libc::itimerspec = std::mem::zeroed();
                time.it_value.tv_nsec = 5_000_000;
                libc::timerfd_settime(set.as_raw_fd(), 0, &time, std::ptr::null_mut());
            }
            sleep(Duration::from_millis(15));
        },
    );
    let waiter = Crew::start(
        1,
        |_| {},
        move || {
            pin(0, [1]);
            pin(0, [0, 1]);
            let _ = (&*timer).read(&mut [0; 8]);
        },
    );
    // The waiter is dropped first: the setter still ends its last wait.
    [waiter, setter]
}

/// The CPU that this thread runs on.
pub fn this_cpu() -> usize {
    // SAFETY: no memory is involved.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).expect("a CPU")
}

/// One task wakes another by it. Its wakeups are not marked as sync, as those of a
/// pipe are.
pub struct Event(File);

impl Event {
    pub fn new() -> Event {
        // SAFETY: plain numbers; the descriptor is owned from here on.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        Event(File::from(fd))
    }

    pub fn signal(&self) {
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Whether it was signalled. Gives up after a while, so that a task whose partner
    /// has gone sees that it is to stop.
    pub fn wait(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one struct, which lives to the end of the call.
        let ready = unsafe { libc::poll(&mut poll, 1, 300) } == 1;
        ready && (&self.0).read(&mut [0; 8]).is_ok()
    }
}

/// A task that CPU `waker` wakes every so often, while it ran last on CPU `last` and
/// may run anywhere.
pub struct Wakee {
    wakee: Crew,
    _waker: Crew,
}

impl Wakee {
    pub fn start(waker: usize, last: usize, pause: Duration) -> Wakee {
        let event = Arc::new(Event::new());
        let told = event.clone();
        let wakee = Crew::start(
            1,
            |_| {},
            move || {
                pin(0, [last]);
                pin(0, 0..nr_cpus_possible());
                event.wait();
            },
        );
        let waker = Crew::start(
            1,
            move |_| pin(0, [waker]),
            move || {
                sleep(pause);
                told.signal();
            },
        );
        Wakee {
            wakee,
            _waker: waker,
        }
    }

    pub fn tid(&self) -> i32 {
        self.wakee.tids()[0]
    }
}

/// All CPUs of the machine, also for a thread that is pinned itself.
fn nr_cpus_possible() -> usize {
    // SAFETY: a plain number.
    let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(n).expect("CPUs")
}

/// Two tasks that wake each other in turn.
pub struct PingPong {
    crews: [Crew; 2],
    rounds: Arc<AtomicU64>,
}

impl PingPong {
    pub fn start(setup: impl Fn() + Clone + Send + Sync + 'static) -> PingPong {
        let rounds = Arc::new(AtomicU64::new(0));
        let [ping, pong] = [(); 2].map(|()| Arc::new(Event::new()));
        let (to, from, count) = (ping.clone(), pong.clone(), rounds.clone());
        let again = setup.clone();
        let first = Crew::start(
            1,
            move |_| setup(),
            move || {
                to.signal();
                if from.wait() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            },
        );
        let second = Crew::start(
            1,
            move |_| again(),
            move || {
                if ping.wait() {
                    pong.signal();
                }
            },
        );
        PingPong {
            crews: [first, second],
            rounds,
        }
    }

    pub fn tids(&self) -> [i32; 2] {
        [0, 1].map(|i| self.crews[i].tids()[0])
    }

    /// How often they go to and fro in the given time.
    pub fn rounds(&self, time: Duration) -> u64 {
        let before = self.rounds.load(Ordering::Relaxed);
        sleep(time);
        self.rounds.load(Ordering::Relaxed) - before
    }
}

/// A task that has a timer wake it again and again, and notes how late it runs.
pub struct Timed {
    crew: Crew,
    late: Arc<Mutex<Vec<Duration>>>,
}

impl Timed {
    pub fn start(period: Duration, setup: impl Fn(usize) + Send + Sync + 'static) -> Timed {
        let late = Arc::new(Mutex::new(vec![]));
        let notes = late.clone();
        let crew = Crew::start(1, setup, move || {
            let due = Instant::now() + period;
            sleep(period);
            notes.lock().expect("no panic").push(due.elapsed());
        });
        Timed { crew, late }
    }

    pub fn tid(&self) -> i32 {
        self.crew.tids()[0]
    }

    /// Ends it: the median of how late it was.
    pub fn median(self) -> Duration {
        drop(self.crew);
        let mut late = self.late.lock().expect("no panic").clone();
        late.sort_unstable();
        late.get(late.len() / 2).copied().unwrap_or_default()
    }
}
