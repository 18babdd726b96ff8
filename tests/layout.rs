// SPDX-License-Identifier: GPL-2.0-only
//! The layout of the sources, read from the sources: who may include whom, that
//! every row of every list is used, and that nothing grows without end. If this
//! ever needs a list of exceptions, delete it.

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

use scx_kin::tables::{COUNTERS, DOMAIN_FLAGS, FEATURES, HISTS, LEVELS, TUNABLES};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 60;
const MAIN_LINES: usize = 80;

/// From the bottom; a file takes from floors below its own alone.
const BPF_FLOORS: &[&[&str]] = &[
    &["rules.h", "counts.h"],
    &["intf.h"],
    &["policy.h"],
    &["newidle.h", "stats.bpf.h", "topo.bpf.h"],
    &["idle.bpf.h"],
    &["state.bpf.h"],
    &["affine.bpf.h"],
    &["sibling.bpf.h", "idlest.bpf.h"],
    &[
        "select.bpf.h",
        "preempt.bpf.h",
        "queue.bpf.h",
        "buddy.bpf.h",
        "balance.bpf.h",
        "dump.bpf.h",
    ],
    &["whatif.bpf.h"],
    &["main.bpf.c"],
];
const RUST_FLOORS: &[&[&str]] = &[
    &["bpf"],
    &["tables", "hist", "output", "scaling"],
    &["settings"],
    &[
        "words",
        "warnings",
        "wire",
        "metrics",
        "preflight",
        "task",
        "topology",
        "watch",
    ],
    &["presets", "prose", "bench::data"],
    &[
        "bench::args",
        "bench::command",
        "bench::stats",
        "bench::why",
    ],
    &["sched", "server", "client", "cli"],
    &["manual", "run", "whatif"],
    &["explain", "bench::host", "bench::plan", "bench::setting"],
    &["explain_task", "bench::compare", "bench::check"],
    &["bench::spec"],
    &[
        "inquiry",
        "bench::attach",
        "bench::database",
        "bench::session",
    ],
    &["bench::progress", "bench::axis", "bench::show"],
    &["bench::cost"],
    &["bench::meter"],
    &["bench::rig"],
    &["bench::notes", "bench::plot"],
    &["bench::export", "bench::table"],
    &["bench::across", "bench::figures"],
    &["bench::html"],
    &["bench"],
    &["commands"],
    &["lib", "main"],
];

fn sources(folder: &str, ends: &[&str]) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = read_dir(folder)
        .expect("folder")
        .map(|entry| entry.expect("entry").path());
    let wanted = |path: &PathBuf| ends.iter().any(|end| path.to_string_lossy().ends_with(end));
    let read = |path: PathBuf| {
        let name = path
            .file_name()
            .expect("name")
            .to_string_lossy()
            .into_owned();
        (name, read_to_string(&path).expect("text"))
    };
    files.filter(wanted).map(read).collect()
}

/// Every Rust file of src, by its path in it.
fn rust() -> BTreeMap<String, String> {
    let bench = sources("src/bench", &[".rs"]).into_iter();
    let bench = bench.map(|(name, text)| (format!("bench/{name}"), text));
    sources("src", &[".rs"]).into_iter().chain(bench).collect()
}

/// The module that a path after `crate::` leads to: `bench::plan`, or `sched`.
fn module_of(path: &str) -> String {
    let names = path.split("::");
    let word = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        text[..end.unwrap_or(text.len())].to_string()
    };
    let names: Vec<String> = names.take(2).map(word).collect();
    let nested = names.join("::");
    let known = RUST_FLOORS
        .iter()
        .any(|floor| floor.contains(&nested.as_str()));
    if known { nested } else { names[0].clone() }
}

fn bpf() -> BTreeMap<String, String> {
    sources("src/bpf", &[".h", ".bpf.c"])
}

fn floor_of(floors: &[&[&str]], name: &str) -> usize {
    let floor = floors.iter().position(|floor| floor.contains(&name));
    floor.unwrap_or_else(|| panic!("{name} has no floor in tests/layout.rs"))
}

#[test]
fn bpf_files_include_lower_floors_alone() {
    for (file, text) in bpf() {
        let includes = text
            .lines()
            .filter_map(|line| line.strip_prefix("#include \""));
        for other in includes.filter_map(|rest| rest.split('"').next()) {
            let (mine, theirs) = (floor_of(BPF_FLOORS, &file), floor_of(BPF_FLOORS, other));
            assert!(theirs < mine, "{file} includes {other}");
        }
    }
}

#[test]
fn rust_files_use_lower_floors_alone() {
    for (file, text) in rust() {
        let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let name = name.replace('/', "::");
        let mine = floor_of(RUST_FLOORS, &name);
        for path in text.split("crate::").skip(1).filter(|_| name != "lib") {
            let other = module_of(path);
            assert!(floor_of(RUST_FLOORS, &other) < mine, "{file} uses {other}");
        }
    }
}

#[test]
fn the_skeleton_has_one_user() {
    for (file, text) in rust() {
        let names = text.contains("bpf::skel");
        assert!(!names || file == "sched.rs", "{file} names the skeleton");
    }
}

/// Every file's text but the lists themselves, without comments' lines.
fn code() -> String {
    let files = bpf()
        .into_iter()
        .filter(|(name, _)| !BPF_FLOORS[0].contains(&name.as_str()));
    let text = files.map(|(_, text)| text).collect::<Vec<_>>().join("\n");
    let comment = |line: &&str| line.trim_start().starts_with('*');
    text.lines()
        .filter(|line| !comment(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether a name stands in the code as a whole word.
fn has_word(code: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

#[test]
fn every_switch_is_read() {
    let code = code();
    let unread = |name: &&str| !code.contains(&format!(", {name})"));
    let unread: Vec<_> = FEATURES.iter().map(|f| f.name).filter(unread).collect();
    assert_eq!(unread, [""; 0], "no feat(.., NAME)");
}

#[test]
fn every_number_is_read() {
    let code = code();
    let read = |name: &str| {
        [".", "->"]
            .iter()
            .any(|d| has_word(&code, &format!("tun{d}{name}")))
    };
    let unread: Vec<_> = TUNABLES
        .iter()
        .map(|t| t.name)
        .filter(|name| !read(name))
        .collect();
    assert_eq!(unread, [""; 0], "no tun.NAME");
}

#[test]
fn every_domain_flag_is_read() {
    let code = code();
    let read = |name: &str| has_word(&code, name) || has_word(&code, &format!("FLAG_{name}"));
    let unread: Vec<_> = DOMAIN_FLAGS
        .iter()
        .map(|f| f.name)
        .filter(|name| !read(name))
        .collect();
    assert_eq!(unread, [""; 0]);
}

/// A counter is bumped by its name, by `decided(task, name)` too; those of one event at each level may be
/// reached from the first by adding a level, as they stand in that order.
#[test]
fn every_counter_is_bumped() {
    let code = code();
    let decided =
        |line: &str, name: &str| line.contains("decided(") && line.contains(&format!(", {name})"));
    let named = |name: &str| {
        code.contains(&format!("count({name})"))
            || code.lines().any(|line| decided(line, name))
            || has_word(&code, &format!("CNT_{name}"))
    };
    let names: Vec<&str> = COUNTERS.iter().map(|c| c.name).collect();
    let level = |name: &str| {
        let end = name.rsplit('_').next().unwrap_or_default().to_uppercase();
        LEVELS.iter().position(|l| l.name == end)
    };
    let in_run_of_levels = |index: usize| {
        let run = (0..index)
            .rev()
            .map_while(|i| (level(names[i])? + index - i == level(names[index])?).then_some(i));
        run.into_iter().any(|first| named(names[first]))
    };
    let idle: Vec<&str> = (0..names.len())
        .filter(|&i| !named(names[i]) && !in_run_of_levels(i))
        .map(|i| names[i])
        .collect();
    assert_eq!(idle, [""; 0], "no count(NAME)");
}

#[test]
fn every_histogram_is_filled() {
    let code = code();
    let filled = |name: &&str| code.contains(&format!("hist_add({name},"));
    let empty: Vec<_> = HISTS
        .iter()
        .map(|h| h.name)
        .filter(|name| !filled(name))
        .collect();
    assert_eq!(empty, [""; 0], "no hist_add(NAME, ..)");
}

/// Lines from the one that opens a block in the first column of its file, or of
/// its impl, to the one that closes it: (name, length).
fn functions(text: &str, opens: impl Fn(&str) -> bool) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (start, line) in lines.iter().enumerate().filter(|(_, line)| opens(line)) {
        let indent = &line[..line.len() - line.trim_start().len()];
        let close = format!("{indent}}}");
        let end = lines[start..]
            .iter()
            .position(|line| line.trim_end() == close);
        found.push((line.trim().to_string(), end.unwrap_or(0) + 1));
    }
    found
}

#[test]
fn no_file_and_no_function_is_too_long() {
    let folders = ["tests", "tests/behaviour", "tests/policy"];
    let tests = folders.into_iter().flat_map(|f| sources(f, &[".rs"]));
    for (file, text) in rust().into_iter().chain(tests) {
        let limit = if file == "main.rs" && text.contains("fn main()") {
            MAIN_LINES
        } else {
            FILE_LINES
        };
        let lines = text.lines().count();
        assert!(lines <= limit, "{file} has {lines} lines");
        let is_fn = |line: &str| {
            let line = line
                .trim_start()
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            line.starts_with("fn ") || line.starts_with("unsafe fn ")
        };
        for (name, lines) in functions(&text, is_fn) {
            assert!(lines <= FUNCTION_LINES, "{file}: {name} has {lines} lines");
        }
    }
    for (file, text) in bpf() {
        let lines = text.lines().count();
        assert!(
            lines <= FILE_LINES || file == "main.bpf.c",
            "{file} has {lines} lines"
        );
        for (name, lines) in functions(&text, |line| line == "{") {
            assert!(lines <= FUNCTION_LINES, "{file}: {name} has {lines} lines");
        }
    }
}
