//! `nnhal run`

use super::{milliseconds, print, print_json, shape};
use crate::devices;
use crate::error::{CliError, Result};
use crate::inputs::{self, Filled, InputArguments};
use crate::npy;
use crate::session::{self, Results, Session};
use crate::tensor::{Summary, Tensor};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The arguments of `nnhal run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal run digits_float32.tflite --input digit_7.png --labels labels.txt --top 3

A .png or .jpg is resized to the input's height and width; its pixels become 0 to 1 for float
inputs, and fill the range of a quantised input. --mean and --std change that; what was done is
shown.")]
pub struct Arguments {
    /// The .tflite file
    model: PathBuf,
    #[command(flatten)]
    inputs: InputArguments,
    /// Write each output there as NAME.npy
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Where to run
    #[arg(long, default_value = devices::DEFAULT, value_name = "NAME")]
    device: String,
    /// Most threads to use (nnhal-reference always uses one)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Names of classes, a line each; shows the best classes of each output that has as many
    /// elements
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// How many classes to show
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// How many classes are shown unless said otherwise.
const USUAL_TOP: usize = 5;

#[derive(Serialize)]
struct Class {
    index: usize,
    label: Option<String>,
    value: f64,
}

#[derive(Serialize)]
struct Output {
    name: String,
    #[serde(rename = "type")]
    operand_type: String,
    shape: Vec<u32>,
    summary: Option<Summary>,
    file: Option<PathBuf>,
    top: Vec<Class>,
}

/// Runs a model once.
pub fn run(arguments: &Arguments) -> Result<()> {
    let labels = arguments.labels.as_deref().map(read_labels).transpose()?;
    let import = session::import(&arguments.model)?;
    let filled = inputs::fill(&arguments.inputs, &import)?;
    let session = Session::new(&import, &arguments.device, arguments.threads.into())?;
    let tensors: Vec<Tensor> = filled.iter().map(|filled| filled.tensor.clone()).collect();
    let results = session.run(&tensors)?;
    let names: Vec<String> = import.outputs.iter().map(|output| output.name.clone()).collect();
    let files = match &arguments.output_dir {
        Some(folder) => save(folder, &names, &results.outputs)?.into_iter().map(Some).collect(),
        None => vec![None; names.len()],
    };
    let outputs: Vec<Output> = names
        .into_iter()
        .zip(&results.outputs)
        .zip(files)
        .map(|((name, tensor), file)| Output {
            name,
            operand_type: tensor.operand_type.to_string(),
            shape: tensor.dimensions.clone(),
            summary: tensor.summary(),
            file,
            top: top(tensor, labels.as_deref(), arguments.top),
        })
        .collect();
    if arguments.json {
        return print_json(&json(&session, &filled, &outputs, &results));
    }
    print(&text(&session, &filled, &outputs, &results))
}

fn read_labels(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// The greatest elements, if the output holds classes: as many elements as there are labels, or
/// any number if classes were asked for.
fn top(tensor: &Tensor, labels: Option<&[String]>, wanted: Option<usize>) -> Vec<Class> {
    let reals = tensor.reals();
    let is_classes = match (labels, wanted) {
        (Some(labels), _) => labels.len() == reals.len(),
        (None, wanted) => wanted.is_some(),
    };
    if !is_classes {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..reals.len()).collect();
    order.sort_by(|one, other| reals[*other].total_cmp(&reals[*one]));
    order.truncate(wanted.unwrap_or(USUAL_TOP));
    order
        .into_iter()
        .map(|index| Class {
            index,
            label: labels.and_then(|labels| labels.get(index).cloned()),
            value: reals[index],
        })
        .collect()
}

/// A file name made of an output's name; two names that become the same get their position.
fn file_name(index: usize, name: &str, names: &[String]) -> String {
    let plain = |name: &str| -> String {
        let keep = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        name.chars().map(|letter| if keep(letter) { letter } else { '_' }).collect()
    };
    let own = plain(name);
    let is_shared = names.iter().filter(|other| plain(other) == own).count() > 1;
    if is_shared || own.trim_matches('.').is_empty() {
        return format!("{own}_{index}.npy");
    }
    format!("{own}.npy")
}

fn save(folder: &Path, names: &[String], outputs: &[Tensor]) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(CliError::file(folder))?;
    let pairs = names.iter().zip(outputs).enumerate();
    pairs
        .map(|(index, (name, tensor))| {
            let path = folder.join(file_name(index, name, names));
            npy::save(&path, tensor)?;
            Ok(path)
        })
        .collect()
}

fn json(
    session: &Session,
    filled: &[Filled],
    outputs: &[Output],
    results: &Results,
) -> serde_json::Value {
    let inputs: Vec<_> = filled
        .iter()
        .map(|filled| {
            serde_json::json!({
                "name": filled.name,
                "type": filled.tensor.operand_type.to_string(),
                "shape": filled.tensor.dimensions,
                "source": filled.source,
            })
        })
        .collect();
    let microseconds =
        |duration: Option<std::time::Duration>| duration.map(|duration| duration.as_micros());
    serde_json::json!({
        "device": session.device,
        "inputs": inputs,
        "outputs": outputs,
        "prepare_us": session.preparing.as_micros(),
        "time_on_device_us": microseconds(results.timing.time_on_device),
        "time_in_driver_us": microseconds(results.timing.time_in_driver),
    })
}

fn text(session: &Session, filled: &[Filled], outputs: &[Output], results: &Results) -> String {
    let mut text = String::new();
    for input in filled {
        text += &format!(
            "input  {} ({} {}): {}\n",
            input.name,
            input.tensor.operand_type,
            shape(&input.tensor.dimensions),
            input.source
        );
    }
    for output in outputs {
        text +=
            &format!("output {} ({} {})", output.name, output.operand_type, shape(&output.shape));
        if let Some(Summary { min, max, mean }) = output.summary {
            text += &format!(": min {min:.6}, max {max:.6}, mean {mean:.6}");
        }
        if let Some(file) = &output.file {
            text += &format!(" -> {}", file.display());
        }
        text += "\n";
        for class in &output.top {
            let label = class.label.as_deref().unwrap_or_default();
            text += &format!("  {:>10.6}  {:>5}  {label}\n", class.value, class.index);
        }
    }
    text += &format!("{}: prepared in {}", session.device, milliseconds(session.preparing));
    if let Some(time) = results.timing.time_on_device {
        text += &format!(", ran in {}", milliseconds(time));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::OperandType;

    fn tensor(reals: &[f32]) -> Tensor {
        let dimensions = vec![u32::try_from(reals.len()).unwrap()];
        Tensor::from_reals(OperandType::TensorFloat32, dimensions, (0.0, 0), reals.iter().copied())
    }

    #[test]
    fn the_best_classes_come_first() {
        let labels: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        let best = top(&tensor(&[0.1, 0.7, 0.2]), Some(&labels), Some(2));
        let names: Vec<_> = best.iter().filter_map(|class| class.label.as_deref()).collect();
        assert_eq!(names, ["b", "c"]);
        assert!(top(&tensor(&[0.1]), Some(&labels), None).is_empty());
        assert!(top(&tensor(&[0.1]), None, None).is_empty());
    }

    #[test]
    fn file_names_stay_in_the_folder_and_apart() {
        let names = ["a/b", "a:b", "..", "c"].map(String::from);
        let files: Vec<_> =
            names.iter().enumerate().map(|(index, it)| file_name(index, it, &names)).collect();
        assert_eq!(files, ["a_b_0.npy", "a_b_1.npy", ".._2.npy", "c.npy"]);
    }
}
