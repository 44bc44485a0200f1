//! Asks a device for Fibonacci numbers, and for the ratios of neighbours, which near the golden
//! ratio. The numbers are computed by an extension of the device, the ratios by operations of the
//! interface, in one model.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

use fibonacci_extension::{EXTENSION_NAME, FibonacciEngine, Vocabulary};
use nnhal_hal::{
    Device, ExecutionOptions, FusedActivation, HalVersion, Model, ModelBuilder, OperandId,
    OperandSpec, OperandType, OperationType, PrepareOptions, RequestBuilder, SubgraphBuilder,
};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let count: u32 = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 16,
    };
    let device: Box<dyn Device> =
        Box::new(nnhal_driver::DriverDevice::new(FibonacciEngine::default()));
    for extension in device.supported_extensions() {
        println!("{} offers {}", device.name(), extension.name);
    }

    let model = model()?;
    let prepared = device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default())?;
    let mut request = RequestBuilder::new();
    request.input(&count.to_le_bytes());
    request.output(count as usize * size_of::<u64>());
    request.output(count as usize * size_of::<f32>());
    let request = request.build()?;
    let execution = prepared.execute(&request, &ExecutionOptions::default())?;

    let numbers = elements(&RequestBuilder::read_output(&request, 0)?, u64::from_le_bytes);
    let ratios = elements(&RequestBuilder::read_output(&request, 1)?, f32::from_le_bytes);
    let lengths = [0, 1].map(|output| execution.dimensions(output).map(<[u32]>::to_vec));
    println!("shapes: {lengths:?}");
    // The first two have no ratio: there is nothing before 0, and 1 / 0 is none.
    let ratios = [None, None].into_iter().chain(ratios.into_iter().map(Some));
    for (number, ratio) in numbers.iter().zip(ratios) {
        match ratio {
            None => println!("{number:>20}"),
            Some(ratio) => println!("{number:>20}  {ratio:.7}"),
        }
    }
    Ok(())
}

/// `count -> (FIBONACCI(count), each of them but the first two divided by the one before it)`
fn model() -> Result<Model, Box<dyn Error>> {
    // Any prefix but 0 will do: the model says what it stands for.
    let words = Vocabulary::with_prefix(0x0F1B).ok_or("prefix 0")?;
    let mut graph = SubgraphBuilder::new();
    let count = graph.input("count", OperandSpec::scalar(OperandType::Int32));
    // How many numbers there are follows from the request.
    let numbers = OperandSpec::new(words.tensor_uint64(), [0]);
    let numbers = graph.operation(words.fibonacci(), [count], numbers);
    graph.output(numbers);
    let unknown = || OperandSpec::tensor_float32([0]);
    let floats = graph.operation(words.to_float32(), [numbers], unknown());
    let dividends = slice(&mut graph, floats, 2, -1, 0b1);
    let divisors = slice(&mut graph, floats, 1, -1, 0b0);
    let none = graph.scalar_i32(FusedActivation::None.code());
    let ratios = graph.operation(OperationType::Div, [dividends, divisors, none], unknown());
    graph.output(ratios);
    let mut model = ModelBuilder::new();
    model.extension(EXTENSION_NAME, words.prefix());
    Ok(model.build(graph)?)
}

/// The elements of a tensor of rank 1 from `begin` to before `end`, which counts from the end;
/// with `end_mask` 1 to the end.
fn slice(
    graph: &mut SubgraphBuilder,
    tensor: OperandId,
    begin: i32,
    end: i32,
    end_mask: i32,
) -> OperandId {
    let index = |graph: &mut SubgraphBuilder, index: i32| {
        graph.constant(OperandSpec::tensor_int32([1]), &[index])
    };
    let arguments = [
        tensor,
        index(graph, begin),
        index(graph, end),
        index(graph, 1),
        graph.scalar_i32(0),
        graph.scalar_i32(end_mask),
        graph.scalar_i32(0),
    ];
    graph.operation(OperationType::StridedSlice, arguments, OperandSpec::tensor_float32([0]))
}

fn elements<T, const SIZE: usize>(bytes: &[u8], element: fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| element(*bytes)).collect()
}
