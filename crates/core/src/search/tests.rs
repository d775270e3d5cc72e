use super::*;

/// A landscape that is known: what a load scores by its size, and a mix by its loads.
struct Known {
    tries: Vec<String>,
    /// Tries after which it is interrupted.
    left: usize,
    kept: BTreeMap<String, MixOutcome>,
}

impl Known {
    fn new() -> Self {
        Self { tries: Vec::new(), left: usize::MAX, kept: BTreeMap::new() }
    }

    /// `hill` is best at 64, `slope` at its smallest; `flat` has no size, `broken` cannot run. Loads
    /// add up, but `shadow` is in the way of all others.
    fn score(mix: &Mix) -> Option<u64> {
        let size = |load: &Named| -> u64 {
            load.params.get("size").map_or(16, |text| text.parse().unwrap())
        };
        let of = |load: &Named| match load.name.as_str() {
            "hill" => Some(1_000_u64.saturating_sub(4 * size(load).abs_diff(64))),
            "slope" => Some(600_u64.saturating_sub(8 * size(load))),
            "flat" => Some(200),
            "shadow" => Some(if mix.loads().len() > 1 { 0 } else { 550 }),
            _ => None,
        };
        let scores: Option<Vec<u64>> = mix.loads().iter().map(of).collect();
        let has_shadow = mix.loads().iter().any(|load| load.name == "shadow");
        let sum: u64 = scores?.iter().sum();
        Some(if has_shadow && mix.loads().len() > 1 { 10 } else { sum })
    }
}

impl Landscape for Known {
    type Error = &'static str;

    fn loads(&self) -> Vec<Named> {
        ["broken", "flat", "hill", "shadow", "slope"].map(|name| load(name, None)).to_vec()
    }

    fn sizes(&self, load: &str) -> Vec<String> {
        let has = ["hill", "slope"].contains(&load);
        has.then(|| "size".to_owned()).into_iter().collect()
    }

    fn resized(
        &self,
        of: &Named,
        size: &str,
        larger: bool,
        took_effect: &BTreeMap<String, String>,
    ) -> Option<Named> {
        let now: u64 = took_effect[size].parse().unwrap();
        let next = if larger { now * FACTOR } else { now / FACTOR };
        (next <= 4096 && next != now).then(|| load(&of.name, Some(next)))
    }

    fn try_all(&mut self, _: Step, mixes: &[Mix]) -> Result<Vec<MixOutcome>, Self::Error> {
        let mut outcomes = Vec::new();
        for mix in mixes {
            let name = mix.to_string();
            if !self.kept.contains_key(&name) {
                self.left = self.left.checked_sub(1).ok_or("interrupted")?;
                let size = |load: &Named| {
                    let size = load.params.get("size").cloned().unwrap_or_else(|| "16".into());
                    (load.name.clone(), BTreeMap::from([("size".to_owned(), size)]))
                };
                let sizes = mix.loads().iter().map(size).collect();
                self.kept.insert(name.clone(), MixOutcome { score: Self::score(mix), sizes });
            }
            self.tries.push(name.clone());
            outcomes.push(self.kept[&name].clone());
        }
        Ok(outcomes)
    }
}

fn load(name: &str, size: Option<u64>) -> Named {
    let params = size.map(|size| ("size".to_owned(), size.to_string())).into_iter().collect();
    Named { name: name.to_owned(), params }
}

fn names(candidates: &[TriedMix]) -> Vec<String> {
    candidates.iter().map(|one| one.mix.to_string()).collect()
}

#[test]
fn the_known_best_is_found_and_nothing_is_tried_twice() {
    let mut known = Known::new();
    let found = search(&mut known, 1_000).unwrap();
    let first = best(&found).unwrap();
    assert_eq!(first.mix.to_string(), "flat+hill:size=64+slope:size=1");
    assert_eq!(first.outcome.score, Some(1_000 + 592 + 200));
    let mut sorted = known.tries.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), known.tries.len(), "{:?}", known.tries);
    assert_eq!(names(&found), known.tries);
    // Those that cannot run are neither resized nor mixed.
    assert!(known.tries.iter().filter(|mix| mix.contains("broken")).count() == 1);
    let steps: Vec<Step> = found.iter().map(|one| one.step).collect();
    assert!(steps.is_sorted_by_key(|step| *step as u8), "{steps:?}");
}

#[test]
fn the_search_is_as_it_is_described() {
    let mut known = Known::new();
    search(&mut known, 1_000).unwrap();
    assert_eq!(
        known.tries,
        [
            "broken",
            "flat",
            "hill",
            "shadow",
            "slope",
            // The best first. Larger helps, so it is made larger again, which does not.
            "hill:size=64",
            "hill:size=4",
            "hill:size=256",
            // The last step is better, but not by enough to go on.
            "slope:size=64",
            "slope:size=4",
            "slope:size=1",
            "hill:size=64+slope:size=1",
            "hill:size=64+shadow",
            "flat+hill:size=64",
            "hill:size=64+shadow+slope:size=1",
            "flat+hill:size=64+slope:size=1",
            "flat+hill:size=64+shadow+slope:size=1",
        ]
    );
}

#[test]
fn no_budget_is_exceeded_and_a_smaller_one_is_the_beginning_of_a_larger_one() {
    let whole = names(&search(&mut Known::new(), 1_000).unwrap());
    for budget in 0..=whole.len() + 2 {
        let mut known = Known::new();
        let found = search(&mut known, budget).unwrap();
        assert_eq!(known.tries.len(), budget.min(whole.len()));
        // A round that is cut short is the last one.
        assert_eq!(names(&found), whole[..found.len()], "{budget}");
    }
}

#[test]
fn a_search_that_was_interrupted_goes_on_as_if_it_had_not_been() {
    let whole = search(&mut Known::new(), 1_000).unwrap();
    for after in 0..whole.len() {
        let mut known = Known { left: after, ..Known::new() };
        assert_eq!(search(&mut known, 1_000), Err("interrupted"), "{after}");
        assert_eq!(known.kept.len(), after);
        known.left = whole.len() - after;
        assert_eq!(search(&mut known, 1_000).unwrap(), whole, "only what was missing was tried");
    }
}

#[test]
fn each_load_of_the_best_is_left_out_once() {
    let mut known = Known::new();
    let found = search(&mut known, 1_000).unwrap();
    let mix = &best(&found).unwrap().mix;
    let without = names(&without_each(&mut known, mix, &found).unwrap());
    assert_eq!(without.len(), mix.loads().len());
    for (load, without) in mix.loads().iter().zip(&without) {
        assert!(!without.contains(&load.name), "{load}: {without}");
    }
    let alone = Mix::of(load("flat", None));
    assert_eq!(without_each(&mut known, &alone, &found), Ok(Vec::new()));
}

#[test]
fn a_score_is_the_geometric_mean_and_every_kernel_must_have_one() {
    assert_eq!(score(&[Some(7)]), Some(7));
    assert_eq!(score(&[Some(1_000), Some(4_000)]), Some(2_000));
    assert_eq!(score(&[Some(2_000_000_000), Some(3), Some(9), Some(1)]), Some(482));
    assert_eq!(score(&[Some(5), None]), None);
    assert_eq!((score(&[]), score(&[Some(0), Some(9)])), (None, Some(0)));
    // Twice as long counts the same wherever it is.
    assert_eq!(score(&[Some(60_000), Some(50)]), score(&[Some(30_000), Some(100)]));
}
