//! The rank sum test of two samples: Wilcoxon; Mann and Whitney.

/// P(U <= u), u from 0 to m n, of the rank sum statistic of `m` and `n` values without a
/// difference: exact, by the recursion of H. B. Mann, D. R. Whitney, Annals of Mathematical
/// Statistics 18 (1947), on probabilities, which neither overflow nor cancel.
#[must_use]
pub fn rank_sum_cdf(m: usize, n: usize) -> Vec<f64> {
    let size = m * n + 1;
    let start = || {
        let mut only_zero = vec![0.0; size];
        only_zero[0] = 1.0;
        only_zero
    };
    let mut row: Vec<Vec<f64>> = (0..=n).map(|_| start()).collect();
    for i in 1..=m {
        let mut next = vec![start()];
        for j in 1..=n {
            #[allow(clippy::cast_precision_loss, reason = "runs are few")]
            let share = i as f64 / (i + j) as f64;
            let cell = (0..size).map(|u| {
                let above = if u >= j { row[j][u - j] } else { 0.0 };
                share * above + (1.0 - share) * next[j - 1][u]
            });
            let cell = cell.collect();
            next.push(cell);
        }
        row = next;
    }
    let mut sum = 0.0;
    row[n]
        .iter()
        .map(|p| {
            sum += p;
            sum
        })
        .collect()
}

/// The least two-sided p that `m` and `n` values can have, which is that of samples that do not
/// overlap: two of all `C(m + n, m)` arrangements.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "runs are few")]
pub fn least_p(m: usize, n: usize) -> f64 {
    (1..=n).fold(2.0, |p, i| p * i as f64 / (m + i) as f64).min(1.0)
}

/// The least number of values of each of two samples with which `comparisons` tests can all have a
/// p of at most `level` after Holm's correction: `2 / C(2 n, n) <= level / comparisons`.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "comparisons are few")]
pub fn replicates_needed(comparisons: usize, level: f64) -> Option<usize> {
    (2..512).find(|n| comparisons.max(1) as f64 * least_p(*n, *n) <= level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, reference: f64) -> bool {
        (ours / reference - 1.0).abs() < 1e-12
    }

    #[test]
    fn the_rank_sum_distribution_agrees_with_counting() {
        for (ours, count) in rank_sum_cdf(3, 4).iter().zip([1.0, 2.0, 4.0, 7.0, 11.0]) {
            assert!(close(*ours, count / 35.0));
        }
        let eight = rank_sum_cdf(8, 8);
        assert!(close(eight[13], 321.0 / 12_870.0), "the tables' critical value 13");
        assert!(close(*rank_sum_cdf(60, 70).last().unwrap(), 1.0));
        assert!(close(least_p(4, 4), 2.0 / 70.0));
        assert!(close(least_p(3, 5), 2.0 * rank_sum_cdf(3, 5)[0]));
    }

    #[test]
    fn more_comparisons_take_more_replicates() {
        // 2 / C(2n, n): 4 0.0286, 5 0.0079, 6 0.00216, 7 5.8e-4, 8 1.55e-4.
        let needed = [1, 2, 6, 7, 23, 24, 85, 86, 321, 322].map(|k| replicates_needed(k, 0.05));
        assert_eq!(needed, [4, 5, 5, 6, 6, 7, 7, 8, 8, 9].map(Some));
        assert_eq!(replicates_needed(0, 0.05), Some(4));
        assert_eq!(replicates_needed(1, 0.0), None);
    }
}
