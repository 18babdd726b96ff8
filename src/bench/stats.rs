// SPDX-License-Identifier: GPL-2.0-only
//! Medians, ratios with bootstrap intervals, noise floors, verdicts. Pure.
//!
//! A round measures all settings shortly after one another, so what drifts (heat,
//! a neighbour's load, a growing table) hits a round's figures alike and cancels in
//! their ratio. That is why ratios are made round by round, in logarithms, and then
//! summed up by the Hodges-Lehmann estimator: the median of the means of all pairs
//! of rounds. One bad round of seven cannot move it far, as with a median, but it
//! scatters by a sixth less than a median of seven does, and where there is drift,
//! by half of what a ratio of two medians does (tests/bench_stats.rs).
//!
//! A plain bootstrap of 3 rounds is wrong one time in four, not one in twenty: it
//! never looks beyond the figures seen. See T. Hesterberg, "What Teachers Should
//! Know About the Bootstrap", The American Statistician 69 (2015): too narrow by
//! sqrt((n-1)/n), and by the normal instead of Student's quantile. His remedy, more
//! extreme percentiles, needs rounds that 3 to 5 do not have; so the interval's ends
//! are moved away from the estimate by just these two factors.

use crate::bench::data::Better;

/// With fewer rounds nothing is claimed: Student's quantile of two would be 12.7.
pub const FEWEST_ROUNDS: usize = 3;
/// From one seed to another an end moves by less than a tenth of the width then,
/// which is little next to what another seven rounds would do to it.
const RESAMPLES: usize = 2000;
/// Share of the resamples outside the interval, at each end.
const TAIL: f64 = 0.025;
/// The normal distribution's quantile for [`TAIL`].
const NORMAL: f64 = 1.959_964;
/// Student's, for 3 rounds, 4 rounds and so on.
const STUDENT: [f64; 8] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
/// An interval that reaches by more than this factor to both sides, or a floor
/// that lies as far out, cannot tell "the same" from a change worth having.
const TOO_WIDE: f64 = 1.25;

/// How a setting's figures stand to the reference's, with a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The typical ratio within a round (Hodges-Lehmann); close to, but not quite,
    /// the ratio of the medians.
    pub value: f64,
    /// Lower end of the 95 % interval; 0 if nothing can be said.
    pub low: f64,
    /// Upper end; infinite if nothing can be said.
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
    /// Likewise, but the interval or the floor is too wide to call that the same.
    TooNoisy,
}

impl Verdict {
    /// As it stands in a table.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Same => "same",
            Verdict::TooNoisy => "too noisy",
        }
    }
}

/// The middle value, or the mean of the two middle ones; none of none.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| quantile(&mut values.to_vec(), 0.5))
}

/// Of a setting's figures to the reference's: the same place means the same round.
/// The seed alone decides about the resampling. A pair with a figure that is not
/// finite is left out. If the rounds are fewer than [`FEWEST_ROUNDS`], or a figure
/// is not above 0, the interval holds everything; none without any ratio at all.
pub fn ratio(values: &[f64], reference: &[f64], seed: u64) -> Option<Ratio> {
    let Some(logs) = logs(values, reference) else {
        let value = median(values)? / median(reference)?;
        return (value.is_finite() && value > 0.0).then_some(Ratio {
            value,
            low: 0.0,
            high: f64::INFINITY,
        });
    };
    let Spread { centre, low, high } = bootstrap(&logs, seed);
    let stretch = stretch(logs.len());
    Some(Ratio {
        value: centre.exp(),
        low: (centre - (centre - low) * stretch).exp(),
        high: (centre + (high - centre) * stretch).exp(),
    })
}

/// How far from 1 the reference's ratio to itself may lie, by its second run of each
/// round: as far as it does, and at least half of the interval's width before it is
/// stretched. The ratio alone is next to 1 by luck too often: what passes then are
/// 4 of 100 effects that are none, with 3 rounds, and with this floor 3. The far end
/// of the interval would hide one in five real effects of 5 % (7 rounds, figures that
/// scatter by 2 %), and this floor hides one in a hundred. None where nothing can be
/// said.
pub fn floor(reference: &[f64], twins: &[f64], seed: u64) -> Option<f64> {
    let Spread { centre, low, high } = bootstrap(&logs(twins, reference)?, seed);
    Some(centre.abs().max((high - low) / 2.0).exp_m1())
}

/// What may be said of a ratio; a floor that is not known is 0. A clear effect is
/// told however wide the interval is.
pub fn verdict(ratio: &Ratio, floor: f64, better: Better) -> Verdict {
    let clear = ratio.low > 1.0 || ratio.high < 1.0;
    if clear && (ratio.value - 1.0).abs() > floor {
        return match (ratio.value > 1.0) == (better == Better::Higher) {
            true => Verdict::Better,
            false => Verdict::Worse,
        };
    }
    match ratio.high / ratio.low > TOO_WIDE * TOO_WIDE || 1.0 + floor > TOO_WIDE {
        true => Verdict::TooNoisy,
        false => Verdict::Same,
    }
}

/// Logarithms of the rounds' ratios, if they are enough and all positive.
fn logs(values: &[f64], reference: &[f64]) -> Option<Vec<f64>> {
    let pairs = values.iter().zip(reference);
    let finite = pairs.filter(|(a, b)| a.is_finite() && b.is_finite());
    // not ln(a / b), which would overflow where its parts do not
    let log = |(a, b): (&f64, &f64)| (*a > 0.0 && *b > 0.0).then(|| a.ln() - b.ln());
    let logs: Option<Vec<f64>> = finite.map(log).collect();
    logs.filter(|logs| logs.len() >= FEWEST_ROUNDS)
}

/// An estimate and the percentiles of its resamples, in logarithms.
struct Spread {
    centre: f64,
    low: f64,
    high: f64,
}

/// Draws as many rounds as there are, with repetition, again and again.
fn bootstrap(logs: &[f64], seed: u64) -> Spread {
    let n = logs.len();
    let means = means_of_pairs(logs);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = |_| {
        let mut times = vec![0; n];
        (0..n).for_each(|_| times[random.usize(..n)] += 1);
        middle(&means, &times)
    };
    let mut all: Vec<f64> = (0..RESAMPLES).map(&mut resample).collect();
    let centre = middle(&means, &vec![1; n]);
    Spread {
        centre,
        low: quantile(&mut all, TAIL).min(centre),
        high: quantile(&mut all, 1.0 - TAIL).max(centre),
    }
}

/// The mean of each value with itself and with each later one, in order of size,
/// with the places of the two. Made once, as a resample only changes how often
/// each of them counts.
fn means_of_pairs(values: &[f64]) -> Vec<(f64, usize, usize)> {
    let n = values.len();
    let pairs = (0..n).flat_map(|i| (i..n).map(move |j| (i, j)));
    let mean = |(i, j): (usize, usize)| (values[i] / 2.0 + values[j] / 2.0, i, j);
    let mut means: Vec<_> = pairs.map(mean).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    means
}

/// The Hodges-Lehmann estimate of values that were drawn so many times each.
fn middle(means: &[(f64, usize, usize)], times: &[usize]) -> f64 {
    let n: usize = times.iter().sum();
    let all = n * (n + 1) / 2;
    let (mut below, mut lower) = (0, None);
    for (mean, i, j) in means {
        below += match i == j {
            true => times[*i] * (times[*i] + 1) / 2,
            false => times[*i] * times[*j],
        };
        if lower.is_none() && below > (all - 1) / 2 {
            lower = Some(*mean);
        }
        if below > all / 2 {
            return lower.unwrap_or(*mean) / 2.0 + mean / 2.0;
        }
    }
    0.0
}

/// What makes up for the rounds being few; see the head of this file.
fn stretch(rounds: usize) -> f64 {
    let free = (rounds - 1) as f64;
    let student = match STUDENT.get(rounds - FEWEST_ROUNDS) {
        Some(quantile) => *quantile,
        // its first terms in 1 / free, good for 0.1 % from here on
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * free) + 2.82 / (free * free),
    };
    student / NORMAL * (rounds as f64 / free).sqrt()
}

/// Between the two nearest values where it falls between; of at least one value.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = share * (values.len() - 1) as f64;
    let (low, high) = (
        values[place.floor() as usize],
        values[place.ceil() as usize],
    );
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: [f64; 7] = [103.0, 98.0, 101.0, 99.0, 97.0, 104.0, 100.0];
    const OTHERS: [f64; 7] = [110.0, 108.0, 104.0, 112.0, 106.0, 109.0, 111.0];

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_ratio_of_constants_is_exact_and_has_no_width() {
        let ratio = ratio(&[150.0; 5], &[100.0; 5], 1).expect("a ratio");
        for value in [ratio.value, ratio.low, ratio.high] {
            assert!((value - 1.5).abs() < 1e-12, "{ratio:?}");
        }
        assert_eq!(floor(&[100.0; 5], &[100.0; 5], 1), Some(0.0));
    }

    /// Means of pairs of 0, 1, 5: 0, 0.5, 1, 2.5, 3, 5; of 0, 1, 1: 0, 0.5 twice, 1
    /// three times.
    #[test]
    fn the_estimate_is_the_median_of_the_means_of_pairs() {
        let means = means_of_pairs(&[5.0, 0.0, 1.0]);
        assert_eq!(middle(&means, &[1, 1, 1]), 1.75);
        assert_eq!(middle(&means, &[0, 1, 2]), 0.75);
        assert_eq!(middle(&means, &[3, 0, 0]), 5.0);
    }

    #[test]
    fn the_seed_alone_decides() {
        let made = |seed| ratio(&OTHERS, &FIGURES, seed).expect("a ratio");
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        assert_eq!(made(1).value, made(2).value, "the estimate is not drawn");
    }

    #[test]
    fn the_seed_moves_the_ends_by_little() {
        let made = |seed| ratio(&OTHERS, &FIGURES, seed).expect("a ratio");
        let width = made(0).high - made(0).low;
        for seed in 1..50 {
            let moved =
                (made(seed).low - made(0).low).abs() + (made(seed).high - made(0).high).abs();
            assert!(moved < 0.2 * width, "seed {seed} moves {moved} of {width}");
        }
    }

    #[test]
    fn turning_the_ratio_round_turns_the_interval_round() {
        let (to, fro) = (ratio(&OTHERS, &FIGURES, 3), ratio(&FIGURES, &OTHERS, 3));
        let (to, fro) = (to.expect("a ratio"), fro.expect("a ratio"));
        assert!((to.value * fro.value - 1.0).abs() < 1e-9);
        assert!((to.low * fro.high - 1.0).abs() < 1e-9, "{to:?} {fro:?}");
    }

    #[test]
    fn two_rounds_and_odd_figures_claim_nothing() {
        let cases: [(&[f64], &[f64]); 5] = [
            (&[200.0, 200.0], &[100.0, 100.0]),
            (&[200.0, 0.0, 200.0], &[100.0; 3]),
            (&[200.0, -1.0, 200.0], &[100.0; 3]),
            (&[200.0; 3], &[100.0, 0.0, 100.0]),
            (&[200.0, 200.0, 200.0], &[100.0, 100.0, f64::NAN]),
        ];
        for (values, reference) in cases {
            let Some(ratio) = ratio(values, reference, 1) else {
                continue;
            };
            let told = verdict(&ratio, 0.0, Better::Higher);
            assert_eq!(told, Verdict::TooNoisy, "{values:?} to {reference:?}");
            assert_eq!(floor(reference, values, 1), None);
        }
        assert_eq!(ratio(&[1.0; 3], &[0.0; 3], 1), None);
        assert_eq!(ratio(&[0.0; 3], &[-1.0; 3], 1), None);
        assert_eq!(ratio(&[], &[], 1), None);
        let huge = ratio(&[f64::MAX; 3], &[f64::MIN_POSITIVE; 3], 1).expect("a ratio");
        assert!(huge.value > 1.0);
    }

    #[test]
    fn the_interval_of_few_rounds_is_stretched_and_that_of_many_is_not() {
        assert!((stretch(3) - 2.689).abs() < 0.001, "{}", stretch(3));
        assert!((stretch(7) - 1.349).abs() < 0.001, "{}", stretch(7));
        assert!(stretch(1000) < 1.003);
        let all: Vec<f64> = (3..40).map(stretch).collect();
        assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
    }

    #[test]
    fn the_floor_is_how_far_the_reference_is_from_itself_or_half_its_interval() {
        let twins = FIGURES.map(|f| f * 1.1);
        let floor_of = |twins| floor(&FIGURES, twins, 1).expect("a floor");
        assert!((floor_of(&twins) - 0.1).abs() < 1e-9, "a steady difference");
        let turned: Vec<f64> = FIGURES.iter().rev().copied().collect();
        let noisy = floor_of(&turned);
        assert!((0.01..0.05).contains(&noisy), "{noisy}");
    }

    #[test]
    fn a_verdict_knows_the_direction_the_interval_and_the_floor() {
        let ratio = |low, value, high| Ratio { value, low, high };
        let up = ratio(1.02, 1.05, 1.08);
        let down = ratio(0.92, 0.95, 0.98);
        assert_eq!(verdict(&up, 0.01, Better::Higher), Verdict::Better);
        assert_eq!(verdict(&up, 0.01, Better::Lower), Verdict::Worse);
        assert_eq!(verdict(&down, 0.01, Better::Higher), Verdict::Worse);
        assert_eq!(verdict(&down, 0.01, Better::Lower), Verdict::Better);
        assert_eq!(verdict(&up, 0.06, Better::Higher), Verdict::Same);
        assert_eq!(
            verdict(&ratio(0.99, 1.05, 1.1), 0.0, Better::Higher),
            Verdict::Same
        );
        assert_eq!(
            verdict(&ratio(0.7, 1.0, 1.3), 0.0, Better::Higher),
            Verdict::TooNoisy
        );
        assert_eq!(verdict(&up, 0.3, Better::Higher), Verdict::TooNoisy);
        assert_eq!(
            verdict(&ratio(1.2, 2.0, 3.3), 0.3, Better::Higher),
            Verdict::Better
        );
        assert_eq!(Verdict::TooNoisy.word(), "too noisy");
    }
}
