// SPDX-License-Identifier: GPL-2.0-only
//! Settings that are compared: the kernel's own scheduler, scx_kin with some words,
//! or another scheduler's command.

use anyhow::Result;

use crate::bench::data::{Setting, Spec};
use crate::presets;

/// The setting that is the kernel's own scheduler.
pub const STOCK: &str = "stock";
/// What stands before the command of another sched_ext scheduler.
pub const OTHER: &str = "other:";
/// What each setting is once the words of a ladder's lower rungs stand before its
/// own. Those of another scheduler and of stock stay out of it.
pub fn cumulative(spec: &Spec) -> Vec<String> {
    let mut below = String::new();
    let mut step = |setting: &Setting| {
        if !spec.ladder || !is_kin(&setting.is) {
            return setting.is.clone();
        }
        if !below.is_empty() {
            below += " ";
        }
        below += &setting.is;
        below.clone()
    };
    spec.settings.iter().map(&mut step).collect()
}

/// Whether a setting is one of scx_kin.
pub fn is_kin(is: &str) -> bool {
    is != STOCK && !is.starts_with(OTHER)
}

/// A setting of scx_kin as words of `set` that make it from any other: on top of
/// the defaults, where a bare name of a preset is that preset.
pub fn words_of(is: &str) -> Result<Vec<String>> {
    let builtin = presets::names();
    let word = |word: &str| match word {
        w if builtin.contains(&w) || w.ends_with(".preset") && !w.contains('=') => {
            format!("preset={w}")
        }
        w => w.to_string(),
    };
    let words = ["preset=default".to_string()].into_iter();
    let words: Vec<String> = words.chain(is.split_whitespace().map(word)).collect();
    Ok(presets::expand(&words)?)
}
