//! The subcommands, a file each.

use crate::error::{CliError, Result};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

pub mod bench;
pub mod compare;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod devices;
pub mod inspect;
pub mod run;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "service")]
pub mod service;

/// Writes to standard output, for people. A reader that has gone away (`| head`) is not an error.
pub fn print(text: &str) -> Result<()> {
    write(&visible(text))
}

/// Writes to standard output, for programs: as it is, since an escape of Rust's is none of JSON's.
pub fn write(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::file(Path::new("standard output"))(error))
        }
        _ => Ok(()),
    }
}

/// Text without characters that steer terminals, which names in files may have: they are written as Rust writes them.
pub fn visible(text: &str) -> Cow<'_, str> {
    let steers = |it: char| it.is_control() && !matches!(it, '\n' | '\t');
    if !text.contains(steers) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for it in text.chars() {
        match steers(it) {
            true => shown.extend(it.escape_default()),
            false => shown.push(it),
        }
    }
    shown.into()
}

/// Writes one JSON object on a line of its own.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| CliError::Input(error.to_string()))?;
    write(&(text + "\n"))
}

/// Dimensions for people: `1x224x224x3`, with `?` where a length is not known.
pub fn dimensions(dimensions: &[u32]) -> String {
    let length = |length: &u32| (*length != 0).then_some(*length as usize);
    open_shape(&dimensions.iter().map(length).collect::<Vec<_>>())
}

/// A shape for people: `1x224x224x3`.
pub fn shape(lengths: &[usize]) -> String {
    open_shape(&lengths.iter().copied().map(Some).collect::<Vec<_>>())
}

/// A shape for people, with `?` where a length is not known.
pub fn open_shape(lengths: &[Option<usize>]) -> String {
    if lengths.is_empty() {
        return "scalar".into();
    }
    let lengths = lengths.iter().map(|it| it.map_or("?".into(), |length| length.to_string()));
    lengths.collect::<Vec<_>>().join("x")
}

/// A number of things: `1 subgraph`, `2 subgraphs`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Bytes of a name or an attribute that are shown: models may have names of megabytes.
const NAME_LENGTH: usize = 300;

/// The beginning of a name or an attribute that may be very long.
pub fn shortened(text: &str) -> String {
    beginning(text, NAME_LENGTH)
}

/// The beginning of a text that may be very long: at most this number of bytes of it.
pub fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}… ({} bytes)", &text[..text.floor_char_boundary(most)], text.len())
}

/// A duration for people.
pub fn milliseconds(duration: std::time::Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

/// A duration as programs take it.
#[allow(clippy::cast_precision_loss)] // 2^53 nanoseconds are months.
pub fn microseconds(duration: std::time::Duration) -> f64 {
    // One division: of seconds times a million there would be more digits than were measured.
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_names_do_not_steer_the_terminal() {
        assert_eq!(visible("caf\u{e9}\t1\n"), "caf\u{e9}\t1\n");
        assert_eq!(visible("a\u{1b}[2J\rb\u{9b}"), "a\\u{1b}[2J\\rb\\u{9b}");
    }
}
