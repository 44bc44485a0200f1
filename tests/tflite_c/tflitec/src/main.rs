//! A program as users of the crate `tflitec` write them: `tflitec-program MODEL` runs the model and prints its outputs. The
//! crate makes its bindings from the headers, and links the library.

use tflitec::interpreter::{Interpreter, Options};
use tflitec::model::Model;
use tflitec::tensor::DataType;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: tflitec-program MODEL")?;
    let options = Options { thread_count: 2, ..Options::default() };
    let model = Model::new(&path)?;
    let interpreter = Interpreter::new(&model, Some(options))?;
    interpreter.allocate_tensors()?;
    for brightness in [0, 40, 80] {
        let input = interpreter.input(0)?;
        let count: usize = input.shape().dimensions().iter().product();
        if input.data_type() == DataType::Float32 {
            let ramp = |at: usize| (at + brightness) as f32 / (count + 80) as f32;
            interpreter.copy(&(0..count).map(ramp).collect::<Vec<f32>>(), 0)?;
        } else {
            let ramp = |at: usize| ((at + brightness) % 128) as i8;
            interpreter.copy(&(0..count).map(ramp).collect::<Vec<i8>>(), 0)?;
        }
        interpreter.invoke()?;
        let output = interpreter.output(0)?;
        if output.data_type() == DataType::Float32 {
            let values: Vec<String> = output.data::<f32>().iter().map(|it| format!("{it:.4}")).collect();
            println!("{} {:?}: {}", output.name(), output.shape().dimensions(), values.join(" "));
        } else {
            println!("{} {:?}: {:?}", output.name(), output.shape().dimensions(), output.data::<i8>());
        }
    }
    println!("version {}", tflitec::tf_lite_version());
    Ok(())
}
