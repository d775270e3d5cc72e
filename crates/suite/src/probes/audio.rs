//! `audio`: whether a player keeps its device fed (as latencytest).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use punctual_core::schema::{Ideal, Role, Tells, Unit};
use punctual_core::units::SECOND_NS;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::error::text;
use punctual_sys::pcm::{Playback, Stream, Written};
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use super::counts::Counts;
use crate::compute::Steps;
use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, CounterEntry, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry, Session, Stage,
    State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "audio",
    summary: "dropouts of an audio device that is kept fed (as latencytest)",
    help: "Each thread plays: it computes for work=PERCENT of the time that a fragment lasts, writes \
the fragment once the buffer has room for it, and reads the clock. Recorded are the time from one \
fragment to the next, which is frames / rate if nothing is late, and how long the computing took \
(loop). The buffer holds fragments=N; a dropout is when it has run dry before the write, after which it \
is filled and played anew. A dropout is a FAIL. within-* count fragments that came so near to the \
ideal time. With device=timer the clock consumes a fragment every frames / rate, and no device is \
needed; with device=hw:0 (or hw:0+1, or a path) a PCM device of ALSA plays silence, in 16 bits and \
stereo. The computing is a fixed number of steps, calibrated before the start: what interrupts it \
makes it longer. Follows latencytest (Benno Senoner).",
    params: &[
        Param {
            name: "device",
            kind: Kind::Or(
                &[Choice::of(TIMER, "the clock is the device")],
                &Kind::Text { value: "PCM", check: is_device },
            ),
            default: Default::Value(TIMER),
            help: "what plays: hw:CARD, hw:CARD+DEVICE, or a path such as /dev/snd/pcmC0D0p",
        },
        Param {
            name: "frames",
            kind: Kind::Count { low: 16, high: 8_192 },
            default: Default::Value("128"),
            help: "frames of a fragment",
        },
        Param {
            name: "fragments",
            kind: Kind::Count { low: 2, high: 64 },
            default: Default::Value("3"),
            help: "fragments of the buffer",
        },
        Param {
            name: "rate",
            kind: Kind::Count { low: 8_000, high: 192_000 },
            default: Default::Value("44100"),
            help: "frames a second",
        },
        Param {
            name: "work",
            kind: Kind::Percent { high: 95 },
            default: Default::Value("80%"),
            help: "share of a fragment's time that is computed",
        },
    ],
    overrides: &[],
    without: &[],
    check,
    needs: &[],
    device: Some("sound"),
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "fragment",
        meaning: "a fragment is written minus the one before was",
        nouns: ("fragment", "fragments"),
        by: By::Thread,
    },
    series: &[SeriesEntry {
        name: "loop",
        meaning: "end of the computing for a fragment minus its start",
        role: Role::Aside,
        unit: Unit::Ns,
        by: By::Thread,
    }],
    counters: &[
        CounterEntry {
            name: "dropouts",
            meaning: "times that the whole buffer ran dry",
            tells: Tells::Fault,
        },
        CounterEntry {
            name: "within-100us",
            meaning: "fragments within 0.1 ms of the ideal time",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "within-200us",
            meaning: "fragments within 0.2 ms of it",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "within-1ms",
            meaning: "fragments within 1 ms of it",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "within-2ms",
            meaning: "fragments within 2 ms of it",
            tells: Tells::Nothing,
        },
    ],
    state: State::There(open),
};

/// The entry's counters: dropouts, then those of these distances from the ideal, ns.
const DROPOUTS: usize = 0;
const WITHIN: [u64; 4] = [100_000, 200_000, 1_000_000, 2_000_000];

const TIMER: &str = "timer";

fn is_device(text: &str) -> Result<(), String> {
    path(text).map(drop).ok_or_else(|| "must be hw:CARD, hw:CARD+DEVICE or a path".to_owned())
}

/// The file of a device: `hw:0`, `hw:0+1`, or the path itself.
fn path(device: &str) -> Option<PathBuf> {
    if device.starts_with('/') {
        return Some(device.into());
    }
    let name = device.strip_prefix("hw:")?;
    let (card, number) = name.split_once('+').unwrap_or((name, "0"));
    let (card, number): (u8, u8) = (card.parse().ok()?, number.parse().ok()?);
    Some(format!("/dev/snd/pcmC{card}D{number}p").into())
}

fn check(values: &Values) -> Result<(), String> {
    if values.word("device").is_none() && values.known_number("threads") != Some(1) {
        return Err(values.wrong("device", "one device has one thread"));
    }
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "sessions can fail to open; this one does not")]
fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let stream = Stream {
        rate: values.small("rate"),
        period: values.small("frames"),
        periods: values.small("fragments"),
    };
    let fragment_ns = u64::from(stream.period) * SECOND_NS / u64::from(stream.rate);
    Ok(Box::new(Players {
        device: values.word("device").is_none().then(|| path(values.text("device"))).flatten(),
        stream,
        fragment_ns,
        work_ns: fragment_ns * values.number("work") / 100,
        break_ns: stage.break_ns,
        counts: Vec::new(),
    }))
}

struct Players {
    /// What plays; `None`: the clock.
    device: Option<PathBuf>,
    stream: Stream,
    fragment_ns: u64,
    work_ns: u64,
    break_ns: i64,
    counts: Vec<Arc<Counts<5>>>,
}

impl Session for Players {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { stream, fragment_ns, work_ns, break_ns, .. } = *self;
        let counts = Arc::new(Counts::default());
        self.counts.push(Arc::clone(&counts));
        let device = self.device.clone();
        let player = Player { fragment_ns, work: Steps::default(), break_ns, counts };
        let (clock, card) = (ClockBuffer::new(fragment_ns, stream.periods), None);
        Ok(Box::new(AudioThread { device, stream, work_ns, player, clock, card }))
    }

    fn longest_pause_ns(&self) -> u64 {
        self.fragment_ns * u64::from(self.stream.periods)
    }

    fn ideal(&self) -> Option<Ideal> {
        let limit_ns = self.fragment_ns * u64::from(self.stream.periods);
        Some(Ideal::Interval { ns: self.fragment_ns, limit_ns })
    }

    fn close(self: Box<Self>) -> Closed {
        let counts = Counts::totals(self.counts.iter().map(|counts| &**counts));
        Closed { counts, notes: Vec::new() }
    }
}

/// A player and what it can play on.
struct AudioThread {
    device: Option<PathBuf>,
    stream: Stream,
    work_ns: u64,
    player: Player,
    clock: ClockBuffer,
    card: Option<Playback>,
}

impl ProbeThread for AudioThread {
    fn prepare(&mut self) -> io::Result<()> {
        if let Some(device) = &self.device {
            let opened = Playback::open(device, self.stream).and_then(|mut card| {
                card.refill()?;
                Ok(card)
            });
            self.card = Some(opened.map_err(|error| {
                let what = match error.kind() {
                    io::ErrorKind::NotFound => {
                        "; /proc/asound/pcm lists devices, modprobe \
                                                snd-dummy makes one, device=timer needs none"
                    }
                    io::ErrorKind::PermissionDenied => "; it takes root or the group audio",
                    io::ErrorKind::ResourceBusy => "; another program plays: fuser -v /dev/snd/*",
                    _ => {
                        "; it may play at another rate (rate=48000), or other sizes (frames=, \
                          fragments=)"
                    }
                };
                io::Error::other(format!("{}: {}{what}", device.display(), text(&error)))
            })?);
        }
        self.player.work = Steps::lasting(self.work_ns);
        Ok(())
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        match &mut self.card {
            Some(card) => self.player.play(card, window, tracks, stop),
            None => self.player.play(&mut self.clock, window, tracks, stop),
        }
    }
}

/// What a player fills, fragment by fragment.
trait Buffer {
    /// Fills it from the start.
    fn refill(&mut self) -> io::Result<()>;

    /// Writes a fragment, once there is room for it.
    fn write(&mut self) -> io::Result<Written>;
}

impl Buffer for Playback {
    fn refill(&mut self) -> io::Result<()> {
        Self::refill(self)
    }

    #[inline(always)]
    fn write(&mut self) -> io::Result<Written> {
        Self::write(self)
    }
}

/// A buffer that the clock plays.
struct ClockBuffer {
    fragment_ns: u64,
    /// How long the buffer lasts from the moment that it has room for a fragment, ns.
    lasts_ns: u64,
    /// When it has room for the next fragment, CLOCK_MONOTONIC, ns.
    room: u64,
}

impl ClockBuffer {
    fn new(fragment_ns: u64, fragments: u32) -> Self {
        Self { fragment_ns, lasts_ns: fragment_ns * u64::from(fragments - 1), room: 0 }
    }
}

impl Buffer for ClockBuffer {
    #[inline(always)]
    fn refill(&mut self) -> io::Result<()> {
        self.room = monotonic_ns() + self.fragment_ns;
        Ok(())
    }

    #[inline(always)]
    fn write(&mut self) -> io::Result<Written> {
        if AbsoluteSleep.until(self.room)? == Waited::Interrupted {
            return Ok(Written::Interrupted);
        }
        if monotonic_ns() >= self.room + self.lasts_ns {
            return Ok(Written::Dry);
        }
        self.room += self.fragment_ns;
        Ok(Written::All)
    }
}

struct Player {
    fragment_ns: u64,
    work: Steps,
    break_ns: i64,
    counts: Arc<Counts<5>>,
}

impl Player {
    fn play<B: Buffer>(
        &self,
        buffer: &mut B,
        window: &Window,
        tracks: &mut [Recorder],
        stop: &Stop,
    ) -> io::Result<()> {
        let [fragments, loops] = tracks else {
            return Err(io::Error::other("two series come from a thread"));
        };
        while AbsoluteSleep.until(window.first)? == Waited::Interrupted && !stop.is_set() {}
        self.counts.begin();
        buffer.refill()?;
        let mut left = window.samples;
        let mut before = monotonic_ns();
        while left > 0 && before + self.fragment_ns < window.end && !stop.is_set() {
            self.work.run();
            let computed = monotonic_ns();
            loops.record(computed, (computed - before).cast_signed(), 0);
            let mut written = buffer.write()?;
            while written == Written::Interrupted && !stop.is_over(window) {
                written = buffer.write()?;
            }
            let now = monotonic_ns();
            let took = now - before;
            match written {
                Written::Interrupted => break,
                Written::All => before = now,
                Written::Dry => {
                    self.counts.add(DROPOUTS, 1);
                    buffer.refill()?;
                    before = monotonic_ns();
                }
            }
            fragments.record(now, took.cast_signed(), 0);
            self.count(took);
            left -= 1;
            if took.cast_signed() > self.break_ns {
                stop.set_broken(now - took, took.cast_signed());
            }
        }
        // The end of the next fragment is not in the window any more.
        while left > 0 && !stop.is_over(window) {
            let _ = AbsoluteSleep.until(window.end)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn count(&self, took: u64) {
        let distance = took.abs_diff(self.fragment_ns);
        for (counter, most) in WITHIN.into_iter().enumerate() {
            self.counts.add(DROPOUTS + 1 + counter, u64::from(distance <= most));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recording;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// Fragments of 20 ms, on the clock or on a buffer of the test's own.
    fn play(buffer: &mut impl Buffer, ns: u64) -> (Vec<u64>, [Recording; 2]) {
        let player = Player {
            fragment_ns: 20 * MS,
            work: Steps::default(),
            break_ns: i64::MAX,
            counts: Arc::default(),
        };
        let first = monotonic_ns();
        let window = Window { first, end: first + ns, samples: u64::MAX, aim: Aim::NONE };
        let mut tracks = [Recorder::new(Limits::NONE), Recorder::new(Limits::NONE)];
        for track in &mut tracks {
            track.begin(first);
        }
        player.play(buffer, &window, &mut tracks, &Stop::default()).unwrap();
        (Counts::totals([&*player.counts].into_iter()), tracks.map(Recorder::finish))
    }

    #[test]
    fn fragments_are_written_as_the_clock_plays_them() {
        let (counts, [fragments, loops]) = play(&mut ClockBuffer::new(20 * MS, 64), 400 * MS);
        assert_eq!(counts[DROPOUTS], 0, "the buffer lasts for more than a second");
        let count = fragments.moments.count;
        assert!((1..=20).contains(&count) && loops.moments.count == count, "{count}");
        // It never runs ahead of the clock: 20 fragments last 400 ms.
        let mean = fragments.moments.sum / i128::from(count);
        assert!(mean >= 19_000_000, "{mean}");
        assert!(counts.windows(2).skip(1).all(|pair| pair[0] <= pair[1]) && counts[4] <= count);
    }

    /// Stalls before one of the writes.
    struct Stalled {
        clock: ClockBuffer,
        writes: u32,
    }

    impl Buffer for Stalled {
        fn refill(&mut self) -> io::Result<()> {
            self.clock.refill()
        }

        fn write(&mut self) -> io::Result<Written> {
            self.writes += 1;
            if self.writes == 4 {
                std::thread::sleep(Duration::from_millis(100));
            }
            self.clock.write()
        }
    }

    #[test]
    fn a_stall_for_longer_than_the_buffer_lasts_is_a_dropout_and_a_shorter_one_is_none() {
        for (fragments, dropouts) in [(3, 1), (64, 0)] {
            let clock = ClockBuffer::new(20 * MS, fragments);
            let (counts, [times, _]) = play(&mut Stalled { clock, writes: 0 }, 400 * MS);
            // A busy machine may add to them.
            assert!(counts[DROPOUTS] >= dropouts, "{fragments}: {counts:?}");
            assert!(fragments == 3 || counts[DROPOUTS] == 0, "{fragments}: {counts:?}");
            assert!(times.moments.max >= 100_000_000, "{fragments}: {:?}", times.moments);
        }
    }

    #[test]
    fn devices_are_named_as_alsa_names_them() {
        for (name, file) in [
            ("hw:0", Some("/dev/snd/pcmC0D0p")),
            ("hw:1+7", Some("/dev/snd/pcmC1D7p")),
            ("/dev/snd/pcmC2D0p", Some("/dev/snd/pcmC2D0p")),
            ("hw:x", None),
            ("default", None),
        ] {
            assert_eq!(path(name), file.map(PathBuf::from), "{name}");
            assert_eq!(is_device(name).is_ok(), file.is_some());
        }
    }
}
