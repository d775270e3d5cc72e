//! What the edges of `pulse` are seen on.

use std::io;
use std::path::Path;

use punctual_sys::error::text;
use punctual_sys::gpio::OutputLine;
use punctual_sys::parport::DataPins;

use crate::knobs::Journal;
use crate::registry::Values;

/// The word for no output, and for no line.
pub(super) const NONE: &str = "none";

/// What is high during a pulse.
pub(super) enum Output {
    /// The clock is read, and nothing set.
    Nothing,
    /// All data pins of a parallel port.
    Port(DataPins),
    /// A line of a GPIO chip.
    Line(OutputLine),
}

/// Checks that the output and its line fit together.
pub(super) fn check(values: &Values) -> Result<(), String> {
    let (output, is_line) = (device(values), line(values).is_some());
    let is_chip = output.is_some_and(|device| device.starts_with("/dev/gpiochip"));
    if output.is_none() && is_line {
        return Err(values.wrong("line", "needs its GPIO chip: output=/dev/gpiochip0"));
    }
    if is_chip && !is_line {
        let why = "needs the number of its line: line=N (gpioinfo lists them)";
        return Err(values.wrong("output", why));
    }
    if output.is_some() && values.known_number("threads") != Some(1) {
        return Err(values.wrong("output", "one output has one thread"));
    }
    Ok(())
}

fn device(values: &Values) -> Option<&str> {
    values.word("output").is_none().then(|| values.text("output"))
}

fn line(values: &Values) -> Option<u32> {
    values.word("line").is_none().then(|| values.small("line"))
}

impl Output {
    /// Takes the output that was chosen, for nobody else to have, and sets it low.
    pub(super) fn open(values: &Values, journal: &mut Journal) -> Result<Self, String> {
        match (device(values), line(values)) {
            (None, _) => Ok(Self::Nothing),
            (Some(device), None) => port(Path::new(device)).map(Self::Port),
            (Some(device), Some(line)) => {
                let taken = journal.output_line(Path::new(device), line);
                taken.map(Self::Line).map_err(|error| no_line(device, &error))
            }
        }
    }

    #[inline(always)]
    pub(super) fn set(&self, high: bool) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Port(pins) => pins.set(if high { 0xff } else { 0 }),
            Self::Line(line) => line.set(high),
        }
    }
}

fn port(device: &Path) -> Result<DataPins, String> {
    let claimed = DataPins::claim(device).and_then(|pins| pins.set(0).map(|()| pins));
    claimed.map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "; it takes a parallel port and the module ppdev",
            io::ErrorKind::PermissionDenied => "; it takes root or the group lp",
            _ => "; another driver may have the port: rmmod lp",
        };
        format!("{}: {}{what}", device.display(), text(&error))
    })
}

fn no_line(device: &str, error: &io::Error) -> String {
    let what = match error.kind() {
        io::ErrorKind::NotFound => "; it takes a GPIO chip, its driver and CONFIG_GPIO_CDEV",
        io::ErrorKind::PermissionDenied => "; it takes root or the group gpio",
        io::ErrorKind::ResourceBusy => {
            "; choose a line that gpioinfo calls unused, or end its user"
        }
        _ => "",
    };
    format!("{device}: {}{what}", text(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn open(output: &str, line: &str) -> Result<Output, String> {
        let given = [("output", output), ("line", line)];
        let given: BTreeMap<String, String> =
            given.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let values = super::super::ENTRY.read(&given).unwrap();
        let folder = std::env::temp_dir().join(format!("punctual-output-{}", std::process::id()));
        Output::open(&values, &mut Journal::in_folder(&folder).unwrap())
    }

    #[test]
    fn an_output_that_is_not_there_is_the_reason() {
        for (device, line, says) in [
            ("/dev/no-such-parport", NONE, "ppdev"),
            ("/dev/no-such-gpiochip", "4", "CONFIG_GPIO_CDEV"),
            ("/dev/null", "4", "does not answer as a GPIO chip"),
            ("/dev/null", NONE, "PPEXCL"),
        ] {
            let Err(error) = open(device, line) else { panic!("{device}") };
            assert!(error.starts_with(device) && error.contains(says), "{error}");
        }
        assert!(matches!(open(NONE, NONE), Ok(Output::Nothing)));
    }
}
