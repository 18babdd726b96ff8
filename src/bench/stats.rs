// SPDX-License-Identifier: GPL-2.0-only
//! Medians, bootstrap intervals, verdicts. Pure.

/// A ratio of medians with its bootstrap confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median over the reference's median.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What a ratio comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Better than the reference, beyond interval and noise floor.
    Better,
    /// Worse, likewise.
    Worse,
    /// The interval spans 1, or the effect is below the noise floor.
    Same,
    /// The interval or the noise floor is too wide to say anything.
    TooNoisy,
}
