// SPDX-License-Identifier: GPL-2.0-only
//! How a bench gets on: a bar on a terminal, else a line for each run; and the
//! results on disk, as they are after each round.

use std::fs::{self, File};
use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use crate::bench::data::{Results, Run, Workload};
use crate::bench::session::Audience;

/// Fits 80 columns with the longest of times.
const BAR: &str = "{bar:16} {pos}/{len}, {eta} left: {msg}";
/// As a path: results are not to be kept.
const NOWHERE: &str = "/dev/null";
/// So much of a run's name fits behind it.
const NAME_WIDTH: usize = 40;

/// What is shown meanwhile.
pub struct Progress {
    bar: Option<ProgressBar>,
    file: Kept,
}

impl Progress {
    /// For so many runs.
    pub fn new(runs: usize, file: Kept) -> Progress {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(runs as u64);
            if let Ok(style) = ProgressStyle::with_template(BAR) {
                bar.set_style(style.progress_chars("##-"));
            }
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        Progress { bar, file }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.chars().take(NAME_WIDTH).collect::<String>()),
            // Nobody may be there to read it.
            None => drop(writeln!(stderr(), "{text}")),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// "pipes 4 under default"
fn name_of(run: &Run) -> String {
    let clients = if run.clients > 0 {
        format!(" {}", run.clients)
    } else {
        String::new()
    };
    let twin = if run.twin { " (twin)" } else { "" };
    format!("{}{clients} under {}{twin}", run.workload, run.setting)
}

/// "12.3 s" of the first metric.
fn figure_of(run: &Run, workload: &Workload) -> String {
    let metric = workload.metrics.first();
    let figure = metric.and_then(|m| Some((run.figures.get(&m.name)?, &m.unit)));
    figure.map_or(String::new(), |(figure, unit)| {
        format!("{figure:.4} {unit}")
    })
}

impl Audience for Progress {
    fn step(&mut self, text: &str) {
        self.say(text);
    }

    fn begin(&mut self, run: &Run) {
        if self.bar.is_some() {
            self.say(&name_of(run));
        }
    }

    fn end(&mut self, run: &Run, workload: &Workload) {
        let text = format!("{}: {}", name_of(run), figure_of(run, workload));
        match &self.bar {
            Some(bar) => {
                // A repetition was not among those that were counted on.
                bar.inc(u64::from(!run.repeat));
                self.say(&text);
            }
            None => self.say(&format!("  {text}")),
        }
        if let Some(why) = &run.disturbed {
            let again = if run.repeat {
                "kept, and marked"
            } else {
                "once more"
            };
            let text = format!("  disturbed: {why}; {again}");
            match &self.bar {
                Some(bar) => bar.println(text),
                None => self.say(&text),
            }
        }
    }

    fn keep(&mut self, results: &Results) -> Result<()> {
        self.file.write(results)
    }
}

/// The file that results are kept in, if they are.
#[derive(Clone)]
pub struct Kept {
    path: Option<PathBuf>,
}

impl Kept {
    /// Fails here and now if nothing can be written there. In /dev/null nothing is kept.
    pub fn create(path: &str) -> Result<Kept> {
        if path == NOWHERE {
            return Ok(Kept { path: None });
        }
        let hint = || format!("{path} cannot be written: say where with --out FILE");
        File::create_new(path)
            .map_err(anyhow::Error::from)
            .with_context(hint)?;
        Ok(Kept {
            path: Some(path.into()),
        })
    }

    /// Replaces what is in it: whole, or not at all.
    pub fn write(&self, results: &Results) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut aside = path.clone().into_os_string();
        aside.push(".new");
        let text = serde_json::to_string(results)?;
        let written = fs::write(&aside, text).and_then(|()| fs::rename(&aside, path));
        written.with_context(|| format!("writing {}", path.display()))
    }

    /// Takes the file away again: there was nothing to keep.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }

    /// Says where, for who wants more of it.
    pub fn tell(&self) {
        if let Some(path) = &self.path {
            let path = path.display();
            let more = "`scx_kin bench report` tells it again, in other forms too";
            // Nobody may be there to read it.
            let _ = writeln!(stderr(), "\nkept in {path}\n{more}");
        }
    }
}

/// Reads what a bench has kept.
pub fn read(path: &str) -> Result<Results> {
    let text = fs::read_to_string(path).with_context(|| path.to_string())?;
    let value: serde_json::Value = serde_json::from_str(&text)
        .with_context(|| format!("{path} holds no results of a bench"))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    let ours = u64::from(crate::bench::data::FORMAT);
    anyhow::ensure!(
        format == Some(ours),
        "{path} holds no results that this version reads (format {ours})"
    );
    serde_json::from_value(value).with_context(|| format!("{path} is damaged"))
}
