//! Tails of the beta distribution with integer parameters, and of the gamma distribution.
//!
//! Our own since the available crates lose the digits that this project needs:
//! statrs 0.19 forms the prefactor from differences of `ln_gamma`, which leaves
//! 3 digits at N = 10^11, and ends its continued fraction after 140 terms,
//! although k = 10^6 takes thousands. The prefactor below is the saddle-point form
//! of C. Loader, "Fast and Accurate Computation of Binomial Probabilities"
//! (2000), as in R's `dbinom`, which subtracts nothing large.

use std::f64::consts::TAU;

/// Terms after which a continued fraction is cut off, to bound the loop. At the mean of the
/// distribution, where it is slowest, 10^6 of 10^9 took 900 terms and 10^14 of 2 * 10^14
/// took 250,000.
const MAX_TERMS: u32 = 10_000_000;

/// Relative size of a term that no longer matters.
const NEGLIGIBLE: f64 = 4.0 * f64::EPSILON;

/// Keeps Lentz's method from dividing by zero.
const TINY: f64 = 1e-300;

/// `(I_x(a, b), 1 - I_x(a, b))`: the regularised incomplete beta function and
/// its complement, the smaller one to full precision. `a` and `b` are integers
/// of at least 1.
pub(super) fn beta_tails(a: f64, b: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x >= 1.0 {
        return (1.0, 0.0);
    }
    let (n, y) = (a + b, 1.0 - x);
    // The distance from the mean, from the smaller side and in one rounding:
    // all else follows from it without cancelling.
    let off = if x < 0.5 { n.mul_add(-x, a) } else { -n.mul_add(-y, b) };
    let exponent = stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x, off)
        - deviance(b, n * y, -off);
    // x^a y^b / B(a, b)
    let factor = (a / n * b / TAU).sqrt() * exponent.exp();
    if off > 0.0 {
        let lower = (factor / beta_fraction(a, b, x, off)).min(1.0);
        (lower, 1.0 - lower)
    } else {
        let upper = (factor / beta_fraction(b, a, y, -off)).min(1.0);
        (1.0 - upper, upper)
    }
}

/// `(P(a, x), Q(a, x))`: the regularised incomplete gamma functions, the
/// smaller one to full precision, or to 1e-12 of itself if `a` is not whole. `a` is at least 1.
/// Series DLMF 8.11.4 below the mean, continued fraction DLMF 8.9.2 above.
pub(super) fn gamma_tails(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    let factor = (a / TAU).sqrt() * (-stirling_error(a) - deviance(a, x, a - x)).exp();
    if x < a + 1.0 {
        let (mut sum, mut term, mut n) = (1.0, 1.0, a);
        for _ in 0..MAX_TERMS {
            if term <= NEGLIGIBLE * sum {
                break;
            }
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        let lower = (factor * sum / a).min(1.0);
        (lower, 1.0 - lower)
    } else {
        let upper = (factor * gamma_fraction(a, x)).min(1.0);
        (1.0 - upper, upper)
    }
}

/// P(X >= `x`) of a chi-square with an even number of degrees of freedom, `half_freedom` times 2.
/// `half_freedom` is at least 1.
pub(super) fn chi_square_upper(x: f64, half_freedom: u32) -> f64 {
    gamma_tails(f64::from(half_freedom), x / 2.0).1
}

/// P(Z >= `z`) of a standard normal Z, `z` at least 0. M. Abramowitz, I. A. Stegun, Handbook of
/// Mathematical Functions (1964): series 26.2.11 below 2, continued fraction 26.2.14 above.
pub(super) fn normal_upper(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / TAU.sqrt();
    if z < 2.0 {
        let (mut sum, mut term, mut divisor) = (z, z, 1.0);
        while term > NEGLIGIBLE * sum {
            divisor += 2.0;
            term *= z * z / divisor;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // From the end: 200 terms leave nothing at 2, and fewer are needed above.
    let fraction = (1..=200_u32).rev().fold(z, |below, term| z + f64::from(term) / below);
    density / fraction
}

/// `ln(n!) - ln(sqrt(2 pi n) (n/e)^n)` of an `n >= 1`, with `n! = Gamma(n + 1)`.
fn stirling_error(n: f64) -> f64 {
    if n <= 16.0 && n.fract() != 0.0 {
        let stirling = |n: f64| (n + 0.5) * n.ln() - n + 0.5 * TAU.ln();
        let far = n + 16.0;
        let between: f64 = (1..=16).map(|i| (n + f64::from(i)).ln()).sum();
        return stirling_error(far) + stirling(far) - between - stirling(n);
    }
    if n <= 16.0 {
        // 16! is exact in a float.
        let (mut factorial, mut i) = (1.0, 1.0);
        while i < n {
            i += 1.0;
            factorial *= i;
        }
        return f64::ln(factorial) - (n + 0.5) * n.ln() + n - 0.5 * TAU.ln();
    }
    let square = n * n;
    let tail = 1.0 / 1_260.0 - (1.0 / 1_680.0 - 1.0 / (1_188.0 * square)) / square;
    (1.0 / 12.0 - (1.0 / 360.0 - tail / square) / square) / n
}

/// `x ln(x / mean) - x + mean`, where `off` is `x - mean`: Loader's `bd0`.
fn deviance(x: f64, mean: f64, off: f64) -> f64 {
    if off.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - off;
    }
    let v = off / (x + mean);
    let mut sum = off * v;
    let mut power = 2.0 * x * v;
    let mut divisor = 3.0;
    loop {
        power *= v * v;
        let next = sum + power / divisor;
        if next == sum || next.is_nan() {
            return sum;
        }
        sum = next;
        divisor += 2.0;
    }
}

fn away_from_zero(value: f64) -> f64 {
    if value.abs() < TINY { TINY } else { value }
}

/// `x^a y^b / B(a, b) / I_x(a, b)` below the mean, where `off = a - (a + b) x`,
/// by Lentz's method. The continued fraction of A. R. DiDonato, A. H. Morris,
/// "Algorithm 708", ACM TOMS 18 (1992), `BFRAC`: all its terms are positive
/// here, and x near 1 enters by `off` alone. The better known DLMF 8.17.22 lost
/// half the digits of 1 - x there.
fn beta_fraction(a: f64, b: f64, x: f64, off: f64) -> f64 {
    let first = a * (off + 1.0) / (a + 1.0);
    let (mut value, mut c, mut d) = (first, first, 0.0);
    for term in 1..MAX_TERMS {
        let m = f64::from(term);
        let base = a + 2.0 * m - 1.0;
        let numerator = (m * (a + m - 1.0) / base) * ((a + b + m - 1.0) / base) * (b - m) * x * x;
        let b_m = m + m * (b - m) * x / base + (a + m) * (off + 1.0 + m * (2.0 - x)) / (base + 2.0);
        d = 1.0 / away_from_zero(numerator.mul_add(d, b_m));
        c = away_from_zero(b_m + numerator / c);
        let change = c * d;
        value *= change;
        if (change - 1.0).abs() <= NEGLIGIBLE {
            break;
        }
    }
    value
}

/// The continued fraction of `Q(a, x)` by Lentz's method.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / away_from_zero(b);
    let mut value = d;
    for term in 1..MAX_TERMS {
        let i = f64::from(term);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / away_from_zero(numerator.mul_add(d, b));
        c = away_from_zero(b + numerator / c);
        let change = c * d;
        value *= change;
        if (change - 1.0).abs() <= NEGLIGIBLE {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stirlings_error_meets_its_series() {
        // 17! and 20! to 17 digits.
        for (n, factorial) in
            [(17.0_f64, 355_687_428_096_000.0_f64), (20.0, 2.432_902_008_176_64e18)]
        {
            let exact = factorial.ln() - (n + 0.5) * n.ln() + n - 0.5 * TAU.ln();
            assert!((stirling_error(n) - exact).abs() < 2e-14);
        }
    }

    #[test]
    fn the_tail_of_a_gamma_distribution_with_any_parameter() {
        // a, x, Q(a, x): mpmath.gammainc(a, x, regularized=True).
        for (a, x, upper) in [
            (1.5, 0.7, 0.705_534_731_204_091_2),
            (2.25, 6.0, 0.024_984_992_196_940_603),
            (10.75, 4.0, 0.996_277_134_658_202_6),
            (17.3, 30.0, 0.004_705_709_486_635_907),
        ] {
            let found = gamma_tails(a, x).1;
            assert!((found / upper - 1.0).abs() < 1e-12, "Q({a}, {x}) = {found}");
        }
    }

    #[test]
    fn normal_and_chi_square_tails_are_those_of_scipy() {
        // SciPy 1.17: norm.sf(z), chi2.sf(x, 2 * half).
        for (z, p) in [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_07),
            (2.0, 0.022_750_131_948_179_195),
            (3.0, 0.001_349_898_031_630_093_3),
            (6.0, 9.865_876_450_376_946e-10),
            (10.0, 7.619_853_024_160_47e-24),
        ] {
            assert!((normal_upper(z) / p - 1.0).abs() < 1e-13, "{z}: {}", normal_upper(z));
        }
        for (x, half, p) in [
            (0.5, 1, 0.778_800_783_071_404_9),
            (3.0, 2, 0.557_825_400_371_074_8),
            (20.0, 5, 0.029_252_688_076_961_124),
            (32.9, 6, 0.001_003_412_257_915_939_2),
            (100.0, 6, 5.567_756_260_698_086e-16),
        ] {
            assert!((chi_square_upper(x, half) / p - 1.0).abs() < 1e-12, "{x} {half}");
        }
    }

    proptest! {
        #[test]
        fn the_tails_of_a_binomial_are_its_sums(n in 1_u32..40, k in 0_u32..40, p in 0.001_f64..0.999) {
            prop_assume!(k < n);
            let mut pmf = (1.0 - p).powi(i32::try_from(n).unwrap());
            let mut cdf = pmf;
            for j in 0..k {
                pmf *= f64::from(n - j) / f64::from(j + 1) * p / (1.0 - p);
                cdf += pmf;
            }
            let (lower, upper) = beta_tails(f64::from(k + 1), f64::from(n - k), p);
            prop_assert!((upper - cdf).abs() < 1e-12 * (1.0 + cdf), "{upper} {cdf}");
            prop_assert!((lower + upper - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_tails_of_a_poisson_are_its_sums(k in 0_u32..60, mean in 0.001_f64..120.0) {
            let mut pmf = (-mean).exp();
            let mut cdf = pmf;
            for j in 0..k {
                pmf *= mean / f64::from(j + 1);
                cdf += pmf;
            }
            let (lower, upper) = gamma_tails(f64::from(k + 1), mean);
            prop_assert!((upper - cdf).abs() < 1e-12, "{upper} {cdf}");
            prop_assert!((lower + upper - 1.0).abs() < 1e-12);
        }
    }
}
