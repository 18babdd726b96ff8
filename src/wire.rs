// SPDX-License-Identifier: GPL-2.0-only
//! What travels between the scheduler's process and those who ask it: the target
//! "ctl" of the stats socket. Pure.

use serde::{Deserialize, Serialize};

/// The socket of the one scheduler that can run; every scx tool looks here.
pub const SOCKET: &str = "/var/run/scx/root/stats";
/// Target of the stats server that this program itself talks to.
pub const CTL: &str = "ctl";
/// Argument that names the operation.
pub const OP: &str = "op";
/// Argument of [`OP_SET`]: the words, separated by spaces.
pub const WORDS: &str = "words";
/// The settings; answered by [`crate::settings::Settings`].
pub const OP_GET: &str = "get";
/// Changes settings; answered by [`SetReply`].
pub const OP_SET: &str = "set";
/// Counters since the scheduler was loaded; answered by a Sample.
pub const OP_TOTAL: &str = "total";
/// Counters since the last change of a setting; answered by a Sample.
pub const OP_SINCE_SET: &str = "since-set";

/// Starts to watch a task or process ([`PID`], [`SECONDS`]); answered by the
/// number of the watch. It ends by [`OP_WATCHED`], with the connection, or some
/// time after so many seconds, whichever is first.
pub const OP_WATCH: &str = "watch";
/// Ends a watch ([`WATCH`]); answered by a Watched.
pub const OP_WATCHED: &str = "watched";
/// Argument of [`OP_WATCH`]: a pid or tgid.
pub const PID: &str = "pid";
/// Argument of [`OP_WATCH`]: when the client means to end it, in whole seconds.
pub const SECONDS: &str = "seconds";
/// Argument of [`OP_WATCHED`]: the number of the watch.
pub const WATCH: &str = "watch";

/// What became of a `set`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SetReply {
    /// The words were wrong: why. Nothing was changed then.
    pub bad_word: Option<String>,
    /// One line for each item that changed.
    pub changes: Vec<String>,
    /// What is allowed, but hardly meant.
    pub warnings: Vec<String>,
}
