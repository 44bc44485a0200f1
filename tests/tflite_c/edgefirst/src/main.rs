//! A program as users of the crate `edgefirst-tflite` write them: `edgefirst LIBRARY MODEL` loads the library, runs the
//! model and prints what it says.

use edgefirst_tflite::{Interpreter, Library, Model, TensorType};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, library, model] = &*std::env::args().collect::<Vec<_>>() else {
        return Err("usage: edgefirst LIBRARY MODEL".into());
    };
    let library = Library::from_path(library)?;
    let model = Model::from_bytes(&library, std::fs::read(model)?)?;
    let mut interpreter = Interpreter::builder(&library)?.num_threads(2).build(&model)?;
    for tensor in interpreter.inputs()? {
        println!("input {tensor} {:?}", tensor.quantization_params());
    }
    for brightness in [0, 40, 80] {
        for tensor in &mut interpreter.inputs_mut()? {
            if tensor.tensor_type() == TensorType::Float32 {
                let values = tensor.as_mut_slice::<f32>()?;
                let count = values.len();
                values.iter_mut().enumerate().for_each(|(at, it)| *it = (at + brightness) as f32 / (count + 80) as f32);
            } else {
                let values = tensor.as_mut_slice::<i8>()?;
                values.iter_mut().enumerate().for_each(|(at, it)| *it = ((at + brightness) % 128) as i8);
            }
        }
        interpreter.invoke()?;
        for tensor in interpreter.outputs()? {
            if tensor.tensor_type() == TensorType::Float32 {
                let values: Vec<String> = tensor.as_slice::<f32>()?.iter().map(|it| format!("{it:.4}")).collect();
                println!("output {tensor}: {}", values.join(" "));
            } else {
                println!("output {tensor}: {:?}", tensor.as_slice::<i8>()?);
            }
        }
    }
    Ok(())
}
