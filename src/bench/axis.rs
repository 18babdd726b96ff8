// SPDX-License-Identifier: GPL-2.0-only
//! Axes of drawings: where a value lies, and which round values get a label. Pure.

/// Positive values that span more than this factor get a logarithmic axis.
pub const WIDE: f64 = 40.0;
/// What is larger is no figure of a workload, and arithmetic on it may overflow.
const MOST: f64 = 1e200;

/// Values to places along a line.
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// That holds all values, from one place on the line to another. Those that have
    /// no place on it are passed over.
    pub fn new(values: impl Iterator<Item = f64> + Clone, log: bool, from: f64, to: f64) -> Scale {
        let good = values.filter(|v| v.abs() < MOST && (!log || *v > 1.0 / MOST));
        let low = good.clone().reduce(f64::min).unwrap_or(1.0);
        let high = good.reduce(f64::max).unwrap_or(1.0);
        let flat = high - low <= f64::EPSILON * high.abs();
        let (low, high) = match (flat, log) {
            (true, true) => (low / 2.0, high * 2.0),
            (true, false) => (
                low - low.abs().max(1.0) / 10.0,
                high + high.abs().max(1.0) / 10.0,
            ),
            _ => (low, high),
        };
        Scale {
            low,
            high,
            log,
            from,
            to,
        }
    }

    /// With a little air at both ends.
    pub fn airy(mut self) -> Scale {
        let (low, high) = (self.on(self.low), self.on(self.high));
        let air = (high - low) * 0.06;
        let back = |v: f64| if self.log { v.exp2() } else { v };
        (self.low, self.high) = (back(low - air), back(high + air));
        self
    }

    fn on(&self, value: f64) -> f64 {
        if self.log {
            value.max(f64::MIN_POSITIVE).log2()
        } else {
            value
        }
    }

    /// The place of a value; of one beyond the ends, the end.
    pub fn place(&self, value: f64) -> f64 {
        let (low, high) = (self.on(self.low), self.on(self.high));
        let part = ((self.on(value) - low) / (high - low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * part
    }

    /// Round values within, with labels.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let round = match self.log {
            true => self.decades(about),
            false => self.even(about),
        };
        let inside = |v: &f64| (self.low..=self.high).contains(v);
        let step = match round.as_slice() {
            [a, b, ..] if !self.log => b - a,
            _ => f64::NAN,
        };
        let label = |v: f64| (v, label(v, step));
        round.into_iter().filter(inside).map(label).collect()
    }

    fn even(&self, about: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / about as f64;
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|n| n * power);
        let step = steps
            .into_iter()
            .find(|s| *s >= rough)
            .unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    fn decades(&self, about: usize) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let powers = |each: usize| (first..=last).step_by(each).map(|n| 10f64.powi(n));
        let fine: Vec<f64> = powers(1).flat_map(|p| [p, 2.0 * p, 5.0 * p]).collect();
        let inside = fine.iter().filter(|v| (self.low..=self.high).contains(*v));
        match inside.count() {
            n if n <= 2 * about => fine,
            _ => powers(((last - first) as usize).div_ceil(about).max(1)).collect(),
        }
    }
}

/// A tick's value with as many digits as its step needs.
fn label(value: f64, step: f64) -> String {
    let digits = |n: f64| (-n.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let (size, unit) = match value.abs() {
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let near = if step.is_nan() { value } else { step };
    let near = if near == 0.0 { 1.0 } else { near / size };
    format!("{:.*}{unit}", digits(near), value / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[f64], log: bool) -> Vec<String> {
        let scale = Scale::new(values.iter().copied(), log, 0.0, 100.0).airy();
        scale.ticks(6).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn labels_are_round_and_have_the_digits_that_tell_them_apart() {
        assert_eq!(
            texts(&[0.91, 1.12], false),
            ["0.90", "0.95", "1.00", "1.05", "1.10"]
        );
        assert_eq!(
            texts(&[0.0, 26_000.0], false),
            ["0", "5000", "10k", "15k", "20k", "25k"]
        );
        assert_eq!(
            texts(&[0.0, 100.0], false),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(texts(&[3.0, 2e6], true), ["100", "10k", "1M"]);
        assert_eq!(
            texts(&[900.0, 36e3], true),
            ["1000", "2000", "5000", "10k", "20k"]
        );
    }

    #[test]
    fn a_flat_line_and_no_value_at_all_have_an_axis_too() {
        for values in [&[1.0, 1.0][..], &[], &[0.0], &[f64::NAN], &[-3.0]] {
            for log in [true, false] {
                let scale = Scale::new(values.iter().copied(), log, 0.0, 100.0).airy();
                assert!((0.0..=100.0).contains(&scale.place(1.0)), "{values:?}");
                assert!(scale.ticks(6).len() < 20, "{values:?}");
            }
        }
    }
}
