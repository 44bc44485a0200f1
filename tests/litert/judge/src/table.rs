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
run ([DYNAMIC_FULLY_CONNECTED](extension.md)), CONV_2D each image ([DYNAMIC_CONV_2D](extension.md)); DEPTHWISE_CONV_2D and TRANSPOSE_CONV
take images that were rounded ([DYNAMIC_ROUND](extension.md)), and compute in floats. Recurrent operators, and weights
with a zero point or other scales, are dequantized when the model is prepared. A device that does not have these operations gets
floats everywhere, as does whoever asks (`--dequantized-weights`, in Python `dequantized_weights=True`, in Rust
`nnhal::Model::with_dequantized_weights`).

Ranges are those of XNNPACK: from the least to the greatest number. Where XNNPACK has no kernel, LiteRT's own rounds by the greatest magnitude, and so does
DYNAMIC_ROUND before a layer of floats here: CONV_2D of 4 bits with one scale, or with a fused TANH and one scale; FULLY_CONNECTED of 4 or 2 bits with an
odd number of inputs, or of 2 bits with one scale, unless the operator has `asymmetric_quantize_inputs`. LiteRT refuses floats beside 4 bits in
DEPTHWISE_CONV_2D, TRANSPOSE_CONV and BATCH_MATMUL; here they are computed as those of 8 bits.

MediaPipe's custom operators run too, which LiteRT does not have, so that they have no case: `Convolution2DTransposeBias`,
`Landmarks2TransformMatrix`, `TransformTensor`, `TransformTensorBilinear`, `TransformLandmarks`,
`MaxPoolingWithArgmax2D` and `MaxUnpooling2D`; so do LiteRT's own that its interpreter does not register, `MaxPoolWithArgmax` and
`MaxUnpooling2D` with places of 32 bits. [`tests/mediapipe`](../tests/mediapipe/compare.py) compares the face mesh with
attention with MediaPipe itself.

Flex operators, which are TensorFlow's own (`SELECT_TF_OPS`), have no kernels in LiteRT, and are compared with TensorFlow. An operation that the format has an
operator for becomes that one, of any type and rank that it has here: the arithmetic, comparisons and functions of one number, reductions, `Softmax`,
`LeakyRelu`, `MatMul` and `BatchMatMul`, `BiasAdd`, `GatherV2`, `ConcatV2`, `Pack`, `Unpack`, `Squeeze`, `StridedSlice`, `OneHot`, `Cumsum`, `ReverseSequence`,
`ResizeBilinear`, `ResizeNearestNeighbor`, `DepthToSpace`, `SpaceToDepth`, `MirrorPad`, `LRN`, `Bucketize`, `MaxPool`, `AvgPool`, `Conv3D`,
`Conv3DBackpropInputV2`, `MatrixDiag` and `MatrixSetDiag` of the main diagonal, and others that move elements. Beside them there are `Erf`, `Softplus`,
`Softsign`, `Selu`, `Reciprocal`, `Tan`, `Atan`, `Sinh`, `Cosh`, `IsNan`, `IsInf`, `IsFinite`, `DivNoNan`, `MulNoNan`, `ClipByValue`, `BitwiseAnd`, `BitwiseOr`, `Invert`,
`Cross`, `Roll`, `MatrixBandPart`, `MatrixDiagPart`, `MaxPool3D`, `AvgPool3D`, `MaxPoolWithArgmax`, `ExtractImagePatches`, `TensorScatterUpdate`, `TensorScatterAdd`, `TensorScatterSub`,
`TensorScatterMin`, `TensorScatterMax`, `Size`, `OnesLike`, `Identity` and its like, and lists of tensors as recurrent layers of Keras have them
(`TensorListReserve`, `TensorListFromTensor`, `TensorListGetItem`, `TensorListSetItem`, `TensorListStack`, `TensorListGather`, `TensorListLength`):
[decision 87](decisions/0087-flex-operators-become-the-formats-operators.md). All others are refused by name.

What differs and has no case: ADD, MUL and ABS of 16-bit integers without quantization saturate, and LiteRT's wrap around; LOG of 8-bit
integers gives the zero point for negative values, and LiteRT the least value; FLOOR_DIV and FLOOR_MOD of integers by 0 give 0, and
LiteRT fails; a NaN becomes the integer 0, and LiteRT's CAST gives the greatest; POW of integers wraps around, and LiteRT's does so where the exponent is
one number, and otherwise gives the least integer; GELU of minus infinity is 0 unless it is approximated, and LiteRT's NaN. BROADCAST_TO takes shapes that are known at import only,
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
| INT2, INT4 and UINT4 beside constants and what moves them | LiteRT's CAST makes them of floats, and nothing else takes them; inputs and outputs of a model would have no type in NumPy |
| COMPLEX128, FLOAT8 | LiteRT 2.3 names the types, and its kernels refuse them |
| STABLEHLO_SCATTER whose lengths follow from values | importing it needs them |
| WHILE whose variables change their size | the HAL's keep theirs |
| lists of tensors whose number of elements changes (TensorListPushBack and the like) | a list is one tensor here, which keeps its lengths |
| tensors of strings | the HAL has no type for them. LiteRT gives them back, and has EQUAL, NOT_EQUAL, GATHER, GATHER_ND, RESHAPE, SLICE, STRIDED_SLICE and TILE of them |

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
