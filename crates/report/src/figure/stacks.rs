//! Stacks as nested boxes: in the order of time, or all of a sample merged by name.

use std::collections::BTreeMap;

use crate::explanation::times::{Names, Stretch};

/// Deeper functions are part of the one at this depth.
pub const DEEPEST: usize = 40;

/// What a box stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The CPU was idle.
    Idle,
    /// A function, by its number.
    Function(u32),
    /// So many calls, each too short to be drawn.
    Several(usize),
}

/// A function while it is on the stack, with those that it called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    pub content: Content,
    /// Its ends, ns; those of merged stacks count from the first of them.
    pub from: u64,
    pub to: u64,
    /// How much of it the function executed itself, ns.
    pub own: u64,
    pub inner: Vec<Nested>,
}

impl Nested {
    fn new(content: Content, from: u64, to: u64) -> Self {
        Self { content, from, to, own: 0, inner: Vec::new() }
    }

    pub fn ns(&self) -> u64 {
        self.to - self.from
    }
}

fn contents<'a>(stretch: &Stretch<'a>) -> impl Iterator<Item = Content> + 'a {
    let idle = stretch.stack.is_empty().then_some(Content::Idle);
    let functions = stretch.stack.iter().take(DEEPEST).map(|number| Content::Function(*number));
    functions.chain(idle)
}

/// The stacks in the order of time: a function is one box as long as it stays on the stack, or
/// until the CPU changes to another stack at `switch`, which may have the same functions.
pub fn over_time<'a>(stretches: impl Iterator<Item = Stretch<'a>>, switch: u64) -> Vec<Nested> {
    // What is on the stack now, below all that has ended.
    let mut open = vec![Nested::new(Content::Idle, 0, 0)];
    for stretch in stretches {
        let stack: Vec<Content> = contents(&stretch).collect();
        let pairs = open[1..].iter().zip(&stack);
        let same = pairs.take_while(|(one, content)| one.content == **content).count();
        let stays = stretch.from < switch || open.last().is_some_and(|one| one.from >= switch);
        close(&mut open, if stays { same + 1 } else { 1 });
        let begun = stack.iter().skip(open.len() - 1);
        let begun: Vec<_> =
            begun.map(|content| Nested::new(*content, stretch.from, stretch.to)).collect();
        open.extend(begun);
        for one in &mut open[1..] {
            one.to = stretch.to;
        }
        if let Some(running) = open.last_mut() {
            running.own += stretch.ns();
        }
    }
    close(&mut open, 1);
    open.pop().map(|all| all.inner).unwrap_or_default()
}

/// Moves what is deeper than this into its callers.
fn close(open: &mut Vec<Nested>, depth: usize) {
    while open.len() > depth.max(1) {
        let Some(ended) = open.pop() else { return };
        if let Some(caller) = open.last_mut() {
            caller.inner.push(ended);
        }
    }
}

/// All calls of a function by the same callers.
#[derive(Debug, Default)]
struct Merged<'a> {
    content: Option<Content>,
    all: u64,
    own: u64,
    inner: BTreeMap<&'a str, Merged<'a>>,
}

/// All stacks merged: a function is one box for each way to it, and those beside each other are
/// sorted by name. Its own time is at the right end of its box.
pub fn merged<'a>(stretches: impl Iterator<Item = Stretch<'a>>, names: &Names) -> Vec<Nested> {
    let mut root = Merged::default();
    for stretch in stretches {
        let mut at = &mut root;
        for content in contents(&stretch) {
            let name = match content {
                Content::Function(number) => names.get(number),
                _ => "",
            };
            at = at.inner.entry(name).or_default();
            at.content.get_or_insert(content);
            at.all += stretch.ns();
        }
        at.own += stretch.ns();
    }
    placed(&root, 0)
}

fn placed(caller: &Merged<'_>, mut from: u64) -> Vec<Nested> {
    let mut list = Vec::new();
    for one in caller.inner.values() {
        let to = from + one.all;
        let content = one.content.unwrap_or(Content::Idle);
        list.push(Nested { content, from, to, own: one.own, inner: placed(one, from) });
        from = to;
    }
    list
}

/// The boxes that are at least so long, or longer until there are at most `most`. What is shorter
/// shows as its caller, or together with its neighbours as one box.
pub fn thinned(list: &[Nested], least: u64, most: usize) -> Vec<Nested> {
    let mut least = least.max(1);
    loop {
        let thin = thin(list, least);
        if count(&thin) <= most || least > u64::MAX / 2 {
            return thin;
        }
        least *= 2;
    }
}

fn count(list: &[Nested]) -> usize {
    list.iter().map(|one| 1 + count(&one.inner)).sum()
}

fn thin(list: &[Nested], least: u64) -> Vec<Nested> {
    let mut kept = Vec::new();
    let mut short: Option<Nested> = None;
    let flush = |short: &mut Option<Nested>, kept: &mut Vec<Nested>| {
        kept.extend(short.take().filter(|one| one.ns() >= least));
    };
    for one in list {
        if one.ns() >= least {
            flush(&mut short, &mut kept);
            kept.push(Nested { inner: thin(&one.inner, least), ..empty(one) });
            continue;
        }
        // What lies between two of them is their caller's own.
        if short.as_ref().is_some_and(|before| one.from - before.to >= least) {
            flush(&mut short, &mut kept);
        }
        let together =
            short.get_or_insert_with(|| Nested::new(Content::Several(0), one.from, one.to));
        if let Content::Several(calls) = &mut together.content {
            *calls += 1;
        }
        together.to = one.to;
        together.own += one.ns();
    }
    flush(&mut short, &mut kept);
    kept
}

/// A box without what is in it.
fn empty(one: &Nested) -> Nested {
    Nested { own: one.own, ..Nested::new(one.content, one.from, one.to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: [(u64, &[u32]); 7] = [
        (10, &[0]),
        (30, &[0, 1]),
        (40, &[0, 1, 2]),
        (60, &[0, 1]),
        (70, &[0]),
        (90, &[0, 1]),
        (100, &[]),
    ];

    fn stretches() -> impl Iterator<Item = Stretch<'static>> {
        let begins = std::iter::once(0).chain(STACKS.iter().map(|(end, _)| *end));
        STACKS.iter().zip(begins).map(|((to, stack), from)| Stretch { from, to: *to, stack })
    }

    fn names() -> Names {
        Names::of(&["main", "work", "copy"].map(str::to_owned))
    }

    /// Depth, content, ends and own time of each box.
    fn flat(list: &[Nested], depth: usize) -> Vec<(usize, Content, u64, u64, u64)> {
        let one = |one: &Nested| {
            let mut all = vec![(depth, one.content, one.from, one.to, one.own)];
            all.extend(flat(&one.inner, depth + 1));
            all
        };
        list.iter().flat_map(one).collect()
    }

    #[test]
    fn a_function_is_one_box_while_it_is_on_the_stack() {
        let expected = [
            (0, Content::Function(0), 0, 90, 20),
            (1, Content::Function(1), 10, 60, 40),
            (2, Content::Function(2), 30, 40, 10),
            (1, Content::Function(1), 70, 90, 20),
            (0, Content::Idle, 90, 100, 10),
        ];
        assert_eq!(flat(&over_time(stretches(), u64::MAX), 0), expected);
    }

    #[test]
    fn another_stack_has_boxes_of_its_own() {
        let ends = |switch: u64| -> Vec<(u64, u64)> {
            over_time(stretches(), switch).iter().map(|one| (one.from, one.to)).collect()
        };
        assert_eq!(ends(70), [(0, 70), (70, 90), (90, 100)]);
        assert_eq!(ends(40), [(0, 40), (40, 90), (90, 100)]);
        assert_eq!(ends(0), [(0, 90), (90, 100)]);
    }

    #[test]
    fn merged_calls_are_one_box_and_times_are_kept() {
        let merged = merged(stretches(), &names());
        let expected = [
            (0, Content::Idle, 0, 10, 10),
            (0, Content::Function(0), 10, 100, 20),
            (1, Content::Function(1), 10, 80, 60),
            (2, Content::Function(2), 10, 20, 10),
        ];
        assert_eq!(flat(&merged, 0), expected);
    }

    #[test]
    fn what_is_too_short_shows_as_its_caller_or_with_its_neighbours() {
        let all = over_time(stretches(), u64::MAX);
        assert_eq!(thinned(&all, 1, 100), all);
        assert!(flat(&thinned(&all, 11, 100), 0).iter().all(|one| one.3 - one.2 >= 11));
        assert!((1..=2).contains(&count(&thinned(&all, 1, 2))));
        let calls: Vec<_> =
            (0..40).map(|i| Nested::new(Content::Function(0), 2 * i, 2 * i + 1)).collect();
        let one = flat(&thinned(&calls, 5, 100), 0);
        assert_eq!(one, [(0, Content::Several(40), 0, 79, 40)]);
    }

    #[test]
    fn a_stack_without_end_is_cut() {
        let stack: Vec<u32> = (0..10_000).map(|i| i % 3).collect();
        let deep = || std::iter::once(Stretch { from: 0, to: 5, stack: &stack });
        assert_eq!(count(&over_time(deep(), u64::MAX)), DEEPEST);
        assert_eq!(count(&merged(deep(), &names())), DEEPEST);
    }
}
