//! `cells.jsonl`: whatever its lines are, cells stay in their places, and what is read can be written.

use punctual_core::run::appended::{line_of, put_in};
use punctual_core::schema::{Run, RunState};

pub fn target(bytes: &[u8]) {
    let text = include_bytes!("../seeds/run_json/simulated");
    let mut run: Run = serde_json::from_slice(text).unwrap();
    run.state = RunState::Running;
    let keys = |run: &Run| run.cells.iter().map(|cell| cell.key.clone()).collect::<Vec<_>>();
    let before = keys(&run);
    put_in(&mut run, bytes);
    assert_eq!(keys(&run), before);
    let mut again = run.clone();
    for number in 0..run.cells.len() {
        put_in(&mut again, &line_of(&run, number).unwrap());
    }
    assert_eq!(again, run);
}
