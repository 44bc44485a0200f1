//! The file format: a folder with a `manifest.json` and zstd-compressed files of one JSON object a
//! line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nnhal_hal::{HalVersion, OperandLifeTime, OperandType, OperationType};
use serde::{Deserialize, Deserializer};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Most bytes of a manifest, and of a line: a small file can become any number of them.
const MANIFEST_LIMIT: u64 = 256 << 20;
const LINE_LIMIT: u64 = 256 << 20;

/// Why vectors could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what the format says.
    #[error("{}{}: {source}", path.display(), at(*line))]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 for the whole file.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// The manifest has another format.
    #[error("{}: format {found}, expected 1", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The number found.
        found: u32,
    },
}

fn at(line: usize) -> String {
    if line == 0 { String::new() } else { format!(" line {line}") }
}

/// A folder of vectors.
#[derive(Debug, Clone)]
pub struct Vectors {
    folder: PathBuf,
    manifest: Manifest,
}

#[derive(Debug, Clone, Deserialize)]
struct Manifest {
    format: u32,
    files: Vec<ManifestFile>,
}

/// What the manifest says of a file.
#[derive(Debug, Clone, Deserialize)]
pub struct ManifestFile {
    /// Relative to the folder.
    pub path: String,
    /// Number of cases.
    pub cases: usize,
}

/// One vector.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// Unique over all files.
    pub name: String,
    /// The file it is in.
    pub spec: String,
    /// The exact oldest version that has everything in the model, where the format claims one.
    #[serde(deserialize_with = "optional_version")]
    pub min_hal: Option<HalVersion>,
    /// The operations under test.
    pub ops: Vec<String>,
    /// What Android runs it as.
    pub suites: Vec<String>,
    /// Whether float32 may be computed as float16.
    pub is_relaxed: bool,
    /// Whether the model must be refused or its execution fail.
    pub expect_failure: bool,
    /// If set, the output is compared as a distribution.
    pub multinomial_tolerance: Option<f64>,
    /// By main output; none: not compared.
    pub tolerances: Vec<Option<Tolerance>>,
    /// The model.
    pub main: Subgraph,
    /// What `SUBGRAPH` operands point to.
    pub referenced: Vec<Subgraph>,
}

/// `|actual - expected| <= atol + rtol * |expected|`
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Tolerance {
    /// Absolute part.
    pub atol: f64,
    /// Relative part.
    pub rtol: f64,
}

/// A graph.
#[derive(Debug, Clone, Deserialize)]
pub struct Subgraph {
    /// All values.
    pub operands: Vec<Operand>,
    /// All steps, in execution order.
    pub operations: Vec<Operation>,
    /// Indexes of operands.
    pub inputs: Vec<u32>,
    /// Indexes of operands.
    pub outputs: Vec<u32>,
}

/// A step.
#[derive(Debug, Clone, Deserialize)]
pub struct Operation {
    /// What it does.
    #[serde(rename = "type", deserialize_with = "operation_type")]
    pub operation_type: OperationType,
    /// Indexes of operands.
    pub inputs: Vec<u32>,
    /// Indexes of operands.
    pub outputs: Vec<u32>,
}

/// A value.
#[derive(Debug, Clone, Deserialize)]
pub struct Operand {
    /// For messages only.
    pub name: String,
    /// The element type.
    #[serde(rename = "type", deserialize_with = "operand_type")]
    pub operand_type: OperandType,
    /// 0 where unknown; for a main output also where the result has no elements.
    pub dimensions: Vec<u32>,
    /// 0 where the type has none.
    pub scale: f32,
    /// 0 where the type has none.
    pub zero_point: i32,
    /// Where it comes from.
    #[serde(deserialize_with = "lifetime")]
    pub lifetime: OperandLifeTime,
    /// For `TENSOR_QUANT8_SYMM_PER_CHANNEL` only.
    pub channel_quant: Option<ChannelQuant>,
    /// An output that is not compared.
    pub ignored: bool,
    /// Little-endian bytes.
    #[serde(deserialize_with = "base64_bytes")]
    pub data: Option<Vec<u8>>,
}

/// Scales by channel.
#[derive(Debug, Clone, Deserialize)]
pub struct ChannelQuant {
    /// As many as the axis is long.
    pub scales: Vec<f32>,
    /// The axis.
    pub channel_dim: u32,
}

fn named<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let name = String::deserialize(deserializer)?;
    find(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown name {name:?}")))
}

fn operation_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OperationType, D::Error> {
    named(deserializer, OperationType::from_name)
}

fn operand_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OperandType, D::Error> {
    named(deserializer, OperandType::from_name)
}

fn lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OperandLifeTime, D::Error> {
    named(deserializer, OperandLifeTime::from_name)
}

fn optional_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<HalVersion>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| {
        HalVersion::from_name(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown version {name:?}")))
    })
    .transpose()
}

fn base64_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom)).transpose()
}

impl Vectors {
    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// See [`VectorError`].
    pub fn open(folder: &Path) -> Result<Self, VectorError> {
        let path = folder.join("manifest.json");
        let file =
            File::open(&path).map_err(|source| VectorError::Io { path: path.clone(), source })?;
        let manifest: Manifest = serde_json::from_reader(BufReader::new(file.take(MANIFEST_LIMIT)))
            .map_err(|source| VectorError::Json { path: path.clone(), line: 0, source })?;
        if manifest.format != 1 {
            return Err(VectorError::Format { path, found: manifest.format });
        }
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// The files of the folder.
    pub fn files(&self) -> &[ManifestFile] {
        &self.manifest.files
    }

    /// The cases of one file, one after the other.
    ///
    /// # Errors
    /// See [`VectorError`]; also each case may be one.
    pub fn cases(
        &self,
        file: &ManifestFile,
    ) -> Result<impl Iterator<Item = Result<Case, VectorError>> + use<>, VectorError> {
        let path = self.folder.join(&file.path);
        let opened =
            File::open(&path).map_err(|source| VectorError::Io { path: path.clone(), source })?;
        let decoder =
            ruzstd::decoding::StreamingDecoder::new(BufReader::new(opened)).map_err(|error| {
                VectorError::Io { path: path.clone(), source: std::io::Error::other(error) }
            })?;
        let (mut reader, mut number, mut is_over) = (BufReader::new(decoder), 0, false);
        Ok(std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            number += 1;
            let mut line = Vec::new();
            let case = match reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(length) if length as u64 == LINE_LIMIT => Err(VectorError::Io {
                    path: path.clone(),
                    source: std::io::Error::other(format!("line {number} is too long")),
                }),
                Ok(_) => serde_json::from_slice(&line).map_err(|source| VectorError::Json {
                    path: path.clone(),
                    line: number,
                    source,
                }),
                Err(source) => Err(VectorError::Io { path: path.clone(), source }),
            };
            // Whatever comes behind what cannot be read is nothing.
            is_over = matches!(case, Err(VectorError::Io { .. }));
            Some(case)
        }))
    }
}

impl Case {
    /// Whether the format lists a suite for this case.
    pub fn is_in_suite(&self, name: &str) -> bool {
        self.suites.iter().any(|suite| suite == name)
    }
}
