//! `nnhal run`

use super::{milliseconds, print, print_json, shape};
use crate::error::{CliError, Result};
use crate::inputs::{self, Filled, InputArguments};
use crate::limited;
use crate::session::{ModelArguments, SessionArguments, TraceArguments};
use nnhal::{DataType, Outputs, RunOptions, Session, Summary, Tensor, npy};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The arguments of `nnhal run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal run digits_float32.tflite --input digit_7.png --labels labels.txt --top 3

A picture is turned as its EXIF data says and resized to the input's height and width; its pixels become 0 to 1 for float
inputs, and fill the range of a quantized input. --mean and --std change that; what was done is
shown.")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    inputs: InputArguments,
    /// Write each output there as NAME.npy
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    session: SessionArguments,
    /// Keep prepared models in this folder, so that the next run of the same file begins at once. Weights are read
    /// where they are in it, so nothing else may write there
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Names of classes, a line each; shows the best classes of each output that has one
    /// element for each name. Without it, those that the model's file carries are taken
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// How many classes to show
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    #[command(flatten)]
    pub trace: TraceArguments,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// How many classes are shown unless said otherwise.
const USUAL_TOP: u32 = 5;

/// Most bytes of a file of labels.
const LABELS_LIMIT: usize = 64 << 20;

#[derive(Serialize)]
struct Class {
    index: usize,
    label: Option<String>,
    value: f64,
}

#[derive(Serialize)]
struct Output {
    name: String,
    signature_name: Option<String>,
    #[serde(rename = "type")]
    data_type: String,
    shape: Vec<usize>,
    summary: Option<Range>,
    /// Of a scalar.
    value: Option<f64>,
    #[serde(skip)]
    is_integer: bool,
    file: Option<PathBuf>,
    top: Vec<Class>,
}

/// A tensor in three numbers.
#[derive(Serialize)]
struct Range {
    min: f64,
    max: f64,
    mean: f64,
}

/// Runs a model once.
pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.session.check()?;
    let given = arguments.labels.as_deref().map(read_labels).transpose()?;
    let loaded = arguments.model.load();
    let (model, filled) = inputs::fill(&arguments.inputs, &arguments.model, loaded)?;
    let hinted = arguments.inputs.hinted(&model);
    let kept = arguments.cache_dir.as_deref();
    let session = arguments.session.open_kept(&model, kept).map_err(&hinted)?;
    let options = RunOptions { measure: true, ..RunOptions::default() };
    let results = session.run_with(&options, inputs::values(&filled)).map_err(&hinted)?;
    // Tensors' own names, which are there with and without signatures.
    let names: Vec<String> = model.outputs().iter().map(|output| output.name.clone()).collect();
    let files = match &arguments.output_dir {
        Some(folder) => save(folder, &names, results.tensors())?.into_iter().map(Some).collect(),
        None => vec![None; names.len()],
    };
    let mut labels: Vec<Option<Vec<String>>> = Vec::with_capacity(names.len());
    for (index, tensor) in results.tensors().iter().enumerate() {
        labels.push(match &given {
            Some(labels) => Some(labels.clone()).filter(|it| it.len() == tensor.len()),
            // What the file says of its classes is shown without being asked for.
            None => model.labels(index, tensor.len())?,
        });
    }
    let note = given.as_ref().filter(|_| labels.iter().all(Option::is_none)).map(|given| {
        let sizes: Vec<_> = results.tensors().iter().map(|it| it.len().to_string()).collect();
        let (count, sizes) = (given.len(), sizes.join(", "));
        format!("the labels are {count}, and no output has that number of elements, but {sizes}")
    });
    let not_kept = (kept.is_some() && !session.is_kept()).then(|| {
        let device = session.device().name();
        format!("{device} cannot keep the prepared model (NNHAL_LOG=warn says why)")
    });
    let notes: Vec<String> = note.into_iter().chain(not_kept).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let outputs: Vec<Output> = names
        .into_iter()
        .zip(results.tensors())
        .zip(files)
        .zip(labels)
        .zip(model.outputs())
        .map(|((((name, tensor), file), labels), info)| Output {
            signature_name: info.signature_name.clone(),
            name,
            data_type: tensor.data_type().to_string(),
            shape: tensor.shape().to_vec(),
            summary: tensor.summary().map(|Summary { min, max, mean }| Range { min, max, mean }),
            is_integer: tensor.quantization().is_none() && is_integer(tensor.data_type()),
            value: scalar(tensor),
            file,
            top: match (labels, arguments.top) {
                (None, None) => Vec::new(),
                (labels, wanted) => top(tensor, labels.as_deref(), wanted),
            },
        })
        .collect();
    if arguments.json {
        let mut json = json(&session, &filled, &outputs, &results);
        json["note"] = note.into();
        return print_json(&json);
    }
    let mut text = text(&session, &filled, &outputs, &results);
    if let Some(note) = note {
        text += &format!("note: {note}\n");
    }
    print(&text)
}

fn is_integer(data_type: DataType) -> bool {
    !data_type.is_float() && data_type != DataType::Complex64
}

/// The value of a scalar, if it is one number.
fn scalar(tensor: &Tensor) -> Option<f64> {
    let is_real = tensor.data_type() != DataType::Complex64;
    (tensor.shape().is_empty() && is_real).then(|| tensor.reals().first().copied()).flatten()
}

fn read_labels(path: &Path) -> Result<Vec<String>> {
    let text = String::from_utf8(limited::read(path, LABELS_LIMIT)?)
        .map_err(|error| CliError::Input(format!("{}: {error}", path.display())))?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// The greatest elements, if the output holds classes: as many elements as there are labels, or
/// any number if classes were asked for.
fn top(tensor: &Tensor, labels: Option<&[String]>, wanted: Option<u32>) -> Vec<Class> {
    let is_classes = match (labels, wanted) {
        (Some(labels), _) => labels.len() == tensor.len(),
        (None, wanted) => wanted.is_some(),
    };
    if !is_classes {
        return Vec::new();
    }
    let count = wanted.unwrap_or(USUAL_TOP);
    let best = tensor.top(usize::try_from(count).unwrap_or(usize::MAX)).into_iter();
    best.map(|(index, value)| {
        let label = labels.and_then(|labels| labels.get(index).cloned());
        Class { index, label, value }
    })
    .collect()
}

/// Bytes of an output's name that go into the name of its file.
const FILE_NAME_LENGTH: usize = 100;

/// A file name for each output, made of the outputs' names; those that would be the same get their
/// position.
fn file_names(names: &[String]) -> Vec<String> {
    let plain = |name: &String| -> String {
        let keep = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let letters = name.chars().take(FILE_NAME_LENGTH);
        letters.map(|letter| if keep(letter) { letter } else { '_' }).collect()
    };
    let plain: Vec<String> = names.iter().map(plain).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *count.entry(name).or_default() += 1;
    }
    // What has a position may not be what another is called.
    let mut taken: HashSet<String> = count
        .iter()
        .filter(|(_, count)| **count == 1)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let name_of = |(index, own): (usize, &String)| {
        if count[&**own] == 1 && !own.trim_matches('.').is_empty() {
            return format!("{own}.npy");
        }
        let mut name = format!("{own}_{index}");
        while !taken.insert(name.clone()) {
            name += "_";
        }
        name + ".npy"
    };
    plain.iter().enumerate().map(name_of).collect()
}

fn save(folder: &Path, names: &[String], outputs: &[Tensor]) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(CliError::file(folder))?;
    let pairs = file_names(names).into_iter().zip(outputs);
    pairs
        .map(|(name, tensor)| {
            let path = folder.join(name);
            npy::save(&path, tensor)?;
            Ok(path)
        })
        .collect()
}

fn json(
    session: &Session,
    filled: &[Filled],
    outputs: &[Output],
    results: &Outputs,
) -> serde_json::Value {
    let inputs: Vec<_> = filled
        .iter()
        .map(|filled| {
            serde_json::json!({
                "name": filled.name,
                "type": filled.data_type.to_string(),
                "shape": filled.tensor.shape(),
                "source": filled.source,
            })
        })
        .collect();
    let microseconds = |duration: Option<Duration>| duration.map(|duration| duration.as_micros());
    serde_json::json!({
        "device": session.device().name(),
        "inputs": inputs,
        "outputs": outputs,
        "prepare_us": session.preparing().as_micros(),
        "is_from_cache": session.is_from_cache(),
        "time_on_device_us": microseconds(results.timing().time_on_device),
        "time_in_driver_us": microseconds(results.timing().time_in_driver),
    })
}

fn text(session: &Session, filled: &[Filled], outputs: &[Output], results: &Outputs) -> String {
    let mut text = String::new();
    for input in filled {
        text += &format!(
            "input  {} ({} {}): {}\n",
            input.name,
            input.data_type,
            shape(input.tensor.shape()),
            input.source
        );
    }
    for output in outputs {
        text += &format!("output {} ({} {})", output.name, output.data_type, shape(&output.shape));
        let number = |number: f64| match output.is_integer {
            true => format!("{number:.0}"),
            false => format!("{number:.6}"),
        };
        match (output.value, &output.summary) {
            (Some(value), _) => text += &format!(": {}", number(value)),
            (None, Some(Range { min, max, mean })) => {
                text += &format!(": min {}, max {}, mean {mean:.6}", number(*min), number(*max));
            }
            (None, None) => {}
        }
        if let Some(file) = &output.file {
            text += &format!(" -> {}", file.display());
        }
        text += "\n";
        for class in &output.top {
            let label = class.label.as_deref().unwrap_or_default();
            text += &format!("  {:>10}  {:>5}  {label}\n", number(class.value), class.index);
        }
    }
    let (device, preparing) = (session.device().name(), milliseconds(session.preparing()));
    let how = if session.is_from_cache() { "loaded, prepared before, in" } else { "prepared in" };
    text += &format!("{device}: {how} {preparing}");
    if let Some(time) = results.timing().time_on_device {
        text += &format!(", ran in {}", milliseconds(time));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_classes_come_first() {
        let labels: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        let tensor = |reals: &[f32]| Tensor::new([reals.len()], reals).unwrap();
        let best = top(&tensor(&[0.1, 0.7, 0.2]), Some(&labels), Some(2));
        let names: Vec<_> = best.iter().filter_map(|class| class.label.as_deref()).collect();
        assert_eq!(names, ["b", "c"]);
        assert!(top(&tensor(&[0.1]), Some(&labels), None).is_empty());
        assert!(top(&tensor(&[0.1]), None, None).is_empty());
    }

    #[test]
    fn file_names_stay_in_the_folder_and_differ() {
        let long = "n".repeat(10_000);
        let names = ["a/b", "a:b", "..", "c", "a_b_1", &long].map(String::from);
        let files = file_names(&names);
        assert_eq!(files[..5], ["a_b_0.npy", "a_b_1_.npy", ".._2.npy", "c.npy", "a_b_1.npy"]);
        assert_eq!(files[5].len(), 104);
    }
}
