//! What a model is fed: files by name of input, or generated values.

use crate::error::{CliError, Result};
use crate::limited;
use nnhal::image::{self, Normalization};
use nnhal::{Fill as Values, Input, Model, Tensor, TensorInfo, npy};
use std::path::{Path, PathBuf};

/// Where inputs come from.
#[derive(Debug, Default, clap::Args)]
pub struct InputArguments {
    /// Value of an input: .npy, .png, .jpg, or raw bytes. The name may be left out if the model
    /// has one input
    #[arg(long = "input", short = 'i', value_name = "[NAME=]FILE")]
    pub inputs: Vec<String>,
    /// What inputs without a file are filled with
    #[arg(long, value_enum, default_value_t)]
    pub fill: Fill,
    /// Seed of --fill random
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub seed: u64,
    /// Taken from each pixel (0 to 255) of an image [default: fits the input's type]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub mean: Option<f32>,
    /// Divides each pixel of an image, after the mean is taken [default: fits the input's type]
    #[arg(long, value_name = "NUMBER")]
    pub std: Option<f32>,
    /// Shape of an input whose dimensions the model leaves open, as 1,224,224,3
    #[arg(long = "shape", value_name = "[NAME=]LENGTHS")]
    pub shapes: Vec<String>,
}

/// Inputs that a message names.
const MOST_NAMED: usize = 100;

/// Generated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Fill {
    /// Zeros (quantized: the zero point)
    #[default]
    Zeros,
    /// Floats from 0 to 1, quantized values of the whole range, integers 0; from a seed
    Random,
}

/// A filled input, and where its value came from.
pub struct Filled {
    /// The input's name.
    pub name: String,
    /// The value; of the input's own type, or real numbers that become such.
    pub tensor: Tensor,
    /// For people.
    pub source: String,
}

/// The values as a session takes them.
pub fn values(filled: &[Filled]) -> impl Iterator<Item = Input<'_>> {
    filled.iter().map(|filled| Input::from(&filled.tensor))
}

/// A file or shape that was given for an input.
fn assign<'a>(given: &'a str, model: &Model) -> Result<(usize, &'a str)> {
    let by_name = |name: &str| model.inputs().iter().position(|input| input.is_named(name));
    // Names of TensorFlow contain colons and slashes, and may contain '=': the longest wins.
    for (at, _) in given.match_indices('=').collect::<Vec<_>>().into_iter().rev() {
        if let Some(index) = by_name(&given[..at]) {
            return Ok((index, &given[at + 1..]));
        }
    }
    match (model.inputs(), given.split_once('=')) {
        ([_], None) => Ok((0, given)),
        ([_], Some(_)) if Path::new(given).exists() => Ok((0, given)),
        _ => {
            let names = model.inputs().iter().take(MOST_NAMED).map(TensorInfo::shown_name);
            let names: Vec<_> = names.collect();
            let others = match model.inputs().len() - names.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            Err(CliError::Input(format!(
                "{given:?} names no input of the model; it has: {}{others}",
                names.join(", ")
            )))
        }
    }
}

/// A value for every input of the model.
///
/// # Errors
/// A file cannot be read or does not fit, or an input's shape is not known.
pub fn fill(arguments: &InputArguments, model: &Model) -> Result<Vec<Filled>> {
    let mut shapes: Vec<Option<Vec<usize>>> =
        model.inputs().iter().map(TensorInfo::known_shape).collect();
    for given in &arguments.shapes {
        let (index, text) = assign(given, model)?;
        shapes[index] = Some(parse_shape(text)?);
    }
    let mut files: Vec<Option<PathBuf>> = vec![None; shapes.len()];
    for given in &arguments.inputs {
        let (index, file) = assign(given, model)?;
        if files[index].replace(PathBuf::from(file)).is_some() {
            let name = &model.inputs()[index].name;
            return Err(CliError::Input(format!("input {name} is given twice")));
        }
    }
    let values = match arguments.fill {
        Fill::Zeros => Values::Zeros,
        Fill::Random => Values::Random { seed: arguments.seed },
    };
    let mut random = values.generator();
    let mut filled = Vec::with_capacity(shapes.len());
    for ((info, shape), file) in model.inputs().iter().zip(shapes).zip(files) {
        let (tensor, source) = match file {
            Some(path) => from_file(&path, info, shape.as_deref(), arguments)?,
            None => {
                let shape = known(info, shape.as_deref())?;
                let tensor = values.tensor(info, shape, &mut random)?;
                let drawn = format!("random, seed {}", arguments.seed);
                (tensor, if values.draws(info) { drawn } else { "zeros".into() })
            }
        };
        check_shape(info, shape.as_deref(), tensor.shape())?;
        filled.push(Filled { name: info.name.clone(), tensor, source });
    }
    Ok(filled)
}

fn parse_shape(text: &str) -> Result<Vec<usize>> {
    let wrong = |_| CliError::Input(format!("{text:?} is no shape; write it as 1,224,224,3"));
    text.split([',', 'x']).map(|length| length.trim().parse().map_err(wrong)).collect()
}

fn from_file(
    path: &Path,
    info: &TensorInfo,
    shape: Option<&[usize]>,
    arguments: &InputArguments,
) -> Result<(Tensor, String)> {
    let extension = path.extension().map(|it| it.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("npy") => {
            let file = npy::Reader::open(path)?;
            // Before any element is read.
            check_shape(info, shape, file.shape())?;
            Ok((file.read()?, path.display().to_string()))
        }
        Some("png" | "jpg" | "jpeg") => {
            let usual = Normalization::default_for(info);
            let normalization = Normalization {
                mean: arguments.mean.unwrap_or(usual.mean),
                deviation: arguments.std.unwrap_or(usual.deviation),
            };
            let shape: Vec<Option<usize>> = match shape {
                Some(shape) => shape.iter().copied().map(Some).collect(),
                None => info.shape.clone(),
            };
            let tensor = image::load(path, info, &shape, normalization)?;
            let source = format!(
                "{}, resized to the input's size, (pixel - {}) / {}",
                path.display(),
                normalization.mean,
                normalization.deviation
            );
            Ok((tensor, source))
        }
        _ => {
            let shape = known(info, shape)?;
            let most = info.data_type.byte_length(shape).unwrap_or(usize::MAX);
            let tensor = Tensor::from_bytes(info.data_type, shape, &limited::read(path, most)?)
                .map_err(|error| CliError::Input(format!("{}: {error}", path.display())))?;
            Ok((tensor.with_quantization(info.quantization()), path.display().to_string()))
        }
    }
}

fn known<'a>(info: &TensorInfo, shape: Option<&'a [usize]>) -> Result<&'a [usize]> {
    shape.ok_or_else(|| {
        CliError::Input(format!(
            "the model leaves the shape of input {} open ({}); give one with --shape",
            info.name,
            super::commands::open_shape(&info.shape)
        ))
    })
}

/// Refuses a value of another shape than was asked for.
fn check_shape(info: &TensorInfo, shape: Option<&[usize]>, found: &[usize]) -> Result<()> {
    match shape {
        Some(shape) if shape != found => Err(CliError::Input(format!(
            "input {}: shape is {found:?}, expected {shape:?}",
            info.name
        ))),
        _ => Ok(()),
    }
}
