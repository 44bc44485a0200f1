//! Finds faces in a photograph with a pretrained network, and frames them.
//!
//! README.md of this folder describes the steps and where the network comes from.
#![allow(clippy::print_stdout)] // What it is for.

mod detector;
mod frame;
mod photo;

use clap::Parser;
use detector::{Detector, Face};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Finds faces in a photograph with a pretrained network, and frames them.
#[derive(Debug, Parser)]
#[command(after_help = "\
Example, after `python examples/face_detection/fetch.py`:
  cargo run --release -p face-detection -- --out faces.png --compare")]
struct Arguments {
    /// Folder that fetch.py wrote
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data"), value_name = "DIR")]
    data: PathBuf,
    /// Photograph to look at [default: astronaut.png of that folder]
    #[arg(long, value_name = "FILE")]
    photo: Option<PathBuf>,
    /// Where to write the photograph with the faces framed
    #[arg(long, default_value = "faces.png", value_name = "FILE")]
    out: PathBuf,
    /// Also compare the network's outputs with those that litert_reference.py wrote
    #[arg(long)]
    compare: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let path = arguments.photo.unwrap_or_else(|| arguments.data.join("astronaut.png"));
    let mut picture = image::open(&path)?.to_rgb8();
    let detector = Detector::new(&arguments.data.join("face_detection_short_range.tflite"))?;

    let input = photo::to_input(&picture);
    let outputs = detector.run(&input)?;
    if arguments.compare {
        compare("regressors", &outputs.regressors, &arguments.data)?;
        compare("classificators", &outputs.classificators, &arguments.data)?;
    }
    let square = photo::Square::of(&picture);
    for Face { score, corners, points } in detector::decode(&outputs) {
        let corners = corners.map(|corner| square.to_pixels(corner));
        let [[left, top], [right, bottom]] = corners;
        println!("face {score:.4} at ({left:.1}, {top:.1}) to ({right:.1}, {bottom:.1})");
        frame::draw(&mut picture, corners);
        for point in points {
            frame::mark(&mut picture, square.to_pixels(point));
        }
    }
    picture.save(&arguments.out)?;
    println!("wrote {}", arguments.out.display());
    Ok(())
}

/// Largest difference that is called agreement, beside five digits of the value itself.
const TOLERANCE: f32 = 1e-4;

fn compare(name: &str, found: &[f32], data: &Path) -> Result<(), Box<dyn Error>> {
    let expected: Vec<f32> = nnhal::npy::load(&data.join(format!("{name}.npy")))?.to_vec()?;
    if expected.len() != found.len() {
        return Err(format!("{name}: {} values, expected {}", found.len(), expected.len()).into());
    }
    let pairs = || found.iter().zip(&expected);
    let largest = pairs().map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
    let agree = pairs().all(|(found, expected)| {
        (found - expected).abs() <= TOLERANCE + TOLERANCE / 10.0 * expected.abs()
    });
    println!("{name}: largest difference from LiteRT {largest:.2e}");
    if agree { Ok(()) } else { Err(format!("{name} differ from LiteRT's").into()) }
}
