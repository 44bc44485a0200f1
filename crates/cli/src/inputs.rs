//! What a model is fed: files by name of input, or generated values.

use crate::error::{CliError, Result};
use crate::limited;
use crate::session::{Described, ModelArguments};
use nnhal::image::{self, Normalization};
use nnhal::tflite::ImportError;
use nnhal::{DataType, Fill as Values, Input, Model, Tensor, TensorInfo, npy};
use std::path::{Path, PathBuf};

/// Where inputs come from.
#[derive(Debug, Default, clap::Args)]
pub struct InputArguments {
    /// Value of an input: .npy, a picture (.png, .jpg, .bmp, .webp, .tif), or raw bytes; - is standard
    /// input. The name may be left out if the model has one input
    #[arg(long = "input", short = 'i', value_name = "[NAME=]FILE")]
    pub inputs: Vec<String>,
    /// What inputs without a file are filled with
    #[arg(long, value_enum, default_value_t)]
    pub fill: Fill,
    /// Seed of --fill random
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub seed: u64,
    /// Taken from each pixel (0 to 255) of an image [default: fits the input's type]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = finite)]
    pub mean: Option<f32>,
    /// Divides each pixel of an image, after the mean is taken [default: fits the input's type]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = divisor)]
    pub std: Option<f32>,
    #[command(flatten)]
    pub shapes: ShapeArguments,
}

/// Shapes of inputs.
#[derive(Debug, Default, clap::Args)]
pub struct ShapeArguments {
    /// Shape of an input, as 1,224,224,3; without one and without a file that has one, that of the
    /// model's example
    #[arg(long = "shape", value_name = "[NAME=]LENGTHS")]
    pub shapes: Vec<String>,
}

impl ShapeArguments {
    /// The model of a file that has been described, for the shapes that are asked for.
    ///
    /// # Errors
    /// It cannot be imported for these shapes, or there is no such signature.
    pub fn load(&self, model: &ModelArguments, file: &Described) -> Result<Model> {
        let loaded = model.load_described(file);
        if self.shapes.is_empty() {
            return loaded;
        }
        match loaded {
            Ok(model) => Ok(model.with_input_shapes(&self.of(model.inputs())?, false)?),
            // Only the shape of the file's example may be what is refused.
            Err(error) if is_unsupported(&error) => {
                let file = model.file_of_described(file)?;
                file.model(&self.of(&file.inputs()?)?, false)
            }
            Err(error) => Err(error),
        }
    }

    /// By input: the shape that is asked for.
    ///
    /// # Errors
    /// One names no input, or is no shape.
    fn of(&self, inputs: &[TensorInfo]) -> Result<Vec<Option<Vec<usize>>>> {
        let mut wanted = vec![None; inputs.len()];
        for given in &self.shapes {
            let (index, text) = assign(given, inputs)?;
            if wanted[index].replace(parse_shape(text)?).is_some() {
                let name = &inputs[index].name;
                return Err(CliError::Input(format!("the shape of input {name} is given twice")));
            }
        }
        Ok(wanted)
    }
}

impl InputArguments {
    /// Whether all inputs have the shapes of the file's example.
    fn is_of_example(&self) -> bool {
        self.shapes.shapes.is_empty() && self.inputs.is_empty()
    }

    /// Whether any value is given, be it that all are random.
    pub fn has_values(&self) -> bool {
        !self.inputs.is_empty() || self.fill != Fill::default()
    }

    /// What a device's refusal becomes: with a hint, if it may be the shapes of the file's example that it refuses.
    pub fn hinted(&self, model: &Model) -> impl Fn(nnhal::Error) -> CliError {
        let may_help = self.is_of_example() && model.inputs().iter().any(leaves_open);
        move |error| match error.status() {
            Some(_) if may_help => CliError::Hinted { error, hint: SHAPE_HINT },
            _ => error.into(),
        }
    }
}

/// What may help where a model is refused for the shape of its example.
pub const SHAPE_HINT: &str = "its inputs leave lengths open, so that others than those of the file's example may do: --shape";

/// A number that something is divided by.
fn divisor(text: &str) -> Result<f32, String> {
    let number = finite(text)?;
    if number.is_normal() { Ok(number) } else { Err("it divides, and must not be 0".into()) }
}

fn finite(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|error| format!("{error}"))?;
    if number.is_finite() { Ok(number) } else { Err("it must be finite".into()) }
}

/// Most bytes that are read from a pipe.
const PIPE_LIMIT: usize = 1 << 30;

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
    /// The type that the model takes.
    pub data_type: DataType,
    /// For people.
    pub source: String,
    /// Whether its shape has lengths that neither the file nor the user says: those of the file's example.
    pub is_assumed: bool,
}

/// The values as a session takes them.
pub fn values(filled: &[Filled]) -> impl Iterator<Item = Input<'_>> {
    filled.iter().map(|filled| Input::from(&filled.tensor))
}

/// A file or shape that was given for an input.
fn assign<'a>(given: &'a str, inputs: &[TensorInfo]) -> Result<(usize, &'a str)> {
    let by_name = |name: &str| inputs.iter().position(|input| input.is_named(name));
    // Names of TensorFlow contain colons and slashes, and may contain '=': the longest wins.
    for (at, _) in given.match_indices('=').collect::<Vec<_>>().into_iter().rev() {
        if let Some(index) = by_name(&given[..at]) {
            return Ok((index, &given[at + 1..]));
        }
    }
    match (inputs, given.split_once('=')) {
        ([_], None) => Ok((0, given)),
        ([_], Some(_)) if Path::new(given).exists() => Ok((0, given)),
        _ => {
            let names = inputs.iter().take(MOST_NAMED).map(TensorInfo::shown_name);
            let names: Vec<_> = names.collect();
            let others = match inputs.len() - names.len() {
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

/// The model for the shapes that are given, and a value for every input of it; what loading it for the shapes of the
/// file's example gave is given.
///
/// # Errors
/// A file cannot be read or does not fit, or the model takes no inputs of these shapes.
pub fn fill(
    arguments: &InputArguments,
    model: &ModelArguments,
    loaded: Result<Model>,
) -> Result<(Model, Vec<Filled>)> {
    check_standard_input(arguments, model)?;
    let error = match loaded {
        Ok(model) => return fill_loaded(arguments, model),
        Err(error) => error,
    };
    // It may be the shape of the file's example that nothing runs at.
    if !is_unsupported(&error) {
        return Err(error);
    }
    let Some(file) = model.file()? else { return Err(error) };
    let inputs = file.inputs()?;
    if !inputs.iter().any(leaves_open) {
        return Err(error);
    }
    if arguments.is_of_example() {
        return Err(match error {
            CliError::Library(error) => CliError::Hinted { error, hint: SHAPE_HINT },
            other => other,
        });
    }
    let filled = values_of(arguments, &inputs)?;
    let model = file.model(&shapes_of(&filled), arguments.shapes.shapes.is_empty())?;
    Ok((model, filled))
}

/// Refuses that standard input stands for two things.
///
/// # Errors
/// It does.
pub fn check_standard_input(arguments: &InputArguments, model: &ModelArguments) -> Result<()> {
    let given = std::iter::once(model.model.to_str().unwrap_or_default());
    let files = arguments.inputs.iter().map(|it| it.rsplit_once('=').map_or(&**it, |it| it.1));
    let names: Vec<&str> =
        given.chain(files).filter(|it| limited::is_standard_input(Path::new(it))).collect();
    if let [first, second, ..] = *names {
        let given = match first == second {
            true => format!("{first} is given twice"),
            false => format!("{first} and {second} are given"),
        };
        return Err(CliError::Input(format!("standard input can be one thing only, and {given}")));
    }
    Ok(())
}

/// A value for every input of a model that has been loaded, and the model for the shapes that those have.
///
/// # Errors
/// As [`fill`].
pub fn fill_loaded(arguments: &InputArguments, model: Model) -> Result<(Model, Vec<Filled>)> {
    let filled = values_of(arguments, model.inputs())?;
    // Prepared once, for the shapes that are there.
    let fits = |(info, filled): (&TensorInfo, &Filled)| {
        let shape = filled.tensor.shape();
        info.shape.len() == shape.len()
            && info.shape.iter().zip(shape).all(|(open, it)| open.is_none_or(|open| open == *it))
    };
    if model.inputs().iter().zip(&filled).all(fits) || model.path().is_none() {
        return Ok((model, filled));
    }
    // What is asked for by name may contradict the file.
    let model = model.with_input_shapes(&shapes_of(&filled), arguments.shapes.shapes.is_empty())?;
    Ok((model, filled))
}

/// The model for the shapes of these values only: where it leaves lengths open there is no plan before a run.
///
/// # Errors
/// It cannot be imported for these shapes.
pub fn without_open_lengths(model: Model, filled: &[Filled]) -> Result<Model> {
    // A length of 0 is run as no length of its own.
    let is_planned = |it: &Filled| !it.tensor.shape().contains(&0);
    let is_open = model.inputs().iter().any(|info| info.known_shape().is_none());
    if !is_open || !filled.iter().all(is_planned) {
        return Ok(model);
    }
    Ok(model.with_input_shapes(&shapes_of(filled), true)?)
}

fn shapes_of(filled: &[Filled]) -> Vec<Option<Vec<usize>>> {
    filled.iter().map(|it| Some(it.tensor.shape().to_vec())).collect()
}

/// A value for every input.
fn values_of(arguments: &InputArguments, inputs: &[TensorInfo]) -> Result<Vec<Filled>> {
    let count = inputs.len();
    let wanted = arguments.shapes.of(inputs)?;
    let mut files: Vec<Option<PathBuf>> = vec![None; count];
    for given in &arguments.inputs {
        let (index, file) = assign(given, inputs)?;
        if files[index].replace(PathBuf::from(file)).is_some() {
            let name = &inputs[index].name;
            return Err(CliError::Input(format!("input {name} is given twice")));
        }
    }
    let values = match arguments.fill {
        Fill::Zeros => Values::Zeros,
        Fill::Random => Values::Random { seed: arguments.seed },
    };
    let mut random = values.generator();
    let mut filled = Vec::with_capacity(count);
    for ((info, wanted), file) in inputs.iter().zip(&wanted).zip(files) {
        let is_assumed = file.is_none() && wanted.is_none() && leaves_open(info);
        let (tensor, source) = match file {
            Some(path) => from_file(&path, info, wanted.as_deref(), arguments)?,
            None => {
                let shape = wanted.as_deref().unwrap_or(&info.example_shape);
                let tensor = values.tensor(info, shape, &mut random)?;
                let drawn = format!("random, seed {}", arguments.seed);
                let mut source = if values.draws(info) { drawn } else { "zeros".into() };
                if is_assumed {
                    source += ", of an example's shape; --shape gives others";
                }
                (tensor, source)
            }
        };
        match wanted {
            Some(wanted) => check_shape(info, wanted, tensor.shape())?,
            None => check_lengths(info, tensor.shape())?,
        }
        let (name, data_type) = (info.name.clone(), info.data_type);
        filled.push(Filled { name, tensor, data_type, source, is_assumed });
    }
    Ok(filled)
}

/// Whether it is operators for which there is nothing that a model is refused for.
fn is_unsupported(error: &CliError) -> bool {
    use nnhal::Error::Import;
    matches!(error, CliError::Library(Import { source: ImportError::Unsupported { .. }, .. }))
}

/// Whether the file leaves lengths of an input open, whatever the import made of them.
fn leaves_open(info: &TensorInfo) -> bool {
    info.shape_signature.as_ref().is_some_and(|lengths| lengths.contains(&None))
}

fn parse_shape(text: &str) -> Result<Vec<usize>> {
    let wrong = |_| CliError::Input(format!("{text:?} is no shape; write it as 1,224,224,3"));
    text.split([',', 'x']).map(|length| length.trim().parse().map_err(wrong)).collect()
}

/// The lengths of an input as far as the file says them.
fn open_lengths(info: &TensorInfo) -> &[Option<usize>] {
    info.shape_signature.as_deref().unwrap_or(&info.shape)
}

fn from_file(
    path: &Path,
    info: &TensorInfo,
    wanted: Option<&[usize]>,
    arguments: &InputArguments,
) -> Result<(Tensor, String)> {
    let is_standard = limited::is_standard_input(path);
    let shown = if is_standard { "standard input".to_owned() } else { path.display().to_string() };
    let raw_shape = wanted.unwrap_or(&info.example_shape);
    let raw_length = info.data_type.byte_length(raw_shape).unwrap_or(usize::MAX);
    let Given { form, piped } = Given::look(path, raw_length)?;
    if form == Form::Array {
        let file = match &piped {
            Some(piped) => npy::Reader::of_bytes(path, piped)?,
            None => npy::Reader::open(path)?,
        };
        let about = |error: nnhal::Error| CliError::Input(format!("{shown}: {error}"));
        // Before any element is read.
        match wanted {
            Some(wanted) if count(wanted) != count(file.shape()) => {
                check_shape(info, wanted, file.shape())?;
            }
            Some(_) => {}
            None => check_count(info, file.shape())?,
        }
        let tensor = file.read()?;
        let (found, expected) = (tensor.data_type(), info.data_type);
        let converted = match found == expected {
            true => shown.clone(),
            false => format!("{shown}, converted from {found}"),
        };
        return Ok((tensor.into_input(info).map_err(about)?, converted));
    }
    if form == Form::Picture {
        let usual = Normalization::default_for(info);
        let normalization = Normalization {
            mean: arguments.mean.unwrap_or(usual.mean),
            deviation: arguments.std.unwrap_or(usual.deviation),
        };
        let shape: Vec<Option<usize>> = match wanted {
            Some(shape) => shape.iter().copied().map(Some).collect(),
            None => open_lengths(info).to_vec(),
        };
        let tensor = match &piped {
            Some(piped) => image::load_bytes(piped, path, info, &shape, normalization)?,
            None => image::load(path, info, &shape, normalization)?,
        };
        let source = format!(
            "{shown}, resized to the input's size, (pixel - {}) / {}",
            normalization.mean, normalization.deviation
        );
        return Ok((tensor, source));
    }
    let bytes = match piped {
        Some(piped) => piped,
        None => limited::read(path, raw_length)?,
    };
    let tensor = Tensor::from_bytes(info.data_type, raw_shape, &bytes)
        .map_err(|error| CliError::Input(format!("{shown}: {error}")))?;
    Ok((tensor.with_quantization(info.quantization()), shown))
}

/// What the bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Array,
    Picture,
    Raw,
}

/// A file for an input, as far as it has been looked at.
struct Given {
    form: Form,
    /// All of it, if it cannot be read twice.
    piped: Option<Vec<u8>>,
}

/// Bytes that tell what a file is.
const TELLING: usize = 16;

impl Given {
    /// Looks at a file: its name tells what it is, or else its first bytes do, unless it has as many bytes as the raw
    /// value of the input.
    fn look(path: &Path, raw_length: usize) -> Result<Self> {
        let is_standard = limited::is_standard_input(path);
        let extension = path.extension().map(|it| it.to_string_lossy().to_lowercase());
        let has = |all: &[&str]| extension.as_deref().is_some_and(|it| all.contains(&it));
        if !is_standard && has(&["npy"]) {
            return Ok(Self { form: Form::Array, piped: None });
        }
        if !is_standard && has(&image::EXTENSIONS) {
            return Ok(Self { form: Form::Picture, piped: None });
        }
        let form = |bytes: &[u8], length: u64| {
            if length == raw_length as u64 {
                return Ok(Form::Raw);
            }
            if npy::is_npy(bytes) {
                return Ok(Form::Array);
            }
            if image::is_image(bytes) {
                return Ok(Form::Picture);
            }
            let other = if bytes.starts_with(b"PK\x03\x04") {
                "an archive, as .npz files are: its arrays (.npy) can be given one by one"
            } else if image::is_other_image(bytes) {
                "a picture of a format that is not read: PNG, JPEG, BMP, WebP and TIFF are"
            } else {
                return Ok(Form::Raw);
            };
            Err(CliError::Input(format!("{}: it is {other}", path.display())))
        };
        let mut from = limited::open(path)?;
        let beginning = limited::read_from(&mut from, path, TELLING as u64)?;
        if let Some(length) = limited::length(path)? {
            return Ok(Self { form: form(&beginning, length)?, piped: None });
        }
        let is_known = npy::is_npy(&beginning) || image::is_image(&beginning);
        let most = if is_known { PIPE_LIMIT } else { raw_length };
        let piped = limited::read_behind(beginning, from, path, most)?;
        Ok(Self { form: form(&piped, piped.len() as u64)?, piped: Some(piped) })
    }
}

/// Refuses a value of another shape than the file says, where it says one.
fn check_lengths(info: &TensorInfo, found: &[usize]) -> Result<()> {
    let lengths = open_lengths(info);
    let fits = lengths.len() == found.len()
        && lengths.iter().zip(found).all(|(open, it)| open.is_none_or(|open| open == *it));
    if info.is_rank_open || fits {
        return Ok(());
    }
    let show = |length: &Option<usize>| length.map_or("?".to_owned(), |it| it.to_string());
    let expected = lengths.iter().map(show).collect::<Vec<_>>().join(", ");
    let name = &info.name;
    Err(CliError::Input(format!("input {name}: shape is {found:?}, expected [{expected}]")))
}

/// The number of a shape's elements; `None`: more than can be counted.
fn count(lengths: &[usize]) -> Option<usize> {
    lengths.iter().try_fold(1_usize, |count, length| count.checked_mul(*length))
}

/// Refuses an array that has other elements than any value of an input, before it is read.
fn check_count(info: &TensorInfo, found: &[usize]) -> Result<()> {
    let known = open_lengths(info).iter().copied().collect::<Option<Vec<usize>>>();
    if known.is_none_or(|known| count(&known) == count(found)) {
        return Ok(());
    }
    check_lengths(info, found)
}

/// Refuses a value of another shape than was asked for.
fn check_shape(info: &TensorInfo, shape: &[usize], found: &[usize]) -> Result<()> {
    if shape == found {
        return Ok(());
    }
    let name = &info.name;
    Err(CliError::Input(format!("input {name}: shape is {found:?}, expected {shape:?}")))
}
