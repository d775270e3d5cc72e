//! Minima and crossings of functions of one number, without derivatives.

/// The golden section's smaller part of an interval.
const SMALLER_PART: f64 = 0.381_966_011_250_105_1;

/// Steps after which a search ends, whatever it has.
const MOST_STEPS: u32 = 100;

/// Where `f` is smallest between `limits`, and its value there: first downhill from `start` in
/// steps that double, then the method of Brent, "Algorithms for Minimization without Derivatives"
/// (1973), chapter 5. Right if `f` has one minimum. The place is good to about `tolerance` and
/// never leaves `limits`.
pub(super) fn minimum(
    f: &mut dyn FnMut(f64) -> f64,
    start: f64,
    limits: (f64, f64),
    tolerance: f64,
) -> (f64, f64) {
    let within = |x: f64| x.clamp(limits.0, limits.1);
    let mut step = 0.25;
    let mut middle = within(start);
    let mut at_middle = f(middle);
    let mut behind = within(middle + step);
    let mut at_ahead = f(behind);
    let mut ahead = behind;
    if at_ahead > at_middle || ahead <= middle {
        step = -step;
        (behind, ahead) = (ahead, within(middle + step));
        at_ahead = f(ahead);
    } else {
        behind = middle;
    }
    while at_ahead < at_middle {
        step *= 2.0;
        (behind, middle, at_middle) = (middle, ahead, at_ahead);
        ahead = within(middle + step);
        at_ahead = if ahead == middle { at_middle } else { f(ahead) };
    }
    brent(f, (behind.min(ahead), behind.max(ahead)), (middle, at_middle), tolerance)
}

/// Brent's `localmin` from a bracket and a point in it.
fn brent(
    f: &mut dyn FnMut(f64) -> f64,
    (mut low, mut high): (f64, f64),
    mut best: (f64, f64),
    tolerance: f64,
) -> (f64, f64) {
    let (mut second, mut third) = (best, best);
    let (mut last, mut before_last) = (0.0_f64, 0.0_f64);
    for _ in 0..MOST_STEPS {
        let middle = f64::midpoint(low, high);
        if (best.0 - middle).abs() + (high - low) / 2.0 <= 2.0 * tolerance {
            break;
        }
        // The vertex of the parabola through the three best points.
        let r = (best.0 - second.0) * (best.1 - third.1);
        let q = (best.0 - third.0) * (best.1 - second.1);
        let p = (best.0 - third.0) * q - (best.0 - second.0) * r;
        let q = 2.0 * (q - r);
        let parabolic = if q == 0.0 { f64::NAN } else { -p / q };
        let next = best.0 + parabolic;
        let step = if before_last.abs() > tolerance
            && parabolic.abs() < before_last.abs() / 2.0
            && next > low
            && next < high
        {
            before_last = last;
            let near_an_end = next - low < 2.0 * tolerance || high - next < 2.0 * tolerance;
            if near_an_end { tolerance.copysign(middle - best.0) } else { parabolic }
        } else {
            before_last = if best.0 < middle { high - best.0 } else { low - best.0 };
            SMALLER_PART * before_last
        };
        last = step;
        let x = best.0 + if step.abs() < tolerance { tolerance.copysign(step) } else { step };
        let new = (x, f(x));
        if new.1 <= best.1 {
            *(if x < best.0 { &mut high } else { &mut low }) = best.0;
            (third, second, best) = (second, best, new);
        } else {
            *(if x < best.0 { &mut low } else { &mut high }) = x;
            if new.1 <= second.1 || second.0 == best.0 {
                (third, second) = (second, new);
            } else if new.1 <= third.1 || third.0 == best.0 || third.0 == second.0 {
                third = new;
            }
        }
    }
    best
}

/// Where `f`, which is below 0 at `start`, reaches 0 on the way to `limit`: steps from `start` by
/// `step`, which doubles, then regula falsi in its Illinois form (Dowell and Jarratt, BIT 11,
/// 1971). None if `f` is below 0 up to `limit`.
pub(super) fn crossing(
    f: &mut dyn FnMut(f64) -> f64,
    start: f64,
    mut step: f64,
    limit: f64,
    tolerance: f64,
) -> Option<f64> {
    let (mut near, mut at_near) = (start, f(start).min(0.0));
    let (mut far, mut at_far);
    loop {
        far = if step > 0.0 { (near + step).min(limit) } else { (near + step).max(limit) };
        at_far = f(far);
        if at_far >= 0.0 {
            break;
        }
        if far == limit {
            return None;
        }
        (near, at_near) = (far, at_far);
        step *= 2.0;
    }
    let mut moved = 0_i32;
    for _ in 0..MOST_STEPS {
        if (far - near).abs() <= tolerance {
            break;
        }
        let share = at_near / (at_near - at_far);
        // A value of another order of magnitude beyond would make it creep.
        let share = if share.is_finite() { share.clamp(0.02, 0.98) } else { 0.5 };
        let x = (far - near).mul_add(share, near);
        let value = f(x);
        if value >= 0.0 {
            (far, at_far) = (x, value);
            at_near *= if moved > 0 { 0.5 } else { 1.0 };
            moved = 1;
        } else {
            (near, at_near) = (x, value);
            at_far *= if moved < 0 { 0.5 } else { 1.0 };
            moved = -1;
        }
    }
    Some(f64::midpoint(near, far))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_minimum_is_found_from_anywhere(at in -8.0_f64..30.0, start in -12.0_f64..40.0) {
            let mut calls = 0;
            let mut f = |x: f64| { calls += 1; (x - at).exp() - (x - at) };
            let (x, value) = minimum(&mut f, start, (-12.0, 60.0), 1e-7);
            prop_assert!((x - at).abs() < 1e-6 && (value - 1.0).abs() < 1e-12, "{x}");
            prop_assert!(calls < 60, "{calls}");
        }

        #[test]
        fn the_crossing_is_found(at in 0.1_f64..50.0, power in 1_i32..4) {
            let mut f = |x: f64| (x / at).powi(power) - 1.0;
            let x = crossing(&mut f, 0.0, 0.25, 100.0, 1e-8).unwrap();
            prop_assert!((x - at).abs() < 1e-7, "{x}");
        }
    }

    #[test]
    fn a_minimum_beyond_the_limits_is_the_limit() {
        let (x, _) = minimum(&mut |x| -x, 0.0, (-1.0, 3.0), 1e-7);
        assert!((x - 3.0).abs() < 1e-6, "{x}");
        assert_eq!(crossing(&mut |x| x - 5.0, 0.0, 0.1, 4.0, 1e-7), None);
    }
}
