//! Readers and writers of the `.tflite` format, made out of its schema.
//!
//! Not by a build script: the generator and what it needs would be a tenth of the work of building `nnhal`.

use std::error::Error;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "crates/tflite/src/schema/tflite.fbs";
const NOTE: &str = "// Made out of tflite.fbs by `cargo xtask schema`. Do not edit.\n";

/// The file that the schema gives, and what belongs into it.
pub(crate) fn generate(root: &Path) -> Result<(PathBuf, String), Box<dyn Error>> {
    let schema = root.join(SCHEMA);
    let declarations = planus_translation::translate_files(&[&schema])
        .ok_or_else(|| format!("{} is not a schema", schema.display()))?;
    let code = planus_codegen::generate_rust(&declarations, false)?;
    // The generator also derives serde's traits, which nothing here uses.
    let code = code.replace("::serde::Serialize, ::serde::Deserialize", "");
    // A third of its lines are empty, and some say where the schema is on this machine.
    let is_place = |line: &str| line.contains("Generated from these") || line.contains(".fbs");
    let is_kept = |line: &&str| !line.is_empty() && !is_place(line);
    let lines = code.lines().map(str::trim_end).filter(is_kept);
    let code = lines.fold(NOTE.to_owned(), |file, line| file + line + "\n");
    Ok((schema.with_file_name("generated.rs"), code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_code_is_what_the_schema_gives() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let (path, expected) = generate(root).unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        let differs = found.lines().zip(expected.lines()).position(|(found, made)| found != made);
        assert!(
            found == expected,
            "{} differs (line {differs:?}, counted from 0): run `cargo xtask schema`",
            path.display()
        );
    }
}
