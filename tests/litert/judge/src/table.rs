//! The table of operators: `docs/tflite.md`, from what became of the cases.

use crate::case::Outcome;
use nnhal_hal::Memory;
use nnhal_tflite::{FileDescription, ImportOptions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Operators of `.tflite` files

What runs of the TensorFlow Lite format, operator by operator, as the cases of [`tests/litert`](../tests/litert/README.md)
found it ([how far they go](tflite-corpus.md)): models of single operators, most of them, whose results were compared with those of LiteRT 2.3 on
`nnhal-reference`. This page is written by

    cargo run --release -p litert-judge -- tests/litert/data --table docs/tflite.md

*Versions* are those of the files that were tried. *Runs with* names the kinds of models whose results agree: an element type, or
`hybrid` (float activations, 8-bit weights), `float16w` and `int4w` (weights of that type), `int2`, `int4`, `uint4` and
`bfloat16` (constants of that type; of the last also what is computed). *Becomes* lists operations of the HAL
and, in lower case letters, of [our extension](extension.md); an operator without an entry there is computed when the
model is imported. What is refused, and what differs, is below with the reasons.

Models with weights of 8 bits beside floats (dynamic-range quantization, TensorFlow's `Optimize.DEFAULT` without data) are computed
as LiteRT computes them. FULLY_CONNECTED, and BATCH_MATMUL with a constant matrix, round each row of their input to 8 bits while they
run ([DYNAMIC_FULLY_CONNECTED](extension.md)), CONV_2D each image ([DYNAMIC_CONV_2D](extension.md)); DEPTHWISE_CONV_2D, TRANSPOSE_CONV and
CONV_2D with groups take images that were rounded ([DYNAMIC_ROUND](extension.md)), and compute in floats. Recurrent operators, and weights
with a zero point or other scales, are dequantized when the model is prepared. A device that does not have these operations gets
floats everywhere, as does whoever asks (`--dequantized-weights`, in Python `dequantized_weights=True`, in Rust
`nnhal::Model::with_dequantized_weights`).

MediaPipe's custom operators run too, which LiteRT does not have, so that they have no case: `Convolution2DTransposeBias`,
`Landmarks2TransformMatrix`, `TransformTensor`, `TransformTensorBilinear`, `TransformLandmarks`,
`MaxPoolingWithArgmax2D` and `MaxUnpooling2D`. [`tests/mediapipe`](../tests/mediapipe/compare.py) compares the face mesh with
attention with MediaPipe itself.

What differs and has no case: ADD, MUL and ABS of 16-bit integers without quantization saturate, and LiteRT's wrap around; LOG of 8-bit
integers gives the zero point for negative values, and LiteRT the least value; FLOOR_DIV and FLOOR_MOD of integers by 0 give 0, and
LiteRT fails; a NaN becomes the integer 0, and LiteRT's CAST gives the greatest. BROADCAST_TO takes shapes that are known at import only,
and TRANSPOSE permutations without negative numbers where they are computed.

";

const NEVER: &str = "
## Not here, though LiteRT has them

| operator | reason |
|---|---|
| HASHTABLE, HASHTABLE_FIND, HASHTABLE_IMPORT, HASHTABLE_SIZE | LiteRT's tables have strings as keys or as values, which the HAL has no type for |
| SKIP_GRAM | takes strings |
| RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL in the subgraphs of IF and WHILE | their generators would have to go in and out |
| BFLOAT16 as a variable | within graphs it is held as float32, rounded where LiteRT rounds; inputs and outputs of a model have its bits |
| READ_VARIABLE of what no CALL_ONCE of its subgraph assigns at first | LiteRT's execution fails there, unless another signature was run before that assigns it; here the model is refused |
| Fourier transforms beyond RFFT2D | LiteRT's interpreter registers no other: `Irfft2d` is a custom operator of its tests, and TensorFlow's FFT are Flex operators |
| NumericVerify that is to end an execution (`log_if_failed` with a `tolerance` from 0.1 on) | no operation ends one |
| sparse weights as such | they are made dense when the file is imported: [measured](decisions/0076-sparse-weights-are-made-dense.md); of 24 published models one is sparse, and has no blocks |
| INT2, INT4 and UINT4 beside constants | LiteRT's CAST makes them of floats, and nothing else takes them |
| COMPLEX128, FLOAT8 | LiteRT 2.3 names the types, and its kernels refuse them |
| STABLEHLO_SCATTER whose lengths follow from values | importing it needs them |
| WHILE whose variables change their size | the HAL's keep theirs |
| lists of tensors (TensorListReserve and the like) | are Flex operators too: LiteRT's interpreter has no kernels for them |
| Flex operators | are TensorFlow's own, whose kernels are TensorFlow |

StableHLO's other operators have no kernels in LiteRT: its converter turns them into operators of the table.
";

/// What is known of an operator.
#[derive(Debug, Default)]
struct Row {
    versions: BTreeSet<i32>,
    runs_with: BTreeSet<String>,
    becomes: BTreeSet<String>,
    /// By reason the kinds of models.
    refused: BTreeMap<String, BTreeSet<String>>,
    differs: BTreeMap<String, BTreeSet<String>>,
}

/// The table, from cases that were judged.
#[derive(Debug, Default)]
pub struct Table {
    rows: BTreeMap<String, Row>,
    cases: usize,
}

impl Table {
    /// Adds a case to the rows of its operators.
    ///
    /// # Errors
    /// Its files cannot be read.
    pub fn add(&mut self, folder: &Path, outcome: &Outcome) -> Result<(), String> {
        let shown = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
        let meta = std::fs::read_to_string(folder.join("meta.json")).map_err(|it| shown(&it))?;
        let meta: Value = serde_json::from_str(&meta).map_err(|it| shown(&it))?;
        let kind = meta["variant"].as_str().unwrap_or_default().to_owned();
        let file = nnhal_tflite::file_memory(&folder.join("model.tflite"));
        let file = file.map_err(|it| shown(&it))?;
        let description = nnhal_tflite::describe_memory(&file).map_err(|it| shown(&it))?;
        self.cases += 1;
        for (name, version) in operators(&description) {
            let row = self.rows.entry(name.to_owned()).or_default();
            row.versions.insert(version);
            let reason = |text: &str| {
                let prefix = format!("{name}: ");
                text.split("; ").find_map(|it| it.strip_prefix(&prefix).map(str::to_owned))
            };
            match outcome {
                Outcome::Agrees => {
                    row.runs_with.insert(kind.clone());
                }
                Outcome::Differs(_) | Outcome::Fails(_) => {
                    let case = folder.file_name().unwrap_or_default().to_string_lossy();
                    row.differs.entry(case.into_owned()).or_default().insert(kind.clone());
                }
                Outcome::Refused(text) | Outcome::Unsupported(text) => {
                    if let Some(reason) = reason(text) {
                        row.refused.entry(reason).or_default().insert(kind.clone());
                    }
                }
            }
        }
        if matches!(outcome, Outcome::Agrees) {
            self.note_operations(file, &description);
        }
        Ok(())
    }

    /// What the operators of a file became.
    fn note_operations(&mut self, file: Memory, description: &FileDescription) {
        let operators = description.subgraphs.first().map_or(&[][..], |it| &it.operators);
        let Ok(import) = nnhal_tflite::import_memory(file, &ImportOptions::default()) else {
            return;
        };
        for (operation, origin) in import.model.main.operations.iter().zip(&import.operator_origin)
        {
            let operator = origin.index.and_then(|index| operators.get(index));
            if let Some(operator) = operator {
                let name = nnhal_ops::extension::operation_name(operation.operation_type);
                let is_ours = name != operation.operation_type.to_string();
                let name = if is_ours { name.to_lowercase() } else { name };
                self.rows.entry(operator.name.clone()).or_default().becomes.insert(name);
            }
        }
    }

    /// The page.
    pub fn page(&self) -> String {
        let known: Vec<&str> = nnhal_tflite::builtin_operators().collect();
        let custom = self.rows.keys().map(String::as_str).filter(|name| !known.contains(name));
        let mut names: Vec<&str> = known.iter().copied().chain(custom).collect();
        names.sort_unstable();
        let tried: Vec<(&str, &Row)> =
            names.iter().filter_map(|name| Some((*name, self.rows.get(*name)?))).collect();
        let mut page = HEAD.to_owned();
        let runs = tried.iter().filter(|(_, row)| !row.runs_with.is_empty()).count();
        let (cases, all) = (self.cases, names.len());
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{cases} cases; {runs} of {all} operators run.\n");
        page.push_str("| operator | versions | runs with | becomes |\n|---|---|---|---|\n");
        for (name, row) in tried.iter().filter(|(_, row)| !row.runs_with.is_empty()) {
            let versions =
                [row.versions.first(), row.versions.last()].map(|it| it.map_or(0, |it| *it));
            let versions = match versions {
                [first, last] if first == last => first.to_string(),
                [first, last] => format!("{first} to {last}"),
            };
            let (kinds, becomes) = (joined(&row.runs_with), joined(&row.becomes));
            let _ = writeln!(page, "| {name} | {versions} | {kinds} | {becomes} |");
        }
        page.push_str("\n## Refused\n\n| operator | models | reason |\n|---|---|---|\n");
        for (name, row) in &tried {
            for (reason, kinds) in &row.refused {
                let _ = writeln!(
                    page,
                    "| {name} | {} | {} |",
                    joined(kinds),
                    reason.replace('|', "\\|")
                );
            }
        }
        page.push_str("\n## Different\n\n| operator | case |\n|---|---|\n");
        for (name, row) in &tried {
            for case in row.differs.keys() {
                let _ = writeln!(page, "| {name} | {case} |");
            }
        }
        let untried: BTreeSet<String> = names
            .iter()
            .filter(|name| !self.rows.contains_key(**name))
            .map(|name| (*name).to_owned())
            .collect();
        page.push_str(NEVER);
        let _ = writeln!(page, "\n## Without a case\n\n{}.", joined(&untried));
        page
    }
}

/// Names and versions of the operators of a file.
fn operators(description: &FileDescription) -> BTreeSet<(&str, i32)> {
    let all = description.subgraphs.iter().flat_map(|graph| &graph.operators);
    all.map(|operator| (operator.name.as_str(), operator.version)).collect()
}

fn joined(all: &BTreeSet<String>) -> String {
    all.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
