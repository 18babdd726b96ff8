#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The interval of src/bench/stats.rs, out of SciPy's parts.

Reads a JSON list of cases [values, reference], writes one of [value, low, high]:
the Hodges-Lehmann estimate of the rounds' ratios, and scipy.stats.bootstrap's 95 %
percentile interval of it (paired), stretched for the rounds being few.
tests/bench_stats.rs runs it, where SciPy is installed.
"""

import json
import sys

import numpy
from scipy import stats

CONFIDENCE = 0.95
# More than stats.rs makes, so that only its own chance shows in the comparison.
RESAMPLES = 9999


def estimate(values, reference, axis=-1):
    """The median of the means of all pairs of log ratios."""
    logs = numpy.moveaxis(numpy.log(values) - numpy.log(reference), axis, -1)
    one, other = numpy.triu_indices(logs.shape[-1])
    return numpy.median((logs[..., one] + logs[..., other]) / 2, axis=-1)


def interval(values, reference):
    """[value, low, high] of a case."""
    rounds = len(values)
    value = estimate(numpy.array(values), numpy.array(reference))
    found = stats.bootstrap(
        (values, reference),
        estimate,
        paired=True,
        vectorized=True,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        random_state=1,
    ).confidence_interval
    upper = (1 + CONFIDENCE) / 2
    student = stats.t.ppf(upper, rounds - 1) / stats.norm.ppf(upper)
    stretch = student * (rounds / (rounds - 1)) ** 0.5
    low = value - (value - found.low) * stretch
    high = value + (found.high - value) * stretch
    return [float(numpy.exp(end)) for end in (value, low, high)]


if __name__ == "__main__":
    json.dump([interval(*case) for case in json.load(sys.stdin)], sys.stdout)
