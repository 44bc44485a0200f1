//! The file's contents as plain data, with every index checked.

use crate::ImportOptions;
use crate::error::{ImportError, Reason, Shown, beginning};
use crate::excerpt::Excerpt;
use crate::external::{self, ExternalBuffers};
use crate::reading::{CUT_OFF, Meter, Place, malformed};
use crate::schema::{self, BuiltinOperator, TensorType};
use planus::ReadAsRoot;
use planus::errors::ErrorKind;
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// What a file holds.
#[derive(Debug)]
pub(crate) struct File<'a> {
    pub(crate) graphs: Vec<Graph<'a>>,
    /// The subgraph that becomes the model's main one.
    pub(crate) main: usize,
    pub(crate) buffers: Vec<Buffer>,
    excerpt: &'a Excerpt,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) description: String,
    /// Names, and where the bytes are.
    pub(crate) metadata: Vec<(String, Buffer)>,
    /// Whether inputs have other shapes than the file's example, so that what is computed from
    /// them has as well.
    pub(crate) is_reshaped: bool,
    /// Whether inputs have lengths that the file says are others.
    pub(crate) is_contradicted: bool,
    /// Whether inputs have another rank than the file says.
    pub(crate) has_other_ranks: bool,
    /// See [`ImportOptions::dequantizes_weights`].
    pub(crate) dequantizes_weights: bool,
    /// What the import may still make that the file does not hold itself.
    allowance: Cell<usize>,
    size: usize,
}

/// Bytes that the import of any file may make.
const ALLOWANCE_AT_LEAST: usize = 16 << 20;
/// Bytes that the import may make for each byte of the file: sparse constants become dense.
const ALLOWANCE_PER_BYTE: usize = 64;
/// Bytes that the import may make at most: a model's own bytes are addressed with 32 bits.
const ALLOWANCE_AT_MOST: usize = u32::MAX as usize;
/// Axes that a tensor may have. The HAL's operations take 8 at most.
const MOST_AXES: usize = 64;

/// Which operator it is.
#[derive(Debug, Clone)]
pub(crate) struct OperatorCode {
    pub(crate) kind: OperatorKind,
    pub(crate) version: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperatorKind {
    Builtin(BuiltinOperator),
    Custom(Rc<str>),
    /// A code that is newer than the schema.
    Unknown(i32),
}

impl OperatorKind {
    pub(crate) fn is(&self, builtin: BuiltinOperator) -> bool {
        *self == Self::Builtin(builtin)
    }
}

impl fmt::Display for OperatorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin(builtin) => formatter.write_str(schema::operator_name(*builtin as i32)),
            Self::Custom(name) => write!(formatter, "custom {}", beginning(name)),
            Self::Unknown(code) => write!(formatter, "builtin {code}"),
        }
    }
}

/// A subgraph. Indexes are within range; -1 is kept where the format allows it.
#[derive(Debug)]
pub(crate) struct Graph<'a> {
    pub(crate) name: String,
    pub(crate) tensors: Vec<Tensor<'a>>,
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) operators: Vec<Operator<'a>>,
}

#[derive(Debug)]
pub(crate) struct Operator<'a> {
    pub(crate) code: OperatorCode,
    /// `None` where an optional argument is left out.
    pub(crate) inputs: Vec<Option<usize>>,
    pub(crate) outputs: Vec<usize>,
    pub(crate) table: schema::OperatorRef<'a>,
}

#[derive(Debug)]
pub(crate) struct Tensor<'a> {
    pub(crate) name: String,
    /// The code of its type, see [`schema::TensorType`].
    pub(crate) type_code: i8,
    pub(crate) shape: Vec<u32>,
    /// Whether the file has a shape at all: without, even the rank is open.
    pub(crate) has_shape: bool,
    /// Whether the file says that it is a scalar, whatever is chosen for an input.
    pub(crate) is_scalar: bool,
    /// Whether it is an input for which a shape with a length of 0 is chosen. The HAL has no such inputs: it gets one of
    /// one element that nothing reads, and what reads the tensor reads one that is computed.
    pub(crate) is_left_out: bool,
    /// The shape with `None` where it is not known, if the file has one.
    pub(crate) signature: Option<Vec<Option<u32>>>,
    /// The same as the file has it, whatever becomes of `signature`.
    pub(crate) declared: Option<Vec<Option<u32>>>,
    pub(crate) buffer: usize,
    pub(crate) quantization: Option<Quantization>,
    /// The way in which it is quantized, if [`Quantization`] does not describe it: a table of the format.
    pub(crate) other_quantization: Option<Cow<'static, str>>,
    /// Why the value is not there, of a constant in another file.
    pub(crate) elsewhere: Option<Rc<str>>,
    /// Its scales, if it has one for each block of elements.
    pub(crate) blocks: Option<Blocks>,
    pub(crate) is_variable: bool,
    pub(crate) sparsity: Option<schema::SparsityParametersRef<'a>>,
}

impl Tensor<'_> {
    /// The name for a message.
    pub(crate) fn shown_name(&self) -> Shown<'_> {
        Shown(&self.name)
    }

    /// The name for an operand; operators that share a tensor repeat it.
    pub(crate) fn short_name(&self) -> String {
        beginning(&self.name).to_owned()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantization {
    pub(crate) scales: Vec<f32>,
    pub(crate) zero_points: Vec<i64>,
    pub(crate) dimension: u32,
}

/// A scale for each block of elements along the last axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The tensor of the scales: `[lengths before the last axis, blocks]`.
    pub(crate) scales: usize,
    /// The tensor of the zero points, if the file names one; there need not be such a tensor.
    pub(crate) zero_points: Option<usize>,
    /// Elements of a block, above 0.
    pub(crate) size: u32,
    /// The axis that the table names.
    pub(crate) dimension: u32,
}

/// Where a constant's bytes are in the file.
pub(crate) type Buffer = Range<usize>;

/// A named set of inputs and outputs of a subgraph: names and tensor indexes.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) graph: usize,
    pub(crate) inputs: Vec<(String, usize)>,
    pub(crate) outputs: Vec<(String, usize)>,
}

impl<'a> File<'a> {
    /// Reads the tables of a file.
    pub(crate) fn read(excerpt: &'a Excerpt) -> Result<Self, ImportError> {
        let bytes = excerpt.bytes();
        let model = schema::ModelRef::read_as_root(bytes).map_err(malformed("root"))?;
        let version = model.version().map_err(malformed("version"))?;
        if version != 3 {
            return Err(ImportError::Format(format!("schema version {version}, expected 3")));
        }
        let mut meter = Meter::of(bytes);
        let operator_codes = read_operator_codes(&model, &mut meter)?;
        let mut buffers = read_buffers(&model, excerpt, &mut meter)?;
        let external = external::read(&model, excerpt, &mut buffers, &mut meter)?;
        let stored = (&*buffers, &external);
        let mut graphs = Vec::new();
        for (index, table) in
            model.subgraphs().map_err(malformed("subgraphs"))?.into_iter().flatten().enumerate()
        {
            let place = Place::numbered("subgraph", index);
            meter.take(1)?;
            let table = table.map_err(malformed(place))?;
            graphs.push(read_graph(place, &table, &operator_codes, stored, &mut meter)?);
        }
        if graphs.is_empty() {
            return Err(ImportError::Format("it has no subgraph".into()));
        }
        let signatures = read_signatures(&model, &graphs, &mut meter)?;
        let metadata = read_metadata(&model, &buffers, &mut meter)?;
        let description = model.description().map_err(malformed("description"))?;
        Ok(Self {
            description: description.unwrap_or_default().to_owned(),
            graphs,
            main: 0,
            buffers,
            excerpt,
            signatures,
            metadata,
            is_reshaped: false,
            is_contradicted: false,
            has_other_ranks: false,
            dequantizes_weights: false,
            allowance: Cell::new(0),
            size: excerpt.size(),
        })
    }

    /// Lets an import begin.
    pub(crate) fn renew_allowance(&self) {
        let allowance = self
            .size
            .saturating_mul(ALLOWANCE_PER_BYTE)
            .clamp(ALLOWANCE_AT_LEAST, ALLOWANCE_AT_MOST);
        self.allowance.set(allowance);
    }

    /// Chooses the main subgraph, and gives its inputs other shapes.
    pub(crate) fn choose(&mut self, options: &ImportOptions<'_>) -> Result<(), ImportError> {
        let ImportOptions { shapes, may_contradict, subgraph, dequantizes_weights } = *options;
        self.dequantizes_weights = dequantizes_weights;
        let count = self.graphs.len();
        let Some(main) = self.graphs.get_mut(subgraph) else {
            let what = format!("there is no subgraph {subgraph}, only {count}");
            return Err(ImportError::Format(what));
        };
        self.main = subgraph;
        if shapes.len() > main.inputs.len() {
            let what = format!("there are {} inputs, not {}", main.inputs.len(), shapes.len());
            return Err(malformed("shapes")(what));
        }
        for (position, (input, shape)) in main.inputs.iter().zip(shapes).enumerate() {
            let (tensor, Some(shape)) = (&mut main.tensors[*input], shape) else { continue };
            let fits = match &tensor.signature {
                Some(open) => {
                    open.len() == shape.len()
                        && open.iter().zip(shape).all(|(open, it)| open.is_none_or(|o| o == *it))
                }
                None => tensor.shape == *shape,
            };
            self.is_contradicted |= !fits;
            self.has_other_ranks |= tensor.shape.len() != shape.len();
            let fits = fits || may_contradict;
            if !fits {
                let shown = |lengths: &[Option<u32>]| {
                    let shown = lengths.iter().map(|it| it.map_or("?".into(), |it| it.to_string()));
                    shown.collect::<Vec<String>>().join(", ")
                };
                let what = match &tensor.signature {
                    Some(open) => format!("the shape {shape:?} does not fit [{}]", shown(open)),
                    None => format!("the shape {shape:?} is not {:?}", tensor.shape),
                };
                return Err(malformed(format!("input {position}"))(what));
            }
            self.is_reshaped |= tensor.shape != *shape;
            tensor.shape.clone_from(shape);
            tensor.signature = None;
            tensor.is_left_out = shape.contains(&0);
        }
        Ok(())
    }

    /// Fixes the lengths of inputs to those of the example that every file has.
    pub(crate) fn close_lengths_of_inputs(&mut self) {
        for graph in &mut self.graphs {
            for input in &graph.inputs {
                graph.tensors[*input].signature = None;
            }
        }
    }

    /// Inputs of the main subgraph that leave lengths open, and which axes; not the first one, which is the batch mostly.
    pub(crate) fn open_lengths(&self) -> Vec<(usize, usize)> {
        let main = &self.graphs[self.main];
        let open = main.inputs.iter().flat_map(|input| {
            let lengths = main.tensors[*input].signature.iter().flatten().enumerate();
            lengths.filter(|(axis, it)| *axis > 0 && it.is_none()).map(|(axis, _)| (*input, axis))
        });
        open.collect()
    }

    /// Gives lengths of inputs another value than the file's example has.
    pub(crate) fn set_lengths(&mut self, open: &[(usize, usize)], length: u32) {
        let main = &mut self.graphs[self.main];
        for (input, axis) in open {
            if let Some(of_example) = main.tensors[*input].shape.get_mut(*axis) {
                *of_example = length;
                self.is_reshaped = true;
            }
        }
    }

    /// Whether any input of a subgraph has lengths that are not known.
    pub(crate) fn leaves_lengths_open(&self) -> bool {
        self.graphs.iter().any(|graph| {
            graph.inputs.iter().any(|input| {
                let lengths = &graph.tensors[*input].signature;
                lengths.as_ref().is_some_and(|lengths| lengths.contains(&None))
            })
        })
    }

    /// The bytes of a buffer, which have to be read first if it is large.
    pub(crate) fn bytes(&self, buffer: &Buffer) -> Result<Cow<'a, [u8]>, Reason> {
        if !self.excerpt.has(buffer) {
            self.allow(buffer.len())?;
        }
        self.excerpt.read(buffer.clone())
    }

    /// Which memory a buffer is in, 0 is the file, and where it begins there; `None` where that
    /// cannot be said in 32 bits.
    pub(crate) fn place(&self, buffer: &Buffer) -> Option<(usize, u32)> {
        let (number, offset) = self.excerpt.place(buffer)?;
        Some((number, u32::try_from(offset).ok()?))
    }

    /// Takes this many bytes from what the import may make; a short file must not become a huge
    /// model.
    pub(crate) fn allow(&self, bytes: usize) -> Result<(), Reason> {
        let left = self.allowance.get().checked_sub(bytes);
        let left = left.ok_or_else(|| {
            Reason::new("the model would be out of all proportion to the size of its file")
        })?;
        self.allowance.set(left);
        Ok(())
    }
}

fn read_operator_codes(
    model: &schema::ModelRef<'_>,
    meter: &mut Meter,
) -> Result<Vec<OperatorCode>, ImportError> {
    let place = "operator codes";
    let mut codes = Vec::new();
    for table in model.operator_codes().map_err(malformed(place))?.into_iter().flatten() {
        meter.take(1)?;
        let mut read = || -> Result<OperatorCode, ImportError> {
            let table = table.map_err(malformed(place))?;
            // Files written before the byte ran out have the code in the older field only.
            let old = table.deprecated_builtin_code().map_err(malformed(place))?;
            let code = table.builtin_code().map_err(malformed(place))?.max(i32::from(old));
            let kind = match BuiltinOperator::try_from(code) {
                Ok(BuiltinOperator::Custom) => {
                    let name = table.custom_code().map_err(malformed(place))?.unwrap_or_default();
                    meter.take(name.len())?;
                    OperatorKind::Custom(name.into())
                }
                Ok(builtin) => OperatorKind::Builtin(builtin),
                Err(_) => OperatorKind::Unknown(code),
            };
            Ok(OperatorCode { kind, version: table.version().map_err(malformed(place))? })
        };
        codes.push(read()?);
    }
    Ok(codes)
}

fn read_buffers(
    model: &schema::ModelRef<'_>,
    excerpt: &Excerpt,
    meter: &mut Meter,
) -> Result<Vec<Buffer>, ImportError> {
    let bytes = excerpt.bytes();
    let mut buffers = Vec::new();
    for (index, table) in
        model.buffers().map_err(malformed("buffers"))?.into_iter().flatten().enumerate()
    {
        meter.take(1)?;
        let place = Place::numbered("buffer", index);
        let table = table.map_err(malformed(place))?;
        let outside = table.offset().map_err(malformed(place))?;
        buffers.push(if outside > 1 {
            let size = table.size().map_err(malformed(place))?;
            let from = usize::try_from(outside).ok();
            let to = outside.checked_add(size).and_then(|to| usize::try_from(to).ok());
            let range = from.zip(to).filter(|(from, to)| excerpt.holds(&(*from..*to)));
            let (from, to) = range.ok_or_else(|| {
                let length = bytes.len();
                malformed(place)(format!(
                    "{size} bytes at {outside} are outside of the file's {length}; {CUT_OFF}"
                ))
            })?;
            from..to
        } else {
            let data = table.data().map_err(malformed(place))?.unwrap_or_default();
            // Both slices are of one file, so the difference is where the buffer begins in it.
            let offset = data.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
            let offset = if data.is_empty() { 0 } else { offset };
            offset..offset + data.len()
        });
    }
    Ok(buffers)
}

fn read_graph<'a>(
    place: Place<'_>,
    table: &schema::SubGraphRef<'a>,
    codes: &[OperatorCode],
    stored: (&[Buffer], &ExternalBuffers),
    meter: &mut Meter,
) -> Result<Graph<'a>, ImportError> {
    let mut tensors = Vec::new();
    for (index, tensor) in
        table.tensors().map_err(malformed(place))?.into_iter().flatten().enumerate()
    {
        let place = place.part("tensor", Some(index));
        let tensor = tensor.map_err(malformed(place))?;
        tensors.push(read_tensor(place, &tensor, stored, meter)?);
    }
    let count = tensors.len();
    let mut operators = Vec::new();
    for (index, operator) in
        table.operators().map_err(malformed(place))?.into_iter().flatten().enumerate()
    {
        let place = place.part("operator", Some(index));
        let operator = operator.map_err(malformed(place))?;
        operators.push(read_operator(place, operator, codes, count, meter)?);
    }
    let mut indexes = |what: &str, vector: planus::Result<Option<planus::Vector<'a, i32>>>| {
        let place = place.part(what, None);
        let read = read_indexes(place, vector, count, meter)?;
        read.into_iter()
            .map(|index| index.ok_or_else(|| malformed(place)("an index is -1")))
            .collect::<Result<Vec<_>, _>>()
    };
    let (inputs, outputs) =
        (indexes("inputs", table.inputs())?, indexes("outputs", table.outputs())?);
    let name = table.name().map_err(malformed(place))?.unwrap_or_default();
    meter.take(name.len())?;
    for operator in &operators {
        // TensorFlow's converter writes the type of what is compared, and TensorFlow Lite gives differences of floats.
        if matches!(&operator.code.kind, OperatorKind::Custom(name) if &**name == "NumericVerify") {
            for output in &operator.outputs {
                tensors[*output].type_code = TensorType::Float32 as i8;
            }
        }
    }
    Ok(Graph { name: name.to_owned(), inputs, outputs, tensors, operators })
}

/// Indexes of tensors; -1 becomes `None`.
fn read_indexes(
    place: Place<'_>,
    vector: planus::Result<Option<planus::Vector<'_, i32>>>,
    count: usize,
    meter: &mut Meter,
) -> Result<Vec<Option<usize>>, ImportError> {
    let Some(vector) = vector.map_err(malformed(place))? else { return Ok(Vec::new()) };
    meter.take(vector.len())?;
    vector
        .iter()
        .map(|index| match usize::try_from(index) {
            Ok(index) if index < count => Ok(Some(index)),
            Err(_) if index == -1 => Ok(None),
            _ => Err(malformed(place)(format!("there is no tensor {index}, only {count}"))),
        })
        .collect()
}

fn read_operator<'a>(
    place: Place<'_>,
    table: schema::OperatorRef<'a>,
    codes: &[OperatorCode],
    tensor_count: usize,
    meter: &mut Meter,
) -> Result<Operator<'a>, ImportError> {
    meter.take(1)?;
    let code = table.opcode_index().map_err(malformed(place))?;
    let code = codes
        .get(code as usize)
        .ok_or_else(|| malformed(place)(format!("there is no operator code {code}")))?;
    let mut present = |what: &str, vector| {
        let place = place.part(what, None);
        let read = read_indexes(place, vector, tensor_count, meter)?;
        read.into_iter()
            .map(|index| index.ok_or_else(|| malformed(place)("an index is -1")))
            .collect::<Result<Vec<usize>, _>>()
    };
    let outputs = present("outputs", table.outputs())?;
    Ok(Operator {
        code: code.clone(),
        inputs: read_indexes(place.part("inputs", None), table.inputs(), tensor_count, meter)?,
        outputs,
        table,
    })
}

fn read_tensor<'a>(
    place: Place<'_>,
    table: &schema::TensorRef<'a>,
    stored: (&[Buffer], &ExternalBuffers),
    meter: &mut Meter,
) -> Result<Tensor<'a>, ImportError> {
    meter.take(1)?;
    let shape = table.shape().map_err(malformed(place))?;
    let has_shape = shape.is_some();
    if let Some(rank) = shape.map(|shape| shape.len()).filter(|rank| *rank > MOST_AXES) {
        let what = format!("the shape has {rank} axes, expected {MOST_AXES} at most");
        return Err(malformed(place)(what));
    }
    let shape = lengths(shape, meter)?;
    let quantization = table.quantization().map_err(malformed(place))?;
    let signature = lengths(table.shape_signature().map_err(malformed(place))?, meter)?;
    let shape = shape
        .into_iter()
        .map(|length| length.ok_or_else(|| malformed(place)("a length is negative")))
        .collect::<Result<Vec<_>, _>>()?;
    if !signature.is_empty() && signature.len() != shape.len() {
        return Err(malformed(place)(format!(
            "the shape has rank {}, its signature {}",
            shape.len(),
            signature.len()
        )));
    }
    let signature = Some(signature).filter(|signature| !signature.is_empty());
    let (buffer, elsewhere) = read_place(place, table, stored)?;
    let name = table.name().map_err(malformed(place))?.unwrap_or_default();
    meter.take(name.len())?;
    Ok(Tensor {
        name: name.to_owned(),
        type_code: table.type_().map_err(malformed(place))?,
        is_scalar: has_shape && shape.is_empty(),
        is_left_out: false,
        shape,
        has_shape,
        other_quantization: quantization.and_then(|it| other_quantization(&it)),
        elsewhere,
        blocks: quantization.and_then(|it| blocks(&it)),
        declared: signature.clone(),
        signature,
        buffer,
        quantization: read_quantization(place, table, meter)?,
        is_variable: table.is_variable().map_err(malformed(place))?,
        sparsity: table.sparsity().map_err(malformed(place))?,
    })
}

/// The buffer of a tensor's value, and why that is not there, if it is in another file.
fn read_place(
    place: Place<'_>,
    table: &schema::TensorRef<'_>,
    (buffers, external): (&[Buffer], &ExternalBuffers),
) -> Result<(usize, Option<Rc<str>>), ImportError> {
    let buffer = table.buffer().map_err(malformed(place))? as usize;
    let own = buffers.get(buffer);
    if own.is_none() && buffer > 0 {
        let count = buffers.len();
        return Err(malformed(place)(format!("there is no buffer {buffer}, only {count}")));
    }
    let id = table.external_buffer().map_err(malformed(place))?;
    if id == 0 {
        return Ok((buffer, None));
    }
    if buffer > 0 && own.is_some_and(|own| !own.is_empty()) {
        return Err(malformed(place)("it has a buffer and an external buffer, expected one"));
    }
    match external.get(&id) {
        Some(Ok(buffer)) => Ok((*buffer, None)),
        Some(Err(why)) => Ok((0, Some(Rc::clone(why)))),
        None => Err(malformed(place)(format!("there is no external buffer {id}"))),
    }
}

/// The table that says how a tensor is quantized, where its own scales and zero points do not.
fn other_quantization(
    quantization: &schema::QuantizationParametersRef<'_>,
) -> Option<Cow<'static, str>> {
    use schema::QuantizationDetailsRef as Details;
    Some(match quantization.details() {
        Ok(details) => match details? {
            Details::CustomQuantization(_) => "CustomQuantization".into(),
            Details::BlockwiseQuantization(_) => "BlockwiseQuantization".into(),
            Details::MultiAxisQuantization(_) => "MultiAxisQuantization".into(),
        },
        Err(planus::Error { error_kind: ErrorKind::UnknownUnionTag { tag }, .. }) => {
            format!("QuantizationDetails {tag}, which is newer than this program").into()
        }
        Err(error) => format!("QuantizationDetails that cannot be read: {error}").into(),
    })
}

/// Lengths of axes; negative ones become `None`.
fn lengths(
    vector: Option<planus::Vector<'_, i32>>,
    meter: &mut Meter,
) -> Result<Vec<Option<u32>>, ImportError> {
    let Some(vector) = vector else { return Ok(Vec::new()) };
    meter.take(vector.len())?;
    Ok(vector.iter().map(|length| u32::try_from(length).ok()).collect())
}

/// `None` for quantization of another kind, or that says nothing that can be true.
fn blocks(quantization: &schema::QuantizationParametersRef<'_>) -> Option<Blocks> {
    let Ok(Some(schema::QuantizationDetailsRef::BlockwiseQuantization(table))) =
        quantization.details()
    else {
        return None;
    };
    let size = u32::try_from(table.block_size().ok()?).ok().filter(|size| *size > 0)?;
    Some(Blocks {
        scales: usize::try_from(table.scales().ok()?).ok()?,
        zero_points: usize::try_from(table.zero_points().ok()?).ok(),
        size,
        dimension: u32::try_from(quantization.quantized_dimension().ok()?).ok()?,
    })
}

fn read_quantization(
    place: Place<'_>,
    table: &schema::TensorRef<'_>,
    meter: &mut Meter,
) -> Result<Option<Quantization>, ImportError> {
    let Some(table) = table.quantization().map_err(malformed(place))? else { return Ok(None) };
    let scales = table.scale().map_err(malformed(place))?;
    let zero_points = table.zero_point().map_err(malformed(place))?;
    let dimension = table.quantized_dimension().map_err(malformed(place))?;
    let dimension = u32::try_from(dimension)
        .map_err(|_| malformed(place)(format!("the quantized axis is {dimension}")))?;
    meter.take(scales.map_or(0, |it| it.len()) + zero_points.map_or(0, |it| it.len()))?;
    let quantization = Quantization {
        scales: scales.map(|scales| scales.iter().collect()).unwrap_or_default(),
        zero_points: zero_points.map(|points| points.iter().collect()).unwrap_or_default(),
        dimension,
    };
    Ok(Some(quantization).filter(|quantization| !quantization.scales.is_empty()))
}

fn read_metadata(
    model: &schema::ModelRef<'_>,
    buffers: &[Buffer],
    meter: &mut Meter,
) -> Result<Vec<(String, Buffer)>, ImportError> {
    let mut all = Vec::new();
    for (index, table) in
        model.metadata().map_err(malformed("metadata"))?.into_iter().flatten().enumerate()
    {
        let place = Place::numbered("metadata", index);
        let table = table.map_err(malformed(place))?;
        let name = table.name().map_err(malformed(place))?.unwrap_or_default();
        meter.take(1 + name.len())?;
        let buffer = table.buffer().map_err(malformed(place))? as usize;
        let Some(stored) = buffers.get(buffer) else {
            return Err(malformed(place)(format!("there is no buffer {buffer}")));
        };
        all.push((name.to_owned(), stored.clone()));
    }
    Ok(all)
}

fn read_signatures(
    model: &schema::ModelRef<'_>,
    graphs: &[Graph<'_>],
    meter: &mut Meter,
) -> Result<Vec<Signature>, ImportError> {
    let mut signatures = Vec::new();
    for (index, table) in
        model.signature_defs().map_err(malformed("signatures"))?.into_iter().flatten().enumerate()
    {
        let place = Place::numbered("signature", index);
        meter.take(1)?;
        let table = table.map_err(malformed(place))?;
        let graph = table.subgraph_index().map_err(malformed(place))? as usize;
        let Some(tensors) = graphs.get(graph).map(|graph| graph.tensors.len()) else {
            return Err(malformed(place)(format!("there is no subgraph {graph}")));
        };
        let mut names = |maps: planus::Result<Option<planus::Vector<'_, _>>>| {
            let mut names = Vec::new();
            for map in maps.map_err(malformed(place))?.into_iter().flatten() {
                let map: schema::TensorMapRef<'_> = planus::Result::map_err(map, malformed(place))?;
                let name = map.name().map_err(malformed(place))?.unwrap_or_default();
                meter.take(1 + name.len())?;
                let tensor = map.tensor_index().map_err(malformed(place))? as usize;
                if tensor >= tensors {
                    return Err(malformed(place)(format!("there is no tensor {tensor}")));
                }
                names.push((name.to_owned(), tensor));
            }
            Ok(names)
        };
        let name = table.signature_key().map_err(malformed(place))?.unwrap_or_default();
        let (inputs, outputs) = (names(table.inputs())?, names(table.outputs())?);
        meter.take(name.len())?;
        signatures.push(Signature { inputs, outputs, name: name.to_owned(), graph });
    }
    Ok(signatures)
}

/// The type as the format calls it.
pub(crate) fn type_name(code: i8) -> String {
    TensorType::try_from(code)
        .map_or_else(|_| format!("type {code}"), |known| format!("{known:?}").to_uppercase())
}

/// The lengths of all axes, `None` where the file says that they are not known.
pub(crate) fn known_lengths(tensor: &Tensor<'_>) -> Vec<Option<u32>> {
    match &tensor.signature {
        Some(signature) => signature.clone(),
        None => tensor.shape.iter().copied().map(Some).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_as_the_format_does() {
        for (builtin, name) in [
            (BuiltinOperator::DepthwiseConv2d, "DEPTHWISE_CONV_2D"),
            (BuiltinOperator::TopkV2, "TOPK_V2"),
            (BuiltinOperator::StablehloCase, "STABLEHLO_CASE"),
        ] {
            assert_eq!(OperatorKind::Builtin(builtin).to_string(), name);
        }
    }

    #[test]
    fn other_files_are_distinguished() {
        for bytes in [&b"\0"[..], b"\0\0\0\0TFL2\0\0\0\0", b"\xFF\xFF\xFF\xFFTFL3"] {
            assert!(crate::import_bytes(bytes).is_err());
        }
    }
}
