//! How probable an order is by chance, from random ones.

/// Random orders that the one found is compared with at most: the smallest p is 1 in 4,000.
const DRAWS: u32 = 3_999;

/// With so many random orders that are as unequal, by every count, no p can become small: the
/// rest need not be drawn (J. Besag, P. Clifford, Biometrika 78, 1991).
const ENOUGH: u32 = 12;

/// The p of an order by several counts, of which `draw` says whether the next random order is at
/// least as unequal: (1 + those that are) / (1 + all), which is no smaller than it may be (G. A.
/// Barnard, 1963).
pub(super) fn of_each<const N: usize>(mut draw: impl FnMut() -> [bool; N]) -> [f64; N] {
    let mut as_unequal = [0_u32; N];
    let mut drawn = 0;
    while drawn < DRAWS && as_unequal.iter().any(|one| *one < ENOUGH) {
        for (number, one) in as_unequal.iter_mut().zip(draw()) {
            *number += u32::from(one);
        }
        drawn += 1;
    }
    as_unequal.map(|number| f64::from(number + 1) / f64::from(drawn + 1))
}
