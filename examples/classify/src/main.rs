//! Says what is in a picture, with a `.tflite` classifier:
//!
//! ```text
//! cargo run --release -p classify -- [MODEL.tflite LABELS.txt PICTURE.png]
//! ```
//!
//! Without arguments it reads a scanned digit with the network of `assets/digits`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

use nnhal::image::{self, Normalization};
use nnhal::{Model, SessionOptions};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match classify() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn classify() -> Result<(), Box<dyn Error>> {
    let digits = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits"));
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [model, labels, picture] = match <[PathBuf; 3]>::try_from(arguments) {
        Ok(three) => three,
        Err(none) if none.is_empty() => {
            ["digits_int8.tflite", "labels.txt", "digit_7.png"].map(|name| digits.join(name))
        }
        Err(_) => return Err("give a model, its labels and a picture, or nothing".into()),
    };
    let labels = std::fs::read_to_string(labels)?;
    let labels: Vec<&str> = labels.lines().collect();

    let model = Model::load(&model)?;
    let input = model.inputs().first().ok_or("the model has no input")?;
    // Pixels become what the input's type holds: 0 to 1, or the range of its quantized values.
    let normalization = Normalization::default_for(input);
    let picture = image::load(&picture, input, &input.shape, normalization)?;
    let session = model.session(SessionOptions::new())?;
    let outputs = session.run([&picture])?;

    for (class, share) in outputs[0].top(3) {
        println!("{share:.3}  {}", labels.get(class).copied().unwrap_or("?"));
    }
    Ok(())
}
