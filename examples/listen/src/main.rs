//! Streams audio through a stateful model, a window at a time, and prints the telephone keys that it
//! hears:
//!
//! ```text
//! cargo run --release -p listen -- [AUDIO.raw]
//! ```
//!
//! The file holds samples of 32-bit floats, 8000 a second, as `sox in.wav -r 8000 -c 1 -e float -b 32
//! out.raw` writes them. Without one, keys are dialled here, with noise.
//!
//! The model is built by hand, which shows what a variable is: a value that a run takes and gives. A
//! session keeps it. A `.tflite` file with variables is used in just the same way.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

mod model;
mod tones;

use model::{TONES, WINDOW};
use nnhal::{Runner, SessionOptions};
use std::error::Error;
use std::process::ExitCode;
use tones::{KEYS, dial};

fn main() -> ExitCode {
    match listen() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn listen() -> Result<(), Box<dyn Error>> {
    let audio: Vec<f32> = match std::env::args_os().nth(1) {
        Some(file) => {
            let bytes = std::fs::read(file)?;
            bytes.as_chunks().0.iter().map(|sample| f32::from_le_bytes(*sample)).collect()
        }
        None => dial("0123456789*#ABCD", 0.2),
    };
    let session = model::build()?.session(SessionOptions::new().threads(1))?;
    // A runner is a stream: it has the variables. Another one of the same session hears another call.
    println!("{}", keys(&mut session.runner()?, &audio)?);
    Ok(())
}

/// The keys of which each was heard for some windows.
fn keys(stream: &mut Runner, audio: &[f32]) -> nnhal::Result<String> {
    let mut heard = String::new();
    let mut last = None;
    for window in audio.as_chunks::<WINDOW>().0 {
        stream.set_input("samples", window)?;
        stream.run()?;
        let energies = stream.output("energies")?.to_vec::<f32>()?;
        let key = key(&energies);
        if key != last {
            heard.extend(key);
            last = key;
        }
    }
    Ok(heard)
}

/// The key whose two tones stand out, if there is one.
fn key(energies: &[f32]) -> Option<char> {
    let strongest = |from: usize, to: usize| {
        let (at, energy) =
            (from..to).map(|at| (at, energies[at])).max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let others: f32 = (from..to).filter(|it| *it != at).map(|it| energies[it]).sum();
        (energy > 0.01 && energy > 2.0 * others).then_some(at - from)
    };
    Some(KEYS[strongest(0, 4)?][strongest(4, TONES)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialled_keys_are_heard_and_streams_do_not_disturb_each_other() {
        let session = model::build().unwrap().session(SessionOptions::new()).unwrap();
        let (mut one, mut other) = (session.runner().unwrap(), session.runner().unwrap());
        let (first, second) = (dial("159#", 0.2), dial("ABCD", 0.2));
        // In turns, some windows each.
        let (mut heard, mut heard_besides) = (String::new(), String::new());
        for (a, b) in first.chunks(10 * WINDOW).zip(second.chunks(10 * WINDOW)) {
            for (stream, audio, all) in
                [(&mut one, a, &mut heard), (&mut other, b, &mut heard_besides)]
            {
                for key in keys(stream, audio).unwrap().chars() {
                    if !all.ends_with(key) {
                        all.push(key);
                    }
                }
            }
        }
        assert_eq!((heard.as_str(), heard_besides.as_str()), ("159#", "ABCD"));
    }

    #[test]
    fn a_stream_that_is_reset_has_forgotten() {
        let session = model::build().unwrap().session(SessionOptions::new()).unwrap();
        let mut stream = session.runner().unwrap();
        let energies = |stream: &mut Runner, window: &[f32; WINDOW]| {
            stream.set_input("samples", window).unwrap();
            stream.run().unwrap();
            stream.output("energies").unwrap().to_vec::<f32>().unwrap()
        };
        let silence = [0.0; WINDOW];
        let tone = *dial("5", 0.0).first_chunk::<WINDOW>().unwrap();
        assert!(energies(&mut stream, &tone).iter().any(|it| *it > 0.0));
        assert!(energies(&mut stream, &silence).iter().any(|it| *it > 0.0), "it remembers");
        stream.reset().unwrap();
        assert_eq!(energies(&mut stream, &silence), [0.0; TONES]);
    }
}
