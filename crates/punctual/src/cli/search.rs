//! The command `lab search`.

use clap::Command;
use punctual_core::units::BareNumber;

use super::args::{duration, positive_seconds};
use super::boards::{aims, board, folder, kernel, quiet, replicates, seed};
use super::budget::Budget;
use super::run::{flag, value};

const EXAMPLES: &str = r"Examples:
  punctual lab search --kernel debian:rt --budget 60 --out found
      the table is in found/search.html; once more, it goes on where it was
  punctual lab search --kernel debian:none,debian:rt --budget 400s --out both
      one load for both kernels
  punctual lab search --kernel ./bzImage --load timers,faults --out mine
      only these loads, their sizes and mixes

Exit status: 0; 2 error: a kernel cannot be watched, or the folder has another
search; 69 a guest of an aimed release failed; 130 interrupted.";

/// The command `lab search`.
pub fn command() -> Command {
    Command::new("search")
        .about("Search for the load under which kernels can be latest")
        .long_about(
            "Tries loads on virtual boards, watches each as `punctual lab sections` does, and looks \
             for the load with the longest stretch in which a woken thread could not have run: \
             first every load alone; then each size of the best three made 4 times as large and as \
             small, as long as that helps; then the best with whichever of the next five helps \
             most, as long as one does. A step helps if the stretch is longer by more than 10 %. \
             Several guests with different seeds try each load, and the shortest of their stretches \
             counts, so that luck does not; of several kernels their geometric mean. Nothing depends \
             on the host: the same options give the same table to the byte. Each try is kept as it \
             ends, and the same command on the same folder goes on. At the end releases are aimed at \
             the longest stretches of the best load, as `punctual lab aim` does, and its loads are \
             left out one by one.",
        )
        .after_help(EXAMPLES)
        .arg(
            value(
                "budget",
                "N|TIME",
                "Tries, each of which is one guest; or time of the boards, warm-ups included, such \
                 as 60s. Aimed releases, and tries without one load of the best, are extra",
            )
            .value_parser(|text: &str| text.parse::<Budget>())
            .default_value("60"),
        )
        .arg(
            seed("Seed of the first guest of each load; those of others follow it")
                .default_value("1001"),
        )
        .arg(aims("How many releases to aim at the end, in each guest").default_value("3"))
        .next_help_heading("What to boot")
        .arg(kernel().required(true).help("Kernels, separated by commas, as for `punctual lab run`"))
        .args(board())
        .arg(replicates("2").help("Guests that try each load on each kernel, each with its own seed"))
        .next_help_heading("What to try")
        .arg(value(
            "load",
            "LIST",
            "Loads to mix, with the sizes to begin with [default: all single loads]",
        ))
        .arg(
            value("duration", "TIME", "How long each try is watched; a bare number is in seconds")
                .short('D')
                .value_parser(positive_seconds)
                .default_value("1s"),
        )
        .arg(
            value("warmup", "TIME", "Warm-up before that; a bare number is in seconds")
                .value_parser(duration(BareNumber::Seconds))
                .default_value("200ms"),
        )
        .next_help_heading("Output")
        .arg(folder(
            "Folder of the search; it gets search.html, search.json and a line for each try in \
             tries.jsonl [default: punctual-runs/<UTC time>-lab]",
        ))
        .arg(flag("json", "Print only what was found, as JSON"))
        .arg(quiet())
}
