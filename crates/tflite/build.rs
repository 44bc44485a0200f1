//! Makes readers and writers of the file format out of `src/schema/tflite.fbs`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let schema = "src/schema/tflite.fbs";
    println!("cargo::rerun-if-changed={schema}");
    let declarations = planus_translation::translate_files(&[Path::new(schema)])
        .ok_or_else(|| format!("{schema} is not a schema"))?;
    let code = planus_codegen::generate_rust(&declarations, false)?;
    // The generator also derives serde's traits, which nothing here uses.
    let code = code.replace("::serde::Serialize, ::serde::Deserialize", "");
    let out = Path::new(&std::env::var("OUT_DIR")?).join("schema.rs");
    std::fs::write(out, code)?;
    Ok(())
}
