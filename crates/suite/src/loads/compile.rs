//! The shape of a compile: a process tree that execs, maps, reads, writes and computes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use punctual_core::random::mix;
use punctual_sys::error;
use punctual_sys::storage::sum_mapped;

use crate::harness::worker::{LoadError, Worker, report};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, SCRATCH_DIR, jobs};
use crate::registry::{Default, Kind, Param, Value, Values, any_text};

mod make;

/// First argument of the programs that a job execs.
pub(crate) const UNIT: &str = "compile-unit";
/// Headers that every unit includes, and their size: the include tree of a small C file.
const HEADERS: u64 = 32;
const HEADER_BYTES: usize = 4 << 10;
/// Size of a source file.
const SOURCE_BYTES: usize = 8 << 10;
/// Objects that one link reads; the job's files are then deleted.
pub(crate) const UNITS_PER_LINK: u64 = 16;
/// How often the front end goes over its words, as the passes of a compiler do. More of them
/// make units that take a board of 250 MIPS seconds beside other loads.
const PASSES: u64 = 2;
pub(crate) const UNITS: usize = 0;
const BUILDS: usize = 1;
/// Work within a unit, which beside a probe that spins takes such a board ten seconds.
const STEPS: usize = 2;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "compile",
    summary: "the shape of make -jN, without a compiler, or make of a tree",
    help: "What make -jN of a kernel does to a machine, without a compiler. Every job runs this \
           program as a driver, which runs it as a front end (maps and reads 32 headers and a \
           source, builds a table of its words, computes, writes an assembler file), as an \
           assembler (reads that file, writes an object) and, every 16 units, as a linker. Starts \
           over when done; steps are files that were read, gone through or written. With tree, make -jN of that tree instead, which needs make and a compiler: \
           in a copy of it, which must keep the file system's reserve free, then make clean, and so \
           on; units are then the lines that make prints, and builds says how often it was done. \
           Works in a scratch folder, which is removed at the end.",
    main_param: "jobs",
    params: &[jobs("units compiled in parallel"), SCRATCH_DIR, TREE],
    counters: &["units", "builds", "steps"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::ScratchFolder, steady_from: None, run }),
};

const TREE: Param = Param {
    name: "tree",
    kind: Kind::Text { value: "DIR", check: any_text },
    default: Default::Value(""),
    help: "folder with a Makefile and everything that it needs",
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    machine.resolve_jobs(values);
    let parent = machine.resolve_dir(values)?;
    let tree = values.text("tree");
    if !tree.is_empty() {
        let tree = make::check(tree, &parent)?;
        values.set("tree", Value::Text(tree));
    }
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let folder = worker.enter_scratch()?;
    let tree = worker.values().text("tree");
    if !tree.is_empty() {
        return make::run(worker, tree).map_err(|error| error.within(folder));
    }
    let failed = |error| LoadError::io(folder.display(), &error);
    fs::create_dir_all("include").map_err(failed)?;
    for header in 0..HEADERS {
        let text = source_text(header, HEADER_BYTES);
        fs::write(format!("include/{header}.h"), text).map_err(failed)?;
    }
    for job in 0..worker.values().number("jobs") {
        worker.fork(|worker| make(worker, job).map_err(|error| error.within(folder)))?;
    }
    worker.wait_endless()
}

/// One job: unit after unit, for ever.
fn make(worker: &Worker<'_>, job: u64) -> Result<(), LoadError> {
    // Its units look for the headers two folders above their source.
    let own = Path::new(".").join(format!("job{job}"));
    let failed = |error| LoadError::io(own.display(), &error);
    loop {
        fs::create_dir_all(&own).map_err(failed)?;
        for unit in 0..UNITS_PER_LINK {
            let source = own.join(format!("{unit}.c"));
            let seed = HEADERS + job * UNITS_PER_LINK + unit;
            fs::write(&source, source_text(seed, SOURCE_BYTES)).map_err(failed)?;
            exec(worker, "drive", &source).map_err(LoadError::Failed)?;
            worker.add(UNITS, 1);
        }
        exec(worker, "link", &own).map_err(LoadError::Failed)?;
        fs::remove_dir_all(&own).map_err(failed)?;
    }
}

/// Runs this program as one stage of a compile, and counts the steps that it and what it starts tell
/// of, a byte each.
fn exec(worker: &Worker<'_>, stage: &str, path: &Path) -> Result<(), String> {
    let of_exec = |error: io::Error| format!("exec of {stage}: {}", error::text(&error));
    let mut child =
        command(worker.self_args(), stage, path).stdout(Stdio::piped()).spawn().map_err(of_exec)?;
    let mut steps = [0; 64];
    while let Some(told) = &mut child.stdout {
        match told.read(&mut steps) {
            Ok(0) => break,
            Ok(count) => worker.add(STEPS, count as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(of_exec(error)),
        }
    }
    ended(child.wait(), stage, path)
}

fn command(self_args: &[String], stage: &str, path: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(self_args).args([UNIT, stage]).arg(path).args(self_args).stdin(Stdio::null());
    command
}

fn ended(status: io::Result<ExitStatus>, stage: &str, path: &Path) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{stage} of {}: {status}", path.display())),
        Err(error) => Err(format!("exec of {stage}: {}", error::text(&error))),
    }
}

/// Tells the job of a step. Whoever runs this stage by hand may have nobody who reads.
fn tell_step() {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(b".").and_then(|()| stdout.flush());
}

/// The main function of a process of the compile; `args` are the stage, its path, and the
/// arguments that make this program call it again.
pub(crate) fn unit_main(args: &[String]) -> i32 {
    let [stage, path, self_args @ ..] = args else {
        return 2;
    };
    let path = Path::new(path);
    let done = match stage.as_str() {
        "drive" => drive(path, self_args),
        "translate" => translate(path).map_err(|error| error::text(&error)),
        "assemble" => assemble(path).map_err(|error| error::text(&error)),
        "link" => link(path).map_err(|error| error::text(&error)),
        _ => Err("no such stage".to_owned()),
    };
    match done {
        Ok(()) => 0,
        Err(reason) => {
            report(&format!("{stage} of {}: {reason}", path.display()));
            1
        }
    }
}

fn drive(source: &Path, self_args: &[String]) -> Result<(), String> {
    let run = |stage, path: &Path| ended(command(self_args, stage, path).status(), stage, path);
    run("translate", source)?;
    run("assemble", &source.with_extension("s"))
}

/// The front end and the optimiser.
fn translate(source: &Path) -> io::Result<()> {
    let include = source.ancestors().nth(2).unwrap_or(source).join("include");
    let mut texts = vec![fs::read_to_string(source)?];
    let mut sum = 0_u64;
    for header in 0..HEADERS {
        let path = include.join(format!("{header}.h"));
        sum = sum.wrapping_add(sum_mapped(&File::open(&path)?)?);
        texts.push(fs::read_to_string(path)?);
        tell_step();
    }
    let mut uses: HashMap<&str, u64> = HashMap::new();
    for text in &texts {
        for pass in 0..PASSES {
            for word in text.split_ascii_whitespace() {
                let count = uses.entry(word).or_insert(sum);
                *count = mix(*count ^ pass);
            }
        }
        tell_step();
    }
    let mut symbols: Vec<_> = uses.into_iter().collect();
    symbols.sort_unstable();
    let mut out = String::new();
    for (symbol, value) in symbols {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{symbol}: .quad {value}");
    }
    fs::write(source.with_extension("s"), out)?;
    tell_step();
    Ok(())
}

fn assemble(assembler: &Path) -> io::Result<()> {
    let text = fs::read_to_string(assembler)?;
    let values = text.lines().filter_map(|line| line.rsplit(' ').next());
    let code: Vec<u8> =
        values.flat_map(|value| value.parse::<u64>().unwrap_or(0).to_le_bytes()).collect();
    let part = assembler.with_extension("o.part");
    fs::write(&part, code)?;
    fs::rename(part, assembler.with_extension("o"))?;
    tell_step();
    Ok(())
}

fn link(folder: &Path) -> io::Result<()> {
    let mut program = Vec::new();
    for unit in 0..UNITS_PER_LINK {
        let object = folder.join(format!("{unit}.o"));
        program.extend(fs::read(&object)?);
        tell_step();
    }
    fs::write(folder.join("a.out"), program)
}

/// Pseudo-random words, the same for the same seed.
fn source_text(seed: u64, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut state = mix(seed);
    while text.len() < bytes {
        state = mix(state);
        let _ = write!(text, "w{} ", state % 4096);
        if state.is_multiple_of(8) {
            text.push('\n');
        }
    }
    text
}
