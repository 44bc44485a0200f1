//! What a model is fed: files by name of input, or generated values.

use crate::error::{CliError, Result};
use crate::npy;
use crate::picture::{self, ImageInput, Normalisation};
use crate::tensor::Tensor;
use hal::{Operand, OperandType};
use std::path::{Path, PathBuf};
use tflite::Import;

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

/// Generated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Fill {
    /// Zeros (quantised: the zero point)
    #[default]
    Zeros,
    /// Floats from 0 to 1, quantised values of the whole range, integers 0; from a seed
    Random,
}

/// A filled input, and where its value came from.
pub struct Filled {
    /// The input's name.
    pub name: String,
    /// The value.
    pub tensor: Tensor,
    /// For people.
    pub source: String,
}

/// A file or shape that was given for an input.
fn assign<'a>(given: &'a str, import: &Import) -> Result<(usize, &'a str)> {
    let by_name = |name: &str| {
        let is_named = |input: &tflite::TensorDescription| {
            input.name == name || input.signature_name.as_deref() == Some(name)
        };
        import.inputs.iter().position(is_named)
    };
    // Names of TensorFlow contain colons and slashes, and may contain '=': the longest wins.
    for (at, _) in given.match_indices('=').collect::<Vec<_>>().into_iter().rev() {
        if let Some(index) = by_name(&given[..at]) {
            return Ok((index, &given[at + 1..]));
        }
    }
    match (&*import.inputs, given.split_once('=')) {
        ([_], None) => Ok((0, given)),
        ([_], Some(_)) if Path::new(given).exists() => Ok((0, given)),
        _ => {
            let names: Vec<_> = import.inputs.iter().map(shown_name).collect();
            Err(CliError::Input(format!(
                "{given:?} names no input of the model; it has: {}",
                names.join(", ")
            )))
        }
    }
}

/// Both names of an input that has two.
fn shown_name(input: &tflite::TensorDescription) -> String {
    match &input.signature_name {
        Some(name) if *name != input.name => format!("{name} ({})", input.name),
        _ => input.name.clone(),
    }
}

/// A value for every input of the model.
///
/// # Errors
/// A file cannot be read or does not fit, or an input's shape is not known.
pub fn fill(arguments: &InputArguments, import: &Import) -> Result<Vec<Filled>> {
    let main = &import.model.main;
    let mut operands: Vec<Operand> =
        main.inputs.iter().map(|index| main.operands[*index as usize].clone()).collect();
    for given in &arguments.shapes {
        let (index, text) = assign(given, import)?;
        operands[index].dimensions = parse_shape(text)?;
    }
    let mut files: Vec<Option<PathBuf>> = vec![None; operands.len()];
    for given in &arguments.inputs {
        let (index, file) = assign(given, import)?;
        if files[index].replace(PathBuf::from(file)).is_some() {
            return Err(CliError::Input(format!(
                "input {} is given twice",
                import.inputs[index].name
            )));
        }
    }
    let mut random = fastrand::Rng::with_seed(arguments.seed);
    let mut filled = Vec::with_capacity(operands.len());
    for ((operand, file), description) in operands.iter().zip(files).zip(&import.inputs) {
        let name = description.name.clone();
        let (tensor, source) = match file {
            Some(path) => from_file(&path, &name, operand, arguments)?,
            None => generated(&name, operand, arguments, &mut random)?,
        };
        check_shape(&name, operand, &tensor)?;
        filled.push(Filled { name, tensor, source });
    }
    Ok(filled)
}

fn parse_shape(text: &str) -> Result<Vec<u32>> {
    let wrong = |_| CliError::Input(format!("{text:?} is no shape; write it as 1,224,224,3"));
    text.split([',', 'x']).map(|length| length.trim().parse().map_err(wrong)).collect()
}

fn from_file(
    path: &Path,
    name: &str,
    operand: &Operand,
    arguments: &InputArguments,
) -> Result<(Tensor, String)> {
    let extension = path.extension().map(|it| it.to_string_lossy().to_lowercase());
    let quantisation = (operand.scale, operand.zero_point);
    match extension.as_deref() {
        Some("npy") => {
            Ok((npy::load(path, operand.operand_type, quantisation)?, path.display().to_string()))
        }
        Some("png" | "jpg" | "jpeg") => {
            let usual =
                Normalisation::default_for(operand.operand_type, operand.scale, operand.zero_point);
            let normalisation = Normalisation {
                mean: arguments.mean.unwrap_or(usual.mean),
                deviation: arguments.std.unwrap_or(usual.deviation),
            };
            let input = ImageInput {
                operand_type: operand.operand_type,
                dimensions: &operand.dimensions,
                scale: operand.scale,
                zero_point: operand.zero_point,
            };
            let tensor = picture::load(path, &input, normalisation)?;
            let source = format!(
                "{}, resized to the input's size, (pixel - {}) / {}",
                path.display(),
                normalisation.mean,
                normalisation.deviation
            );
            Ok((tensor, source))
        }
        _ => {
            let bytes = std::fs::read(path).map_err(CliError::file(path))?;
            let dimensions = known_dimensions(name, operand)?;
            let tensor = tensor(operand, dimensions, bytes);
            Ok((tensor, path.display().to_string()))
        }
    }
}

fn tensor(operand: &Operand, dimensions: Vec<u32>, bytes: Vec<u8>) -> Tensor {
    Tensor {
        operand_type: operand.operand_type,
        dimensions,
        scale: operand.scale,
        zero_point: operand.zero_point,
        bytes,
    }
}

fn known_dimensions(name: &str, operand: &Operand) -> Result<Vec<u32>> {
    if operand.has_known_dimensions() {
        return Ok(operand.dimensions.clone());
    }
    Err(CliError::Input(format!(
        "the model leaves the shape of input {name} open ({:?}); give one with --shape",
        operand.dimensions
    )))
}

fn generated(
    name: &str,
    operand: &Operand,
    arguments: &InputArguments,
    random: &mut fastrand::Rng,
) -> Result<(Tensor, String)> {
    let dimensions = known_dimensions(name, operand)?;
    let too_large =
        || CliError::Input(format!("input {name} of shape {dimensions:?} is too large"));
    let count = dimensions
        .iter()
        .try_fold(1_usize, |count, length| count.checked_mul(*length as usize))
        .filter(|count| u32::try_from(*count).is_ok())
        .ok_or_else(too_large)?;
    let quantised = operand.operand_type.quantized_range();
    let float = matches!(
        operand.operand_type,
        OperandType::TensorFloat32
            | OperandType::TensorFloat16
            | OperandType::Float32
            | OperandType::Float16
    );
    let is_random = arguments.fill == Fill::Random && (float || quantised.is_some());
    let tensor = match quantised {
        Some(_) if is_random => {
            let size = operand.operand_type.element_size().unwrap_or(1) as usize;
            let bytes = std::iter::repeat_with(|| random.u8(..)).take(count * size).collect();
            tensor(operand, dimensions, bytes)
        }
        _ => Tensor::from_reals(
            operand.operand_type,
            dimensions,
            (operand.scale, operand.zero_point),
            std::iter::repeat_with(|| if is_random { random.f32() } else { 0.0 }).take(count),
        ),
    };
    let source =
        if is_random { format!("random, seed {}", arguments.seed) } else { "zeros".into() };
    Ok((tensor, source))
}

/// Refuses a value that the device would refuse with less to say.
fn check_shape(name: &str, operand: &Operand, tensor: &Tensor) -> Result<()> {
    let element = operand.operand_type.element_size().unwrap_or(1) as usize;
    let count = tensor.dimensions.iter().map(|length| *length as usize).product::<usize>();
    let fits = operand.dimensions.is_empty()
        || operand.dimensions.len() == tensor.dimensions.len()
            && operand
                .dimensions
                .iter()
                .zip(&tensor.dimensions)
                .all(|(model, found)| *model == 0 || model == found);
    if !fits {
        return Err(CliError::Input(format!(
            "input {name}: shape is {:?}, expected {:?}",
            tensor.dimensions, operand.dimensions
        )));
    }
    if tensor.bytes.len() != count * element {
        return Err(CliError::Input(format!(
            "input {name}: {} bytes, expected {} for {} {:?}",
            tensor.bytes.len(),
            count * element,
            operand.operand_type,
            tensor.dimensions
        )));
    }
    Ok(())
}
