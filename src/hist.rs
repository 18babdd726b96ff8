// SPDX-License-Identifier: GPL-2.0-only
//! Log2 histograms of durations: difference, percentile, a bar for a terminal.
//! Pure.
//!
//! Bucket b holds values from 2^b up to, but not including, 2^(b+1); bucket 0
//! holds 0 as well, and the last one everything above.

use serde::{Deserialize, Serialize};

/// A log2 histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hist(pub Vec<u64>);

impl Hist {
    /// Number of values.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &[u64]) {
        if self.0.len() < other.len() {
            self.0.resize(other.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(other) {
            *mine += theirs;
        }
    }

    /// What came since an earlier state of the same histogram.
    pub fn since(&self, earlier: &Hist) -> Hist {
        let before = earlier.0.iter().chain(std::iter::repeat(&0));
        let diff = self.0.iter().zip(before).map(|(a, b)| a.saturating_sub(*b));
        Hist(diff.collect())
    }

    /// The value below which `percent` of the values lie. Inside a bucket they
    /// are taken as evenly spread, so the error is at most a factor of 2.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let rank = total as f64 * percent.clamp(0.0, 100.0) / 100.0;
        let mut below = 0.0;
        for (bucket, &n) in self.0.iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = n as f64;
            if below + n >= rank {
                let (low, high) = bounds(bucket);
                return Some(low + (high - low) * (rank - below) / n);
            }
            below += n;
        }
        self.max_bucket().map(|b| bounds(b).1)
    }

    /// The highest bucket that holds a value.
    pub fn max_bucket(&self) -> Option<usize> {
        self.0.iter().rposition(|n| *n > 0)
    }

    /// Lines of "from, count, bar" over the buckets in use; the longest bar has
    /// `width` characters.
    pub fn bars(&self, width: usize) -> Vec<String> {
        let Some(last) = self.max_bucket() else {
            return vec![];
        };
        let first = self.0.iter().position(|n| *n > 0).unwrap_or(0);
        let most = self.0.iter().max().copied().unwrap_or(1).max(1);
        let line = |bucket: usize| {
            let n = self.0[bucket];
            let full = (n as f64 * width as f64 / most as f64).ceil() as usize;
            let from = show_rounded(bounds(bucket).0);
            format!("{from:>8} {n:>12} {}", "#".repeat(full))
        };
        (first..=last).map(line).collect()
    }
}

/// Where a bucket starts, and where the next one does.
pub fn bounds(bucket: usize) -> (f64, f64) {
    let low = if bucket == 0 {
        0.0
    } else {
        (bucket as f64).exp2()
    };
    (low, (bucket as f64 + 1.0).exp2())
}

/// A duration in ns with three digits and a unit.
pub fn show_rounded(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    // 999.5 would round to a fourth digit: it belongs to the next unit
    match units.iter().find(|(_, size)| ns >= size * 0.9995) {
        Some((unit, size)) => {
            let n = ns / size;
            let digits = if n >= 99.95 { 0 } else { 1 };
            format!("{n:.digits$}{unit}")
        }
        None => format!("{ns:.0}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hist(pairs: &[(usize, u64)]) -> Hist {
        let mut h = Hist(vec![0; 40]);
        for (bucket, n) in pairs {
            h.0[*bucket] = *n;
        }
        h
    }

    #[test]
    fn an_empty_histogram_has_no_percentile_and_no_bar() {
        assert_eq!(hist(&[]).percentile(50.0), None);
        assert!(hist(&[]).bars(40).is_empty());
        assert_eq!(Hist::default().max_bucket(), None);
    }

    #[test]
    fn a_percentile_is_interpolated_inside_its_bucket() {
        let h = hist(&[(10, 100)]);
        assert_eq!(h.percentile(0.0), Some(1024.0));
        assert_eq!(h.percentile(50.0), Some(1536.0));
        assert_eq!(h.percentile(100.0), Some(2048.0));
    }

    #[test]
    fn a_percentile_never_falls_when_the_percentage_grows() {
        let h = hist(&[(0, 3), (7, 5), (12, 1), (39, 2)]);
        let all: Vec<_> = (0..=1000)
            .filter_map(|p| h.percentile(p as f64 / 10.0))
            .collect();
        assert_eq!(all.len(), 1001);
        assert!(all.is_sorted());
    }

    #[test]
    fn merge_and_since_undo_each_other() {
        let (a, b) = (hist(&[(3, 4), (9, 1)]), hist(&[(3, 2), (20, 7)]));
        let mut both = a.clone();
        both.merge(&b.0);
        assert_eq!(both.since(&a), b);
        assert_eq!(both.total(), a.total() + b.total());
        assert_eq!(a.since(&both).total(), 0);
    }

    #[test]
    fn bars_span_the_buckets_in_use_and_the_longest_is_full() {
        let bars = hist(&[(10, 1), (12, 50)]).bars(20);
        assert_eq!(bars.len(), 3);
        assert!(bars[0].ends_with('#') && bars[1].ends_with("0 "));
        assert_eq!(bars[2].matches('#').count(), 20);
    }

    #[test]
    fn rounding_never_shows_a_fourth_digit() {
        assert_eq!(show_rounded(999.0), "999ns");
        assert_eq!(show_rounded(999.6), "1.0us");
        assert_eq!(show_rounded(99_960.0), "100us");
        assert_eq!(show_rounded(12_345_678.0), "12.3ms");
        assert_eq!(show_rounded(2e9), "2.0s");
    }
}
