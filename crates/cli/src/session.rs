//! [`SessionArguments`]: where a model runs.

use crate::error::{CliError, Result};
use crate::limited;
use nnhal::{FileInfo, Model, ModelFile, Session, SessionOptions, Source, TensorInfo, devices};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Once;

/// The device that others are judged by, which uses one thread.
pub const REFERENCE: &str = "nnhal-reference";

/// Where a model runs.
#[derive(Debug, clap::Args)]
pub struct SessionArguments {
    /// Where to run: one of nnhal devices, or a device of another process, as unix:PATH, aidl:NAME or hidl:NAME
    #[arg(long, default_value = devices::DEFAULT, value_name = "NAME")]
    pub device: String,
    #[command(flatten)]
    pub threads: Threads,
}

/// Two names of devices, as `A,B`.
#[derive(Debug, Clone)]
pub struct Pair(pub [String; 2]);

impl FromStr for Pair {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(',') {
            Some((first, second)) if ![first, second].contains(&"") && !second.contains(',') => {
                Ok(Self([first.to_owned(), second.to_owned()]))
            }
            _ => Err("it takes two names: A,B"),
        }
    }
}

/// Where what happens is written.
#[derive(Debug, clap::Args)]
pub struct TraceArguments {
    /// Write there what happens when on which thread (import, validation, preparation, every step and
    /// task), for ui.perfetto.dev or chrome://tracing. It takes some time itself
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// Threads for each processor that may be asked for.
const MOST_PER_PROCESSOR: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// How many threads share the work.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Threads {
    /// Most threads to use [default: NNHAL_THREADS, or as many as this process may use processors;
    /// nnhal-reference always uses one]
    #[arg(long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    wanted: Option<u16>,
}

impl Threads {
    /// The number that was asked for, but no more than [`MOST_PER_PROCESSOR`] for each processor.
    pub fn wanted(self) -> Option<NonZeroUsize> {
        let wanted = NonZeroUsize::new(self.wanted?.into())?;
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = processors.saturating_mul(MOST_PER_PROCESSOR);
        if wanted > most {
            // Once is enough, however often it is asked.
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                let _ = writeln!(
                    std::io::stderr(),
                    "nnhal: {most} threads are used instead of {wanted}: this process may use \
                     {processors} processors, and more threads only make it slower"
                );
            });
        }
        Some(wanted.min(most))
    }

    /// Refuses a number that none of these devices would use.
    ///
    /// # Errors
    /// [`CliError::Usage`]
    pub fn check(self, devices: &[String]) -> Result<()> {
        let Some(wanted) = self.wanted else { return Ok(()) };
        let is_used = |device: &String| match device.as_str() {
            REFERENCE => wanted == 1,
            device => !devices::is_remote(device),
        };
        let Some(device) = devices.iter().find(|_| !devices.iter().any(is_used)) else {
            return Ok(());
        };
        let why = match device.as_str() {
            REFERENCE => "always uses one",
            _ => "is of another process, which says itself how many it uses",
        };
        Err(CliError::Usage(format!("--threads {wanted} has no effect: {device} {why}")))
    }

    /// Refuses any number, which would have no effect.
    ///
    /// # Errors
    /// [`CliError::Usage`]
    pub fn check_unused(self, why: &str) -> Result<()> {
        match self.wanted {
            Some(wanted) => {
                Err(CliError::Usage(format!("--threads {wanted} has no effect: {why}")))
            }
            None => Ok(()),
        }
    }

    /// The number that a device uses; `None` where another process says it.
    pub fn used(self, device: &str) -> Result<Option<NonZeroUsize>> {
        if devices::is_remote(device) {
            return Ok(None);
        }
        Ok(Some(match self.wanted() {
            _ if device == REFERENCE => NonZeroUsize::MIN,
            Some(threads) => threads,
            None => devices::default_threads()?,
        }))
    }

    /// Options for a session on a device.
    pub fn options(self, device: &str) -> SessionOptions {
        let threads = self.wanted().map_or(0, NonZeroUsize::get);
        SessionOptions::new().device(device).threads(threads)
    }
}

/// Which model.
#[derive(Debug, clap::Args)]
pub struct ModelArguments {
    /// The .tflite file, or a pipe that has one in it; - is standard input
    pub model: PathBuf,
    /// Which of the file's signatures, if it has several: they may be of different subgraphs
    #[arg(long, value_name = "NAME")]
    pub signature: Option<String>,
    /// Compute layers of floats with 8-bit weights (dynamic-range quantization) in floats, with weights that are
    /// dequantized first: nearer to the model before it was quantized, and slower
    #[arg(long)]
    pub dequantized_weights: bool,
}

/// Most bytes of a model that comes through a pipe.
const PIPE_LIMIT: usize = 4 << 30;

/// Bytes at the beginning of a file that end in [`IDENTIFIER`] if it is a model.
const BEGINNING: usize = 8;
const IDENTIFIER: &[u8] = b"TFL3";

/// What a file says, and the file again if it came through a pipe.
pub struct Described {
    /// What it says.
    pub info: FileInfo,
    piped: Option<Vec<u8>>,
}

impl ModelArguments {
    /// Reads what the file says, which may be more than can be imported.
    ///
    /// # Errors
    /// It cannot be read, or is no model.
    pub fn describe(&self) -> Result<Described> {
        if !limited::is_pipe(&self.model) {
            return Ok(Described { info: Model::describe(&self.model)?, piped: None });
        }
        let piped = self.read()?;
        Ok(Described { info: Model::describe(&piped)?, piped: Some(piped) })
    }

    /// The model of a file that has been described.
    ///
    /// # Errors
    /// It cannot be imported, or there is no such signature.
    pub fn load_described(&self, file: &Described) -> Result<Model> {
        match &file.piped {
            Some(piped) => self.load_from(piped.into()),
            None => self.load_from((&self.model).into()),
        }
    }

    /// The bytes of a model that comes through a pipe; only the first of something else, which may have no end.
    fn read(&self) -> Result<Vec<u8>> {
        let mut pipe = limited::open(&self.model)?;
        let beginning = limited::read_from(&mut pipe, &self.model, BEGINNING as u64)?;
        match beginning.ends_with(IDENTIFIER) {
            true => limited::read_behind(beginning, pipe, &self.model, PIPE_LIMIT),
            false => Ok(beginning),
        }
    }

    fn load_from(&self, source: Source<'_>) -> Result<Model> {
        let model = match &self.signature {
            Some(name) => Model::load_signature(source, name)?,
            None => Model::load(source)?,
        };
        Ok(if self.dequantized_weights { model.with_dequantized_weights()? } else { model })
    }

    /// Reads the model.
    ///
    /// # Errors
    /// It cannot be read or imported, or there is no such signature.
    pub fn load(&self) -> Result<Model> {
        let piped;
        let source: Source<'_> = if limited::is_pipe(&self.model) {
            piped = self.read()?;
            (&piped).into()
        } else {
            (&self.model).into()
        };
        self.load_from(source)
    }

    /// A file that has been described, of which a model becomes for shapes that are chosen then.
    ///
    /// # Errors
    /// It can no longer be read.
    pub fn file_of_described(&self, file: &Described) -> Result<File> {
        Ok(self.file_of(match &file.piped {
            Some(piped) => ModelFile::open(piped)?,
            None => ModelFile::open(&self.model)?,
        }))
    }

    /// The file, of which a model becomes for shapes that are chosen then; `None` of one that came through a pipe.
    ///
    /// # Errors
    /// It cannot be read, or there is no such signature.
    pub fn file(&self) -> Result<Option<File>> {
        if limited::is_pipe(&self.model) {
            return Ok(None);
        }
        Ok(Some(self.file_of(ModelFile::open(&self.model)?)))
    }

    fn file_of(&self, file: ModelFile) -> File {
        let subgraph = match &self.signature {
            None => 0,
            Some(name) => {
                let signatures = &file.description().signatures;
                let found = signatures.iter().find(|signature| signature.name == *name);
                found.map_or(0, |signature| signature.subgraph)
            }
        };
        File { file, subgraph, dequantized_weights: self.dequantized_weights }
    }
}

/// A file, and the part of it that is meant.
pub struct File {
    file: ModelFile,
    subgraph: usize,
    dequantized_weights: bool,
}

impl File {
    /// What the file says of the inputs.
    ///
    /// # Errors
    /// There is no such subgraph.
    pub fn inputs(&self) -> Result<Vec<TensorInfo>> {
        let tensors = self.file.tensors(self.subgraph)?;
        let inputs = &self.file.subgraph(self.subgraph)?.inputs;
        Ok(inputs.iter().filter_map(|index| tensors.get(*index).cloned()).collect())
    }

    /// The model for inputs of these shapes; strictly only where the file leaves lengths open.
    ///
    /// # Errors
    /// It cannot be imported.
    pub fn model(&self, shapes: &[Option<Vec<usize>>], is_strict: bool) -> Result<Model> {
        let model = self.file.model(self.subgraph, shapes, is_strict)?;
        Ok(if self.dequantized_weights { model.with_dequantized_weights()? } else { model })
    }
}

impl SessionArguments {
    /// Refuses a number of threads that the device would not use.
    ///
    /// # Errors
    /// [`CliError::Usage`]
    pub fn check(&self) -> Result<()> {
        self.threads.check(std::slice::from_ref(&self.device))
    }

    /// Prepares a model.
    ///
    /// # Errors
    /// There is no such device, or it refuses the model.
    pub fn open(&self, model: &Model) -> nnhal::Result<Session> {
        self.open_kept(model, None)
    }

    /// As [`Self::open`], out of a folder of prepared models if there is one.
    ///
    /// # Errors
    /// As [`Self::open`]; the folder cannot be written.
    pub fn open_kept(&self, model: &Model, folder: Option<&Path>) -> nnhal::Result<Session> {
        let options = self.threads.options(&self.device);
        model.session(match folder {
            Some(folder) => options.cache_dir(folder).share_weights(true),
            None => options,
        })
    }
}
