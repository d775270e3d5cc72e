//! What cyclictest prints with `-h`.

/// The median latency of so many samples, in the unit of its bins.
#[track_caller]
pub fn median(histogram: &str, samples: u64) -> i64 {
    let rank = samples.div_ceil(2);
    let mut below = 0;
    for line in histogram.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split_whitespace();
        let (Some(latency), Some(count)) = (fields.next(), fields.next()) else { continue };
        below += count.parse::<u64>().unwrap();
        if below >= rank {
            return latency.parse().unwrap();
        }
    }
    panic!("cyclictest: the median is in none of its bins, which hold {below} of {samples}");
}
