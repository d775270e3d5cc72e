//! `punctual-board --help`.

use crate::ending::Ending;
use crate::numbers::say;

const HELP: &str = "\
punctual-board: measures how late this machine starts real-time work, and judges nothing

  punctual-board run [PROBE...]    measure latencies (wakeup, if no probe is given)
  punctual-board cost [METRIC...]  measure what the kernel costs (the summary, if none is given)
  punctual-board load LOAD         run only a load
  punctual-board list [NAME]       probes, loads and costs, or the parameters of one
  punctual-board restore           undo what a run left behind that was killed; --dry-run

It writes a run directory. On any machine, punctual judges, shows and draws it:
  punctual show DIR --deadline 200us
  punctual report DIR -o report.html

run and cost:
  --load LIST        loads to measure under, one after the other; a+b run together (none)
  -D, --duration T   how long a cell is measured (run 10s, cost 1s); a bare number is seconds
  --out DIR          the run directory (punctual-runs/TIME-BOARD-KERNEL)
  --board-name NAME  name of the board (its host name)
  --dma-latency US   hold /dev/cpu_dma_latency at US (0); none leaves it alone
  --json             print run.json instead of the table
  -q, --quiet        no progress on the terminal
run:
  -t, --threads N    threads, or per-cpu          -p, --priority N   real-time priority (80)
  -i, --interval T   time between releases (1ms); a bare number is microseconds
  -a, --affinity L   CPUs such as 0-3,8, or auto  --policy P         fifo, rr, other
  --timer T          how a thread waits           --aligned T        releases of all at once
  -l, --loops N      end after N samples of each thread
  --deadline T       count what is later          -b, --break T      end at a sample above T
  --warmup T         before each cell (1s)        --keep-above T     keep each sample above T
  --dither SEED      move each release within its interval
  --require-rt       measure nothing without real-time scheduling
  --force            allow priority 99            --all-cpus         per-cpu leaves no CPU out
load:
  -D, --duration T   how long (10s)

Parameters ride on the name: wakeup:timer=posix, hackbench:groups=4.
Exit status: 0 done, 1 something was later than the deadline, 2 an error, 4 something that was
asked for is missing, 5 a sample was above the break value, 130 interrupted.
";

/// Prints it.
pub fn print() -> anyhow::Result<Ending> {
    say(HELP).map(|()| Ending::Done)
}
