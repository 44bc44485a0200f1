//! `nnhal inspect`

mod alternatives;
mod file;
mod html;
mod passes;
mod plan;

use super::{counted, dimensions, print, print_json};
use crate::error::{CliError, Result};
use crate::inputs::{self, InputArguments};
use crate::session::{ModelArguments, Pair, SessionArguments};
use nnhal::{Error, Model, TensorInfo, devices};
use nnhal_hal::{Device, HalVersion, Operand, OperandLifeTime, Support};
use nnhal_ops::extension;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// The arguments of `nnhal inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nnhal inspect assets/digits/digits_int8.tflite
  nnhal inspect mobilenet.tflite --profile --threads 2
  nnhal inspect mobilenet.tflite --profile --input cat.jpg
  nnhal inspect mobilenet.tflite --alternatives
  nnhal inspect mobilenet.tflite --dump-passes passes
  nnhal inspect mobilenet.tflite --html page.html --devices nnhal-reference,nnhal-cpu")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Print the plan of --device instead: every step of an execution with its kernel, and how long it
    /// takes at least, going by what this processor can compute and move; of a step on the reference kernel
    /// of its operation, which is slow, also why
    #[arg(long)]
    plan: bool,
    /// Print the plan with the time of every step, the median of many runs
    #[arg(long)]
    profile: bool,
    /// Print for every step of nnhal-cpu's plan how long it takes with each kernel that this processor
    /// runs: those of other instruction sets, and none of Winograd's
    #[arg(long)]
    alternatives: bool,
    /// Write there the graph of nnhal-cpu, and what each of its passes makes of it, as text and for Graphviz
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "profile", "alternatives", "html"])]
    dump_passes: Option<PathBuf>,
    /// Write a page for browsers there: the graph of the file and of the plan side by side, the time
    /// of every step, memory over time, all tensors; it needs nothing but itself
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "profile", "alternatives"])]
    html: Option<PathBuf>,
    /// With --html: two devices, whose plans, times and results are shown beside each other; the
    /// first one is right
    #[arg(long, value_name = "A,B", requires = "html", conflicts_with = "device")]
    devices: Option<Pair>,
    #[command(flatten)]
    inputs: InputArguments,
    #[command(flatten)]
    session: SessionArguments,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Description {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    operations: Vec<OperationRow>,
    subgraphs: usize,
    constants: usize,
    constant_bytes: u64,
    /// The oldest version that allows the model, or why none does.
    hal_version: Option<&'static str>,
    hal_version_error: Option<String>,
    /// Whether it has operations or types of our extension, which other devices do not know.
    uses_extension: bool,
    /// Version and extension in a sentence.
    #[serde(skip)]
    needs: String,
    devices: Vec<DeviceRow>,
}

#[derive(Serialize)]
struct Value {
    name: String,
    #[serde(rename = "type")]
    operand_type: String,
    shape: Vec<u32>,
    scale: f32,
    zero_point: i32,
}

#[derive(Serialize)]
struct OperationRow {
    index: usize,
    #[serde(rename = "type")]
    operation_type: String,
    origin: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// By device: nothing if it is supported, else the reason.
    unsupported: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct DeviceRow {
    name: String,
    supported: usize,
    error: Option<String>,
}

impl Arguments {
    /// The devices that the page shows: one or two.
    fn device_names(&self) -> &[String] {
        match &self.devices {
            None => std::slice::from_ref(&self.session.device),
            Some(Pair(both)) => both,
        }
    }

    /// Refuses a device or a number of threads that would have no effect.
    fn check(&self) -> Result<()> {
        let device = &self.session.device;
        for (option, is_given) in
            [("--alternatives", self.alternatives), ("--dump-passes", self.dump_passes.is_some())]
        {
            if is_given && device != devices::DEFAULT {
                let only = devices::DEFAULT;
                return Err(CliError::Usage(format!(
                    "--device {device} has no effect: {option} shows what only {only} has"
                )));
            }
        }
        if self.is_plain() && self.inputs.has_values() {
            let what = "values of inputs have no effect: nothing runs without --profile, --alternatives or --html";
            return Err(CliError::Usage(what.into()));
        }
        match self.is_plain() {
            true => self
                .session
                .threads
                .check_unused("nothing runs without --plan, --profile or --html"),
            false => self.session.threads.check(self.device_names()),
        }
    }

    /// Whether the model is only described.
    fn is_plain(&self) -> bool {
        let Self { plan, profile, alternatives, .. } = *self;
        !(plan || profile || alternatives || self.dump_passes.is_some() || self.html.is_some())
    }

    /// The devices that are asked what they support: all of this library, and one of another process that is named.
    fn all_devices(&self) -> Result<Vec<Arc<dyn Device>>> {
        let mut all = devices::all(None)?;
        let name = &self.session.device;
        if !devices::names().contains(&name.as_str()) {
            all.push(devices::open(name, None)?);
        }
        Ok(all)
    }
}

/// Describes a model.
pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.check()?;
    inputs::check_standard_input(&arguments.inputs, &arguments.model)?;
    let is_plain = arguments.is_plain();
    let devices = if is_plain { arguments.all_devices()? } else { Vec::new() };
    let file = arguments.model.describe()?;
    if let Some(path) = &arguments.html {
        let model = arguments.inputs.shapes.load(&arguments.model, &file);
        html::write(arguments, &file.info, model, path)?;
        let (path, bytes) = (path.display().to_string(), std::fs::metadata(path));
        let bytes = bytes.map_or(0, |it| it.len());
        return match arguments.json {
            true => print_json(&serde_json::json!({ "html": path, "bytes": bytes })),
            false => print(&format!("{path}: {bytes} bytes\n")),
        };
    }
    let model = match arguments.inputs.shapes.load(&arguments.model, &file) {
        // What is wrong with it is what is shown.
        Err(CliError::Library(Error::Import { source, .. })) if is_plain => {
            let is_of_example = arguments.inputs.shapes.shapes.is_empty();
            let refused = file::Refused::of(&source, &file.info, is_of_example);
            let report =
                Report { file: file::report(&file.info), refused: Some(refused), model: None };
            return show(arguments, &report);
        }
        model => model?,
    };
    if is_plain {
        let model = Some(describe(&model, &devices)?);
        return show(arguments, &Report { file: file::report(&file.info), refused: None, model });
    }
    let (model, filled) = inputs::fill_loaded(&arguments.inputs, model)?;
    let model = inputs::without_open_lengths(model, &filled)?;
    let threads = arguments.session.threads;
    if let Some(folder) = &arguments.dump_passes {
        return passes::dump(&model, threads.wanted(), folder, arguments.json);
    }
    if arguments.alternatives {
        return alternatives::print(&model, &filled, threads.wanted(), arguments.json);
    }
    let session = arguments.session.open(&model)?;
    let how = plan::How {
        is_profile: arguments.profile,
        is_json: arguments.json,
        threads: threads.used(&arguments.session.device)?.unwrap_or(NonZeroUsize::MIN),
    };
    plan::print(&session, &filled, &how)
}

/// A file, and what becomes of it.
#[derive(Serialize)]
struct Report {
    file: file::File,
    /// Why no model becomes of it.
    refused: Option<file::Refused>,
    #[serde(flatten)]
    model: Option<Description>,
}

fn show(arguments: &Arguments, report: &Report) -> Result<()> {
    if arguments.json {
        return print_json(report);
    }
    let mut shown = file::text(&report.file, report.model.is_none());
    if let Some(model) = &report.model {
        shown = text(model) + "\n" + &shown;
    }
    if let Some(refused) = &report.refused {
        shown += &refused.to_string();
    }
    print(&shown)
}

fn describe(model: &Model, all_devices: &[Arc<dyn Device>]) -> Result<Description> {
    let main = &model.hal().main;
    let value = |name: &str, index: u32| {
        let operand = &main.operands[index as usize];
        Value {
            name: name.to_owned(),
            operand_type: extension::type_name(operand.operand_type),
            shape: operand.dimensions.clone(),
            scale: operand.scale,
            zero_point: operand.zero_point,
        }
    };
    let values = |names: &[TensorInfo], indexes: &[u32]| {
        names.iter().zip(indexes).map(|(it, index)| value(&it.name, *index)).collect()
    };
    let answers: Vec<_> = all_devices
        .iter()
        .map(|device| device.supported_operations(model.hal(), HalVersion::LATEST))
        .collect();
    let version = nnhal_ops::validate::oldest_version(model.hal());
    let constants: Vec<&Operand> = model
        .hal()
        .subgraphs()
        .flat_map(|(_, subgraph)| &subgraph.operands)
        .filter(|operand| operand.lifetime.is_constant())
        .collect();
    let uses_extension = !model.hal().extension_name_to_prefix.is_empty();
    let operations = main.operations.iter().enumerate().map(|(index, operation)| OperationRow {
        index,
        operation_type: extension::operation_name(operation.operation_type),
        origin: model.operator_origins().get(index).map(ToString::to_string).unwrap_or_default(),
        inputs: operation.inputs.iter().map(|it| short(&main.operands[*it as usize])).collect(),
        outputs: operation.outputs.iter().map(|it| short(&main.operands[*it as usize])).collect(),
        unsupported: all_devices
            .iter()
            .zip(&answers)
            .filter_map(|(device, answer)| match answer.as_ref().ok()?.get(index)? {
                Support::Yes => None,
                Support::No(reason) => Some((device.name().to_owned(), reason.clone())),
            })
            .collect(),
    });
    Ok(Description {
        inputs: values(model.inputs(), &main.inputs),
        outputs: values(model.outputs(), &main.outputs),
        operations: operations.collect(),
        subgraphs: model.hal().subgraph_count(),
        constants: constants.len(),
        constant_bytes: constants.iter().map(|operand| u64::from(operand.location.length)).sum(),
        needs: needs(&version, uses_extension),
        uses_extension,
        hal_version: version.as_ref().ok().map(|version| version.name()),
        hal_version_error: version.err().map(|error| error.to_string()),
        devices: all_devices
            .iter()
            .zip(&answers)
            .map(|(device, answer)| DeviceRow {
                name: device.name().to_owned(),
                supported: answer.iter().flatten().filter(|support| support.is_yes()).count(),
                error: answer.as_ref().err().map(ToString::to_string),
            })
            .collect(),
    })
}

/// What a device must have to run a model.
fn needs(version: &Result<HalVersion, impl Display>, uses_extension: bool) -> String {
    let version = match version {
        Ok(HalVersion::FeatureLevel6) => "feature level 6 of NNAPI (AIDL, version 2)".to_owned(),
        Ok(HalVersion::FeatureLevel7) => "feature level 7 of NNAPI (AIDL, version 3)".to_owned(),
        Ok(version) => format!("HAL {version}"),
        Err(error) => return format!("valid in no version: {error}"),
    };
    let extension = match uses_extension {
        true => format!(", and the extension {}, which devices of nnhal have", extension::NAME),
        false => String::new(),
    };
    format!("needs {version}{extension}")
}

/// Type and shape of an argument in a few letters.
fn short(operand: &Operand) -> String {
    let name = extension::type_name(operand.operand_type);
    let name = name.strip_prefix("TENSOR_").unwrap_or(&name).to_lowercase();
    let kind = match operand.lifetime {
        OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => "=",
        OperandLifeTime::NoValue => return "-".into(),
        _ => "",
    };
    if operand.operand_type.is_scalar() {
        return format!("{kind}{name}");
    }
    let lengths =
        if operand.dimensions.is_empty() { "..." } else { &dimensions(&operand.dimensions) };
    format!("{kind}{name}[{lengths}]")
}

fn text(description: &Description) -> String {
    let mut text = String::new();
    for (kind, values) in [("input ", &description.inputs), ("output", &description.outputs)] {
        for value in values {
            text += &format!(
                "{kind} {}: {} {}",
                value.name,
                value.operand_type,
                dimensions(&value.shape)
            );
            if value.scale != 0.0 {
                text += &format!(", scale {}, zero point {}", value.scale, value.zero_point);
            }
            text += "\n";
        }
    }
    text += &format!(
        "{}, {} bytes; {}\n{}\n",
        counted(description.constants, "constant"),
        description.constant_bytes,
        counted(description.subgraphs, "subgraph"),
        description.needs,
    );
    let operations = counted(description.operations.len(), "operation");
    text += &format!("\n{operations} (= marks constants)\n");
    for row in &description.operations {
        text += &format!(
            "{:4} {:24} {} -> {}",
            row.index,
            row.operation_type,
            row.inputs.join(" "),
            row.outputs.join(" ")
        );
        if !row.origin.is_empty() {
            text += &format!("   from {}", row.origin);
        }
        text += "\n";
        for (device, reason) in &row.unsupported {
            text += &format!("       not on {device}: {reason}\n");
        }
    }
    text += "\n";
    for device in &description.devices {
        match &device.error {
            Some(error) => text += &format!("{}: {error}\n", device.name),
            None => {
                let (supported, all) = (device.supported, description.operations.len());
                text += &format!("{}: {supported} of {all} operations supported\n", device.name);
            }
        }
    }
    text
}
