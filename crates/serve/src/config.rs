//! [`ModelConfig`]: how a model is served, as its `config.toml`, its `config.pbtxt` or a request to load it
//! says.

use crate::data_type;
use crate::error::{Error, Result};
use crate::proto;
use nnhal::DataType;
use nnhal::hal::Priority;
use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde::Deserialize;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Most requests that a model's queue holds unless its configuration says otherwise.
const DEFAULT_QUEUE: usize = 256;
/// Most of anything that a configuration may ask for.
const MOST_BATCH: u32 = 1024;
const MOST_INSTANCES: usize = 64;
const MOST_QUEUE: usize = 1 << 20;
/// Bytes of a configuration that a request brings.
const MOST_JSON: usize = 256 << 10;
/// Priorities of requests.
pub(crate) const LEVELS: u64 = 3;
const MOST_DELAY: Duration = Duration::from_secs(10);

/// How a model is served. `config.toml` has these names; all may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The folder's name, if it is said at all.
    pub name: String,
    /// The most rows of a batch; 0: the model's shapes are what requests have, and nothing is batched.
    pub max_batch_size: u32,
    /// Requests are put together.
    pub dynamic_batching: Option<DynamicBatching>,
    /// Runs at the same time; all share the packed weights.
    pub instances: usize,
    /// Threads of a run; 0: as many processors as there are for each instance.
    pub threads: usize,
    /// The device, see [`nnhal::devices`].
    pub device: String,
    /// Which of the versions on disk are served.
    pub versions: Versions,
    /// Requests that may wait.
    pub max_queue_size: usize,
    /// The time from arrival to the end of computing that requests have, in microseconds; 0: any.
    pub default_timeout_microseconds: u64,
    /// Whether a request may say that it has less, or, where there is no default, how much it has.
    pub allow_timeout_override: bool,
    /// The priority of requests that say none: 1, 2 or 3.
    pub default_priority: u64,
    /// The model's file in the folder of a version; empty: `model.tflite`, or the only one of its kind.
    pub filename: String,
    /// The file's signature; empty: its first subgraph.
    pub signature: String,
    /// What inputs are expected to be, or are to be where the file leaves it open.
    pub inputs: Vec<TensorConfig>,
    /// What outputs are expected to be.
    pub outputs: Vec<TensorConfig>,
    /// A file with the names of classes of the first output, a line each, in the model's folder. Each of [`Self::outputs`] can name
    /// its own.
    pub labels: String,
}

/// How requests are put together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicBatching {
    /// Batches of these sizes do not wait for more.
    pub preferred_batch_sizes: Vec<u32>,
    /// For how long a request waits for others, in microseconds.
    pub max_queue_delay_microseconds: u64,
}

/// Which versions are served.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Versions {
    /// The greatest ones.
    Latest(u32),
    /// All.
    All,
    /// These.
    Specific(Vec<u64>),
}

/// An input or output as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorConfig {
    /// Its name.
    pub name: String,
    /// The protocol's name of its type; empty: any.
    #[serde(default)]
    pub datatype: String,
    /// The length of each axis, without that of the batch; -1: any. Empty: as the file has it.
    #[serde(default)]
    pub dims: Vec<i64>,
    /// What Triton calls the order of an input's axes: `FORMAT_NHWC`, `FORMAT_NCHW`. It is shown to clients, and changes nothing. Empty:
    /// none.
    #[serde(default)]
    pub format: String,
    /// A file with the names of an output's classes, a line each, in the model's folder.
    #[serde(default)]
    pub labels: String,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            max_batch_size: 0,
            dynamic_batching: None,
            instances: 1,
            threads: 0,
            device: nnhal::devices::DEFAULT.to_owned(),
            versions: Versions::Latest(1),
            max_queue_size: DEFAULT_QUEUE,
            default_timeout_microseconds: 0,
            allow_timeout_override: true,
            default_priority: 2,
            filename: String::new(),
            signature: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            labels: String::new(),
        }
    }
}

impl ModelConfig {
    /// Reads a `config.toml`.
    ///
    /// # Errors
    /// [`Error::Invalid`]
    pub fn from_toml(text: &str) -> Result<Self> {
        let config: Self =
            toml::from_str(text).map_err(|error| Error::invalid(error.message().to_owned()))?;
        config.checked()
    }

    /// Reads Triton's `config.pbtxt`.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is none, or asks for what is not there.
    pub fn from_pbtxt(text: &str) -> Result<Self> {
        let text = with_colons(text);
        let message = DynamicMessage::parse_text_format(descriptor()?, &text)
            .map_err(|error| Error::invalid(error.to_string()))?;
        Self::from_message(&message)
    }

    /// Reads Triton's configuration as JSON.
    ///
    /// # Errors
    /// As [`Self::from_pbtxt`].
    pub fn from_json(text: &str) -> Result<Self> {
        // What is made of it takes many times as much, and those who load models are strangers.
        let found = text.len();
        if found > MOST_JSON {
            let why = format!("a configuration of {found} bytes, at most {MOST_JSON}");
            return Err(Error::invalid(why));
        }
        let mut from = serde_json::Deserializer::from_str(text);
        let message = DynamicMessage::deserialize(descriptor()?, &mut from);
        let message = message.map_err(|error| Error::invalid(error.to_string()))?;
        from.end().map_err(|error| Error::invalid(error.to_string()))?;
        Self::from_message(&message)
    }

    fn from_message(message: &DynamicMessage) -> Result<Self> {
        let message = proto::ModelConfig::decode(&*message.encode_to_vec())
            .map_err(|error| Error::invalid(error.to_string()))?;
        Self::from_proto(message)?.checked()
    }

    fn from_proto(message: proto::ModelConfig) -> Result<Self> {
        use proto::model_config::SchedulingChoice;
        use proto::model_queue_policy::TimeoutAction;
        use proto::model_version_policy::PolicyChoice;
        let mut config = Self::default();
        // An ensemble has a platform of its own, which is not what is missing.
        if matches!(message.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
            return Err(Error::invalid("ensemble_scheduling: this server does not offer it"));
        }
        let backend =
            [message.backend.as_str(), message.platform.as_str(), message.runtime.as_str()];
        let known =
            ["", "nnhal", "tflite", "tensorflowlite", "tensorflow_lite", "litert", "nnhal_tflite"];
        if let Some(other) = backend.into_iter().find(|it| !known.contains(it)) {
            return Err(Error::invalid(format!("there is no backend {other:?}, only tflite")));
        }
        // What changes what clients would get, and is not there.
        let missing = [
            ("batch_input", !message.batch_input.is_empty()),
            ("batch_output", !message.batch_output.is_empty()),
            ("model_warmup", !message.model_warmup.is_empty()),
            ("model_repository_agents", message.model_repository_agents.is_some()),
            ("response_cache", message.response_cache.is_some_and(|it| it.enable)),
            (
                "model_transaction_policy.decoupled",
                message.model_transaction_policy.is_some_and(|it| it.decoupled),
            ),
        ];
        if let Some((name, _)) = missing.into_iter().find(|(_, is_asked_for)| *is_asked_for) {
            return Err(Error::invalid(format!("{name}: this server does not offer it")));
        }
        config.name = message.name;
        config.max_batch_size = u32::try_from(message.max_batch_size)
            .map_err(|_| Error::invalid("max_batch_size is negative"))?;
        match message.scheduling_choice {
            None => {}
            Some(SchedulingChoice::DynamicBatching(batching)) => {
                let sizes = batching.preferred_batch_size.iter().map(|it| u32::try_from(*it));
                let sizes: std::result::Result<_, _> = sizes.collect();
                config.dynamic_batching = Some(DynamicBatching {
                    preferred_batch_sizes: sizes
                        .map_err(|_| Error::invalid("preferred_batch_size is negative"))?,
                    max_queue_delay_microseconds: batching.max_queue_delay_microseconds,
                });
                if batching.default_priority_level > 0 {
                    config.default_priority = batching.default_priority_level;
                }
                if batching.preserve_ordering {
                    let why = "preserve_ordering: this server does not offer it";
                    return Err(Error::invalid(why));
                }
                if batching.priority_levels > LEVELS {
                    let found = batching.priority_levels;
                    let why = format!("priority_levels is {found}, and there are {LEVELS}");
                    return Err(Error::invalid(why));
                }
                if let Some(policy) = batching.default_queue_policy {
                    if policy.timeout_action() == TimeoutAction::Delay {
                        let why = "timeout_action: DELAY: this server does not offer it";
                        return Err(Error::invalid(why));
                    }
                    config.allow_timeout_override = policy.allow_timeout_override;
                    config.default_timeout_microseconds = policy.default_timeout_microseconds;
                    if policy.max_queue_size > 0 {
                        config.max_queue_size = policy.max_queue_size as usize;
                    }
                }
                if !batching.priority_queue_policy.is_empty() {
                    let why = "priority_queue_policy: this server does not offer it";
                    return Err(Error::invalid(why));
                }
            }
            Some(SchedulingChoice::SequenceBatching(_)) => {
                return Err(Error::invalid("sequence_batching: this server does not offer it"));
            }
            Some(SchedulingChoice::EnsembleScheduling(_)) => {}
        }
        if !message.instance_group.is_empty() {
            use proto::model_instance_group::Kind;
            if message.instance_group.iter().any(|group| group.passive) {
                let why = "instance_group: passive: this server does not offer it";
                return Err(Error::invalid(why));
            }
            let counts = message.instance_group.iter().map(|group| {
                let is_cpu = matches!(group.kind(), Kind::Auto | Kind::Cpu);
                let count = usize::try_from(group.count).ok().filter(|_| is_cpu);
                count.map(|count| count.max(1))
            });
            let count = counts.sum::<Option<usize>>();
            let why = "instance_group: only KIND_CPU is there, and no negative number";
            config.instances = count.ok_or_else(|| Error::invalid(why))?;
        }
        if let Some(PolicyChoice::Latest(latest)) =
            message.version_policy.as_ref().and_then(|it| it.policy_choice.as_ref())
        {
            config.versions = Versions::Latest(latest.num_versions.max(1));
        }
        match message.version_policy.and_then(|it| it.policy_choice) {
            Some(PolicyChoice::All(_)) => config.versions = Versions::All,
            Some(PolicyChoice::Specific(specific)) => {
                let versions = specific.versions.iter().map(|it| u64::try_from(*it));
                let versions: std::result::Result<_, _> = versions.collect();
                let why = |_| Error::invalid("version_policy: a version is negative");
                config.versions = Versions::Specific(versions.map_err(why)?);
            }
            _ => {}
        }
        if !message.default_model_filename.is_empty() {
            config.filename = message.default_model_filename;
        }
        for (key, value) in message.parameters {
            match (key.as_str(), value.string_value) {
                ("threads", value) => {
                    let why = |_| Error::invalid(format!("parameter threads: {value:?}"));
                    config.threads = value.parse().map_err(why)?;
                }
                ("device", value) => config.device = value,
                ("signature", value) => config.signature = value,
                (other, _) => {
                    let known = "threads, device and signature";
                    return Err(Error::invalid(format!(
                        "parameter {other:?}: only {known} are known"
                    )));
                }
            }
        }
        for input in message.input {
            if input.reshape.is_some()
                || input.is_shape_tensor
                || input.allow_ragged_batch
                || input.optional
            {
                let why = "reshape, is_shape_tensor, allow_ragged_batch and optional: not offered";
                return Err(Error::invalid(format!("input {:?}: {why}", input.name)));
            }
            let datatype = type_name(input.data_type);
            let format = format_name(input.format);
            let (name, dims) = (input.name, input.dims);
            config.inputs.push(TensorConfig {
                name,
                datatype,
                dims,
                format,
                labels: String::new(),
            });
        }
        for output in message.output {
            if output.reshape.is_some() || output.is_shape_tensor {
                let why = "reshape and is_shape_tensor: not offered";
                return Err(Error::invalid(format!("output {:?}: {why}", output.name)));
            }
            let datatype = type_name(output.data_type);
            let (name, dims, labels) = (output.name, output.dims, output.label_filename);
            config.outputs.push(TensorConfig {
                name,
                datatype,
                dims,
                format: String::new(),
                labels,
            });
        }
        Ok(config)
    }

    /// The same if all numbers are in their ranges.
    fn checked(self) -> Result<Self> {
        let within = |what: &str, found: u64, least: u64, most: u64| {
            let refused = || Error::invalid(format!("{what} is {found}, not {least} to {most}"));
            (least..=most).contains(&found).then_some(()).ok_or_else(refused)
        };
        within("max_batch_size", self.max_batch_size.into(), 0, MOST_BATCH.into())?;
        within("instances", self.instances as u64, 1, MOST_INSTANCES as u64)?;
        within("max_queue_size", self.max_queue_size as u64, 1, MOST_QUEUE as u64)?;
        within("default_priority", self.default_priority, 1, LEVELS)?;
        within("threads", self.threads as u64, 0, 1024)?;
        if let Some(batching) = &self.dynamic_batching {
            let most = u64::try_from(MOST_DELAY.as_micros()).unwrap_or(u64::MAX);
            within("max_queue_delay", batching.max_queue_delay_microseconds, 0, most)?;
            if self.max_batch_size == 0 {
                return Err(Error::invalid("dynamic_batching needs a max_batch_size of 1 or more"));
            }
            for size in &batching.preferred_batch_sizes {
                within("a preferred batch size", (*size).into(), 1, self.max_batch_size.into())?;
            }
        }
        let labels = self.inputs.iter().chain(&self.outputs).map(|tensor| &tensor.labels);
        for name in [&self.filename, &self.labels].into_iter().chain(labels) {
            if name.contains('/') || name == ".." || name.contains('\0') {
                return Err(Error::invalid(format!("{name:?} is no name of a file in the folder")));
            }
        }
        for tensor in self.inputs.iter().chain(&self.outputs) {
            if !tensor.datatype.is_empty() && data_type::from_name(&tensor.datatype).is_none() {
                let TensorConfig { name, datatype, .. } = tensor;
                return Err(Error::invalid(format!("{name:?}: there is no type {datatype:?}")));
            }
            if format_code(&tensor.format).is_none() {
                let TensorConfig { name, format, .. } = tensor;
                let known = "FORMAT_NONE, FORMAT_NHWC and FORMAT_NCHW";
                let why = format!("{name:?}: there is no format {format:?}, only {known}");
                return Err(Error::invalid(why));
            }
        }
        for (kind, tensors) in [("input", &self.inputs), ("output", &self.outputs)] {
            let mut names = std::collections::BTreeSet::new();
            if let Some(TensorConfig { name, .. }) =
                tensors.iter().find(|it| !names.insert(&it.name))
            {
                return Err(Error::invalid(format!("{kind} {name:?} is described twice")));
            }
        }
        if let Some(TensorConfig { name, .. }) = self.inputs.iter().find(|it| !it.labels.is_empty())
        {
            return Err(Error::invalid(format!("input {name:?}: labels are those of an output")));
        }
        if let Some(TensorConfig { name, .. }) =
            self.outputs.iter().find(|it| !it.format.is_empty())
        {
            return Err(Error::invalid(format!("output {name:?}: a format is that of an input")));
        }
        Ok(self)
    }

    /// The files with names of classes, each once.
    pub(crate) fn label_files(&self) -> Vec<String> {
        let of_outputs = self.outputs.iter().map(|output| &output.labels);
        let names = std::iter::once(&self.labels).chain(of_outputs).filter(|it| !it.is_empty());
        let names: std::collections::BTreeSet<&String> = names.collect();
        names.into_iter().cloned().collect()
    }

    /// Threads of a run.
    pub(crate) fn threads_of_a_run(&self) -> usize {
        let all = nnhal::devices::default_threads().map_or(1, NonZeroUsize::get);
        if self.threads == 0 { (all / self.instances).max(1) } else { self.threads }
    }

    /// The device's priority for one of a request: 1 is high, 2 the middle, all others low.
    pub(crate) fn priority(&self, of_request: u64) -> Priority {
        match if of_request == 0 { self.default_priority } else { of_request } {
            1 => Priority::High,
            2 => Priority::Medium,
            _ => Priority::Low,
        }
    }
}

/// The text with a colon between a field's name and a list. Lists of messages need none, and Triton's examples
/// have none, but the reader of texts wants one.
fn with_colons(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    // Where the name ended that nothing but space has followed.
    let mut name_end = None;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '#' => {
                out.push(letter);
                out.extend(rest.by_ref().take_while(|it| *it != '\n'));
                out.push('\n');
                continue;
            }
            '"' | '\'' => {
                out.push(letter);
                while let Some(inner) = rest.next() {
                    out.push(inner);
                    if inner == '\\' {
                        out.extend(rest.next());
                    } else if inner == letter {
                        break;
                    }
                }
                name_end = None;
                continue;
            }
            '[' => {
                if let Some(end) = name_end.take() {
                    out.insert(end, ':');
                }
            }
            letter if letter.is_alphanumeric() || letter == '_' => {
                out.push(letter);
                name_end = Some(out.len());
                continue;
            }
            letter if letter.is_whitespace() => {}
            _ => name_end = None,
        }
        out.push(letter);
    }
    out
}

/// The name of a type of a configuration; empty if none is said.
fn type_name(code: i32) -> String {
    match proto::DataType::try_from(code) {
        Ok(proto::DataType::TypeInvalid) => String::new(),
        Ok(known) => known.as_str_name().to_owned(),
        Err(_) => format!("type {code}"),
    }
}

/// The name of an input's format of a configuration; empty if it is none.
fn format_name(code: i32) -> String {
    match proto::model_input::Format::try_from(code) {
        Ok(proto::model_input::Format::None) => String::new(),
        Ok(known) => known.as_str_name().to_owned(),
        Err(_) => format!("format {code}"),
    }
}

/// The code of an input's format in a configuration; `None`: there is no such format.
pub(crate) fn format_code(name: &str) -> Option<i32> {
    match name {
        "" => Some(proto::model_input::Format::None.into()),
        name => proto::model_input::Format::from_str_name(name).map(Into::into),
    }
}

/// The code of a type in a configuration.
pub(crate) fn type_code(data_type: DataType) -> i32 {
    let name = data_type::config_name(data_type).unwrap_or_default();
    proto::DataType::from_str_name(name).map_or(0, Into::into)
}

pub(crate) fn descriptor() -> Result<prost_reflect::MessageDescriptor> {
    let found = proto::DESCRIPTORS.get_message_by_name("inference.ModelConfig");
    found.ok_or_else(|| Error::Internal("the protocol's descriptors are missing".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_of_triton_is_read() {
        let config = ModelConfig::from_pbtxt(
            r#"
            name: "digits"
            backend: "tflite"
            max_batch_size: 16
            input [ { name: "image" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 8, 8, 1 ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "l.txt" } ]
            dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100
              default_queue_policy { max_queue_size: 7 default_timeout_microseconds: 9 } }
            instance_group [ { count: 2 kind: KIND_CPU } ]
            version_policy: { specific { versions: [1, 3] } }
            parameters { key: "threads" value: { string_value: "1" } }
            "#,
        );
        let config = config.unwrap();
        let batching = config.dynamic_batching.clone().unwrap();
        assert_eq!(batching.preferred_batch_sizes, [4, 8]);
        assert_eq!(batching.max_queue_delay_microseconds, 100);
        assert_eq!((config.max_batch_size, config.instances, config.threads), (16, 2, 1));
        assert_eq!((config.max_queue_size, config.default_timeout_microseconds), (7, 9));
        assert!(!config.allow_timeout_override, "as Triton has it");
        assert_eq!(config.versions, Versions::Specific(vec![1, 3]));
        assert_eq!((&*config.outputs[0].labels, &*config.labels), ("l.txt", ""));
        assert_eq!(config.label_files(), ["l.txt"]);
        let image = &config.inputs[0];
        assert_eq!((&*image.datatype, &*image.format), ("TYPE_FP32", "FORMAT_NHWC"));
    }

    #[test]
    fn colons_are_set_before_lists_and_nowhere_else() {
        for (text, expected) in [
            ("a [ { b: [1] } ]", "a: [ { b: [1] } ]"),
            ("a\n # [ x [\n[ 1 ]", "a:\n # [ x [\n[ 1 ]"),
            ("a: 'b [' c: \"\\\" [\" d [1]", "a: 'b [' c: \"\\\" [\" d: [1]"),
            ("a: [1, 2]", "a: [1, 2]"),
        ] {
            assert_eq!(with_colons(text), expected);
        }
    }

    #[test]
    fn what_is_not_offered_is_named() {
        for (text, named) in [
            ("backend: 'onnxruntime'", "onnxruntime"),
            ("sequence_batching { }", "sequence_batching"),
            ("platform: 'ensemble' ensemble_scheduling { }", "ensemble_scheduling"),
            ("instance_group [ { count: 1 passive: true } ]", "passive"),
            ("input [ { name: 'x' }, { name: 'x' } ]", "input \"x\" is described twice"),
            ("output [ { name: 'x' }, { name: 'x' } ]", "output \"x\" is described twice"),
            ("instance_group [ { kind: KIND_GPU } ]", "instance_group"),
            ("max_batch_size: -1", "max_batch_size"),
            ("response_cache { enable: true }", "response_cache"),
            ("no_such_field: 1", "no_such_field"),
            ("default_model_filename: '../x'", "../x"),
            ("dynamic_batching { }", "dynamic_batching"),
            ("dynamic_batching { preserve_ordering: true }", "preserve_ordering"),
            ("dynamic_batching { priority_levels: 5 }", "priority_levels is 5"),
            (
                "dynamic_batching { default_queue_policy { timeout_action: DELAY } }",
                "timeout_action",
            ),
            ("input [ { name: 'x' optional: true } ]", "optional"),
            ("input [ { name: 'x' format: 9 } ]", "format 9"),
            ("output [ { name: 'x' label_filename: '../x' } ]", "../x"),
        ] {
            let error = ModelConfig::from_pbtxt(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn a_configuration_of_our_own_is_read() {
        let config = ModelConfig::from_toml(
            "max_batch_size = 8\ninstances = 2\nversions = { latest = 2 }\n[dynamic_batching]\n\
             max_queue_delay_microseconds = 500\n[[inputs]]\nname = 'image'\ndims = [8, 8, 1]\n",
        );
        let config = config.unwrap();
        assert_eq!(config.versions, Versions::Latest(2));
        assert_eq!(config.inputs[0].dims, [8, 8, 1]);
        assert!(ModelConfig::from_toml("max_bach_size = 8").is_err());
        assert!(ModelConfig::from_toml("instances = 0").is_err());
        assert!(ModelConfig::from_toml("versions = 'all'").is_ok());
        let of = |kind: &str, what: &str| {
            ModelConfig::from_toml(&format!("[[{kind}]]\nname = 'x'\n{what}\n")).is_ok()
        };
        assert!(of("inputs", "format = 'FORMAT_NCHW'") && of("outputs", "labels = 'l.txt'"));
        assert!(!of("inputs", "format = 'NCHW'") && !of("inputs", "labels = 'l.txt'"));
        assert!(!of("outputs", "format = 'FORMAT_NCHW'") && !of("outputs", "labels = '/l'"));
    }

    #[test]
    fn a_configuration_as_json_is_read() {
        let json = r#"{"max_batch_size": 4, "dynamic_batching": {"preferred_batch_size": [2]}}"#;
        let config = ModelConfig::from_json(json).unwrap();
        assert_eq!(config.max_batch_size, 4);
        assert!(ModelConfig::from_json("{} x").is_err());
        assert!(ModelConfig::from_json(&"[".repeat(100_000)).is_err());
        let many = format!(r#"{{"input":[{}{{}}]}}"#, "{},".repeat(MOST_JSON / 3));
        let refused = ModelConfig::from_json(&many).unwrap_err().to_string();
        assert!(refused.contains("at most 262144"), "{refused}");
    }
}
